# SPDX-License-Identifier: GPL-2.0
"""Reads and makes the frames that the tests look at."""

import dataclasses
import socket
import struct

VLAN = 0x8100
IPV4 = 0x0800
IPV6 = 0x86DD
TCP = 6
UDP = 17


def checksum(data: bytes):
    """The Internet checksum; 0 over data that includes a correct one."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclasses.dataclass
class Packet:
    """An Ethernet frame taken apart as far as the tests need it."""

    frame: bytes
    vlan: int = None
    ethertype: int = 0
    # Where the network header starts, and how many bytes it and what follows it have.
    network: bytes = b""
    protocol: int = None
    # Transport header and payload.
    transport: bytes = b""
    pseudo: bytes = b""

    @property
    def ip_checksum_right(self):
        return self.ethertype != IPV4 or checksum(self.network[: (self.network[0] & 15) * 4]) == 0

    @property
    def transport_checksum_right(self):
        if self.protocol == UDP and self.transport[6:8] == b"\0\0":
            return self.ethertype == IPV4
        return checksum(self.pseudo + self.transport) == 0

    @property
    def ports(self):
        return struct.unpack(">HH", self.transport[:4])

    @property
    def sequence(self):
        return struct.unpack(">I", self.transport[4:8])[0]

    @property
    def payload(self):
        header = (self.transport[12] >> 4) * 4 if self.protocol == TCP else 8
        return self.transport[header:]


def parse(frame: bytes):
    packet = Packet(frame)
    offset = 14
    packet.ethertype = struct.unpack_from(">H", frame, 12)[0]
    if packet.ethertype == VLAN:
        tag, packet.ethertype = struct.unpack_from(">HH", frame, 14)
        packet.vlan = tag & 0xFFF
        offset = 18
    if packet.ethertype == IPV4:
        length = struct.unpack_from(">H", frame, offset + 2)[0]
        packet.network = frame[offset : offset + length]
        header = (packet.network[0] & 15) * 4
        packet.protocol = packet.network[9]
        packet.transport = packet.network[header:]
        addresses = packet.network[12:20]
        packet.pseudo = addresses + struct.pack(">BBH", 0, packet.protocol, len(packet.transport))
    elif packet.ethertype == IPV6:
        length = struct.unpack_from(">H", frame, offset + 4)[0]
        packet.network = frame[offset : offset + 40 + length]
        packet.protocol = packet.network[6]
        packet.transport = packet.network[40:]
        addresses = packet.network[8:40]
        packet.pseudo = addresses + struct.pack(">IHBB", len(packet.transport), 0, 0, packet.protocol)
    return packet


def mac_bytes(text):
    return bytes(int(part, 16) for part in text.split(":"))


def udp(source_mac, target_mac, source, target, ports, payload, damage=0):
    """An IPv4/UDP frame; `damage` is added to its UDP checksum."""
    addresses = socket.inet_aton(source) + socket.inet_aton(target)
    length = 8 + len(payload)
    pseudo = addresses + struct.pack(">BBH", 0, UDP, length)
    header = struct.pack(">HHH", *ports, length)
    right = checksum(pseudo + header + b"\0\0" + payload) or 0xFFFF
    transport = header + struct.pack(">H", (right + damage) & 0xFFFF) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, UDP, 0) + addresses
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    return mac_bytes(target_mac) + mac_bytes(source_mac) + struct.pack(">H", IPV4) + ip + transport
