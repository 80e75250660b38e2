# SPDX-License-Identifier: GPL-2.0
"""Counts a guest's instructions with the plugin of tools/insn-count, by function of its kernel."""

import bisect
import collections
import dataclasses
import re
import socket
import struct

from .common import expect

TIMEOUT = 60
# Rows of the plugin's table that are no blocks of the kernel.
USER, OVERFLOW = 0, (1 << 64) - 1
# Where a processor waits that has nothing to do.
IDLE = {"default_idle", "pv_native_safe_halt", "default_idle_call"}
# Functions of the kernel that exist because a driver is in Rust: its crates and their C helpers.
RUST = re.compile(r"rust_helper_|_R[NICMXY]")


@dataclasses.dataclass
class Function:
    """A function of the guest's kernel, and what of it ran."""

    insns: int = 0
    # How often its first instruction was executed.
    calls: int = 0


@dataclasses.dataclass
class Counts:
    """What ran between two looks at the plugin's table."""

    user: int = 0
    # By (module, name); the module is empty for what is built in.
    functions: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(Function))

    @property
    def kernel(self):
        """All instructions of the kernel but those of waiting."""
        return sum(function.insns for function in self.functions.values())

    def own(self, modules):
        """The functions that the driver made of these modules is to answer for."""
        return {
            (module, name): function
            for (module, name), function in self.functions.items()
            if module in modules or RUST.match(name)
        }

    def own_insns(self, modules):
        """Instructions of these functions."""
        return sum(function.insns for function in self.own(modules).values())

    def by_module(self):
        """Instructions of each module, of the rest of the kernel, and of the Rust in that."""
        sums = collections.Counter()
        for (module, name), function in self.functions.items():
            sums[module or ("the kernel's Rust" if RUST.match(name) else "the kernel")] += function.insns
        return sums

    def __iadd__(self, other):
        self.user += other.user
        for key, function in other.functions.items():
            self.functions[key].insns += function.insns
            self.functions[key].calls += function.calls
        return self


class Symbols:
    """Names of the addresses of one guest, as its kernel lists them."""

    def __init__(self, guest):
        rows = []
        for line in guest.run("cat /proc/kallsyms", timeout=120).stdout.splitlines():
            address, kind, name, *module = line.split()
            if kind in "tTwW":
                rows.append((int(address, 16), name, module[0].strip("[]") if module else ""))
        expect(rows and rows[0][0], "the guest's kernel does not tell its addresses")
        # Of several names for an address, the first: the sort is stable.
        rows.sort(key=lambda row: row[0])
        self._rows = [row for n, row in enumerate(rows) if n == 0 or row[0] != rows[n - 1][0]]
        self._starts = [row[0] for row in self._rows]

    def find(self, address):
        """Start, name and module of the function that holds an address."""
        return self._rows[max(bisect.bisect_right(self._starts, address) - 1, 0)]


class Counter:
    """The plugin of one guest. Tables are exact while the guest rests."""

    def __init__(self, guest):
        self._guest = guest
        self._symbols = None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT)
        self._socket.connect(str(guest.folder / "insns.sock"))
        self._stream = self._socket.makefile("rb")

    def table(self):
        """How often each block was executed since the guest started: by address and length."""
        self._socket.sendall(b"?")
        (rows,) = struct.unpack("<Q", self._stream.read(8))
        return {
            (address, insns): executed
            for address, insns, executed in struct.iter_unpack("<QQQ", self._stream.read(24 * rows))
        }

    def learn(self):
        """Reads the names of the addresses. Do it when all modules are loaded that will run."""
        self._symbols = Symbols(self._guest)

    def between(self, before, after):
        """What ran between two tables."""
        counts = Counts()
        for (address, insns), executed in after.items():
            executed -= before.get((address, insns), 0)
            if not executed:
                continue
            if address == USER:
                counts.user += executed
                continue
            expect(address != OVERFLOW, "the plugin has too few counters for all blocks of this guest")
            start, name, module = self._symbols.find(address)
            if name in IDLE:
                continue
            function = counts.functions[module, name]
            function.insns += executed * insns
            if address == start:
                function.calls += executed
        return counts

    def close(self):
        self._stream.close()
        self._socket.close()
