# SPDX-License-Identifier: GPL-2.0
"""Does the rig itself work?"""

from ..runner import test


@test()
def probe(rig):
    print(rig.guest.output("uname -a; uptime; ls /sys/bus/pci/devices; free -m"))
