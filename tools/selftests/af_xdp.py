#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""af_xdp.py INTERFACE QUEUE MAP COUNT: receives COUNT frames through an AF_XDP socket in copy mode on a
queue of an interface, and sends each back with its Ethernet addresses exchanged.

MAP is the pinned XSKMAP of the program that redirects to the socket. Prints "ready" when that can begin, and at
the end how many frames came and how many of the answers the kernel has sent."""

import ctypes
import mmap
import select
import socket
import struct
import sys
import time

# linux/if_xdp.h
AF_XDP, SOL_XDP = 44, 283
XDP_MMAP_OFFSETS, XDP_RX_RING, XDP_TX_RING, XDP_UMEM_REG = 1, 2, 3, 4
XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING = 5, 6
XDP_COPY = 1 << 1
PGOFF_RX, PGOFF_TX, PGOFF_FILL, PGOFF_COMPLETION = 0, 0x80000000, 0x100000000, 0x180000000
# linux/bpf.h
SYS_BPF, BPF_MAP_UPDATE_ELEM, BPF_OBJ_GET = 321, 2, 7

ENTRIES, CHUNK = 512, 4096
# The first half of the memory is for reception, the second for transmission.
CHUNKS = 2 * ENTRIES
PATIENCE = 30

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {errno_text(number)}")
    return result


def errno_text(number):
    libc.strerror.restype = ctypes.c_char_p
    return libc.strerror(number).decode()


def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes, 120)
    return check(libc.syscall(SYS_BPF, command, buffer, len(buffer)), "bpf()")


class Ring:
    """One of the four rings; `size` is that of its entries."""

    def __init__(self, file, offsets, place, size):
        producer, consumer, descriptors, _ = offsets
        self._memory = mmap.mmap(
            file, descriptors + ENTRIES * size, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=place
        )
        self._producer = ctypes.c_uint32.from_buffer(self._memory, producer)
        self._consumer = ctypes.c_uint32.from_buffer(self._memory, consumer)
        self._descriptors, self._size = descriptors, size

    def push(self, entry):
        """Adds an entry; there is room."""
        at = self._producer.value
        expect_room = (at - self._consumer.value) & 0xFFFFFFFF
        if expect_room >= ENTRIES:
            raise RuntimeError("a ring is full")
        place = self._descriptors + at % ENTRIES * self._size
        self._memory[place : place + self._size] = entry
        self._producer.value = (at + 1) & 0xFFFFFFFF

    def pop(self):
        """Takes an entry, or None."""
        at = self._consumer.value
        if at == self._producer.value:
            return None
        place = self._descriptors + at % ENTRIES * self._size
        entry = self._memory[place : place + self._size]
        self._consumer.value = (at + 1) & 0xFFFFFFFF
        return entry


class Socket:
    def __init__(self, interface, queue):
        self.socket = socket.socket(AF_XDP, socket.SOCK_RAW, 0)
        file = self.socket.fileno()
        self.memory = mmap.mmap(-1, CHUNKS * CHUNK)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        # struct xdp_umem_reg
        register = struct.pack("<QQIIII", address, CHUNKS * CHUNK, CHUNK, 0, 0, 0)
        self.socket.setsockopt(SOL_XDP, XDP_UMEM_REG, register)
        for ring in (XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING):
            self.socket.setsockopt(SOL_XDP, ring, ENTRIES)
        # struct xdp_mmap_offsets: producer, consumer, desc, flags for rx, tx, fr, cr
        offsets = struct.unpack("<16Q", self.socket.getsockopt(SOL_XDP, XDP_MMAP_OFFSETS, 128))
        rx, tx, fill, completion = (offsets[i : i + 4] for i in range(0, 16, 4))
        self.rx = Ring(file, rx, PGOFF_RX, 16)
        self.tx = Ring(file, tx, PGOFF_TX, 16)
        self.fill = Ring(file, fill, PGOFF_FILL, 8)
        self.completion = Ring(file, completion, PGOFF_COMPLETION, 8)
        for chunk in range(ENTRIES):
            self.fill.push(struct.pack("<Q", chunk * CHUNK))
        # struct sockaddr_xdp; the socket module knows no such address.
        name = struct.pack("<HHIII", AF_XDP, XDP_COPY, socket.if_nametoindex(interface), queue, 0)
        check(libc.bind(file, name, len(name)), "bind()")

    def kick(self):
        """Has the kernel send what is in the TX ring."""
        while libc.sendto(self.socket.fileno(), None, 0, socket.MSG_DONTWAIT, None, 0) < 0:
            number = ctypes.get_errno()
            # EAGAIN, EBUSY, ENOBUFS: not all of it yet.
            if number not in (11, 16, 105):
                raise OSError(number, f"sendto(): {errno_text(number)}")
            time.sleep(0.001)


def main():
    interface, queue, pinned, wanted = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    xsk = Socket(interface, queue)
    path = ctypes.create_string_buffer(pinned.encode())
    map_file = bpf(BPF_OBJ_GET, struct.pack("<QII", ctypes.addressof(path), 0, 0))
    key, value = ctypes.c_uint32(queue), ctypes.c_uint32(xsk.socket.fileno())
    places = (ctypes.addressof(key), ctypes.addressof(value))
    bpf(BPF_MAP_UPDATE_ELEM, struct.pack("<IIQQQ", map_file, 0, *places, 0))
    print("ready", flush=True)

    received = sent = 0
    free = [chunk * CHUNK for chunk in range(ENTRIES, CHUNKS)]
    deadline = time.monotonic() + PATIENCE
    while (received < wanted or sent < received) and time.monotonic() < deadline:
        select.select([xsk.socket], [], [], 0.05)
        pushed = False
        while free and (descriptor := xsk.rx.pop()):
            address, length, _ = struct.unpack("<QII", descriptor)
            frame = xsk.memory[address : address + length]
            xsk.fill.push(struct.pack("<Q", address & ~(CHUNK - 1)))
            answer = frame[6:12] + frame[:6] + frame[12:]
            place = free.pop()
            xsk.memory[place : place + length] = answer
            xsk.tx.push(struct.pack("<QII", place, length, 0))
            received += 1
            pushed = True
        if pushed:
            xsk.kick()
        while entry := xsk.completion.pop():
            free.append(struct.unpack("<Q", entry)[0])
            sent += 1
    print(received, sent, flush=True)


if __name__ == "__main__":
    main()
