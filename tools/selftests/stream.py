#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Random data over TCP both ways, each way followed by its hash.

stream.py listen ADDRESS            prints its port, serves one connection
stream.py connect ADDRESS PORT MIB  sends MIB MiB, then receives as much

Both end by printing "same" if what they received has the hash that came with it, else "different".
"""

import hashlib
import os
import socket
import sys

PIECE = 1 << 20


def send(connection, mib):
    digest = hashlib.sha256()
    for _ in range(mib):
        data = os.urandom(PIECE)
        digest.update(data)
        connection.sendall(data)
    connection.sendall(digest.digest())


def receive(connection, mib):
    """Whether the data and the hash after it agree."""
    digest = hashlib.sha256()
    with connection.makefile("rb") as stream:
        left = mib * PIECE
        while left:
            data = stream.read(min(left, PIECE))
            if not data:
                return False
            digest.update(data)
            left -= len(data)
        return stream.read(32) == digest.digest()


def listen(address):
    with socket.create_server((address, 0), family=family_of(address)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    with connection:
        mib = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
        same = receive(connection, mib)
        send(connection, mib)
    return same


def connect(address, port, mib):
    with socket.create_connection((address, port), 30) as connection:
        connection.sendall(mib.to_bytes(4, "big"))
        send(connection, mib)
        return receive(connection, mib)


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def main():
    if sys.argv[1] == "listen":
        same = listen(sys.argv[2])
    else:
        same = connect(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    print("same" if same else "different")


if __name__ == "__main__":
    main()
