# SPDX-License-Identifier: GPL-2.0
"""The stock driver and ours on the same model, alternating boots: medians, spread and ratios."""

import json
import statistics

from . import build
from .common import DRIVERS, Failure
from .demo import Phase
from .guest import Boot
from .rig import Rig
from .tests import doorbells, traffic

BOOT = Boot(cpus=2)
SECONDS = 5
PARALLEL = "4"


def ratio(counters, part, whole):
    return counters[part] / max(counters[whole], 1)


def measure(rig):
    """Figures of one boot, by name."""
    figures = {}

    def counted(*options):
        rig.model.ask({"clear": "counters"})
        end = traffic.iperf3(rig, *options, seconds=SECONDS)
        return traffic.received_mbits(end), rig.model.counters()

    rig.ensure_up()
    rate, _ = counted()
    figures["TCP, guest sends, Mbit/s"] = rate
    rate, counters = counted("--reverse", "--parallel", PARALLEL)
    figures[f"TCP, guest receives, {PARALLEL} flows, Mbit/s"] = rate
    figures["receive doorbells per packet"] = ratio(counters, "doorbell_rq", "rx_packets")
    figures["most buffers announced at once"] = counters["rq_wqes_per_doorbell_max"]
    figures["packets lost for want of a buffer"] = counters["rx_no_wqe"]
    figures["TCP_RR, 1/s"] = traffic.netperf(rig, "TCP_RR", seconds=SECONDS)
    rig.guest.run(f"ethtool -K {rig.interface} tso off")
    rate, counters = counted()
    figures["TCP, TSO off, Mbit/s"] = rate
    figures["send doorbells per packet, TCP, TSO off"] = ratio(counters, "doorbell_sq", "tx_packets")
    if rig.driver.ours:
        # The stock driver corrupts memory under bursts of one packet.
        counters = doorbells.pktgen(rig, doorbells.PACKETS, doorbells.BURST)
        figures[f"send doorbells per packet, pktgen burst {doorbells.BURST}"] = ratio(
            counters, "doorbell_sq", "tx_packets"
        )
    rig.check()
    rig.unload()
    return figures


def table(results):
    """Prints medians with the span of all runs, and ours by the stock driver's."""
    names = list(results)
    print(f"\n  {'':<46}" + "".join(f"{name:>26}" for name in names) + f"{'ratio':>8}")
    for row in results[names[-1]][0]:
        cells, medians = "", []
        for name in names:
            values = [run[row] for run in results[name] if row in run]
            if values:
                medians.append(statistics.median(values))
                cells += f"{medians[-1]:>11.3f} ({min(values):.3f}..{max(values):.3f})".rjust(26)
            else:
                cells += "-".rjust(26)
        both = len(medians) == 2 and medians[0]
        cells += f"{medians[1] / medians[0]:>8.2f}" if both else "-".rjust(8)
        print(f"  {row:<46}{cells}")


def run(settings, results, shown_results, runs):
    """Measures and prints; the figures of every run are kept as JSON."""
    for step in (build.build_models, build.build_modules, build.build_foreign_modules):
        with Phase(step.__name__.replace("_", " ")):
            step(settings, results / f"{step.__name__}.txt")
    payload = build.build_payload(settings, results / "payload.txt")
    figures = {driver.module: [] for driver in DRIVERS.values()}
    try:
        for number in range(1, runs + 1):
            for driver in DRIVERS.values():
                with Phase(f"run {number} of {runs}, {driver.module}"):
                    rig = Rig(settings, driver, BOOT, results / f"{driver.module}.{number}", payload)
                    try:
                        figures[driver.module].append(measure(rig))
                    except BaseException:
                        rig.save()
                        raise
                    finally:
                        rig.close()
    except Failure as failure:
        print(f"\nbench: {failure}\n  what explains it is in {shown_results}")
        return 1
    (results / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    table(figures)
    print(
        f"\n  Kernel {settings.release}, medians of {runs} alternating runs (smallest..largest)."
        "\n  The NIC is a model and the processor is emulated: compare the columns."
        f"\n  All figures: {shown_results}/figures.json"
    )
    return 0
