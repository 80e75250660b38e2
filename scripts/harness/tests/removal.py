# SPDX-License-Identifier: GPL-2.0
"""The device goes away, at any moment, and the driver lets go of it."""

import time

from ..common import expect
from ..guest import Boot
from ..operations import operations
from ..runner import OURS, test
from .bringup import FULL
from .commands import HANG
from .lifecycle import LOAD, frames, load
from .traffic import ping_sizes

# Bounce buffers tell which mappings are left when the model cannot any more.
MANY = Boot(cpus=2, swiotlb_force=True, nics=4)
# What a port may take to find out that its device is gone, seconds.
NOTICE = 60
# What a model may take to end once it has been told when.
END = 10
# What packets in sockets may keep a bounce buffer for.
PATIENCE = 15
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
        rig = self.rig
        rig.guest.run(f"modprobe -r {rig.driver.module}", timeout=HANG)
        deadline = time.monotonic() + PATIENCE
        while (left := rig.dma_in_use()) != rig.idle_dma:
            expect(time.monotonic() < deadline, f"{left} bounce buffers are left, {rig.idle_dma} were there before")
            time.sleep(0.2)


class Nic:
    def __init__(self, rig, number, address):
        self.rig, self.address = rig, address
        self.model, self.peer = rig.models[number], rig.peers[number]
        self.driver = f"/sys/bus/pci/drivers/{rig.driver.module}"
        self.name = ""

    def run(self, command, check=True):
        result = self.rig.guest.run(command, timeout=HANG, check=False)
        expect(result.rc is not None, f"{command!r} did not end in {HANG} s")
        return result.check() if check else result

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
        self.rig.log.reported(self.address, self.name or self.address)


    def operation(self, name):
        every = operations(self.rig, self.name, self.address, self.peer)
        return next(operation for operation in every if operation.name == name)

    def die_in(self, command, number):
        """The device goes at one command to it."""
        self.model.set(fail_command=f"{number}:die")
        self.run(command, check=False)
        expect(self.model.wait(END), f"{command!r} has no command {number}")
        # Whatever the user tries next comes to an end too.
        for more in ("ethtool -S {0}", "ip link set {0} mtu 1300", "ip link set {0} down"):
            self.run(more.format(self.name), check=False)
        self.leave()


def die_in(nics, *cases):
    """One NIC goes at each of the commands: names of operations, and numbers of commands."""
    for name, number in cases:
        nic = nics.next()
        nic.start()
        operation = nic.operation(name)
        nic.run(operation.before)
        nic.die_in(operation.command, number)


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
    busy.model.kill()
    busy.notice()
    busy.leave()
    busy.run("pkill -x ping; pkill -x iperf3", check=False)
    running.result(HANG)

    die_in(nics, ("probe", 4), ("channels", 12))
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
    die_in(nics, ("probe", 1), ("probe", 8))
    nics.end()


@test(drivers=OURS, boots=(MANY,), long=True, timeout=600)
def removal_open(rig):
    nics = Nics(rig)
    die_in(nics, ("open", 1), ("open", 4), ("open", 9), ("open", 19))
    nics.end()


@test(drivers=OURS, boots=(MANY,), long=True, timeout=600)
def removal_change(rig):
    nics = Nics(rig)
    die_in(nics, ("rings", 1), ("rings", 12), ("mtu", 20), ("spread", 1))
    nics.end()


@test(drivers=OURS, boots=(MANY,), long=True, timeout=600)
def removal_end(rig):
    nics = Nics(rig)
    die_in(nics, ("stop", 1), ("stop", 3))
    for number in (3, 10):
        nic = nics.next()
        nic.start()
        nic.die_in(nic.unbind, number)
    nics.end()


@test(drivers=OURS, boots=(FULL,), timeout=300)
def remove_rescan(rig):
    """The kernel is told to drop the device and to look for it again, under load."""
    rig.ensure_up()
    address = rig.guest.output(f"basename $(readlink -f /sys/class/net/{rig.interface}/device)")
    for _ in range(ROUNDS):
        with load(rig):
            before, deadline = frames(rig), time.monotonic() + HANG
            while frames(rig) - before <= LOAD:
                expect(time.monotonic() < deadline, f"the load moved less than {LOAD} frames in {HANG} s")
                time.sleep(0.1)
            rig.guest.run(f"echo 1 > /sys/bus/pci/devices/{address}/remove", timeout=HANG)
            expect(not rig.interfaces(), f"removed, the interfaces {rig.interfaces()} are left")
        rig.guest.run("echo 1 > /sys/bus/pci/rescan", timeout=HANG)
        rig.bring_up()
    ping_sizes(rig, 0, 1500, 211)
