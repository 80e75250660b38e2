# SPDX-License-Identifier: GPL-2.0
"""What is measured: figures with the values of every run, and the profiles behind them."""

import dataclasses
import statistics

from ..insns import Counts

# What every model counts, by how the names begin and do not end.
DEVICE = ("doorbell_", "cqes", "irq.raised", "dma.")
DEVICE_NOT = ("_max", "_empty")
# What a model sees only of a guest behind an IOMMU.
MAPPINGS = ("dma.maps", "dma.unmaps")
# Functions with less than this per packet are left out of profiles.
PROFILE_FLOOR = 0.5


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure; `goal`: ours must not be more than the stock driver's."""

    group: str
    name: str
    unit: str
    goal: bool = False
    # What a diagram has on its axis, for figures of a series.
    x: float = None


@dataclasses.dataclass(frozen=True)
class Summary:
    """All values of one figure and one driver."""

    values: tuple

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """Largest less smallest by the median; None of a single value."""
        if len(self.values) == 1:
            return None
        return (max(self.values) - min(self.values)) / abs(self.median) if self.median else 0.0


def rows(packets, counts):
    every = (
        (function.insns / packets, function.calls / packets, module, symbol)
        for (module, symbol), function in counts.functions.items()
        if function.insns >= PROFILE_FLOOR * packets
    )
    return sorted(every, reverse=True)


class Results:
    """All figures of one vendor's two drivers."""

    def __init__(self, vendor, stock, ours):
        self.vendor, self.stock, self.ours = vendor, stock, ours
        # Figure -> module -> values, in the order of the first runs.
        self._values = {}
        # What could not be measured.
        self.failures = []
        # Load -> module -> (packets, counts by function), of all boots together.
        self._profiles = {}

    def add(self, driver, figure, value):
        self._values.setdefault(figure, {}).setdefault(driver.module, []).append(value)

    def device(self, driver, load, counters, packets, translated):
        """What the device saw for each packet of a load; `translated`: through an IOMMU."""
        for key, value in counters.items():
            if key.startswith(MAPPINGS) and not translated:
                continue
            if key.startswith(DEVICE) and not key.endswith(DEVICE_NOT):
                self.add(driver, Figure("device", f"{load}: {key}", "per packet"), value / packets)

    def profile(self, driver, load, counts, packets):
        """Adds what ran, by function, to what ran in earlier boots."""
        profile = self._profiles.setdefault(load, {})
        before, sum_before = profile.get(driver.module, (0, Counts()))
        sum_before += counts
        profile[driver.module] = before + packets, sum_before

    @property
    def profiles(self):
        """Load -> module -> rows of (instructions, calls, module, function), per packet."""
        return {
            load: {module: rows(*profile) for module, profile in drivers.items()}
            for load, drivers in self._profiles.items()
        }

    def figures(self, *groups):
        return [figure for figure in self._values if not groups or figure.group in groups]

    def summary(self, figure, driver):
        values = self._values[figure].get(driver.module)
        return Summary(tuple(values)) if values else None

    def ratio(self, figure):
        """Ours by the stock driver's, the median of all pairs; None where there is no such thing."""
        stock, ours = self.summary(figure, self.stock), self.summary(figure, self.ours)
        if not stock or not ours or not all(stock.values):
            return None
        return statistics.median(mine / theirs for mine, theirs in zip(ours.values, stock.values))

    def goals(self):
        """(figure, ratio, whether it is met) of the figures that have a goal."""
        for figure in self.figures():
            ratio = self.ratio(figure)
            if figure.goal and ratio is not None:
                yield figure, ratio, ratio <= 1

    def json(self):
        """Every raw value."""
        return {
            "figures": [
                dataclasses.asdict(figure) | {"values": values} for figure, values in self._values.items()
            ],
            "profiles": self.profiles,
            "failures": self.failures,
        }
