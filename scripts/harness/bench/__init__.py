# SPDX-License-Identifier: GPL-2.0
"""scripts/bench: the stock driver and ours on the same model, in alternating boots."""

import dataclasses

from .. import build
from ..common import DRIVERS
from ..demo import Phase
from ..rig import Rig
from . import counts, growth, report, throughput
from .figures import Results

VENDORS = tuple(dict.fromkeys(driver.vendor for driver in DRIVERS.values()))


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured."""

    # Boots of each driver.
    count_boots: int
    traffic_boots: int
    strict_boots: int
    # Boots with the instructions counted behind an IOMMU.
    strict_count_boots: int
    udp_loads: tuple
    strict_udp_loads: tuple
    # Processors of the guest for growth, at first and possibly; numbers of queues, sizes of rings. None: not
    # measured.
    cpus: tuple = ()
    queues: tuple = ()
    rings: tuple = ()


MATRIX = tuple((size, flows) for size in throughput.UDP_SIZES for flows in throughput.UDP_FLOWS)
QUICK = Plan(1, 1, 0, 0, ((360, 1), (1518, 4)), ())
USUAL = Plan(2, 5, 3, 1, MATRIX, ((1024, 1),), (4, 8), (1, 2, 4, 8), (256, 1024, 4096))
LONG = Plan(5, 10, 5, 5, MATRIX, MATRIX, (8, 16), (1, 2, 4, 8, 16), (256, 512, 1024, 2048, 4096, 8192))


def plan(quick, long, only_counts):
    chosen = QUICK if quick else LONG if long else USUAL
    if only_counts:
        chosen = dataclasses.replace(chosen, traffic_boots=0, strict_boots=0, strict_count_boots=0, cpus=())
    return chosen


class Bench:
    """Boots the guests of one vendor."""

    def __init__(self, settings, folder, payload, results):
        self._settings, self._folder, self._payload = settings, folder, payload
        self._results = results

    def _boot(self, driver, boot, title, number, measure):
        with Phase(f"{driver.module}, {title} {number}"):
            folder = self._folder / f"{driver.module}.{title.replace(' ', '-')}.{number}"
            rig = Rig(self._settings, driver, boot, folder, self._payload)
            try:
                measure(rig)
            except BaseException:
                rig.save()
                raise
            finally:
                rig.close()

    def alternate(self, title, boots, boot, measure):
        """Each driver in turn, as many boots of either. What fails ends these boots, not the bench."""
        try:
            for number in range(1, boots + 1):
                for driver in (self._results.stock, self._results.ours):
                    self._boot(driver, boot, title, number, measure)
        except Exception as error:  # pylint: disable=broad-except
            self._results.failures.append(f"{title}: {type(error).__name__}: {error}")

    def run(self, plan, quick):
        results = self._results
        self.alternate(
            "instructions", plan.count_boots, counts.BOOT, lambda rig: counts.measure(rig, results, quick)
        )
        self.alternate(
            "instructions strict",
            plan.strict_count_boots,
            counts.STRICT,
            lambda rig: counts.measure_strict(rig, results),
        )
        self.alternate(
            "traffic",
            plan.traffic_boots,
            throughput.BOOT,
            lambda rig: throughput.measure(rig, results, plan.udp_loads),
        )
        self.alternate(
            "IOMMU strict",
            plan.strict_boots,
            throughput.STRICT,
            lambda rig: throughput.measure(rig, results, plan.strict_udp_loads),
        )
        if plan.cpus:
            self.alternate(
                "queues", 1, growth.boot(*plan.cpus), lambda rig: growth.over_queues(rig, results, plan.queues)
            )
            self.alternate("rings", 1, counts.BOOT, lambda rig: growth.over_rings(rig, results, plan.rings))


def run(settings, folder, shown_folder, options):
    """Measures, and leaves all figures as JSON and as a page."""
    revisions = report.revisions(settings)
    steps = (build.build_models, build.build_plugin, build.build_modules, build.build_foreign_modules)
    for step in steps:
        with Phase(step.__name__.replace("_", " ")):
            step(settings, folder / f"{step.__name__}.txt")
    payload = build.build_payload(settings, folder / "payload.txt")
    chosen = plan(options.quick, options.long, options.counts)
    revisions["plan"] = f"{chosen}"
    every = []
    try:
        for vendor in options.drivers or VENDORS:
            pair = {driver.ours: driver for driver in DRIVERS.values() if driver.vendor == vendor}
            every.append(Results(vendor, pair[False], pair[True]))
            Bench(settings, folder, payload, every[-1]).run(chosen, options.quick)
    finally:
        report.write(folder, revisions, every)
        print(f"\n  The page: {shown_folder}/bench.html, every value: {shown_folder}/bench.json")
    failures = [failure for results in every for failure in results.failures]
    for failure in failures:
        print(f"\nbench: {failure}\n  what explains it is in {shown_folder}")
    return 1 if failures else 0
