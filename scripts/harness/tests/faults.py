# SPDX-License-Identifier: GPL-2.0
"""A device that is slow, early, small or wrong."""

import re
import time

from ..common import expect
from ..guest import Boot
from ..runner import OURS, test
from .bringup import FULL
from .traffic import ping_sizes

# The work is done, and its interrupt on its way, before the doorbell write has returned.
INSIDE = Boot(cpus=2, posted_writes=False, knobs=(("complete_inside_doorbell", "true"),))
# One vector for the driver's own channel and one for all queues.
FEW_VECTORS = Boot(cpus=2, knobs=(("msix_vectors", "2"),))
# The device wants its commands given up after a second.
IMPATIENT = Boot(cpus=2, knobs=(("command_timeout_ms", "1000"),))
# More completions than a send ring has packets.
MANY = 100000
# What the stack and the driver take to notice a stuck queue and to reset the port, seconds.
RESET_TIMEOUT = 90
# Commands of the hardware channel up to the first interface, and then some.
COMMANDS = 12
REFUSAL = re.compile(r"command \w+ refused with status 0x")


@test(boots=(INSIDE,))
def completed_at_once(rig):
    rig.ensure_up()
    ping_sizes(rig, 0, 1500, 97)
    rig.unload()


@test(boots=(FEW_VECTORS,))
def few_vectors(rig):
    rig.ensure_up()
    ping_sizes(rig, 0, 1500, 97)
    rig.unload()


@test(drivers=OURS, boots=(FULL,))
def failing_probe(rig):
    """Whichever command of the start fails, probing ends with a message and leaves nothing."""
    rig.unload()
    failed = 0
    for number in range(1, COMMANDS + 1):
        rig.model.set(fail_command=f"{number}:error")
        rig.load()
        lines = rig.log.new_lines()
        rig.model.set(fail_command="")
        if not rig.interfaces():
            failed += 1
            expect(
                any(REFUSAL.search(line) for line in lines),
                f"no interface after command {number} failed, and the log does not name it: {lines}",
            )
        rig.unload()
    expect(failed >= COMMANDS / 2, f"of {COMMANDS} commands that failed only {failed} mattered")
    rig.ensure_up()


@test(boots=(FULL,))
def link(rig):
    """The port follows the link that the device reports."""
    rig.ensure_up()
    carrier = f"cat /sys/class/net/{rig.interface}/carrier"
    for up in (False, True):
        rig.model.do("link", port=0, up=up)
        deadline = time.monotonic() + 10
        while rig.guest.output(carrier) != str(int(up)):
            expect(time.monotonic() < deadline, f"the carrier does not follow the link to up={up}")
            time.sleep(0.2)
    rig.wait_for_peer(rig.interface, rig.peer)


@test(drivers=OURS, boots=(FULL,), timeout=300)
def stuck_queue(rig):
    """Completions that never come: the queue is named, the port is reset, and traffic goes on."""
    rig.ensure_up()
    rig.model.set(drop_completions=MANY)
    sender = rig.guest.start(f"ping -f -s 1200 -w {RESET_TIMEOUT} {rig.peer.v4}", timeout=RESET_TIMEOUT + 30)
    lines, deadline = [], time.monotonic() + RESET_TIMEOUT
    while not any("is stuck" in line for line in lines):
        expect(time.monotonic() < deadline, f"no word of a stuck queue in {RESET_TIMEOUT} s")
        time.sleep(1)
        lines += rig.log.new_lines()
    rig.model.set(drop_completions=0)
    rig.guest.run("pkill -x ping", check=False)
    sender.result(60)
    rig.wait_for_peer(rig.interface, rig.peer)
    ping_sizes(rig, 0, 1500, 97)


@test(drivers=OURS, boots=(IMPATIENT,))
def silent_device(rig):
    """A device that answers no command is named with the command, and the driver can still go."""
    rig.ensure_up()
    rig.model.set(fail_command="1:nothing")
    start = time.monotonic()
    rig.guest.run(f"ip link set {rig.interface} down", check=False)
    rig.unload()
    seconds = time.monotonic() - start
    lines = rig.log.new_lines()
    expect(any("got no answer" in line for line in lines), f"the log names no command: {lines}")
    expect(seconds < 30, f"it took {seconds:.0f} s to let go of a device that does not answer")
    rig.model.set(fail_command="")
    rig.ensure_up()
