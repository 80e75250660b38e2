# SPDX-License-Identifier: GPL-2.0
"""Offloads, judged by the frames on the wire and by what the guest accepts from it."""

import json
import time

from .. import packet, wire
from ..common import expect
from ..runner import test
from .bringup import FULL, STRICT
from .traffic import GUEST

VLAN = 100
MIB = 2
FRAME_LIMIT = 1514


def stream_frames(rig, address, expression=""):
    """Frames that the guest sent while it pushed MIB MiB to `address` and as much back."""
    capture = wire.Capture(rig.peer, rig.folder / "stream.pcap", expression, count=20000)
    stream = wire.StreamServer(address)
    try:
        rig.guest.run(f"python3 {GUEST}/stream.py connect {address} {stream.port} {MIB}")
        stream.check()
        port = stream.port
    finally:
        stream.close()
        frames = capture.frames()
    packets = [packet.parse(frame) for frame in frames]
    return [p for p in packets if p.protocol == packet.TCP and p.ports[1] == port]


def judge_stream(packets, limit=FRAME_LIMIT):
    """Each frame fits the wire and has right checksums; together they carry the whole stream."""
    expect(packets, "no frame of the stream was captured")
    for one in packets:
        expect(len(one.frame) <= limit, f"a frame of {len(one.frame)} bytes, {limit} fit the wire")
        expect(one.ip_checksum_right, f"wrong IP checksum: {one.frame[:60].hex()}")
        expect(one.transport_checksum_right, f"wrong TCP checksum: {one.frame[:80].hex()}")
    start = next(p.sequence for p in packets if p.transport[13] & 2) + 1
    covered = bytearray(MIB << 20)
    for one in packets:
        offset = (one.sequence - start) & 0xFFFFFFFF
        length = len(one.payload)
        covered[offset : offset + length] = b"\1" * min(length, max(len(covered) - offset, 0))
    expect(all(covered), "segments of the stream are missing on the wire")


def set_feature(rig, feature, on):
    rig.guest.run(f"ethtool -K {rig.interface} {feature} {'on' if on else 'off'}")


@test(boots=(FULL, STRICT))
def tso(rig):
    """The NIC cuts what the stack hands over whole: right segments on the wire, fewer packets
    through the driver than frames; without it, as many."""
    rig.ensure_up()
    for address in (rig.peer.v4, rig.peer.v6):
        for on in (True, False):
            set_feature(rig, "tso", on)
            rig.model.ask({"clear": "counters"})
            packets = stream_frames(rig, address)
            judge_stream(packets)
            cut = rig.model.counters()["tx_lso_packets"]
            expect(bool(cut) == on, f"tso {'on' if on else 'off'}: the NIC cut {cut} packets")
    set_feature(rig, "tso", True)


@test(boots=(FULL,))
def transmit_checksum(rig):
    """Checksums are right on the wire, whether the NIC or the stack computes them."""
    rig.ensure_up()
    for on in (True, False):
        set_feature(rig, "tx-checksumming", on)
        for address in (rig.peer.v4, rig.peer.v6):
            rig.model.ask({"clear": "counters"})
            capture = wire.Capture(rig.peer, rig.folder / "udp.pcap", "udp port 9")
            rig.guest.run(
                "for size in 1 2 3 17 18 100 1001 1400; do"
                f" head -c $size /dev/urandom >/dev/udp/{address}/9; done"
            )
            frames = [packet.parse(frame) for frame in capture.frames()]
            expect(len(frames) >= 8, f"{len(frames)} of 8 datagrams to {address} were captured")
            for one in frames:
                expect(one.ip_checksum_right, f"wrong IP checksum: {one.frame.hex()}")
                expect(one.transport_checksum_right, f"wrong UDP checksum: {one.frame.hex()}")
                expect(one.transport[6:8] != b"\0\0", "a datagram without checksum")
            computed = rig.model.counters()["tx_csum_packets"]
            expect(bool(computed) == on, f"tx-checksumming {on}: the NIC computed {computed} checksums")
    rig.guest.run(f"ethtool -K {rig.interface} tx-checksumming on tso on")


@test(boots=(FULL,))
def receive_checksum(rig):
    """What arrives damaged is not delivered; what is right is."""
    rig.ensure_up()
    mac = rig.links()["address"]

    def counters():
        text = rig.guest.output("nstat --zeros --json --ignore --noupdate UdpInErrors UdpInCsumErrors UdpNoPorts")
        return json.loads(text)["kernel"]

    def datagrams(damage):
        return [
            packet.udp(rig.peer.mac, mac, rig.peer.v4, rig.peer.guest_v4, (30000 + n, 7), bytes([n] * 50), damage)
            for n in range(20)
        ]

    for on in (True, False):
        set_feature(rig, "rx-checksumming", on)
        before = counters()
        wire.send_frames(rig.peer, datagrams(0) + datagrams(1))
        time.sleep(1)
        after = counters()
        state = "on" if on else "off"
        good = after["UdpNoPorts"] - before["UdpNoPorts"]
        bad = after["UdpInCsumErrors"] - before["UdpInCsumErrors"]
        expect(good == 20, f"rx-checksumming {state}: {good} of 20 good datagrams reached the socket layer")
        expect(bad == 20, f"rx-checksumming {state}: {bad} of 20 damaged datagrams were found out")
    set_feature(rig, "rx-checksumming", True)


@test(boots=(FULL,))
def vlan(rig):
    """Tagged traffic: the tag is on the wire, and taken off on the way in."""
    rig.ensure_up()
    name = rig.interface
    port = wire.TaggedPort(rig.peer, VLAN)
    try:
        wire.run("ip", "address", "add", "10.78.0.1/24", "dev", port.device)
        rig.guest.run(
            f"ip link add link {name} name tagged type vlan id {VLAN} &&"
            "ip address add 10.78.0.2/24 dev tagged && ip link set tagged up"
        )
        rig.guest.run(f"python3 {GUEST}/ping_sizes.py 10.78.0.1 0 1500 100")
        before = rig.model.counters()["tx_vlan_packets"]
        packets = stream_frames(rig, "10.78.0.1", f"vlan {VLAN}")
        tagged = rig.model.counters()["tx_vlan_packets"] - before
        expect(tagged > 0, "the NIC was asked to insert no tag")
        expect(all(p.vlan == VLAN for p in packets), "frames of the tagged stream have no tag")
        judge_stream(packets, FRAME_LIMIT + 4)
    finally:
        rig.guest.run("ip link delete tagged", check=False)
        port.close()
