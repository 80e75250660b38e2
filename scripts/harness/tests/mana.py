# SPDX-License-Identifier: GPL-2.0
"""What only a MANA can do: owner bits, and events of its command channel."""

import time

from ..common import DRIVERS, expect
from ..runner import OURS, test
from .liar import LIAR, answers, settle, storm
from .recovery import change_settings, expect_back

MANA = tuple(name for name in OURS if DRIVERS[name].vendor == "mana")


@test(drivers=MANA, boots=(LIAR,))
def lost_entries(rig):
    """Owner bits that cannot be: the port is reset, and traffic goes on without anyone's help."""
    for kind, counter in (("completion", "cq_overrun"), ("event", "eq_overrun")):
        rig.ensure_up()
        before = rig.statistics()[counter]
        with storm(rig):
            rig.model.set(fuzz=f"1:1:{kind}:owner")
            deadline = time.monotonic() + 30
            while rig.statistics()[counter] == before:
                expect(time.monotonic() < deadline, f"the driver saw no {counter}")
            rig.model.set(fuzz="")
        lines = rig.log.new_lines()
        expect(any("the device has lost" in line for line in lines), f"no word of lost entries: {lines}")
        expect(answers(rig, 20), f"no traffic after {counter}")
        settle(rig, "by itself")


@test(drivers=MANA, boots=(LIAR,))
def started_twice(rig):
    """A device that starts the command channel again: nothing changes for the one that is up."""
    rig.ensure_up()
    for event, value in ((129, 0xFFFF0000), (130, 1 << 24), (130, 2 << 24), (131, 0)):
        rig.model.do("event", type=event, value=value)
        rig.guest.run(f"ip link set {rig.interface} down && {rig.up_command(rig.interface, rig.peer)}")
    warnings = [line for line in rig.log.new_lines() if "starts a channel that is up" in line]
    expect(len(warnings) == 4, f"the log does not name it: {warnings}")
    rig.wait_for_peer(rig.interface, rig.peer)


@test(drivers=MANA, boots=(LIAR,), timeout=400)
def reset_request(rig):
    """The device says that it is about to reset: its driver lets go of it, and comes back with all settings."""
    rig.ensure_up()
    wanted = change_settings(rig)
    packets = rig.links()["stats64"]["rx"]["packets"]
    rig.model.do("event", type=135, value=0)
    deadline = time.monotonic() + 30
    while rig.model.report()["gauges"].get("live_objects", 0):
        expect(time.monotonic() < deadline, "the device is not let go of")
        time.sleep(0.2)
    expect_back(rig, wanted, packets)
    lines = rig.log.reported(rig.driver.module)
    expect(any("about to reset" in line for line in lines), f"no word of the reset: {lines}")
    rig.unload()
    rig.expect_no_dma()
