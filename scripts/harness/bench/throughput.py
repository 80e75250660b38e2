# SPDX-License-Identifier: GPL-2.0
"""Throughput and latency, to be compared within a run: the clock is that of an emulated machine."""

from ..guest import Boot
from ..tests import traffic
from .figures import Figure

BOOT = Boot(cpus=2)
STRICT = Boot(cpus=2, iommu_strict=True)
UDP_SIZES = (360, 1024, 1518)
UDP_FLOWS = (1, 4, 8)
# FCS, Ethernet, IPv4 and UDP headers.
HEADERS = 4 + 14 + 20 + 8
SECONDS = 2


def udp(rig, size, flows):
    """UDP_STREAM; returns Mbit/s that the NIC put on the wire and the share that the peer lost."""
    options = f"-m {size - HEADERS} -R 1 -o LOCAL_SEND_THROUGHPUT,REMOTE_RECV_THROUGHPUT"
    client = f"netperf -H {rig.peer.v4} -l {SECONDS} -t UDP_STREAM -P 0 -- {options}"
    before = rig.model.counters()["port0.out_bytes"]
    lines = rig.guest.output(f"for n in $(seq {flows}); do {client} & done; wait", timeout=60).splitlines()
    wire = rig.model.counters()["port0.out_bytes"] - before
    sent, received = (sum(map(float, column)) for column in zip(*(line.split(",") for line in lines)))
    return wire * 8 / SECONDS / 1e6, 1 - received / sent


def measure(rig, results, udp_loads):
    """One boot; `udp_loads` are pairs of frame size and number of flows."""
    rig.ensure_up()
    place = "IOMMU strict" if rig.guest.boot.iommu_strict else "no IOMMU"

    def add(name, unit, value):
        results.add(rig.driver, Figure("traffic", f"{name}, {place}", unit), value)

    for size, flows in udp_loads:
        rate, loss = udp(rig, size, flows)
        name = f"UDP_STREAM {size} B, {flows} flow{'s' if flows > 1 else ''}"
        add(name, "Mbit/s on the wire", rate)
        add(name, "share lost beyond the wire", loss)
    for name, unit in (
        ("TCP_STREAM", "Mbit/s"),
        ("TCP_MAERTS", "Mbit/s"),
        ("TCP_RR", "transactions/s"),
    ):
        rig.model.ask({"clear": "counters"})
        add(name, unit, traffic.netperf(rig, name, seconds=SECONDS))
        counters = rig.model.counters()
        frames = counters["port0.in_frames"] + counters["port0.out_frames"]
        results.device(rig.driver, f"{name}, {place}", counters, frames)
    rig.check()
    rig.unload()
