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
    """A function of the guest's kernel; `module` is empty for what is built in."""

    name: str
    module: str
    insns: int = 0
    # How often its first instruction was executed.
    calls: int = 0

    @property
    def key(self):
        return (self.module, self.name)


@dataclasses.dataclass
class Counts:
    """What ran between two looks at the plugin's table."""

    user: int = 0
    idle: int = 0
    # By (module, function).
    functions: dict = dataclasses.field(default_factory=dict)

    @property
    def kernel(self):
        """All of the kernel but the idle loop."""
        return sum(function.insns for function in self.functions.values())

    def modules(self):
        total = collections.Counter()
        for function in self.functions.values():
            total[function.module] += function.insns
        return total

    def own(self, modules):
        """What the driver made of these modules is to answer for."""
        return sum(f.insns for f in self.functions.values() if f.module in modules or RUST.match(f.name))


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
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT)
        self._socket.connect(str(guest.folder / "insns.sock"))
        self._stream = self._socket.makefile("rb")
        self.symbols = None

    def table(self):
        """How often each block was executed since the guest started: by address and length."""
        self._socket.sendall(b"?")
        (rows,) = struct.unpack("<Q", self._stream.read(8))
        return {
            (address, insns): executed
            for address, insns, executed in struct.iter_unpack("<QQQ", self._stream.read(24 * rows))
        }

    def between(self, before, after):
        """What ran between two tables. Call it while the modules that ran are still loaded."""
        if self.symbols is None:
            self.symbols = Symbols(self._guest)
        counts = Counts()
        for (address, insns), executed in after.items():
            executed -= before.get((address, insns), 0)
            if not executed:
                continue
            if address == USER:
                counts.user = executed
                continue
            expect(address != OVERFLOW, "the plugin has too few counters for all blocks of this guest")
            start, name, module = self.symbols.find(address)
            if not module and name in IDLE:
                counts.idle += executed * insns
                continue
            function = counts.functions.setdefault((module, name), Function(name, module))
            function.insns += executed * insns
            if address == start:
                function.calls += executed
        return counts

    def close(self):
        self._stream.close()
        self._socket.close()
