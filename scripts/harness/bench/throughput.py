# SPDX-License-Identifier: GPL-2.0
"""Throughput and latency, to be compared within a run: the clock is that of an emulated machine."""

from ..common import expect
from ..guest import Boot
from ..tests import traffic
from .figures import Figure

BOOT = Boot(cpus=2)
STRICT = Boot(cpus=2, iommu_strict=True)
UDP_SIZES = (360, 1024, 1518)
UDP_FLOWS = (1, 4, 8)
# Of each flow: datagrams that its sender gave to the stack and that its receiver took.
SELECTORS = "LOCAL_SEND_CALLS,REMOTE_RECV_CALLS"
# FCS, Ethernet, IPv4 and UDP headers.
HEADERS = 4 + 14 + 20 + 8
SECONDS = 2


def udp(rig, size, flows):
    """UDP_STREAM; returns what the device counted, and the datagrams sent and received."""
    client = f"netperf -H {rig.peer.v4} -l {SECONDS} -t UDP_STREAM -P 0 -- -m {size - HEADERS} -R 1 -o {SELECTORS}"
    rig.model.ask({"clear": "counters"})
    lines = rig.guest.output(f"for n in $(seq {flows}); do {client} & done; wait", timeout=60).splitlines()
    counters = rig.model.counters()
    expect(len(lines) == flows, f"of {flows} netperf {len(lines)} came to an end")
    sent, received = (sum(map(int, column)) for column in zip(*(line.split(",") for line in lines)))
    return counters, sent, received


def measure(rig, results, udp_loads):
    """One boot; `udp_loads` are pairs of frame size and number of flows."""
    rig.ensure_up()
    place = "IOMMU strict" if rig.guest.boot.iommu_strict else "no IOMMU"

    def add(name, unit, value):
        results.add(rig.driver, Figure("traffic", f"{name}, {place}", unit), value)

    def device(name, counters):
        frames = counters["port0.in_frames"] + counters["port0.out_frames"]
        results.device(rig.driver, f"{name}, {place}", counters, frames, rig.guest.boot.iommu_strict)

    for size, flows in udp_loads:
        counters, sent, received = udp(rig, size, flows)
        name = f"UDP_STREAM {size} B, {flows} flow{'s' if flows > 1 else ''}"
        # Some frames are netperf's own.
        frames = counters["port0.out_frames"]
        add(name, "Mbit/s on the wire", counters["port0.out_bytes"] * 8 / SECONDS / 1e6)
        add(name, "% lost before the wire", max(0, 100 * (1 - frames / sent)))
        add(name, "% lost beyond the wire", max(0, 100 * (1 - received / frames)))
        device(name, counters)
    for name, unit in (
        ("TCP_STREAM", "Mbit/s"),
        ("TCP_MAERTS", "Mbit/s"),
        ("TCP_RR", "transactions/s"),
    ):
        rig.model.ask({"clear": "counters"})
        add(name, unit, traffic.netperf(rig, name, seconds=SECONDS))
        device(name, rig.model.counters())
    rig.check()
    rig.unload()
