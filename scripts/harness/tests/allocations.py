# SPDX-License-Identifier: GPL-2.0
"""Memory that cannot be had, and memory that is not given back. All on the debug kernel."""

import contextlib
import json
import re
import time

from ..common import expect
from ..guest import Boot
from ..leaks import Witnesses
from ..operations import operations, settings_command
from ..runner import OURS, test
from .lifecycle import load
from .traffic import ping_sizes

OWNERS, OWNERS_STRICT = Boot(owners=True), Boot(owners=True, iommu_strict=True)

PROGRAM = "/opt/ring-nics/fail_nth.py"
# Allocations of each operation that the default run has fail.
TRIES = 24
# What programs say to ENOMEM.
NO_MEMORY = "Cannot allocate memory"
# Operations that cannot do without new memory of ours, all of which asks for it by a way that can fail.
NEEDY = ("probe", "open", "rings", "channels", "mtu", "xdp")
# What the kernel says of a driver without memory.
PROBE_FAILED = r": probe with driver \w+ failed with error -12$"
# How long memory is short, and how often in percent.
SHORTAGE, ODDS = 10, 20
FAULTS = "/sys/kernel/debug"


def modules(rig):
    return (rig.driver.module, "ring_common")


def check_command(rig):
    """Shell text that ends with 0 once the peer answers."""
    ping = f"ping -c 1 -W 1 -I {rig.interface} {rig.peer.v4}"
    return f"for i in 1 2 3 4 5 6 7 8; do {ping} && exit; sleep 0.2; done; exit 1"


def unbind(rig, device):
    rig.guest.run(f"echo {device} > /sys/bus/pci/drivers/{rig.driver.module}/unbind")


def bind(rig, device):
    rig.guest.run(f"echo {device} > /sys/bus/pci/drivers/{rig.driver.module}/bind")
    rig.bring_up()


@contextlib.contextmanager
def watched(rig):
    """Runs the block with the port up, and fails if less memory is free behind it than before, with the
    driver loaded and its device given up both times."""
    rig.ensure_up()
    device = rig.device
    unbind(rig, device)
    witnesses = Witnesses(rig.guest, modules(rig), device)
    bind(rig, device)
    yield
    unbind(rig, device)
    witnesses.check()
    bind(rig, device)


def sweep(rig, tries):
    with watched(rig):
        rig.guest.run(f"{PROGRAM} filter {' '.join(modules(rig))}")
        check = check_command(rig)
        for operation in operations(rig):
            plan = {
                "before": operation.before,
                "command": operation.command,
                "after": operation.after,
                "check": check,
                "look": settings_command(rig.interface) if operation.up else "true",
                "tries": tries,
            }
            lines = rig.guest.run(f"{PROGRAM} sweep", timeout=3600, text=json.dumps(plan)).stdout
            total, *results = map(json.loads, lines.splitlines())
            judge(rig, operation, total["allocations"], results)


def judge(rig, operation, total, results):
    name = operation.name
    first, *results = results
    expect(first["rc"] == 0 and first["well"], f"{name} does not work with all memory to be had: {first}")
    refused = sum(result["rc"] != 0 for result in results)
    if name in NEEDY:
        expect(refused, f"{name}: of {total} allocations {len(results)} failed, and it never was refused")
    print(f"# {name}: of {total} allocations {len(results)} failed, {refused} with the command", flush=True)
    for result in results:
        expect(result["failed"], f"{name}: allocation {result['n']} of {total} was not reached")
        said = result["output"]
        expect(
            result["rc"] == 0 or NO_MEMORY in said,
            f"{name}: allocation {result['n']} fails, and the answer is {said!r}",
        )
        expect(
            result["kept"] or not operation.up or operation.name == "stop",
            f"{name}: allocation {result['n']} fails, and with it what worked before: {said!r}",
        )
        expect(
            result["rc"] == 0 or result["look"] == first["look"],
            f"{name}: allocation {result['n']} fails, and leaves other settings:\n{result['look']}",
        )
        expect(result["well"], f"{name}: once allocation {result['n']} has failed, nothing works: {said!r}")
    for line in rig.log.reported(rig.device):
        expect(re.search(PROBE_FAILED, line), f"{name}: the kernel logged {line}")


@test(drivers=OURS, boots=(OWNERS,), debug=True)
def leaks_are_seen(rig):
    """Each witness sees memory that is lost on purpose, and none sees any when none is lost."""
    rig.ensure_up()
    rig.guest.run("modprobe leak")
    witnesses = Witnesses(rig.guest, ("leak",), "leak")
    witnesses.check()
    rig.guest.run("echo 1 > /sys/module/leak/parameters/lose")
    held, lost = "\n".join(witnesses.held()), "\n".join(witnesses.unreferenced())
    for way in ("lose_slab", "lose_vmalloc", "lose_pages", "lose_coherent"):
        expect(f"{way}+" in held, f"no call chain leads to {way}:\n{held}")
    expect("20 mappings of leak" in held, f"the DMA core does not count what is mapped:\n{held}")
    for way in ("lose_slab", "lose_vmalloc", "lose_percpu"):
        expect(f"{way}+" in lost, f"kmemleak does not report {way}:\n{lost}")


@test(drivers=OURS, boots=(OWNERS,), debug=True, timeout=300)
def failing_allocations(rig):
    """Some allocation of each operation fails: it is refused with the right error or works all the same,
    the port carries traffic as before, and nothing is lost."""
    sweep(rig, TRIES)


@test(drivers=OURS, boots=(OWNERS, OWNERS_STRICT), debug=True, long=True, timeout=3600)
def all_failing_allocations(rig):
    """The same for every allocation of each operation."""
    sweep(rig, 0)


@test(drivers=OURS, boots=(OWNERS,), debug=True)
def short_memory(rig):
    """Every fifth allocation under load fails, in interrupts too: packets are lost, and nothing else."""
    with watched(rig):
        rig.guest.run(f"{PROGRAM} filter {' '.join(modules(rig))}")
        dropped = rig.links()["stats64"]["rx"]["dropped"]
        with load(rig):
            set_odds(rig, ODDS)
            time.sleep(SHORTAGE)
            set_odds(rig, 0)
        dropped = rig.links()["stats64"]["rx"]["dropped"] - dropped
        expect(dropped > 0, "memory was short, and no packet was dropped for it")
        rig.wait_for_peer(rig.interface, rig.peer)
        ping_sizes(rig, 0, 1500, 211)


def set_odds(rig, percent):
    for name in ("failslab", "fail_page_alloc"):
        rig.guest.run(f"echo {percent} > {FAULTS}/{name}/probability")
