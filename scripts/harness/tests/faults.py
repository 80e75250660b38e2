# SPDX-License-Identifier: GPL-2.0
"""A device that is slow, early, small or wrong."""

from ..common import expect
from ..guest import Boot
from ..runner import OURS, test
from .bringup import FULL
from .traffic import ping_sizes

# The work is done, and its interrupt on its way, before the doorbell write has returned.
INSIDE = Boot(cpus=2, posted_writes=False, knobs=(("complete_inside_doorbell", "true"),))
# One vector for the driver's own channel and one for all queues.
FEW_VECTORS = Boot(cpus=2, knobs=(("msix_vectors", "2"),))
# Commands of the hardware channel up to the first interface, and then some.
COMMANDS = 12


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
    for number in range(1, COMMANDS + 1):
        rig.model.set(fail_command=f"{number}:error")
        rig.load()
        lines = rig.log.new_lines()
        rig.model.set(fail_command="")
        if not rig.interfaces():
            expect(
                any(rig.driver.module in line for line in lines),
                f"no interface after command {number} failed, and the log does not say why",
            )
        rig.unload()
    rig.ensure_up()
