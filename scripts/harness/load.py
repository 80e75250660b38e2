# SPDX-License-Identifier: GPL-2.0
"""Load of one kind of packet: the guest's packet generator, and floods that the model makes."""

import time

from . import packet
from .common import expect

PKTGEN = "/proc/net/pktgen"
FLOOD_TIMEOUT = 120
# Nobody has these addresses: the guest's stack drops the frames once it has looked for a route.
ELSEWHERE = ("192.0.2.1", "198.51.100.1")


class Pktgen:
    """The guest's packet generator on the rig's first interface, on the first `queues` of that in turn;
    `size` counts no FCS."""

    def __init__(self, rig, size=60, burst=1, queues=1):
        self._rig = rig
        self._device = f"{PKTGEN}/{rig.interface}"
        self._running = None
        settings = (
            f"pkt_size {size}",
            f"burst {burst}",
            # The stock drivers write into what they send, so no packet is sent twice.
            "clone_skb 0",
            "delay 0",
            "queue_map_min 0",
            f"queue_map_max {queues - 1}",
            f"dst {rig.peer.v4}",
            f"dst_mac {rig.peer.mac}",
        )
        self._do(
            "modprobe pktgen",
            f"echo 'add_device {rig.interface}' > {PKTGEN}/kpktgend_0",
            *(f"echo '{setting}' > {self._device}" for setting in settings),
        )

    def _do(self, *steps):
        self._rig.guest.run("\n".join(("set -e", *steps)), timeout=120)

    def send(self, packets):
        self._do(
            f"echo 'count {packets}' > {self._device}",
            f"echo start > {PKTGEN}/pgctrl",
            # On a slow guest that write ends before the generator has begun.
            f"until grep -q 'Result: OK: .*usec' {self._device}; do sleep 0.1; done",
        )

    def start(self):
        """Sends until stop()."""
        self._do(f"echo 'count 0' > {self._device}")
        # The process that starts it waits for its end, unless the guest is slow and it has not begun by then; a
        # signal to that process is the end, too.
        self._running = self._rig.guest.start(
            f"echo start > {PKTGEN}/pgctrl & echo $! > /run/pktgen; wait", timeout=600
        )

    def stop(self):
        self._do(f"kill $(cat /run/pktgen) || echo stop > {PKTGEN}/pgctrl")
        self._running.result(60)
        self._running = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._rig.guest.alive():
            if self._running:
                self.stop()
            self._do(f"echo rem_device_all > {PKTGEN}/kpktgend_0")


class Flood:
    """UDP frames of `size` bytes (no FCS) for the rig's first interface, made by the model."""

    def __init__(self, rig, size=60, flows=1):
        self._rig = rig
        mac, payload = rig.links()["address"], bytes(size - 42)
        self._frames = [
            packet.udp(rig.peer.mac, mac, *ELSEWHERE, (1024 + flow, 9), payload).hex()
            for flow in range(flows)
        ]

    def send(self, count, burst):
        """Each burst comes when the driver has dealt with the last one, so none is lost."""
        model = self._rig.model
        model.do("flood", port=0, frames=self._frames, count=count, burst=burst)
        deadline = time.monotonic() + FLOOD_TIMEOUT
        while model.report()["gauges"]["flood.left"]:
            expect(time.monotonic() < deadline, f"a flood of {count} frames took over {FLOOD_TIMEOUT} s")
            time.sleep(0.02)
        # The driver's last poll.
        time.sleep(0.2)
