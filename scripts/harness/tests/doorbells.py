# SPDX-License-Identifier: GPL-2.0
"""How often the driver writes to the device, counted by the device."""

from .. import packet, wire
from ..common import expect
from ..load import Pktgen
from ..runner import OURS, test
from .bringup import FULL
from .traffic import iperf3

BURST = 32
PACKETS = 20000
# Receive buffers that may be filled and not yet announced: a quarter of the ring, at most this.
UNANNOUNCED = 64
# A ring whose quarter is below that, and below what one poll takes.
SMALL_RING = 128


def pktgen(rig, packets, burst):
    """Sends with the kernel's packet generator; returns what the NIC counted meanwhile."""
    with Pktgen(rig, burst=burst) as generator:
        rig.model.ask({"clear": "counters"})
        generator.send(packets)
        return rig.model.counters()


@test(drivers=OURS, boots=(FULL,))
def transmit_doorbells(rig):
    """A burst costs one doorbell: at most 1/16 per packet with bursts of 32."""
    rig.ensure_up()
    counters = pktgen(rig, PACKETS, BURST)
    packets, doorbells = counters["tx_packets"], counters["doorbell_sq"]
    expect(packets >= PACKETS, f"{packets} of {PACKETS} packets reached the NIC")
    expect(
        doorbells * 16 <= packets,
        f"{doorbells} doorbells for {packets} packets, at most one for 16 is right",
    )


@test(drivers=OURS, boots=(FULL,))
def receive_doorbells(rig):
    """Buffers are announced in batches, and the batch has a bound, in a small ring too."""
    rig.ensure_up()
    name, usual = rig.interface, rig.ethtool("-g")["rx"]
    try:
        for ring in (usual, SMALL_RING):
            if ring != usual:
                rig.guest.run(f"ethtool -G {name} rx {ring}")
                rig.wait_for_peer(name, rig.peer)
            rig.model.ask({"clear": "counters"})
            iperf3(rig, "--reverse", "--parallel", "4")
            counters = rig.model.counters()
            packets, doorbells = counters["rx_packets"], counters["doorbell_rq"]
            expect(packets > 100, f"only {packets} packets were received")
            expect(doorbells < packets / 2, f"{doorbells} doorbells for {packets} packets received")
            most, bound = counters["rq_wqes_per_doorbell_max"], min(ring // 4, UNANNOUNCED)
            expect(most <= bound, f"{most} buffers were announced at once, {bound} is the bound")
    finally:
        rig.guest.run(f"ethtool -G {name} rx {usual}", check=False)


@test(drivers=OURS, boots=(FULL,))
def receive_flood(rig):
    """A flood of small frames: many are received, and the port goes on."""
    rig.ensure_up()
    mac = rig.links()["address"]
    rig.model.ask({"clear": "counters"})
    frames = [
        packet.udp(rig.peer.mac, mac, rig.peer.v4, rig.peer.guest_v4, (40000 + n, 9), bytes(22))
        for n in range(500)
    ]
    for _ in range(20):
        wire.send_frames(rig.peer, frames)
    rig.wait_for_peer(rig.interface, rig.peer)
    counters = rig.model.counters()
    total = counters["rx_packets"] + counters["rx_no_wqe"]
    expect(counters["rx_packets"] > 500, f"{counters['rx_packets']} of {total} frames were received")
