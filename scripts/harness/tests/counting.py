# SPDX-License-Identifier: GPL-2.0
"""That instructions are counted right, by something whose count is known."""

import base64
import struct

from ..bench import counts
from ..common import expect
from ..load import Pktgen
from ..runner import OURS, test

ROUNDS = 1 << 24
PACKETS = 640
# What else runs: the shell that starts it.
TOLERANCE = 0.01
# What the driver does besides sending, by what it does for that: interrupts at the ends, statistics.
OWN_TOLERANCE = 0.25


def loop(rounds):
    """A program of 2 * rounds + 5 instructions, as an ELF file for x86-64."""
    code = (
        b"\xb9" + struct.pack("<I", rounds)  # mov $rounds, %ecx
        + b"\xff\xc9\x75\xfc"  # 1: dec %ecx; jnz 1b
        + b"\x31\xff\xb8\x3c\x00\x00\x00\x0f\x05"  # exit(0)
    )
    base, headers = 0x400000, 64 + 56
    size = headers + len(code)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + headers, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
    return ident + header + segment + code


@test(drivers=OURS, boots=(counts.BOOT,), timeout=300)
def instructions(rig):
    """A loop of known length, and functions that run once for each packet, are counted as they are."""
    counter = counts.ready(rig)

    def ran(work):
        before = counter.table()
        work()
        return counter.between(before, counter.table())

    def run_loop(rounds):
        text = base64.b64encode(loop(rounds)).decode()
        rig.guest.run("base64 -d > /run/loop; chmod +x /run/loop; /run/loop", text=text)

    once, twice = (ran(lambda: run_loop(rounds)).user for rounds in (ROUNDS, 2 * ROUNDS))
    expect(
        abs(twice - once - 2 * ROUNDS) <= 2 * ROUNDS * TOLERANCE,
        f"{ROUNDS} rounds of two instructions were counted as {twice - once}",
    )
    with Pktgen(rig) as generator:
        few, many = (ran(lambda: generator.send(packets)) for packets in (PACKETS, 2 * PACKETS))
    calls = counts.made(few), counts.made(many)
    expect(calls == (PACKETS, 2 * PACKETS), f"{PACKETS} and twice as many packets were counted as {calls}")
    own = [c.own_insns(counts.modules(rig.driver)) for c in (few, many)]
    each = (own[1] - own[0]) / PACKETS
    expect(
        10 < each and abs(own[0] / PACKETS - each) < each * OWN_TOLERANCE,
        f"{PACKETS} packets took {own[0]} instructions of the driver, twice as many {own[1]}",
    )
    counter.close()
