# SPDX-License-Identifier: GPL-2.0
"""Traffic both ways: every size, streams, transactions, many flows, every queue."""

import json
import re

from .. import packet, wire
from ..common import expect
from ..runner import OURS, test
from .bringup import BOUNCED, EVERY, FULL, SMALL, STRICT, WIDE

SECONDS = 3
# In place of that where all takes long: iperf3 gives up a test that takes much longer than it was to.
SLOW_BYTES = "16M"
# Sent by the queue test: enough flows that an even spread leaves no queue without one.
FLOWS = 256
GUEST = "/opt/ring-nics"


def ping_sizes(rig, low, high, step=1):
    """Echoes of every size in [low, high], IPv4 and IPv6, each payload compared byte by byte."""
    for address in (rig.peer.v4, rig.peer.v6):
        rig.guest.run(f"python3 {GUEST}/ping_sizes.py {address} {low} {high} {step}", timeout=150)


def iperf3(rig, *options, seconds=SECONDS):
    """One run of iperf3 against the peer, or as long as `options` say; returns its end summary."""
    if seconds and rig.guest.slowness > 1:
        options = ("--bytes", SLOW_BYTES, *options)
    elif seconds:
        options = ("--time", str(seconds), *options)
    command = f"iperf3 --client {rig.peer.v4} --json {' '.join(options)}"
    answer = json.loads(rig.guest.run(command, timeout=(seconds or 60) + 60, check=False).stdout or "{}")
    expect("error" not in answer and answer, f"iperf3: {answer.get('error', 'no answer')}")
    return answer["end"]


def received_mbits(end):
    return end["sum_received"]["bits_per_second"] / 1e6


def netperf(rig, name, *options, seconds=SECONDS):
    """One run of netperf; returns its throughput, in Mbit/s or transactions per second."""
    test_options = " ".join(("-o", "THROUGHPUT", *options))
    command = f"netperf -H {rig.peer.v4} -l {seconds} -t {name} -P 0 -- {test_options}"
    lines = rig.guest.run(command, timeout=seconds + 60).stdout.split()
    expect(lines, f"netperf {name} printed no result")
    return float(lines[-1])


@test(boots=(FULL,), timeout=400)
def ping(rig):
    """Every size from nothing to the MTU."""
    rig.ensure_up()
    ping_sizes(rig, 0, 1500)


@test(boots=(STRICT, BOUNCED, SMALL, WIDE))
def ping_some(rig):
    """Sizes around the edges that buffers and descriptors have."""
    rig.ensure_up()
    ping_sizes(rig, 0, 1500, 37)


@test(boots=(STRICT, BOUNCED, SMALL, WIDE), long=True)
def ping_all(rig):
    """Every size, where the default run takes some."""
    rig.ensure_up()
    ping_sizes(rig, 0, 1500)


@test(boots=EVERY)
def integrity(rig):
    """Megabytes of random data each way over TCP, hashed at both ends."""
    rig.ensure_up()
    size = 4 if rig.guest.boot.iommu_strict else 32
    for address in (rig.peer.v4, rig.peer.v6):
        stream = wire.StreamServer(address)
        try:
            answer = rig.guest.output(
                f"python3 {GUEST}/stream.py connect {address} {stream.port} {size}", timeout=120
            )
            stream.check()
            expect(answer == "same", f"data from the peer arrived changed: {answer}")
        finally:
            stream.close()


@test(boots=EVERY)
def iperf3_both_ways(rig):
    rig.ensure_up()
    for options in ((), ("--reverse",)):
        rate = received_mbits(iperf3(rig, *options))
        expect(rate > 0, f"iperf3 {options} got {rate:.2f} Mbit/s through")


@test(boots=(FULL,))
def netperf_both_ways(rig):
    rig.ensure_up()
    for name in ("TCP_STREAM", "TCP_MAERTS"):
        rate = netperf(rig, name)
        expect(rate > 0, f"netperf {name} got {rate:.2f} Mbit/s through")


@test(drivers=OURS, boots=(FULL, WIDE))
def flows(rig):
    """1, 4 and 8 flows each way; none starves."""
    rig.ensure_up()
    for number in (1, 4, 8):
        for options in ((), ("--reverse",)):
            end = iperf3(rig, "--parallel", str(number), *options)
            idle = [s for s in end["streams"] if s["receiver"]["bytes"] == 0]
            expect(not idle, f"{len(idle)} of {number} flows {options} got nothing through")


@test(drivers=OURS, boots=(FULL, STRICT, SMALL))
def transactions(rig):
    """Requests and responses: nothing waits for a later packet, or a timer, to be completed or
    announced, which would make it a handful a second."""
    rig.ensure_up()
    for name in ("TCP_RR", "UDP_RR"):
        rate = netperf(rig, name)
        expect(rate > 20, f"netperf {name}: {rate:.0f} transactions per second")


@test(drivers=OURS, boots=(FULL,))
def datagrams(rig):
    """UDP_STREAM: all that the guest says it sent is on the wire, and the peer receives it, but for what sockets
    drop."""
    rig.ensure_up()
    before = rig.model.counters()
    lost = rig.links()["stats64"]["tx"]["dropped"]
    command = f"netperf -H {rig.peer.v4} -l {SECONDS} -t UDP_STREAM -P 0 -- -m 1400 -R 1 -o LOCAL_SEND_CALLS,REMOTE_RECV_CALLS"
    sent, received = map(int, rig.guest.run(command, timeout=SECONDS + 60).stdout.strip().split(","))
    on_wire = rig.model.counters()["port0.out_frames"] - before["port0.out_frames"]
    lost = rig.links()["stats64"]["tx"]["dropped"] - lost
    queued = rig.guest.output(f"tc -s qdisc show dev {rig.interface}")
    expect(lost == 0, f"the driver dropped {lost} frames")
    expect(on_wire >= sent - dropped(queued), f"of {sent} datagrams {on_wire} left the port:\n{queued}")
    expect(0 < received <= on_wire, f"of {on_wire} frames {received} were received")


def dropped(text):
    """Packets that the queueing disciplines have dropped, of the output of tc."""
    return sum(map(int, re.findall(r"\(dropped (\d+),", text)))


@test(drivers=OURS, boots=(FULL,))
def mapped_elsewhere(rig):
    """A filter maps packets to another queue than the one that sends them: none is lost, none waits."""
    rig.ensure_up()
    name = rig.interface
    rig.guest.run(
        f"tc qdisc replace dev {name} root handle 1: mq &&"
        f"for n in 1 2; do tc qdisc replace dev {name} parent 1:$n handle 1$n: fq_codel &&"
        f" tc filter add dev {name} parent 1$n: matchall classid 1$n:1 action skbedit queue_mapping $((2 - n)); done"
    )
    before = rig.links()["stats64"]["tx"]["dropped"]
    ping_sizes(rig, 0, 1500, 97)
    rate = received_mbits(iperf3(rig, "--parallel", "4"))
    expect(rate > 0, "nothing came through")
    rig.guest.run(f"tc qdisc delete dev {name} root")
    lost = rig.links()["stats64"]["tx"]["dropped"] - before
    expect(lost == 0, f"{lost} packets were dropped")


@test(drivers=OURS, boots=(FULL,))
def mtu(rig):
    """The MTU from 576 to the port's maximum, and what is out of range is refused."""
    rig.ensure_up()
    name = rig.interface
    details = json.loads(rig.guest.output(f"ip -d -j link show dev {name}"))[0]
    largest = details["max_mtu"]
    try:
        for size in sorted({576, 1280, 1499, 1501, 3000, 9000, largest}):
            if size > largest:
                continue
            rig.peer.set_mtu(max(size, 1280))
            rig.guest.run(f"ip link set {name} mtu {size}")
            rig.wait_for_peer(name, rig.peer)
            rig.guest.run(f"python3 {GUEST}/ping_sizes.py {rig.peer.v4} {size - 3} {size}")
            iperf3(rig, seconds=1)
        refused = rig.guest.run(f"ip link set {name} mtu {largest + 1}", check=False)
        expect(refused.rc != 0, f"an MTU of {largest + 1} was accepted")
    finally:
        rig.bring_up()


@test(boots=(FULL, WIDE))
def queues(rig):
    """RSS spreads flows over every receive queue, and every processor has a transmit queue."""
    rig.ensure_up()
    name, mac = rig.interface, rig.links()["address"]
    count = rig.channels()
    before = rig.statistics()
    wire.send_frames(
        rig.peer,
        [
            packet.udp(rig.peer.mac, mac, rig.peer.v4, rig.peer.guest_v4, (20000 + n, 9), bytes(64))
            for n in range(FLOWS)
        ],
    )
    for cpu in range(rig.guest.boot.cpus):
        rig.guest.run(
            f"for p in $(seq 16); do taskset -c {cpu} bash -c"
            f" 'echo x >/dev/udp/{rig.peer.v4}/9'; done; true"
        )
    after = rig.statistics()
    for direction in ("rx", "tx"):
        idle = [
            queue
            for queue in range(count)
            if after[f"{direction}_{queue}_packets"] == before[f"{direction}_{queue}_packets"]
        ]
        expect(not idle, f"{direction} queues {idle} of {count} on {name} carried nothing")
    received = [after[f"rx_{q}_packets"] - before[f"rx_{q}_packets"] for q in range(count)]
    fair = FLOWS / count
    expect(
        min(received) > fair / 4,
        f"{FLOWS} flows over {count} receive queues came as {received}",
    )
