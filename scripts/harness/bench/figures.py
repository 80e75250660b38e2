# SPDX-License-Identifier: GPL-2.0
"""What is measured: figures with the values of every run, and the profiles behind them."""

import dataclasses
import statistics


# What every model counts, by how the names begin and do not end.
DEVICE = ("doorbell_", "cqes", "irq.raised", "dma.")
DEVICE_NOT = ("_max", "_empty")


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
        """Largest less smallest by the median."""
        return (max(self.values) - min(self.values)) / abs(self.median) if self.median else 0.0


class Results:
    """All figures of one vendor's two drivers."""

    def __init__(self, vendor, stock, ours):
        self.vendor, self.stock, self.ours = vendor, stock, ours
        # Figure -> module -> values, in the order of the first runs.
        self._values = {}
        # Load -> module -> rows of (instructions, calls, module, function), per packet.
        self.profiles = {}

    def add(self, driver, figure, value):
        self._values.setdefault(figure, {}).setdefault(driver.module, []).append(value)

    def device(self, driver, load, counters, packets):
        """What the device saw for each packet of a load."""
        for key, value in counters.items():
            if key.startswith(DEVICE) and not key.endswith(DEVICE_NOT):
                self.add(driver, Figure("device", f"{load}: {key}", "per packet"), value / packets)

    def profile(self, driver, load, rows):
        self.profiles.setdefault(load, {})[driver.module] = rows

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
        }
