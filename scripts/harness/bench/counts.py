# SPDX-License-Identifier: GPL-2.0
"""Instructions of the guest, and what the device sees, per packet."""

import dataclasses
import time

from ..common import Failure, expect
from ..guest import Boot
from ..insns import Counter, Counts
from ..load import Flood, Pktgen
from ..tests import traffic
from .figures import PROFILE_FLOOR, Figure

# A register write waits for the model, so that no packet is sent before the last one was seen; and one
# processor does all work, so that nothing runs beside it.
BOOT = Boot(cpus=1, counted=True, posted_writes=False)
STRICT = dataclasses.replace(BOOT, iommu_strict=True)
# Frame lengths on the wire, with FCS.
TX_SIZES = (64, 360, 1518)
RX_SIZES = (64, 1518)
FCS = 4
# Room for what is sent while an interrupt is on its way on a busy machine.
RING = 4096
# Packets of one interrupt.
TX_BATCH = 64
RX_BURST = 256
TX_BURST = 32
WINDOWS = 5
# Packets that are not measured at first, and packets of one window.
WARM = 640
TX_WINDOW = 5120
RX_WINDOW = 20 * RX_BURST
TX_TIMEOUT, TX_TRIES = 120, 3
# Any of these is called once for each skb.
PKTGEN_FUNCTIONS = ("pktgen_finalize_skb", "mod_cur_headers", "pktgen_alloc_skb")
TCP_MIB, TCP_WINDOWS = 16, 3
# What other threads of the kernel may go round in a window.
OTHER_ROUNDS = 50


def modules(driver):
    return {driver.module, "ring_common"} if driver.ours else {driver.module}


class Sheet:
    """Where the figures of one driver go."""

    def __init__(self, results, driver, profiled=True):
        self._results = results
        self._driver = driver
        self._profiled = profiled

    def add(self, figure, value):
        self._results.add(self._driver, figure, value)

    def load(self, load, windows):
        """What ran in each window of a load: pairs of counts and packets."""
        total, packets = Counts(), 0
        own_modules = modules(self._driver)
        for counts, count in windows:
            own = counts.own_insns(own_modules)
            self.add(load.figure("instructions per packet", goal=load.goal), counts.kernel / count)
            self.add(load.figure("own instructions per packet", goal=load.goal), own / count)
            if self._profiled:
                for module, insns in counts.by_module().items():
                    if insns >= PROFILE_FLOOR * count:
                        self.add(Figure("modules", load.name, f"instructions of {module}"), insns / count)
            total += counts
            packets += count
        if not self._profiled:
            return
        calls = sum(function.calls for function in total.own(own_modules).values())
        self.add(load.figure("calls of own functions per packet"), calls / packets)
        self._results.profile(self._driver, load.name, total, packets)

    def device(self, load, counters, packets, translated):
        if self._profiled:
            self._results.device(self._driver, load.name, counters, packets, translated)


@dataclasses.dataclass(frozen=True)
class Load:
    """Packets of one kind; `size` is that on the wire, with FCS."""

    name: str
    size: int
    group: str = "packets"
    goal: bool = False
    # Packets of one doorbell (sent) or of one interrupt (received).
    burst: int = 1
    flows: int = 1
    queues: int = 1
    windows: int = WINDOWS
    x: float = None

    def figure(self, unit, goal=False):
        return Figure(self.group, self.name, unit, goal, self.x)


def made(counts):
    """skbs that pktgen made."""
    calls = [counts.functions["pktgen", name].calls for name in PKTGEN_FUNCTIONS]
    expect(max(calls), f"this kernel's pktgen has none of {', '.join(PKTGEN_FUNCTIONS)}")
    return max(calls)


def transmit(rig, counter, sheet, load):
    """pktgen sends all the time; each window begins and ends in the middle of that, where the guest is
    stopped for the look at it."""

    def wait(packets):
        deadline = time.monotonic() + TX_TIMEOUT
        packets += rig.model.counters()["port0.out_frames"]
        while rig.model.counters()["port0.out_frames"] < packets:
            expect(time.monotonic() < deadline, f"{packets} packets were not sent in {TX_TIMEOUT} s")
            time.sleep(0.02)
        with rig.guest.paused():
            return counter.table()

    rig.model.set(tx_batch=TX_BATCH)
    try:
        with Pktgen(rig, load.size - FCS, load.burst, load.queues) as generator:
            generator.start()
            before, windows = wait(WARM), []
            rig.model.ask({"clear": "counters"})
            for _ in range(TX_TRIES * load.windows):
                after = wait(TX_WINDOW)
                counts, before = counter.between(before, after), after
                # pktgen goes round more often than it sends when the queue is stopped.
                rounds = counts.functions["", "kthread_should_stop"].calls
                expect(rounds, "this kernel's pktgen goes round without kthread_should_stop()")
                if rounds - made(counts) <= OTHER_ROUNDS:
                    windows.append((counts, made(counts) * load.burst))
                if len(windows) == load.windows:
                    break
            else:
                raise Failure(f"{load.name}: the queue was stopped in most windows, this machine is too busy")
            counters = rig.model.counters()
    finally:
        rig.model.set(tx_batch=0)
    for queue in range(load.queues):
        expect(counters.get(f"port0_txq{queue}_packets", 0) > 0, f"{load.name}: queue {queue} sent nothing")
    sheet.load(load, windows)
    sheet.device(load, counters, counters["port0.out_frames"], rig.guest.boot.iommu_strict)


def receive(rig, counter, sheet, load):
    """Floods of a fixed number of frames; the guest rests before and after each."""
    frames = Flood(rig, load.size - FCS, load.flows)
    count = RX_WINDOW // load.burst * load.burst
    # Every buffer of the ring has been used once.
    frames.send(count, load.burst)
    received = rig.links()["stats64"]["rx"]["packets"]
    rig.model.ask({"clear": "counters"})
    windows = []
    for _ in range(load.windows):
        before = counter.table()
        frames.send(count, load.burst)
        windows.append((counter.between(before, counter.table()), count))
    counters = rig.model.counters()
    received = rig.links()["stats64"]["rx"]["packets"] - received
    expect(received >= load.windows * count, f"of {load.windows * count} frames {received} arrived")
    sheet.load(load, windows)
    sheet.device(load, counters, load.windows * count, rig.guest.boot.iommu_strict)


def bulk(rig, counter, sheet):
    """TCP both ways, a fixed number of bytes: all of the kernel's work, sockets included."""
    for name, options in (("TCP, guest sends", ()), ("TCP, guest receives", ("--reverse",))):
        for _ in range(TCP_WINDOWS):
            before = counter.table()
            traffic.iperf3(rig, "--bytes", f"{TCP_MIB}M", *options, seconds=None)
            counts = counter.between(before, counter.table())
            own = counts.own_insns(modules(rig.driver))
            for unit, insns in (("instructions per MiB", counts.kernel), ("own instructions per MiB", own)):
                sheet.add(Figure("tcp", name, unit), insns / TCP_MIB)


def ready(rig):
    """The plugin of a guest whose driver runs and whose modules are all there."""
    rig.model.set(complete_inside_doorbell=True)
    rig.ensure_up()
    name = rig.interface
    rig.guest.run(f"ethtool -G {name} tx {min(RING, rig.ethtool('-g')['tx-max'])}")
    rig.bring_up()
    rig.guest.run("modprobe pktgen")
    counter = Counter(rig.guest)
    counter.learn()
    return counter


def measure(rig, results, quick):
    """The loads of one boot."""
    sheet = Sheet(results, rig.driver)
    counter = ready(rig)
    for size in TX_SIZES[:1] if quick else TX_SIZES:
        transmit(rig, counter, sheet, Load(f"TX {size} B", size, goal=True))
    if rig.driver.ours:
        # The stock drivers corrupt memory under bursts of one packet.
        transmit(rig, counter, sheet, Load(f"TX 64 B, burst {TX_BURST}", 64, burst=TX_BURST))
    for size in RX_SIZES[:1] if quick else RX_SIZES:
        receive(rig, counter, sheet, Load(f"RX {size} B", size, goal=True, burst=RX_BURST))
    if not quick:
        bulk(rig, counter, sheet)
    counter.close()
    rig.check()


def measure_strict(rig, results):
    """What mapping each packet costs, and how many mappings the device sees."""
    sheet = Sheet(results, rig.driver)
    counter = ready(rig)
    transmit(rig, counter, sheet, Load("TX 64 B, IOMMU strict", 64))
    receive(rig, counter, sheet, Load("RX 64 B, IOMMU strict", 64, burst=RX_BURST))
    counter.close()
    rig.check()
