# SPDX-License-Identifier: GPL-2.0
"""A rig: one guest, the model of one NIC in it, and the peers on the wires of its ports."""

import json
import pathlib
import re
import time

from . import wire
from .checks import KernelLog
from .common import Driver, Failure, Settings, expect
from .guest import Boot, Guest
from .model import Model

# What a command in the guest may take: there to find what hangs.
HANG = 150
# How long packets that sit in a socket may keep a mapping.
PATIENCE = 15
UP_TIMEOUT = 20
MTU = 1500


class Rig:
    """Runs from construction to close(). The driver is loaded and the ports are up only after
    ensure_up()."""

    def __init__(self, settings: Settings, driver: Driver, boot: Boot, folder: pathlib.Path, payload):
        self.settings = settings
        self.driver = driver
        self.folder = self._first_folder = folder
        self._restarts = 0
        self.payload = payload
        # dma_in_use() before the driver came for the first time.
        self.idle_dma = None
        folder.mkdir(parents=True, exist_ok=True)
        self.peers, self.servers, self.models, self.guest = [], None, [], None
        # Set by a test that leaves nothing to use.
        self.is_spent = False
        try:
            self.peers = [wire.Peer(port) for port in range(boot.ports * boot.nics)]
            self.servers = wire.Servers()
            try:
                self._boot(boot)
            except Failure as failure:
                # Now and then the debug kernel hangs in a report of its own before it has started.
                if not settings.debug or len(self.models) != boot.nics:
                    raise
                print(f"# {folder.name} is booted once more: {failure}", flush=True)
                (folder / "console.txt").rename(folder / "console.first.txt")
                for model in self.models:
                    model.close()
                self._boot(boot)
            self.log = KernelLog(self.guest)
        except BaseException:
            self.close()
            raise

    def _boot(self, boot):
        program = self.settings.models / self.driver.model
        self.models = []
        for nic in range(boot.nics):
            place = self.folder / f"nic{nic}" if nic else self.folder
            place.mkdir(exist_ok=True)
            wires = [peer.wire for peer in self.peers[nic * boot.ports :][: boot.ports]]
            self.models.append(Model(program, place, wires, dict(boot.knobs)))
        sockets = [model.socket for model in self.models]
        self.guest = Guest(self.settings, boot, self.folder, self.payload, sockets)

    @property
    def model(self):
        return self.models[0]

    def restart(self):
        """A new guest with a new model, in place of a guest that is not to be used any more."""
        excused, boot = self.log.excused, self.guest.boot
        self.guest.close()
        self.model.close()
        self.servers.close()
        self._restarts += 1
        self.folder = self._first_folder / str(self._restarts)
        self.folder.mkdir()
        self.servers = wire.Servers()
        self._boot(boot)
        self.log = KernelLog(self.guest)
        self.log.excused = excused
        self.idle_dma = None

    @property
    def peer(self):
        return self.peers[0]

    @property
    def queues(self):
        """Queues that the driver uses when nobody asked for a number."""
        return self.guest.boot.cpus

    # The driver

    def loaded(self):
        return self.guest.run(f"test -d /sys/module/{self.driver.module}", check=False).rc == 0

    def dma_in_use(self):
        """What the NIC's DMA takes now, in a guest where that can be seen: mappings of the IOMMU,
        or slots of swiotlb. None elsewhere."""
        if self.guest.boot.iommu_strict:
            return self.model.report()["gauges"]["dma.live_maps"]
        if self.guest.boot.swiotlb_force:
            return int(self.guest.output("cat /sys/kernel/debug/swiotlb/io_tlb_used"))
        return None

    def load(self):
        if self.idle_dma is None:
            self.idle_dma = self.dma_in_use()
        self.guest.run(f"modprobe {self.driver.module}", timeout=60)

    def unload(self):
        self.guest.run(f"modprobe -r {self.driver.module}", timeout=60)

    def interfaces(self):
        """Network interfaces of the NIC, in the order of its ports."""
        return self.guest.output(
            "for i in /sys/class/net/*; do [ -e $i/device ] && basename $i; done; true"
        ).split()

    @property
    def interface(self):
        names = self.interfaces()
        expect(names, f"the driver {self.driver.module} made no network interface")
        return names[0]

    @property
    def device(self):
        """The bus address of the NIC."""
        return self.guest.output(f"basename $(readlink -f /sys/class/net/{self.interface}/device)")

    @staticmethod
    def up_command(name, peer, mtu=MTU):
        """Shell text that gives a port its addresses."""
        return (
            f"sysctl -q net.ipv6.conf.{name}.accept_dad=0 net.ipv6.conf.{name}.accept_ra=0;"
            f"ip link set {name} mtu {mtu} up && ip address flush dev {name} &&"
            f"ip address add {peer.guest_v4}/24 dev {name} &&"
            f"ip address add {peer.guest_v6}/64 dev {name} nodad"
        )

    def bring_up(self, mtu=MTU):
        """Gives every port its addresses and waits until it reaches its peer."""
        names = self.interfaces()
        expect(
            len(names) == len(self.peers),
            f"{len(self.peers)} ports, but the interfaces are {names or 'none'}",
        )
        for name, peer in zip(names, self.peers):
            peer.set_mtu(mtu)
            self.guest.run(self.up_command(name, peer, mtu))
        for name, peer in zip(names, self.peers):
            self.wait_for_peer(name, peer)

    def wait_for_peer(self, name, peer):
        deadline = time.monotonic() + UP_TIMEOUT * self.guest.slowness
        while True:
            ping = self.guest.run(f"ping -c 1 -W 1 -I {name} {peer.v4}", check=False)
            if ping.rc == 0:
                return
            if time.monotonic() > deadline:
                state = self.guest.output(f"ip -s link show dev {name}")
                raise Failure(f"no answer from the peer in {UP_TIMEOUT} s after up:\n{state}")

    def ensure_up(self):
        """Loads the driver and brings the ports up unless they are."""
        if not self.loaded():
            self.load()
        names = self.interfaces()
        state = self.guest.output("ip -4 -o address show up scope global")
        if any(f"{peer.guest_v4}/" not in state for peer in self.peers) or not names:
            self.bring_up()

    def must_end(self, command, seconds=HANG, check=False):
        """Runs a command that may fail, unless told not to, but must end."""
        result = self.guest.run(command, timeout=seconds, check=False)
        expect(result.rc is not None, f"{command!r} does not end in {seconds} s")
        return result.check() if check else result

    def expect_no_dma(self):
        """Nothing is mapped for a device without a driver, once sockets have let go of what they hold."""
        deadline = time.monotonic() + PATIENCE
        while (left := self.dma_in_use()) != self.idle_dma:
            expect(
                time.monotonic() < deadline,
                f"{left} DMA mappings are left, {self.idle_dma} were there before the driver came",
            )
            time.sleep(0.2)

    # What it did

    def ethtool(self, flag, name=None):
        """ethtool's JSON for one interface."""
        answer = self.guest.output(f"ethtool --json {flag} {name or self.interface}")
        return json.loads(answer)[0]

    def channels(self, name=None):
        """How many combined queues ethtool -l says are in use (it has no JSON)."""
        text = self.guest.output(f"ethtool -l {name or self.interface}")
        current = text.split("Current hardware settings:")[-1]
        return int(re.search(r"Combined:\s+(\d+)", current)[1])

    def statistics(self, name=None):
        """The driver's own counters: ethtool -S."""
        lines = self.guest.output(f"ethtool -S {name or self.interface}").splitlines()[1:]
        pairs = (line.rsplit(":", 1) for line in lines if ":" in line)
        return {key.strip(): int(value) for key, value in pairs}

    def links(self, name=None):
        """What `ip -s` says of one interface."""
        return json.loads(self.guest.output(f"ip -s -j link show dev {name or self.interface}"))[0]

    def check(self):
        """The checks after every test: a clean kernel log, and no rule of the hardware broken."""
        violations = [each for model in self.models for each in model.violations()]
        expect(
            not violations,
            "the model saw violations: "
            + "; ".join(f"{v['rule']} x{v['count']} at {v['where']}" for v in violations),
        )
        self.log.check()

    def save(self):
        """Keeps what explains a failure; each piece that can still be had."""
        steps = {
            "dmesg.txt": lambda: self.guest.output("dmesg"),
            "statistics.txt": lambda: self.guest.output(
                "ip -s link; for i in /sys/class/net/*/device; do i=$(basename ${i%/device});"
                " ethtool -S $i; ethtool -l $i; ethtool -k $i; done",
            ),
            "report.json": lambda: json.dumps([model.report() for model in self.models if model.alive()], indent=1),
        }
        for name, produce in steps.items():
            try:
                (self.folder / name).write_text(produce() + "\n")
            except (Failure, AttributeError):
                pass

    def close(self):
        if self.guest:
            self.guest.close()
        for model in self.models:
            model.close()
        if self.servers:
            self.servers.close()
        for peer in self.peers:
            peer.close()
