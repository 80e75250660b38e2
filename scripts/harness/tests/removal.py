# SPDX-License-Identifier: GPL-2.0
"""The device goes away, at any moment, and the driver lets go of it."""

import time

from ..common import expect
from ..guest import Boot
from ..operations import Operation, operations
from ..rig import HANG
from ..runner import OURS, test
from .bringup import FULL
from .lifecycle import LOAD, expect_load, load
from .traffic import ping_sizes

# Bounce buffers tell which mappings are left when the model cannot any more.
MANY = Boot(cpus=2, swiotlb_force=True, nics=4)
# What a port may take to find out that its device is gone, seconds.
NOTICE = 60
# What a model may take to end once it has been told when.
END = 10
ROUNDS = 3


class Nics:
    """The NICs of a guest, none bound yet; each test of a removal uses one up."""

    def __init__(self, rig):
        self.rig = rig
        rig.is_spent = True
        module = rig.driver.module
        rig.guest.run("echo 0 > /sys/bus/pci/drivers_autoprobe")
        rig.idle_dma = rig.dma_in_use()
        rig.load()
        self.addresses = rig.guest.output(
            "for i in /sys/bus/pci/devices/*; do"
            f" modprobe --resolve-alias $(cat $i/modalias) | grep -qx {module} && basename $i; done; true"
        ).split()
        expect(len(self.addresses) == len(rig.models), f"the NICs are {self.addresses}")
        self.left = list(range(len(self.addresses)))

    def next(self):
        return Nic(self.rig, self.left[0], self.addresses[self.left.pop(0)])

    def end(self):
        """The driver goes, and leaves nothing."""
        self.rig.must_end(f"modprobe -r {self.rig.driver.module}", check=True)
        self.rig.expect_no_dma()


class Nic:
    def __init__(self, rig, number, address):
        self.rig, self.address = rig, address
        self.model, self.peer = rig.models[number], rig.peers[number]
        self.driver = f"/sys/bus/pci/drivers/{rig.driver.module}"
        self.name = ""

    def run(self, command, check=True):
        return self.rig.must_end(command, check=check)

    @property
    def bind(self):
        return f"echo {self.address} > {self.driver}/bind"

    @property
    def unbind(self):
        return f"echo {self.address} > {self.driver}/unbind"

    def interface(self):
        return self.run(f"ls /sys/bus/pci/devices/{self.address}/net", check=False).stdout.strip()

    def start(self):
        self.run(self.bind)
        self.name = self.interface()
        self.run(
            f"ip link set {self.name} up && ip address add {self.peer.guest_v4}/24 dev {self.name} &&"
            f"ip address add {self.peer.guest_v6}/64 dev {self.name} nodad"
        )
        self.rig.wait_for_peer(self.name, self.peer)

    def notice(self):
        """Waits until the port has no carrier any more, while somebody wants to send."""
        deadline = time.monotonic() + NOTICE
        path = f"/sys/class/net/{self.name}/carrier"
        while self.run(f"ping -c 1 -W 1 -I {self.name} {self.peer.v4}; cat {path}", check=False).stdout.split()[-1:] == ["1"]:
            expect(time.monotonic() < deadline, f"a port without a device has had a carrier for {NOTICE} s")

    def leave(self):
        """Lets go of the device; what the driver had to say about it is its own."""
        if self.run(f"test -e {self.driver}/{self.address}", check=False).rc == 0:
            self.run(self.unbind)
        left = self.interface()
        expect(not left, f"unbound, the interface {left} is left")
        lines = self.rig.log.reported(self.address, self.name or self.address)
        stuck = [line for line in lines if "WATCHDOG" in line]
        expect(not stuck, f"a port without a device was taken for one that is stuck: {stuck}")

    def operations(self):
        every = operations(self.rig, self.name, self.address, self.peer)
        return {operation.name: operation for operation in (*every, Operation("remove", self.unbind))}

    def frames(self):
        counters = self.model.counters()
        return counters["port0.in_frames"] + counters["port0.out_frames"]

    def die_in(self, name, share):
        """The device goes in the middle of an operation: at the command to it at that share of all."""
        every = self.operations()
        operation = every[name]
        self.run(operation.before)
        self.model.commands()
        self.run(operation.command)
        commands = len(self.model.commands())
        if name == "remove":
            self.start()
        else:
            self.run(operation.after)
            self.run(operation.before)
        expect(commands, f"{name} has no commands")
        self.model.set(fail_command=f"{max(1, round(share * commands))}:die")
        self.run(operation.command, check=False)
        expect(self.model.wait(END), f"{name} has no {commands} commands the second time")
        # Whatever the user tries next comes to an end too.
        if self.interface():
            for operation in every.values():
                if operation.name not in ("probe", "remove"):
                    self.run(operation.command, check=False)
                    self.run(operation.after, check=False)
        self.leave()


def die_in(nics, *cases):
    """One NIC goes in each of the cases: names of operations, and how far they have come."""
    for name, share in cases:
        nic = nics.next()
        nic.start()
        nic.die_in(name, share)


@test(drivers=OURS, boots=(MANY,), timeout=600)
def removal(rig):
    """The device goes while nothing happens, under load, and in the middle of what a user does."""
    nics = Nics(rig)
    idle = nics.next()
    idle.start()
    idle.model.kill()
    idle.notice()
    idle.leave()

    busy = nics.next()
    busy.start()
    command = f"ping -f -s 1200 {busy.peer.v4} & iperf3 --client {busy.peer.v4} --bidir --time 60 & sleep 2"
    running = rig.guest.start(f"{command}; touch /tmp/busy; wait", timeout=HANG)
    busy.run("until [ -e /tmp/busy ]; do sleep 0.1; done")
    before, deadline = busy.frames(), time.monotonic() + HANG
    while busy.frames() - before < LOAD:
        expect(time.monotonic() < deadline, f"the load moved less than {LOAD} frames in {HANG} s")
        time.sleep(0.1)
    busy.model.kill()
    busy.notice()
    busy.leave()
    busy.run("pkill -x ping; pkill -x iperf3", check=False)
    running.result(HANG)

    die_in(nics, ("probe", 0.5), ("channels", 0.5))
    nics.end()


@test(drivers=OURS, boots=(MANY,), long=True, timeout=600)
def removal_early(rig):
    """The device goes while the driver starts it: between the writes to its registers, too."""
    nics = Nics(rig)
    for write in (4, 20):
        nic = nics.next()
        nic.model.set(die_at=write)
        nic.run(nic.bind, check=False)
        expect(nic.model.wait(END), f"the driver has come without {write} register writes")
        nic.leave()
    die_in(nics, ("probe", 0), ("probe", 1))
    nics.end()


@test(drivers=OURS, boots=(MANY,), long=True, timeout=600)
def removal_open(rig):
    nics = Nics(rig)
    die_in(nics, ("open", 0), ("open", 0.3), ("open", 0.6), ("open", 1))
    nics.end()


@test(drivers=OURS, boots=(MANY,), long=True, timeout=600)
def removal_change(rig):
    nics = Nics(rig)
    die_in(nics, ("rings", 0), ("rings", 0.4), ("mtu", 0.6), ("spread", 1))
    nics.end()


@test(drivers=OURS, boots=(MANY,), long=True, timeout=600)
def removal_end(rig):
    nics = Nics(rig)
    die_in(nics, ("stop", 0), ("stop", 0.3), ("remove", 0.3), ("remove", 0.7))
    nics.end()


@test(drivers=OURS, boots=(FULL,), timeout=300)
def remove_rescan(rig):
    """The kernel is told to drop the device and to look for it again, under load."""
    rig.ensure_up()
    address = rig.guest.output(f"basename $(readlink -f /sys/class/net/{rig.interface}/device)")
    for _ in range(ROUNDS):
        with load(rig):
            expect_load(rig, LOAD)
            rig.must_end(f"echo 1 > /sys/bus/pci/devices/{address}/remove", check=True)
            expect(not rig.interfaces(), f"removed, the interfaces {rig.interfaces()} are left")
        rig.must_end("echo 1 > /sys/bus/pci/rescan", check=True)
        rig.bring_up()
    ping_sizes(rig, 0, 1500, 211)
