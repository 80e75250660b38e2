# SPDX-License-Identifier: GPL-2.0
"""Every command to the device fails once, in every operation and in every way.

Nothing here knows a vendor: the model tells the commands by name, and how many an operation takes
is seen by trying."""

import itertools
import time

from ..common import Failure, expect
from ..guest import Boot
from ..model import RESET
from ..operations import Operation, operations, settings_command
from ..rig import HANG
from ..runner import OURS, test
from .traffic import ping_sizes

# The device wants to be given up early, and its driver's mappings are counted: those of buffers
# only, or all, which takes its time.
TIMEOUT = (("command_timeout_ms", "2000"),)
QUICK = Boot(cpus=2, swiotlb_force=True, knobs=TIMEOUT)
THOROUGH = Boot(cpus=2, iommu_strict=True, knobs=TIMEOUT)
# Commands that a driver may still send to a device that did not answer one.
FAREWELL = 2
# How often an operation may end before the command that is to fail.
TRIES = 2
# Seconds in which a driver that nobody asks for anything sends what it sends by itself.
IDLE = 5
# The faults, and the operations that the default run takes for each: all code that sends commands
# is in them, and what a fault of the kind breaks is in them once.
SOME = {
    "error": ("probe", "open", "rings", "remove"),
    "short": ("open", "spread"),
    "wrong": ("probe",),
    "zero": ("rings",),
    "nothing": ("open", "spread"),
}


def removal(rig):
    """The last thing that a user does to a driver."""
    driver = f"/sys/bus/pci/drivers/{rig.driver.module}"
    return Operation("remove", f"echo {rig.device} > {driver}/unbind", up=False)


class Sweep:
    """One operation after the other, failing at one command after the other."""

    def __init__(self, rig):
        self.rig, self.fault = rig, None
        self.name = self.settings = None
        # Commands of an attempt, up to the end of the driver where it comes to that.
        self.history = []
        # Changes of an open port that the device refused, and those that left it as it was.
        self.refused = self.kept = 0
        # Errors of the device, and those after which the driver had to be started anew.
        self.errors = self.reloads = 0
        if not rig.loaded():
            rig.load()
        self.reload()
        rig.model.commands()
        time.sleep(IDLE)
        self.background = {command for command, _ in rig.model.commands()}

    # The port

    def reload(self):
        """Has the driver leave, which must leave nothing, and come back."""
        self.unload()
        self.rig.load()
        self.name = self.rig.interface
        self.rig.bring_up()
        self.settings = self.look()

    def unload(self):
        self.rig.must_end(f"modprobe -r {self.rig.driver.module}", check=True)
        self.history += self.rig.model.commands()
        self.expect_nothing()

    def expect_nothing(self):
        """Without its driver a device has nothing, and nothing is mapped for it."""
        rig = self.rig
        expect(not rig.interfaces(), f"without a driver, the interfaces {rig.interfaces()} are left")
        live = self.live()
        expect(live == 0, f"without a driver, the device has {live} objects")
        rig.expect_no_dma()

    def live(self):
        """How much the device has that the driver made."""
        return self.rig.model.report()["gauges"].get("live_objects", 0)

    def look(self):
        """The settings of the port as text."""
        return self.rig.guest.output(settings_command(self.name))

    def carrier(self):
        path = f"/sys/class/net/{self.name}/carrier"
        return self.rig.guest.run(f"cat {path}", check=False).stdout.strip() == "1"

    def works(self):
        """Whether the port reaches its peer."""
        ping = f"ping -c 1 -W 1 -I {self.name} {self.rig.peer.v4}"
        command = f"grep -q 1 /sys/class/net/{self.name}/carrier && ({ping} || {ping} || {ping})"
        return self.rig.guest.run(command, check=False).rc == 0

    def restore(self, operation):
        """Back to a port that works, with a new start of the driver where it must be, which is counted."""
        if not self.rig.interfaces():
            self.expect_nothing()
        self.rig.must_end(operation.after)
        if not self.works() or self.look() != self.settings:
            self.reloads += self.fault == "error"
            self.reload()

    # The faults

    def sweep(self, operation, fault, each):
        """Fails every command of an operation, or of each kind of command the first."""
        self.fault = fault
        self.rig.must_end(operation.before, check=True)
        self.rig.model.commands()
        self.rig.must_end(operation.command, check=True)
        besides = {*self.background, RESET}
        names = [name for name, _ in self.rig.model.commands() if name not in besides]
        self.restore(operation)
        for name in dict.fromkeys(names):
            failed, tries = 0, TRIES
            wanted = names.count(name) if each else 1
            while each or not failed:
                if self.attempt(operation, name, failed + 1):
                    failed += 1
                elif failed < wanted and tries:
                    # A busy machine can make an earlier command take longer than the device allows.
                    tries -= 1
                else:
                    break
            expect(failed >= wanted, f"{operation.name}: of {wanted} {name} only {failed} failed")

    def attempt(self, operation, name, number):
        """Fails a command of this name; false if there are not as many."""
        try:
            return self.fail(operation, name, number)
        except Failure as failure:
            where = f"{operation.name}, {name} {number}, {self.fault}"
            raise Failure(f"{where}: {failure}") from failure

    def fail(self, operation, name, number):
        """Fails one command, and looks what that did; whether there was one."""
        rig = self.rig
        self.rig.must_end(operation.before, check=True)
        before = self.live()
        rig.model.commands()
        rig.model.set(fail_command=f"{number}:{self.fault}:{name}")
        result = self.rig.must_end(operation.command)
        rig.model.set(fail_command="")
        self.history = rig.model.commands()
        failed = any(fault for _, fault in self.history)
        self.errors += failed and self.fault == "error"
        lines = self.log_lines()
        if failed and self.fault in ("error", "nothing", "short"):
            expect(
                any(name in line for line in lines),
                f"the log does not name {name}, which failed: {lines}",
            )
        is_kept = failed and operation.up and self.judge(operation, result.rc == 0, before)
        if is_kept:
            self.rig.must_end(operation.after)
        else:
            self.restore(operation)
        self.log_lines()
        if failed and self.fault == "nothing":
            last = next(place for place, (_, fault) in enumerate(self.history) if fault)
            asked = [command for command, _ in self.history[last + 1 :]]
            asked = list(itertools.takewhile(lambda name: name != RESET, asked))
            expect(len(asked) <= FAREWELL, f"a device that does not answer was still asked for {asked}")
        return failed

    def judge(self, operation, done, before):
        """An operation that failed has left the port as it was (then this is true), or without a carrier."""
        # A driver may start a device again that has not answered, and that takes a while.
        deadline = time.monotonic() + HANG
        while not (works := self.works()) and self.fault in ("error", "nothing", "short") and self.carrier():
            expect(time.monotonic() < deadline, "the port has a carrier and reaches nobody")
        if done:
            expect(works or self.fault != "error", f"{operation.name} reports no failure, and nothing works")
            return False
        self.refused += self.fault == "error"
        if works:
            self.kept += self.fault == "error"
            seen = self.look()
            expect(seen == self.settings, f"{operation.name} failed and left other settings:\n{seen}")
            if self.fault == "error":
                live = self.live()
                expect(live == before, f"{live} objects on the device, {before} before {operation.name} failed")
        return works

    def by_itself(self, fault):
        """Fails each command that the driver sends without being asked for anything."""
        self.fault = fault
        for name in sorted(self.background):
            self.rig.model.commands()
            self.rig.model.set(fail_command=f"1:{fault}:{name}")
            deadline = time.monotonic() + HANG
            while not any(was_failed for _, was_failed in self.rig.model.commands()):
                expect(time.monotonic() < deadline, f"the driver sends {name} no more")
                time.sleep(0.5)
            self.rig.model.set(fail_command="")
            # It may be waiting for the answer that does not come.
            lines, deadline = [], time.monotonic() + 2 * IDLE
            while not any(name in line for line in lines):
                expect(time.monotonic() < deadline, f"the log does not name {name}, which failed: {lines}")
                lines += self.log_lines()
                time.sleep(0.5)
            deadline = time.monotonic() + HANG
            while not self.works():
                expect(time.monotonic() < deadline, f"{name} {fault}: the port does not work again by itself")
            expect(self.look() == self.settings, f"{name} {fault}, and the port has other settings")
            self.reload()
            self.log_lines()

    def log_lines(self):
        return self.rig.log.reported(self.rig.driver.module, self.name)

    def end(self):
        """The last start works, too."""
        self.reload()
        ping_sizes(self.rig, 0, 1500, 211)


@test(drivers=OURS, boots=(QUICK,), timeout=2400)
def commands(rig):
    """Of each operation that matters to it, every fault at each kind of command."""
    sweep = Sweep(rig)
    every = [*operations(rig), removal(rig)]
    for fault, names in SOME.items():
        for operation in every:
            if operation.name in names:
                sweep.sweep(operation, fault, each=False)
    # Only a device that keeps memory ends more than the operation.
    expect(
        sweep.kept * 2 > sweep.refused,
        f"of {sweep.refused} operations that were refused, {sweep.kept} left the port working",
    )
    expect(
        sweep.reloads * 2 < sweep.errors,
        f"after {sweep.reloads} of {sweep.errors} errors the driver had to be started anew",
    )
    sweep.by_itself("error")
    sweep.by_itself("nothing")
    sweep.end()


def register(fault):
    def every(rig):
        sweep = Sweep(rig)
        for operation in [*operations(rig), removal(rig)]:
            sweep.sweep(operation, fault, each=True)
        if fault in ("error", "nothing", "short"):
            sweep.by_itself(fault)
        sweep.end()

    every.__name__ = f"commands_{fault}"
    test(drivers=OURS, boots=(THOROUGH,), long=True, timeout=7200)(every)


for kind in SOME:
    register(kind)
