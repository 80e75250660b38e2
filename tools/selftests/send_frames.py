#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""send_frames.py INTERFACE: sends the frames of the standard input, one a line as hexadecimal digits."""

import socket
import sys

with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
    raw.bind((sys.argv[1], 0))
    for line in sys.stdin:
        raw.send(bytes.fromhex(line))
