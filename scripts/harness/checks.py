# SPDX-License-Identifier: GPL-2.0
"""Reviewed lists, and the check of the kernel's log against one of them."""

import re

from .common import REPOSITORY, Failure

KERNEL_LOG = REPOSITORY / "scripts/reviewed/kernel-log"
SKIPS = REPOSITORY / "scripts/reviewed/skips"

# A line at level warning or above needs an entry in the list; so does any line with one of these.
ALARMS = re.compile(
    r"BUG|WARNING|Oops|Call Trace|KFENCE|KASAN|UBSAN|lockdep|stall|hung|soft lockup|panicked"
    r"|use-after-free|refcount_t|page_pool_release_retry|DMAR: .*fault|unregister_netdevice"
)
LEVEL_WARNING = 4


def reviewed(path):
    """The entries of a reviewed list: (pattern, reason). The reason stands above the pattern."""
    entries, reason = [], []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            reason.append(line.lstrip("# "))
        elif line.strip():
            entries.append((re.compile(line.strip()), " ".join(reason)))
        else:
            reason = []
    return entries


def level(line):
    """The level of a line of `dmesg --raw`; the text behind a line break counts as a warning."""
    prefix = re.match(r"<(\d+)>", line)
    return int(prefix[1]) & 7 if prefix else LEVEL_WARNING


def text_of(line):
    """The text of a line of `dmesg --raw`."""
    return re.sub(r"^<\d+>(\[ *[\d.]+\] )?", "", line)


class KernelLog:
    """Reads what the guest's kernel logged since the last look."""

    def __init__(self, guest):
        self._guest = guest
        self._allowed = reviewed(KERNEL_LOG)
        self._seen = 0
        # Lines that the list allows and that did appear, for the summary.
        self.excused = []
        # Alarms among lines that a test has read for itself.
        self._unjudged = []
        # How the guest booted, without any driver under test, is no matter.
        self._fresh()

    def _fresh(self):
        lines = self._guest.run("dmesg --raw", timeout=120).stdout.splitlines()
        if len(lines) < self._seen or (self._seen and lines[0] != self._first):
            raise Failure("the kernel's log has wrapped, lines are lost")
        self._first = lines[0] if lines else ""
        fresh = lines[self._seen :]
        self._seen = len(lines)
        return fresh

    def new_lines(self):
        """Lines that a test expects and looks at itself. What raises an alarm is judged all the same."""
        fresh = self._fresh()
        self._unjudged += [line for line in fresh if ALARMS.search(line)]
        return fresh

    def reported(self, *names):
        """Lines at level warning or above that name one of these. All others are judged as ever."""
        lines = self._fresh()
        ours = [line for line in lines if any(name in line for name in names)]
        self._unjudged += [line for line in lines if line not in ours or ALARMS.search(line)]
        return [line for line in ours if level(line) <= LEVEL_WARNING]

    def check(self):
        bad = []
        lines, self._unjudged = self._unjudged + self._fresh(), []
        for line in lines:
            if level(line) > LEVEL_WARNING and not ALARMS.search(line):
                continue
            text = text_of(line)
            if any(pattern.search(text) for pattern, _ in self._allowed):
                self.excused.append(text)
            else:
                bad.append(text)
        if bad:
            raise Failure("the kernel logged:\n" + "\n".join(bad[:40]))
