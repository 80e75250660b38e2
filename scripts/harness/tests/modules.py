# SPDX-License-Identifier: GPL-2.0
"""The modules as such: which ones fit together."""

from ..common import expect
from ..runner import OURS, test
from .bringup import FULL

FOREIGN = "/opt/ring-nics/foreign"


@test(drivers=OURS, boots=(FULL,))
def foreign_build(rig):
    """A driver that was built with another ring_common is refused when it is loaded."""
    rig.ensure_up()
    rig.unload()
    module = rig.driver.module
    rig.guest.run(f"modprobe ring_common; cp {FOREIGN}/{module}.ko /tmp/")
    refused = rig.guest.run(f"insmod /tmp/{module}.ko", check=False)
    expect(refused.rc != 0, "a driver from another build of ring_common was loaded")
    expect("nknown symbol" in refused.stderr, f"insmod says {refused.stderr.strip()!r}")
    lines = [line for line in rig.log.new_lines() if "Unknown symbol" in line]
    expect(lines, "the kernel did not name the symbol that does not fit")
    rig.ensure_up()


@test(drivers=OURS, boots=(FULL,))
def in_use(rig):
    """ring_common stays while a driver uses it, and goes after it."""
    rig.ensure_up()
    busy = rig.guest.run("rmmod ring_common", check=False)
    expect(busy.rc != 0, "ring_common was unloaded under its user")
    rig.unload()
    rig.guest.run("if [ -d /sys/module/ring_common ]; then rmmod ring_common; fi")
    rig.ensure_up()
