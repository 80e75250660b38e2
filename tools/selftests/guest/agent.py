#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs commands in the guest for the harness.

The port "agent" of the virtio console carries one JSON object per line. A request is

    {"id": N, "command": SHELL TEXT, "timeout": SECONDS, "input": TEXT}

and its answer, which may come after those of later requests,

    {"id": N, "rc": STATUS, "stdout": TEXT, "stderr": TEXT}

A command that outlives its timeout is killed with all that it started in its session, and
answered with rc null. {"id": 0, "ready": true} is the first line of all.
"""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

# Seconds until a port that has no other end is tried again.
PAUSE = 0.1
PORTS = pathlib.Path("/sys/class/virtio-ports")


def open_port():
    for port in PORTS.iterdir():
        if (port / "name").read_text().strip() == "agent":
            return os.open(f"/dev/{port.name}", os.O_RDWR)
    raise SystemExit("agent: no virtio port of that name")


def run(request):
    with subprocess.Popen(
        ["/bin/bash", "-c", request["command"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    ) as process:
        try:
            out, err = process.communicate(request.get("input", ""), request["timeout"])
            return_code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return_code = None
    return {"id": request["id"], "rc": return_code, "stdout": out, "stderr": err}


class Port:
    """The line-based channel; answers come from several threads."""

    def __init__(self):
        self.fd = open_port()
        self.lock = threading.Lock()

    def send(self, message):
        data = (json.dumps(message) + "\n").encode()
        with self.lock:
            while data:
                try:
                    data = data[os.write(self.fd, data) :]
                except OSError:
                    time.sleep(PAUSE)

    def lines(self):
        """Lines from the harness. Behind a sleep of the system the port has no other end for a moment."""
        text = b""
        while True:
            try:
                more = os.read(self.fd, 1 << 16)
            except OSError:
                more = b""
            if not more:
                time.sleep(PAUSE)
            *whole, text = (text + more).split(b"\n")
            yield from whole

    def serve(self):
        self.send({"id": 0, "ready": True})
        for line in self.lines():
            request = json.loads(line)
            threading.Thread(target=lambda r=request: self.send(run(r)), daemon=True).start()


if __name__ == "__main__":
    Port().serve()
