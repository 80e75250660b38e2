# SPDX-License-Identifier: GPL-2.0
"""Changes while traffic runs, and the way out."""

import contextlib
import time

from ..common import expect
from ..rig import HANG
from ..runner import OURS, test
from .bringup import BOUNCED, EVERY, FULL, STRICT, WIDE
from .traffic import ping_sizes

ROUNDS_BOTH = 10
ROUNDS_OURS = 50
ROUNDS_LONG = 200
# Frames that a load moves at the very least.
LOAD = 200


@contextlib.contextmanager
def load(rig):
    """Traffic both ways for as long as the block runs. What it loses is no matter, but some frames
    must have passed."""
    peer = rig.peer
    before = frames(rig)
    running = rig.guest.start(
        "trap 'kill $(jobs -p)' EXIT;"
        f"while sleep 0.2; do timeout 20 iperf3 --client {peer.v4} --bidir --time 20 --parallel 2"
        " --connect-timeout 1000 >/dev/null 2>&1; done &"
        f"ping -f -s 1200 {peer.v4} >/dev/null 2>&1 &"
        "until [ -e /tmp/load.stop ]; do sleep 0.1; done",
        timeout=600,
    )
    try:
        yield
    finally:
        rig.guest.run("touch /tmp/load.stop")
        running.result(300)
        rig.guest.run("rm -f /tmp/load.stop; pkill -x ping; pkill -x iperf3", check=False)
    passed = frames(rig) - before
    expect(passed > LOAD, f"the load moved {passed} frames only, more than {LOAD} make a load")


def frames(rig):
    counters = rig.model.counters()
    return counters["port0.in_frames"] + counters["port0.out_frames"]


def expect_load(rig, least=1):
    """Waits until a load has moved as many frames from now on."""
    before, deadline = frames(rig), time.monotonic() + HANG
    while frames(rig) - before < least:
        expect(time.monotonic() < deadline, f"the load moved less than {least} frames in {HANG} s")
        time.sleep(0.1)


def restart(rig, rounds):
    """Down and up under load, each round seen to carry packets again."""
    name = rig.interface
    with load(rig):
        for _ in range(rounds):
            rig.guest.run(f"ip link set {name} down && ip link set {name} up")
            rig.guest.run(
                f"ip address replace {rig.peer.guest_v6}/64 dev {name} nodad; sleep 0.$((RANDOM % 5))"
            )
            expect_load(rig)
    rig.wait_for_peer(name, rig.peer)
    ping_sizes(rig, 0, 1500, 211)


@test(boots=(FULL,))
def down_up(rig):
    rig.ensure_up()
    restart(rig, ROUNDS_BOTH)


@test(drivers=OURS, boots=(FULL,), timeout=600)
def down_up_many(rig):
    rig.ensure_up()
    restart(rig, ROUNDS_OURS)


@test(drivers=OURS, boots=(STRICT, BOUNCED))
def down_up_some(rig):
    rig.ensure_up()
    restart(rig, ROUNDS_BOTH)


@test(boots=EVERY, long=True, timeout=900)
def down_up_long(rig):
    rig.ensure_up()
    restart(rig, ROUNDS_LONG)


@test(boots=(FULL, WIDE))
def channels(rig):
    """ethtool -L under load: every number of queues, and back, each carrying traffic."""
    rig.ensure_up()
    name, before = rig.interface, rig.channels()
    with load(rig):
        for count in [*range(1, before + 1), 1, before]:
            # Asking for what is so already is an error by design.
            if rig.channels() != count:
                rig.guest.run(f"ethtool -L {name} combined {count}")
            seen = rig.channels()
            expect(seen == count, f"asked for {count} queues, ethtool -l says {seen}")
            rig.wait_for_peer(name, rig.peer)
            expect_load(rig)
    ping_sizes(rig, 0, 1500, 293)


@test(drivers=OURS, boots=(FULL,), timeout=600)
def reload(rig):
    """The driver is unloaded under load and loaded again, time after time."""
    rig.ensure_up()
    for _ in range(ROUNDS_BOTH):
        with load(rig):
            expect_load(rig, LOAD + 1)
            rig.unload()
        rig.load()
        rig.bring_up()
    ping_sizes(rig, 0, 1500, 211)


@test(boots=EVERY)
def unload(rig):
    """Unloaded, the driver leaves nothing: no interface, no DMA mapping, no bounce buffer."""
    rig.ensure_up()
    busy = rig.dma_in_use()
    rig.unload()
    expect(not rig.interfaces(), f"the interfaces {rig.interfaces()} are left")
    if busy is None:
        return
    expect(busy > rig.idle_dma, f"{busy} DMA mappings while up, {rig.idle_dma} before the driver came")
    rig.expect_no_dma()
