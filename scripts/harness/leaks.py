# SPDX-License-Identifier: GPL-2.0
"""What a driver has not given back, as the debug kernel tells.

Each kind of memory has a witness of its own, and tests/allocations.py proves each of them on memory
that is lost on purpose:

* the users of slab objects (slab_debug=U) and of pages (page_owner) are known by the call chain that
  allocated them; pages are those of vmalloc() and of page pools, too;
* the DMA debug core knows what is mapped or coherent, by device;
* kmemleak sees what nothing points to, per-CPU memory among it. It takes long, and sees slab objects only
  because slab_debug=U does without the arrays of free objects, which keep pointers to those in use.
"""

import re
import time

from .common import expect

KMEMLEAK = "/sys/kernel/debug/kmemleak"
# Younger memory is not reported (MSECS_MIN_AGE in mm/kmemleak.c).
KMEMLEAK_AGE = 5
SLAB = "/sys/kernel/debug/slab/*/alloc_traces"
PAGES = "/sys/kernel/debug/page_owner_stacks/show_stacks"
MAPPINGS = "/sys/kernel/debug/dma-api/dump"
# Pages that an allocator keeps for its next user, whoever made it ask for them.
KEPT = re.compile(r"allocate_slab|pcpu_|p[mu]d_alloc|pte_alloc|stack_depot|kmemleak|debug_object")
# How long memory may take to come back: sockets hold packets, and RCU frees late.
PATIENCE = 30


class Witnesses:
    """Remembers what is in use when it is made. `modules` are whose memory counts, `device` is the bus
    address of the device whose mappings count."""

    def __init__(self, guest, modules, device):
        self._guest = guest
        self._modules = modules
        self._device = device
        guest.run(f"echo clear > {KMEMLEAK}")
        self._before = self._in_use()

    def _in_use(self):
        """Slab objects, pages and mappings: how many of each, by who has them."""
        names = "|".join(rf"\[{module}\]" for module in self._modules)
        # By paragraphs.
        program = 'BEGIN { RS = ""; ORS = "\\n\\n" } /' + names + "/"
        text = self._guest.output(f"awk '{program}' {SLAB} {PAGES}", timeout=300)
        users = {}
        for block in filter(None, text.split("\n\n")):
            # Pages are counted behind the call chain, objects in front of it.
            if pages := re.search(r"nr_base_pages: (\d+)", block):
                count, user = int(pages[1]), "pages of" + block[: pages.start()]
            else:
                count, user = re.match(r"\s*(\d+) ", block)[1], "objects of" + block.partition("\n")[2]
            if not KEPT.search(user):
                users[user] = users.get(user, 0) + int(count)
        mappings = self._guest.output(f"grep -c ' {self._device} ' {MAPPINGS}; true")
        return users | {f"mappings of {self._device}": int(mappings)}

    def _more(self):
        now = self._in_use()
        return [
            f"{count - self._before.get(user, 0)} {user}"
            for user, count in now.items()
            if count > self._before.get(user, 0)
        ]

    def held(self):
        """What is in use beyond what was at the start, and does not come back."""
        deadline = time.monotonic() + PATIENCE
        while (more := self._more()) and time.monotonic() < deadline:
            time.sleep(1)
        return more

    def unreferenced(self):
        """Memory that nothing points to, as reports of kmemleak. Each is reported once."""
        self._guest.run(f"sleep {KMEMLEAK_AGE + 1}")
        # What one scan finds changed since the last one is not reported.
        for _ in range(2):
            self._guest.run(f"echo scan > {KMEMLEAK}", timeout=600)
        text = self._guest.output(f"cat {KMEMLEAK}", timeout=300)
        self._guest.run(f"echo clear > {KMEMLEAK}")
        return [report.strip() for report in re.split(r"(?m)^(?=unreferenced object)", text) if report]

    def check(self):
        """Fails if anything has been lost."""
        found = self.held() + self.unreferenced()
        expect(not found, "lost memory:\n" + "\n\n".join(found[:20]))
