# SPDX-License-Identifier: GPL-2.0
"""A device that lies, by seeds: the driver may lose packets and give the device up, and no more."""

import contextlib
import random
import re
import threading
import time

from .. import packet, wire
from ..checks import ALARMS, KERNEL_LOG, LEVEL_WARNING, level, reviewed, text_of
from ..common import Failure, expect
from ..guest import Boot
from ..operations import operations
from ..runner import OURS, test
from .traffic import ping_sizes

# An IOMMU, so that a lie does no more than a lie can: without one, a device that says early that it is done with
# a buffer may still write to it when it is someone else's.
LIAR = Boot(cpus=2, iommu_strict=True, knobs=(("command_timeout_ms", "1000"),))

# What is lied about, one in how many times, and whether from probing on.
MENUS = (
    ("completion+event", 3, False),
    ("command", 4, False),
    ("completion+event+command+register", 40, False),
    ("completion+event+command+register", 12, True),
)
# Seconds of a round, and mutations, of the default run and the long one.
SHORT, SOME = 4, 1000
LONG, MANY = 30, 100000
# When the stock driver has been compared long enough, seconds: each of its failures costs a new guest.
STOCK = 3600
# How long a port that works again by itself has for that, seconds.
SELF_HELP = 3
# What made the port work again, at worst.
RELOAD = "reload"
FRAMES = 64


@contextlib.contextmanager
def storm(rig):
    """Datagrams both ways that need no answers, of all lengths, for as long as the block runs."""
    stop, mac, peer = threading.Event(), rig.links()["address"], rig.peer
    peer.neighbour(mac)
    flows = [
        packet.udp(peer.mac, mac, peer.v4, peer.guest_v4, (20000 + n, 9), bytes(n * 22))
        for n in range(FRAMES)
    ]

    def receive():
        while not stop.is_set():
            wire.send_frames(peer, flows)
            time.sleep(0.02)

    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    # A datagram that cannot be sent, since the interface is down, is none of a hurry.
    sending = rig.guest.start(
        "trap 'kill $(jobs -p)' EXIT;"
        f"ping -f -s 1200 {peer.v4} >/dev/null 2>&1 &"
        f"while sleep 0.02; do dd if=/dev/zero bs=1200 count=64 >/dev/udp/{peer.v4}/9; done 2>/dev/null &"
        "until [ -e /tmp/storm.stop ]; do sleep 0.1; done",
        timeout=600,
    )
    try:
        yield
    finally:
        stop.set()
        thread.join()
        rig.guest.run("touch /tmp/storm.stop")
        sending.result(300)
        rig.guest.run("rm -f /tmp/storm.stop; pkill -x ping; pkill -x dd", check=False)


def attempt(rig, command):
    """Runs a command that may fail, but must end."""
    return rig.must_end(command).rc == 0


def judge(rig):
    """Of all that the kernel logs, only complaints of the driver, and of what a user asked for, are in order."""
    expected = [
        re.compile(rf"^{rig.driver.module}[ _:]"),
        re.compile(r"^A link change request failed with some changes committed already"),
        re.compile(r"callbacks suppressed$"),
        *(pattern for pattern, _ in reviewed(KERNEL_LOG)),
    ]
    bad = []
    for line in rig.log.new_lines():
        text = text_of(line)
        if ALARMS.search(text) or (level(line) <= LEVEL_WARNING and not any(pattern.search(text) for pattern in expected)):
            bad.append(text)
    expect(not bad, "the kernel logged\n" + "\n".join(bad[:40]))


def answers(rig, seconds):
    command = f"ping -c 1 -W 1 {rig.peer.v4}"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if rig.guest.run(command, check=False).rc == 0:
            return True
    return False


def recover(rig, name):
    """Has traffic pass again, by the mildest means; returns which that was."""
    if answers(rig, SELF_HELP):
        return "by itself"
    up = rig.up_command(name, rig.peer)
    if attempt(rig, f"ip link set {name} down; {up}") and answers(rig, SELF_HELP):
        return "down and up"
    attempt(rig, f"modprobe -r {rig.driver.module}")
    expect(not rig.loaded(), "the driver cannot be unloaded")
    # From here on the driver knows no lie.
    rig.model.ask({"clear": "violations"})
    rig.load()
    rig.bring_up()
    return RELOAD


def lie(rig, seed, menu, seconds):
    """One round of lies; returns what made the port work again."""
    kinds, rate, from_start = menu
    order = random.Random(seed)
    rig.ensure_up()
    name, todo = rig.interface, operations(rig)
    fuzz = f"{seed}:{rate}:{kinds}"
    with storm(rig):
        deadline = time.monotonic() + seconds
        if from_start:
            attempt(rig, f"modprobe -r {rig.driver.module}")
            rig.model.set(fuzz=fuzz)
            while time.monotonic() < deadline:
                attempt(rig, f"modprobe {rig.driver.module}")
                attempt(rig, rig.up_command(name, rig.peer))
                time.sleep(0.3)
                attempt(rig, f"modprobe -r {rig.driver.module}")
            attempt(rig, f"modprobe {rig.driver.module}")
        else:
            rig.model.set(fuzz=fuzz)
            while time.monotonic() < deadline:
                operation = order.choice(todo)
                for command in (operation.before, operation.command, operation.after):
                    attempt(rig, command)
                time.sleep(0.1)
        rig.model.set(fuzz="")
    means = recover(rig, name)
    judge(rig)
    return means


def settle(rig, means):
    """After lies: the device tells the truth, and the driver, loaded anew, keeps all rules."""
    rig.unload()
    rig.expect_no_dma()
    if means != RELOAD:
        rig.model.ask({"clear": "violations"})
    rig.ensure_up()
    ping_sizes(rig, 0, 1500, 297)


def survive(rig, wanted, seconds):
    """Seeds from 1 on, each with the next menu, until there were enough mutations. What becomes of the stock driver is
    listed, and decides nothing."""
    table, results = [], rig.folder / "liar.txt"
    total = 0
    start = time.monotonic()
    while total < wanted or len(table) < len(MENUS):
        if not rig.driver.ours and time.monotonic() - start > STOCK:
            print(f"#   {rig.driver.name}: no more time for the other seeds", flush=True)
            return
        seed, menu = len(table) + 1, MENUS[len(table) % len(MENUS)]
        kinds, rate, from_start = menu
        what = f"seed {seed}, one in {rate}, {kinds}{', from the start' if from_start else ''}"
        before = rig.model.counters()
        try:
            means = lie(rig, seed, menu, seconds)
            settle(rig, means)
            rig.check()
            after = rig.model.counters()
            broken = after.get("excused_violations", 0) - before.get("excused_violations", 0)
            outcome = f"works again {means}, {broken} rules broken"
        except Exception as failure:
            if rig.driver.ours:
                raise Failure(f"{what}: {failure}") from failure
            outcome = " ".join(str(failure).split())[:200]
            after = rig.model.counters() if rig.model.alive() else before
            rig.restart()
        mutations = after.get("fuzz.mutations", 0) - before.get("fuzz.mutations", 0)
        total += mutations
        table.append(f"{what}: {mutations} mutations, {outcome}")
        print(f"#   {rig.driver.name}: {table[-1]}", flush=True)
        results.write_text("\n".join(table) + "\n")


@test(drivers=OURS, boots=(LIAR,), timeout=600)
def lies(rig):
    """Traffic and every operation while the device lies: no report, no hang, and all is well afterwards."""
    survive(rig, SOME, SHORT)


@test(boots=(LIAR,), timeout=4 * 3600, long=True)
def many_lies(rig):
    """The same, many times; the stock driver on the same seeds, for comparison."""
    survive(rig, MANY, LONG)
