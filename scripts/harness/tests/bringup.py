# SPDX-License-Identifier: GPL-2.0
"""From an unmodified kernel to a port that answers."""

from ..common import expect
from ..guest import Boot
from ..runner import OURS, test

FULL = Boot(cpus=2)
SMALL, WIDE = Boot(cpus=1), Boot(cpus=4)
STRICT = Boot(cpus=2, iommu_strict=True)
BOUNCED = Boot(cpus=2, swiotlb_force=True)
EVERY = (FULL, STRICT, BOUNCED, SMALL, WIDE)


@test(boots=(FULL,))
def probe(rig):
    """The driver makes one interface per port, with a driver name, an address and a link."""
    rig.load()
    name = rig.interface
    info = rig.guest.output(f"ethtool -i {name}")
    expect(f"driver: {rig.driver.module}" in info.splitlines(), f"ethtool -i says {info!r}")
    address = rig.links(name)["address"]
    expect(address != "00:00:00:00:00:00", "the port has no hardware address")
    rig.ensure_up()
    state = rig.links(name)["operstate"]
    expect(state == "UP", f"the port reaches its peer, and its link is {state}")


@test(drivers=OURS, boots=(FULL,))
def alias(rig):
    """The NIC's PCI alias loads our module and ring_common with it, and not the stock driver."""
    rig.ensure_up()
    device = rig.guest.output(f"readlink -f /sys/class/net/{rig.interface}/device")
    rig.unload()
    rig.guest.run("modprobe -r ring_common", check=False)
    rig.guest.run(f"modprobe --use-blacklist $(cat {device}/modalias)")
    modules = rig.guest.output("lsmod").split()
    for module in (rig.driver.module, "ring_common"):
        expect(module in modules, f"{module} was not loaded by the device's alias")
    expect(rig.driver.vendor not in modules, "the stock driver was loaded by the device's alias")
    bound = rig.guest.output(f"basename $(readlink {device}/driver)")
    expect(bound == rig.driver.module, f"{bound} serves the device, not {rig.driver.module}")
    rig.ensure_up()


@test(drivers=OURS, boots=(FULL,))
def information(rig):
    """ethtool -i, -g, -l, -x, -k and -S answer, and agree with each other."""
    rig.ensure_up()
    rings, combined = rig.ethtool("-g"), rig.channels()
    expect(0 < rings["rx"] <= rings["rx-max"], f"ethtool -g says rx {rings}")
    expect(0 < rings["tx"] <= rings["tx-max"], f"ethtool -g says tx {rings}")
    expect(combined == rig.queues, f"{combined} queues on {rig.queues} processors")
    table = rig.ethtool("-x")["rss-indirection-table"]
    expect(set(table) == set(range(combined)), f"the indirection table uses queues {sorted(set(table))}")
    info = dict(line.split(": ", 1) for line in rig.guest.output(f"ethtool -i {rig.interface}").splitlines() if ": " in line)
    expect(info["bus-info"] == rig.device, f"ethtool -i names the bus address {info['bus-info']}")
    features = rig.ethtool("-k")
    for feature in ("tx-checksum-ipv4", "tx-tcp-segmentation", "rx-checksumming"):
        expect(features[feature]["active"], f"ethtool -k says that {feature} is off")
    statistics = rig.statistics()
    for queue in range(combined):
        for key in (f"rx_{queue}_packets", f"rx_{queue}_bytes", f"tx_{queue}_packets", f"tx_{queue}_bytes"):
            expect(key in statistics, f"ethtool -S lacks {key}")
    sent = sum(statistics[f"tx_{queue}_packets"] for queue in range(combined))
    expect(sent > 0, "ethtool -S counted no packet sent")
