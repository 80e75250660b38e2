#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""ping_sizes.py ADDRESS LOW HIGH [STEP]: sends ICMP echoes whose IP packets have every size of
LOW..HIGH bytes that a packet can have, and compares each answer's payload byte by byte.

Sizes that the headers alone exceed count as the smallest possible packet. A few echoes are on
their way at any time. Exits with 1 and says what is wrong at the first size that fails."""

import select
import socket
import struct
import sys
import time

WINDOW = 8
# An echo without answer is sent again this often, since neighbours may still be looked up.
TRIES = 3
WAIT = 2.0
IDENTITY = 0x524E


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def payload(size):
    """Bytes that differ between sizes and positions, so that no shift or mix-up goes unseen."""
    return bytes((size * 31 + position * 7 + (position >> 8) * 13) & 0xFF for position in range(size))


class Echo:
    def __init__(self, address):
        self.is_v6 = ":" in address
        family, protocol = (
            (socket.AF_INET6, socket.getprotobyname("ipv6-icmp"))
            if self.is_v6
            else (socket.AF_INET, socket.getprotobyname("icmp"))
        )
        self.socket = socket.socket(family, socket.SOCK_RAW, protocol)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.connect((address, 0))
        self.headers = 48 if self.is_v6 else 28
        self.request, self.reply = (128, 129) if self.is_v6 else (8, 0)

    def send(self, size):
        data = payload(size)
        header = struct.pack(">BBHHH", self.request, 0, 0, IDENTITY, size)
        if not self.is_v6:
            # The kernel fills in the checksum of ICMPv6 only.
            right = checksum(header + data)
            header = struct.pack(">BBHHH", self.request, 0, right, IDENTITY, size)
        self.socket.send(header + data)

    def receive(self):
        """(size, payload) of an answer to one of our echoes, None for anything else."""
        data = self.socket.recv(1 << 16)
        if not self.is_v6:
            data = data[(data[0] & 15) * 4 :]
        kind, _, _, identity, size = struct.unpack_from(">BBHHH", data)
        if kind != self.reply or identity != IDENTITY:
            return None
        return size, data[8:]


def main():
    address, low, high = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    step = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    echo = Echo(address)
    sizes = sorted({max(size - echo.headers, 0) for size in [*range(low, high + 1, step), high]})
    todo, waiting, tries = list(reversed(sizes)), {}, dict.fromkeys(sizes, 0)
    while todo or waiting:
        while todo and len(waiting) < WINDOW:
            size = todo.pop()
            tries[size] += 1
            echo.send(size)
            waiting[size] = time.monotonic() + WAIT
        if select.select([echo.socket], [], [], 0.2)[0]:
            answer = echo.receive()
            if answer and answer[0] in waiting:
                size, data = answer
                if data != payload(size):
                    sys.exit(f"payload of {size} bytes came back changed, as {len(data)} bytes")
                del waiting[size]
        for size in [size for size, until in waiting.items() if until < time.monotonic()]:
            del waiting[size]
            if tries[size] == TRIES:
                sys.exit(f"no answer to {TRIES} echoes with {size} bytes of payload")
            todo.append(size)
    repeated = sum(count - 1 for count in tries.values())
    print(f"{len(sizes)} sizes, {repeated} sent again")


if __name__ == "__main__":
    main()
