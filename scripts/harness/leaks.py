# SPDX-License-Identifier: GPL-2.0
"""What a driver has not given back, as the debug kernel tells.

Each kind of memory has a witness of its own, and tests/allocations.py proves each of them on memory
that is lost on purpose:

* kmemleak sees memory of the slab and vmalloc allocators and per-CPU memory that nothing points to.
  It reports what is older than five seconds and what two scans in a row found unchanged;
* the owners of pages (page_owner) see pages, by who allocated them;
* the DMA debug core sees what is mapped or coherent, by device.
"""

import re
import time

from .common import expect

KMEMLEAK = "/sys/kernel/debug/kmemleak"
# Younger memory is not reported (MSECS_MIN_AGE in mm/kmemleak.c).
KMEMLEAK_AGE = 5
OWNERS = "/sys/kernel/debug/page_owner_stacks/show_stacks"
MAPPINGS = "/sys/kernel/debug/dma-api/dump"
# Pages that an allocator keeps for its next user, whoever made it ask for them.
KEPT = re.compile(r"allocate_slab|pcpu_|p[mu]d_alloc|pte_alloc|stack_depot|kmemleak|debug_object")
# How long memory may take to come back: sockets hold packets, and RCU frees late.
PATIENCE = 15


class Witnesses:
    """Remembers what is in use when it is made. `modules` are whose pages count, `device` is the bus
    address of the device whose mappings count."""

    def __init__(self, guest, modules, device):
        self._guest = guest
        self._modules = [f"[{module}]" for module in modules]
        self._device = device
        guest.run(f"echo clear > {KMEMLEAK}")
        self._pages = self._pages_in_use()
        self._mappings = self._mappings_in_use()

    def _pages_in_use(self):
        """Pages by the call chain that allocated them, where a module is part of that."""
        pages = {}
        for block in self._guest.output(f"cat {OWNERS}", timeout=120).split("\n\n"):
            count = re.search(r"nr_base_pages: (\d+)", block)
            if count and any(name in block for name in self._modules) and not KEPT.search(block):
                chain = block[: count.start()].strip()
                pages[chain] = pages.get(chain, 0) + int(count[1])
        return pages

    def _mappings_in_use(self):
        return self._guest.output(f"grep -c ' {self._device} ' {MAPPINGS}; true")

    def _left(self):
        found = []
        for chain, count in self._pages_in_use().items():
            more = count - self._pages.get(chain, 0)
            if more > 0:
                found.append(f"{more} pages allocated by\n{chain}")
        mappings = int(self._mappings_in_use()) - int(self._mappings)
        if mappings > 0:
            found.append(f"{mappings} mappings of {self._device}")
        return found

    def pages_and_mappings(self):
        """What is in use beyond what was at the start and does not come back."""
        deadline = time.monotonic() + PATIENCE
        while (found := self._left()) and time.monotonic() < deadline:
            time.sleep(1)
        return found

    def unreferenced(self):
        """Memory that nothing points to, as reports of kmemleak. Each is reported once."""
        self._guest.run(f"sleep {KMEMLEAK_AGE + 1}")
        for _ in range(2):
            self._guest.run(f"echo scan > {KMEMLEAK}", timeout=300)
        text = self._guest.output(f"cat {KMEMLEAK}", timeout=120)
        self._guest.run(f"echo clear > {KMEMLEAK}")
        return [report.strip() for report in re.split(r"(?m)^(?=unreferenced object)", text) if report]

    def check(self):
        """Fails if anything has been lost."""
        found = self.pages_and_mappings() + self.unreferenced()
        expect(not found, "lost memory:\n" + "\n\n".join(found[:20]))
