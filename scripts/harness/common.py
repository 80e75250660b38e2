# SPDX-License-Identifier: GPL-2.0
"""What every part of the harness shares: where things are, which drivers there are, and the ways
in which a test ends early."""

import dataclasses
import os
import pathlib

REPOSITORY = pathlib.Path("/src")
SELFTESTS = REPOSITORY / "tools/selftests"
CACHE = pathlib.Path("/cache")


class OutOfTime(BaseException):
    """A test took too long. None of what it catches."""


class Failure(Exception):
    """A test failed; the message says what was expected and what was seen."""


class Skip(Exception):
    """A test cannot run here. A skip that is not on the reviewed list counts as a failure."""


@dataclasses.dataclass(frozen=True)
class Driver:
    """One driver for one vendor's NIC."""

    name: str
    vendor: str
    module: str
    # Built from this repository, and so held to more than the stock driver.
    ours: bool

    @property
    def model(self):
        return f"model-{self.vendor}"


DRIVERS = {
    driver.name: driver
    for driver in (
        Driver("c", "mana", "mana", ours=False),
        Driver("rust", "mana", "mana_rs", ours=True),
    )
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """The kernel under test and the programs that a guest of it needs."""

    release: str
    cache: pathlib.Path = CACHE
    qemu: str = "qemu-system-x86_64"
    accelerator: tuple = ("-accel", "tcg,thread=multi", "-cpu", "max")

    @property
    def debug(self):
        """Whether it is the debug kernel of scripts/inside/debug-kernel."""
        return self.release.endswith("-debug")

    @property
    def slowness(self):
        """How much longer all may take than on Debian's kernel."""
        return 5 if self.debug else 1

    @property
    def kernel(self):
        """Folder of everything that belongs to the kernel."""
        return self.cache / "kernel" / self.release

    @property
    def image(self):
        return f"packages/usr/lib/modules/{self.release}/vmlinuz"

    @property
    def build_tree(self):
        """The KDIR that modules are built with."""
        return self.kernel / "build"

    @property
    def modules(self):
        """Where the modules of this repository are built."""
        return self.cache / "modules" / self.release

    @property
    def foreign(self):
        """Where they are built once more, over another ring_common."""
        return self.cache / "modules" / f"{self.release}-foreign"

    @property
    def models(self):
        """Where the programs of tools/models are."""
        return self.cache / "target/tools-models/release"

    @property
    def plugin(self):
        """The plugin of QEMU that counts instructions."""
        return self.cache / "target/tools-insn-count/release/libinsn_count.so"


def processors():
    return len(os.sched_getaffinity(0))


def expect(condition, message):
    """Fails the test unless the condition holds."""
    if not condition:
        raise Failure(message)
