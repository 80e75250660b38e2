# SPDX-License-Identifier: GPL-2.0
"""The other end of a NIC's wire: a tap device in this harness's own network namespace, with this
machine's network stack and servers of its own behind it, at native speed."""

import fcntl
import os
import pathlib
import re
import select
import socket
import struct
import subprocess
import threading
import time

from .common import SELFTESTS, Failure, expect

ETH_P_ALL = 3
VLAN = 0x8100
FRAME_SPACE = 1 << 16
# Each slot takes the snapshot length, and a busy machine reads them late.
CAPTURE_KIB = "65536"

# linux/if_tun.h, linux/if_packet.h
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
SOL_PACKET = 263
PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 8, 23
TP_STATUS_VLAN_VALID = 1 << 4

SERVERS = (("iperf3", "--server"), ("netserver", "-D"))
START_TIMEOUT = 10


def run(*command, check=True, timeout=60, text=None):
    """Runs a program on the peer's side and returns what it printed."""
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=timeout, check=False
    )
    if check and done.returncode:
        raise Failure(f"on the peer, {' '.join(command)!r} failed: {done.stderr.strip()}")
    return done.stdout


class Peer:
    """One tap device and the peer's address on it; the guest's is the next one."""

    def __init__(self, port: int):
        self.device = f"port{port}"
        self.wire = f"tap:{self.device}"
        self.v4, self.guest_v4 = f"10.77.{port}.1", f"10.77.{port}.2"
        self.v6, self.guest_v6 = f"fd77:{port}::1", f"fd77:{port}::2"
        run("ip", "tuntap", "add", "dev", self.device, "mode", "tap")
        for key, value in (("accept_dad", 0), ("accept_ra", 0), ("router_solicitations", 0)):
            self._sysctl(key, value)
        run("ip", "link", "set", self.device, "up")
        run("ip", "address", "add", f"{self.v4}/24", "dev", self.device)
        run("ip", "address", "add", f"{self.v6}/64", "dev", self.device, "nodad")

    def _sysctl(self, key, value):
        path = pathlib.Path(f"/proc/sys/net/ipv6/conf/{self.device}/{key}")
        path.write_text(str(value))

    @property
    def mac(self):
        return pathlib.Path(f"/sys/class/net/{self.device}/address").read_text().strip()

    def set_mtu(self, mtu):
        run("ip", "link", "set", self.device, "mtu", str(mtu))

    def neighbour(self, mac):
        """Makes the guest known for good, so that no lookup disturbs what a test counts."""
        for address in (self.guest_v4, self.guest_v6):
            run("ip", "neighbour", "replace", address, "lladdr", mac, "dev", self.device)

    def close(self):
        run("ip", "link", "delete", self.device, check=False)


class Servers:
    """The servers that a guest's clients talk to; they listen on every port's address. Each guest
    gets new ones: a client that vanishes with its guest leaves its server waiting."""

    def __init__(self):
        self._processes = [
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            for command in SERVERS
        ]
        for port in (5201, 12865):
            self._wait(port)

    def _wait(self, port):
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise Failure(f"no server on port {port} of the peer: {error}") from error
                time.sleep(0.05)

    def close(self):
        for process in self._processes:
            process.kill()
            process.wait()


class StreamServer:
    """The peer's half of tools/selftests/stream.py, for one connection to `address`."""

    def __init__(self, address):
        self._process = subprocess.Popen(
            ["python3", str(SELFTESTS / "stream.py"), "listen", address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._process.stdout.readline())

    def check(self):
        """Fails unless the data arrived here as it was sent."""
        answer, _ = self._process.communicate(timeout=30)
        expect(answer.strip() == "same", f"data from the guest arrived changed: {answer.strip()}")

    def close(self):
        self._process.kill()
        self._process.communicate()


class Capture:
    """Frames that a port sent on the wire, from construction to frames()."""

    def __init__(self, peer: Peer, file: pathlib.Path, expression="", count=4000):
        self.file = file
        self._process = subprocess.Popen(
            [
                *("tcpdump", "--interface", peer.device, "--direction", "in", "--snapshot-length", "4096"),
                *("--immediate-mode", "--buffer-size", CAPTURE_KIB, "-Z", "root"),
                *("-w", str(file), "-c", str(count), expression),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self._process.stderr.readline()
        if "listening on" not in line:
            raise Failure(f"tcpdump did not start: {line.strip()}")

    def frames(self):
        """Ends the capture and returns its frames, each as bytes."""
        # What is on its way through the socket gets a moment.
        time.sleep(0.3)
        self._process.terminate()
        _, said = self._process.communicate(timeout=10)
        lost = re.search(r"(\d+) packets? dropped by kernel", said)
        expect(lost and lost[1] == "0", f"the capture is incomplete: {said.strip()}")
        return list(read_pcap(self.file))


class TaggedPort:
    """A tap device that carries the traffic of one VLAN of a peer's port, without tags: the kernel
    of the machine that runs this need not know VLANs. Slow, since each frame passes through here."""

    def __init__(self, peer: Peer, vlan: int):
        self.device = f"{peer.device}v{vlan}"
        self._tag = struct.pack(">HH", VLAN, vlan)
        self._tap = os.open("/dev/net/tun", os.O_RDWR)
        request = struct.pack("16sH", self.device.encode(), IFF_TAP | IFF_NO_PI)
        fcntl.ioctl(self._tap, TUNSETIFF, request.ljust(40, b"\0"))
        self._wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self._wire.bind((peer.device, 0))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._bridge, daemon=True)
        run("ip", "link", "set", self.device, "address", peer.mac, "up")
        self._thread.start()

    def _bridge(self):
        while not self._stop.is_set():
            for ready in select.select([self._tap, self._wire], [], [], 0.1)[0]:
                if ready == self._tap:
                    frame = os.read(self._tap, FRAME_SPACE)
                    self._wire.send(frame[:12] + self._tag + frame[12:])
                else:
                    self._untag()

    def _untag(self):
        """Passes on a frame of our VLAN; the kernel has put its tag aside."""
        frame, ancillary, _, _ = self._wire.recvmsg(FRAME_SPACE, socket.CMSG_SPACE(20))
        for _, kind, data in ancillary:
            status, *_, tci, protocol = struct.unpack("=IIIHHHH", data)
            tag = struct.pack(">HH", protocol, tci & 0xFFF)
            if kind == PACKET_AUXDATA and status & TP_STATUS_VLAN_VALID and tag == self._tag:
                os.write(self._tap, frame)

    def close(self):
        self._stop.set()
        self._thread.join()
        self._wire.close()
        os.close(self._tap)


def read_pcap(file: pathlib.Path):
    data = file.read_bytes()
    offset = 24
    while offset + 16 <= len(data):
        _, _, length, _ = struct.unpack_from("<IIII", data, offset)
        offset += 16
        yield data[offset : offset + length]
        offset += length


def send_frames(peer: Peer, frames):
    """Puts raw frames on the wire towards the guest."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as raw:
        raw.bind((peer.device, 0))
        for frame in frames:
            raw.send(frame)
