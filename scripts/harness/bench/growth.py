# SPDX-License-Identifier: GPL-2.0
"""What a packet costs, and what memory a port takes, over the number of queues and the size of rings."""

import dataclasses

from ..common import expect
from .counts import BOOT, Load, Sheet, ready, receive, transmit
from .figures import Figure

# Frames of one burst for each queue.
PER_QUEUE = 64
WINDOWS = 3
MEMORY_TRIES = 3


def boot(cpus, max_cpus):
    return dataclasses.replace(BOOT, cpus=cpus, max_cpus=max_cpus)


def memory(rig):
    """KiB that the port takes while it is up, as seen a few times."""
    name = rig.interface
    # Pages that a processor keeps for its next allocation (count, in zoneinfo) are free, too.
    used = (
        "awk '/^MemTotal:/ { n = $2 } /^(MemFree|Buffers|Cached|SReclaimable):/ { n -= $2 }"
        " $1 == \"count:\" { n -= $2 * 4 } END { print n }' /proc/meminfo /proc/zoneinfo"
    )
    step = f"ip link set {name} down; sleep 1; down=$({used}); ip link set {name} up; sleep 1"
    taken = [int(rig.guest.output(f"{step}; echo $(($({used}) - down))")) for _ in range(MEMORY_TRIES)]
    rig.bring_up()
    return taken


def at(rig, counter, sheet, over, x, queues):
    """All that is measured at one place of a diagram."""
    for kind, measure, burst in (("TX", transmit, 1), ("RX", receive, PER_QUEUE * queues)):
        load = Load(f"{kind} 64 B over {over}", 64, f"growth, {over}", windows=WINDOWS, x=x)
        flows = 16 * queues if queues > 1 else 1
        measure(rig, counter, sheet, dataclasses.replace(load, burst=burst, flows=flows, queues=queues))
    for taken in memory(rig):
        sheet.add(Figure(f"growth, {over}", f"memory over {over}", "KiB", x=x), taken)


def most_queues(rig):
    """The most combined queues that the driver takes."""
    text = rig.guest.output(f"ethtool -l {rig.interface}").split("Current")[0]
    return int(text.split("Combined:")[1].split()[0])


def over_queues(rig, results, queues):
    """One boot with several processors. Only own instructions repeat there: the other processors go to sleep
    and wake up as this machine lets them."""
    sheet = Sheet(results, rig.driver, profiled=False)
    counter = ready(rig)
    most = most_queues(rig)
    for number in (number for number in queues if number <= most):
        rig.guest.run(f"ethtool -L {rig.interface} combined {number}", check=rig.channels() != number)
        rig.bring_up()
        expect(rig.channels() == number, f"of {number} queues there are {rig.channels()}")
        at(rig, counter, sheet, "queues", number, number)
    counter.close()
    rig.check()


def over_rings(rig, results, rings):
    """One boot with one processor."""
    sheet = Sheet(results, rig.driver, profiled=False)
    counter = ready(rig)
    for size in rings:
        # It fails where the rings have that size.
        rig.guest.run(f"ethtool -G {rig.interface} rx {size} tx {size}", check=False)
        rig.bring_up()
        rings = rig.ethtool("-g")
        expect((rings["rx"], rings["tx"]) == (size, size), f"rings of {size} are {rings['rx']}, {rings['tx']}")
        at(rig, counter, sheet, "ring size", size, 1)
    counter.close()
    rig.check()
