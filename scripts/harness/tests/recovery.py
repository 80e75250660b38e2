# SPDX-License-Identifier: GPL-2.0
"""The device goes away for a time, and comes back with nothing of what it was told."""

import time

from ..common import expect
from ..guest import Boot
from ..rig import HANG
from ..runner import OURS, test
from .bringup import FULL, STRICT
from .commands import IDLE
from .lifecycle import frames, load
from .traffic import ping_sizes

# The device wants its commands given up after a second.
IMPATIENT = Boot(cpus=2, iommu_strict=True, knobs=(("command_timeout_ms", "1000"),))


def settings(rig):
    return rig.ethtool("-g")["rx"], rig.channels(), rig.ethtool("-x")["rss-indirection-table"]


def change_settings(rig):
    """Settings that are not the default ones; returns them."""
    name, rings = rig.interface, rig.ethtool("-g")
    rig.guest.run(f"ethtool -G {name} rx {rings['rx'] // 2} && ethtool -L {name} combined 1")
    rig.bring_up()
    return settings(rig)


def expect_back(rig, wanted, packets):
    """The port works, with its settings and its counters."""
    deadline = time.monotonic() + HANG
    while rig.guest.run(f"ping -c 1 -W 1 {rig.peer.v4}", check=False).rc != 0:
        expect(time.monotonic() < deadline, "the port does not work again by itself")
    rig.guest.run(f"ip address replace {rig.peer.guest_v6}/64 dev {rig.interface} nodad")
    expect(settings(rig) == wanted, f"the settings were {wanted}, and are {settings(rig)}")
    now = rig.links()["stats64"]["rx"]["packets"]
    # The stock driver starts to count anew.
    expect(now >= packets or not rig.driver.ours, f"{packets} received packets became {now}")
    ping_sizes(rig, 0, 1500, 211)


@test(boots=(FULL, STRICT), timeout=400)
def sleep(rig):
    """The system sleeps, with the port up, under load, and down."""
    rig.ensure_up()
    wanted = change_settings(rig)
    packets = rig.links()["stats64"]["rx"]["packets"]
    rig.guest.sleep()
    expect_back(rig, wanted, packets)
    with load(rig):
        rig.guest.sleep()
        before, deadline = frames(rig), time.monotonic() + HANG
        while frames(rig) == before:
            expect(time.monotonic() < deadline, "the load does not go on behind a sleep")
    expect_back(rig, wanted, packets)
    rig.guest.run(f"ip link set {rig.interface} down")
    rig.guest.sleep()
    rig.bring_up()
    expect_back(rig, wanted, packets)
    rig.unload()
    rig.expect_no_dma()


@test(drivers=OURS, boots=(IMPATIENT,), timeout=400)
def no_answer(rig):
    """A command gets no answer: the device is reset and started again, and the port works as before."""
    rig.ensure_up()
    wanted = change_settings(rig)
    packets = rig.links()["stats64"]["rx"]["packets"]
    rig.model.commands()
    time.sleep(IDLE)
    name = rig.model.commands()[0][0]
    with load(rig):
        resets = rig.model.counters().get("pci.resets", 0)
        rig.model.set(fail_command=f"1:nothing:{name}")
        deadline = time.monotonic() + HANG
        while rig.model.counters().get("pci.resets", 0) == resets:
            expect(time.monotonic() < deadline, f"the device was not reset when it did not answer {name}")
            time.sleep(0.2)
        rig.model.set(fail_command="")
    lines = rig.log.reported(rig.driver.module, rig.interface)
    expect(any(f"{name} got no answer" in line for line in lines), f"the log does not name {name}: {lines}")
    expect_back(rig, wanted, packets)
    rig.unload()
    rig.expect_no_dma()


@test(drivers=OURS, boots=(IMPATIENT,), timeout=400)
def never_an_answer(rig):
    """The device answers nothing for a while: it is tried again, each time later, and works when it answers."""
    rig.ensure_up()
    wanted = settings(rig)
    packets = rig.links()["stats64"]["rx"]["packets"]
    rig.model.set(answer_delay_us=30_000_000)
    lines, deadline = [], time.monotonic() + HANG
    while sum("next try in" in line for line in lines) < 2:
        expect(time.monotonic() < deadline, f"the device is not tried again: {lines}")
        lines += rig.log.reported(rig.driver.module, rig.device)
        time.sleep(0.5)
    rig.model.set(answer_delay_us=0)
    expect_back(rig, wanted, packets)
    rig.log.reported(rig.driver.module, rig.interface, rig.device)
    rig.unload()
    rig.expect_no_dma()
