# SPDX-License-Identifier: GPL-2.0
"""A device that is slow, early, small or wrong."""

import time

from ..common import expect
from ..guest import Boot
from ..operations import operations
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
# What a slow device takes, and one that nobody waits for.
ANSWER_US, COMPLETION_US = 20000, 5000
LATE_MS = 2000


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


@test(drivers=OURS, boots=(FULL,), timeout=300)
def slow_device(rig):
    """Answers and completions that take their time, through everything that a user does."""
    rig.unload()
    rig.model.set(answer_delay_us=ANSWER_US, completion_delay_us=COMPLETION_US)
    rig.ensure_up()
    for operation in operations(rig):
        for command in (operation.before, operation.command, operation.after):
            rig.guest.run(command)
    # Down and up has taken the IPv6 address along.
    rig.bring_up()
    ping_sizes(rig, 0, 1500, 97)
    rig.unload()
    rig.model.set(answer_delay_us=0, completion_delay_us=0)
    rig.ensure_up()


@test(drivers=OURS, boots=(IMPATIENT,))
def late_answer(rig):
    """An answer that comes when nobody waits for it any more finds the device's DMA stopped."""
    rig.ensure_up()
    rig.model.set(answer_delay_us=LATE_MS * 1000)
    rig.guest.run(f"ip link set {rig.interface} down", check=False)
    lines = rig.log.new_lines()
    expect(any("got no answer" in line for line in lines), f"the log names no command: {lines}")
    time.sleep(LATE_MS / 1000)
    stopped = rig.model.counters().get("excused_violations", 0)
    expect(stopped > 0, "the late answer was not stopped")
    rig.model.set(answer_delay_us=0)
    rig.unload()
    # The driver resets what it gave up, and the kernel says so.
    rig.log.reported(rig.driver.module)
    rig.ensure_up()
