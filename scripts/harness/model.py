# SPDX-License-Identifier: GPL-2.0
"""A model of a NIC: a process that serves one PCI function over vfio-user."""

import json
import pathlib
import signal
import socket
import subprocess
import time

from .common import Failure

START_TIMEOUT = 10


RESET = "RESET"


class Model:
    """Runs from construction to close(). `wires` are what its ports are plugged into."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, wires, knobs=None):
        self.folder = folder
        self.socket = folder / "model.sock"
        self._control_path = folder / "control.sock"
        self._control = None
        self._has_ended = False
        for path in (self.socket, self._control_path):
            path.unlink(missing_ok=True)
        command = [
            str(program),
            *("--socket", str(self.socket)),
            *("--control", str(self._control_path)),
            *("--report", str(folder / "report.json")),
            *("--pcap-last", str(folder / "wire")),
        ]
        for wire in wires:
            command += ["--wire", wire]
        for key, value in (knobs or {}).items():
            command += ["--set", f"{key}={value}"]
        self._log = open(folder / "model.log", "wb")
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log
        )
        try:
            if self._process.stdout.readline().strip() != b"ready":
                raise Failure(f"the model did not start: {self.last_words()}")
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self):
        deadline = time.monotonic() + START_TIMEOUT
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(START_TIMEOUT)
        while True:
            try:
                connection.connect(str(self._control_path))
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise Failure(f"the model has no control socket: {error}") from error
                time.sleep(0.05)
        self._control = connection.makefile("rwb")

    def last_words(self):
        text = (self.folder / "model.log").read_text(errors="replace").strip()
        return " | ".join(text.splitlines()[-5:]) or "it said nothing"

    def ask(self, request):
        """Sends one request to the control socket and returns the answer."""
        try:
            self._control.write(json.dumps(request).encode() + b"\n")
            self._control.flush()
            line = self._control.readline()
        except OSError as error:
            raise Failure(f"the model does not answer: {self.last_words()}") from error
        if not line:
            raise Failure(f"the model went away: {self.last_words()}")
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise Failure(f"the model refuses {request}: {answer['error']}")
        return answer

    def report(self):
        return self.ask({"get": "report"})

    def counters(self):
        return self.report()["counters"]

    def violations(self):
        """What the driver did wrong; of a model that was to end, what it left in its report, if anything."""
        if not self._has_ended:
            return self.report()["violations"]
        report = self.folder / "report.json"
        return json.loads(report.read_text())["violations"] if report.exists() else []

    def set(self, **knobs):
        self.ask({"set": knobs})

    def do(self, what, **arguments):
        return self.ask({"do": what, "args": arguments})

    def commands(self):
        """The commands of the driver since the last call, oldest first: name, and fault or None. Among them,
        RESET is that of the function."""
        return self.do("commands")

    def kill(self):
        """Ends the process in the middle of what it does: the device is pulled out."""
        self._control.write(b'{"do": "die"}\n')
        self._control.flush()
        self._process.wait(START_TIMEOUT)
        self._has_ended = True

    def wait(self, timeout):
        """Waits for the end of the process that a test has asked for; whether it came."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        self._has_ended = True
        return True

    def alive(self):
        return self._process.poll() is None

    def close(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process.stdout.close()
        self._log.close()
