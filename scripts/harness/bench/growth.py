# SPDX-License-Identifier: GPL-2.0
"""What a packet costs, and what memory a port takes, over the number of queues and the size of rings."""

import dataclasses

from .counts import BOOT, Load, Sheet, ready, receive, transmit
from .figures import Figure

# Frames of one burst per queue, and those that fit every ring.
PER_QUEUE = 64
BURST_MOST = 512
WINDOWS = 2


def boot(cpus):
    return dataclasses.replace(BOOT, cpus=cpus)


def memory(rig):
    """KiB that the port takes while it is up."""
    name = rig.interface
    free = "echo 3 > /proc/sys/vm/drop_caches; awk '/^MemFree/ {print $2}' /proc/meminfo"
    rig.guest.run(f"ip link set {name} down")
    down = int(rig.guest.output(free))
    rig.guest.run(f"ip link set {name} up")
    rig.bring_up()
    return down - int(rig.guest.output(free))


def at(rig, counter, sheet, over, x, burst, flows):
    """All that is measured at one place of a diagram."""
    for kind, measure, size in (("TX", transmit, 1), ("RX", receive, burst)):
        load = Load(f"{kind} 64 B over {over}", 64, f"growth, {over}", windows=WINDOWS, x=x)
        measure(rig, counter, sheet, dataclasses.replace(load, burst=size, flows=flows))
    sheet.add(Figure(f"growth, {over}", f"memory over {over}", "KiB", x=x), memory(rig))


def most_queues(rig):
    """The most combined queues that the driver takes."""
    text = rig.guest.output(f"ethtool -l {rig.interface}").split("Current")[0]
    return int(text.split("Combined:")[1].split()[0])


def measure(rig, results, queues, rings):
    """One boot. Rings have their sizes for one queue."""
    sheet = Sheet(results, rig.driver, profiled=False)
    counter = ready(rig)
    name, most = rig.interface, most_queues(rig)
    for number in (number for number in queues if number <= most):
        rig.guest.run(f"ethtool -L {name} combined {number}", check=rig.channels() != number)
        rig.bring_up()
        at(rig, counter, sheet, "queues", number, min(PER_QUEUE * number, BURST_MOST), 16 * number)
    rig.guest.run(f"ethtool -L {name} combined 1")
    for size in rings:
        rig.guest.run(f"ethtool -G {name} rx {size} tx {size}", check=False)
        rig.bring_up()
        at(rig, counter, sheet, "ring size", size, PER_QUEUE, 1)
    counter.close()
    rig.check()
