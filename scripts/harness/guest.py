# SPDX-License-Identifier: GPL-2.0
"""A guest: QEMU with the stock kernel, and the agent in it that runs commands."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

from .common import Failure, Settings, expect

READY_TIMEOUT = 240
DEBUG_READY_TIMEOUT = 300
# What the debug kernel's watchers need for themselves, MiB.
DEBUG_MEMORY = 1024
# What a sleep of the guest may take, and how long it is left alone at a time, seconds.
SLEEP_TIMEOUT, NAP = 180, 15
# A console with more than this is a kernel that reports without end.
CONSOLE_LIMIT = 64 << 20
# A guest that the processor runs itself is ready sooner than this, or never.
NATIVE_TIMEOUT = 15
NATIVE = ("-accel", "kvm", "-cpu", "host")
# Each round of a string instruction counts as one: without these features the kernel copies and clears with
# loops whose instructions mean something.
COUNTED = ("-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm,-fsrs,-fzrm")
# The guest's clock follows its instructions, so that how many timer interrupts fall into a piece of work
# does not depend on how busy this machine is. QEMU 11.1.3 does not survive that with several processors.
COUNTED_ONE = ("-accel", "tcg,thread=single", *COUNTED[2:], "-icount", "shift=0")


@dataclasses.dataclass(frozen=True)
class Boot:
    """What a guest is booted with. Tests with an equal boot share a guest."""

    cpus: int = 2
    max_cpus: int = 0
    memory_mib: int = 1024
    # Put the NIC behind an IOMMU that translates, each mapping on its own.
    iommu_strict: bool = False
    # Copy each DMA through the bounce buffers of swiotlb.
    swiotlb_force: bool = False
    # False: the guest waits for the model to take each register write.
    posted_writes: bool = True
    ports: int = 1
    # NICs of that many ports, each with a model of its own.
    nics: int = 1
    # Instructions are counted: see insns.py.
    counted: bool = False
    # The debug kernel remembers who has what memory: see leaks.py.
    owners: bool = False
    # Knobs of the model, as pairs.
    knobs: tuple = ()

    @property
    def name(self):
        parts = [f"{self.cpus}cpu"]
        if self.max_cpus:
            parts.append(f"max{self.max_cpus}")
        if self.iommu_strict:
            parts.append("iommu")
        if self.swiotlb_force:
            parts.append("swiotlb")
        if not self.posted_writes:
            parts.append("sync")
        if self.ports != 1:
            parts.append(f"{self.ports}ports")
        if self.nics != 1:
            parts.append(f"{self.nics}nics")
        if self.counted:
            parts.append("counted")
        if self.owners:
            parts.append("owners")
        parts += [f"{key}={value}" for key, value in self.knobs]
        return "-".join(parts)

    def kernel_arguments(self, debug):
        arguments = [
            "console=ttyS0",
            "quiet",
            "panic=-1",
            "oops=panic",
            "tsc=reliable",
            # The log check reads it all: none of it may be lost.
            "log_buf_len=16M",
            # A free oracle for use after free: one guarded allocation per millisecond. It costs
            # instructions, so it stays out where these are counted.
            f"kfence.sample_interval={0 if self.counted else 1}",
        ]
        if debug:
            # Every report, not only the first.
            arguments += ["kasan_multi_shot"]
            # While the processor is identified the kernel forgets for a moment that it has five levels of
            # page tables; an interrupt in between makes KASAN report each address, without end.
            arguments += ["no5lvl"]
            if self.owners:
                # To list the users of slab objects, the kernel (7.3) holds a lock of one cache and allocates from
                # another, which lockdep takes for the same.
                arguments += ["page_owner=on", "slab_debug=U", "lockdep.prove_locking=0"]
            else:
                arguments += ["kmemleak=off"]
        if self.counted:
            # One way to wait, whatever the governor of the idle states thinks, and no kernel thread
            # that looks at memory all the time.
            arguments += ["nokaslr", "idle=halt", "damon_stat.enabled=0"]
        if self.iommu_strict:
            arguments += ["intel_iommu=on", "iommu.strict=1"]
        if self.swiotlb_force:
            arguments += ["swiotlb=force"]
        return arguments


@dataclasses.dataclass(frozen=True)
class Result:
    """How a command in the guest ended; rc is None when it outlived its timeout."""

    command: str
    rc: int
    stdout: str
    stderr: str

    def check(self):
        if self.rc != 0:
            how = "timed out" if self.rc is None else f"ended with {self.rc}"
            output = (self.stdout + self.stderr).strip()
            raise Failure(f"in the guest, {self.command!r} {how}: {output[-2000:]}")
        return self


class Guest:
    """Runs from construction to close(). `sockets` are those of the models it has as devices."""

    def __init__(
        self,
        settings: Settings,
        boot: Boot,
        folder: pathlib.Path,
        payload,
        sockets,
        ready_timeout=None,
    ):
        self.boot = boot
        self.slowness = settings.slowness
        self.folder = folder
        self.console = folder / "console.txt"
        self._agent_path = folder / "agent.sock"
        self._pending = {}
        self._ids = iter(range(1, 1 << 62))
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._socket = None
        command = self._command(settings, payload, sockets)
        (folder / "qemu.txt").write_text(" ".join(command) + "\n")
        with open(folder / "qemu.log", "wb") as log:
            self._qemu = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            self._connect(ready_timeout or (DEBUG_READY_TIMEOUT if settings.debug else READY_TIMEOUT))
        except BaseException:
            self.close()
            raise

    def _command(self, settings, payload, sockets):
        boot = self.boot
        kernel = settings.kernel
        memory = f"{boot.memory_mib + (DEBUG_MEMORY if settings.debug else 0)}M"
        smp = str(boot.cpus) + (f",maxcpus={boot.max_cpus}" if boot.max_cpus else "")
        command = [
            settings.qemu,
            *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
            *("-machine", "q35,memory-backend=mem"),
            *(settings.accelerator if not boot.counted else COUNTED_ONE if boot.cpus == 1 else COUNTED),
            *("-smp", smp, "-m", memory),
            *("-object", f"memory-backend-memfd,id=mem,size={memory},share=on"),
            *("-kernel", str(kernel / settings.image), "-initrd", str(kernel / "initrd")),
            *("-append", " ".join(boot.kernel_arguments(settings.debug))),
            *("-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console"),
            *("-chardev", f"socket,id=agent,path={self._agent_path},server=on,wait=off"),
            *("-device", "virtio-serial-pci"),
            *("-device", "virtserialport,chardev=agent,name=agent"),
        ]
        disks = (settings.cache / "guest/root.squashfs", kernel / "modules.squashfs", payload)
        for number, disk in enumerate(disks):
            command += [
                "-drive",
                f"if=none,id=disk{number},file={disk},format=raw,readonly=on",
                "-device",
                f"virtio-blk-pci,drive=disk{number}",
            ]
        if boot.iommu_strict:
            command += ["-device", "intel-iommu,intremap=off,caching-mode=on"]
        for path in sockets:
            device = {"driver": "vfio-user-pci", "socket": {"type": "unix", "path": str(path)}}
            if not boot.posted_writes:
                device["x-no-posted-writes"] = True
            command += ["-device", json.dumps(device)]
        if boot.counted:
            command += ["-plugin", f"{settings.plugin},socket={self.folder / 'insns.sock'}"]
            command += ["-chardev", f"socket,id=qmp,path={self.folder / 'qmp.sock'},server=on,wait=off"]
            command += ["-object", "monitor-qmp,id=monitor,chardev=qmp"]
        return command

    def _connect(self, timeout):
        deadline = time.monotonic() + timeout
        while self._socket is None:
            self._expect_alive(deadline)
            try:
                self._attach()
            except OSError:
                time.sleep(0.05)
        while not self._ready.wait(0.2):
            self._expect_alive(deadline)

    def _attach(self):
        """Connects to the agent's port, in place of an earlier connection."""
        candidate = socket.socket(socket.AF_UNIX)
        try:
            candidate.connect(str(self._agent_path))
        except OSError:
            candidate.close()
            raise
        self._socket = candidate
        threading.Thread(target=self._read, args=(candidate,), daemon=True).start()

    def _expect_alive(self, deadline):
        if self._qemu.poll() is not None:
            raise Failure(f"the guest ended while it booted; {self._last_words()}")
        if self.console.exists() and self.console.stat().st_size > CONSOLE_LIMIT:
            raise Failure(f"the guest reports without end; {self._last_words()}")
        if time.monotonic() > deadline:
            raise Failure(f"the guest was not ready in time; {self._last_words()}")

    def _last_words(self):
        texts = []
        for name in ("qemu.log", "console.txt"):
            path = self.folder / name
            if path.exists():
                texts += path.read_text(errors="replace").strip().splitlines()[-8:]
        return "last lines: " + " | ".join(texts) if texts else "it said nothing"

    def _read(self, connection):
        """Delivers the agent's answers until the guest is gone, or another connection takes over."""
        try:
            with connection.makefile("rb") as lines:
                for line in lines:
                    answer = json.loads(line)
                    number = answer.pop("id")
                    if number == 0:
                        self._ready.set()
                        continue
                    with self._lock:
                        future = self._pending.pop(number)
                    future.set_result(answer)
        except (OSError, ValueError):
            pass
        if connection is not self._socket:
            return
        with self._lock:
            pending, self._pending = self._pending, {}
        for future in pending.values():
            future.set_exception(Failure(f"the guest went away; {self._last_words()}"))

    def start(self, command, timeout=60, text=""):
        """Starts a command; the future has its Result. `timeout` is that of Debian's kernel."""
        number = next(self._ids)
        inner = concurrent.futures.Future()
        outer = concurrent.futures.Future()

        def done(future):
            if future.exception():
                outer.set_exception(future.exception())
            else:
                outer.set_result(Result(command=command, **future.result()))

        inner.add_done_callback(done)
        request = {"id": number, "command": command, "timeout": timeout * self.slowness, "input": text}
        with self._lock:
            self._pending[number] = inner
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise Failure(f"the guest went away; {self._last_words()}") from error
        return outer

    def run(self, command, timeout=60, check=True, text=""):
        """Runs a command to its end and returns its Result; fails if it does, unless told not to."""
        try:
            # The agent keeps the time; more than a little longer means that the guest hangs.
            result = self.start(command, timeout, text).result((timeout + 60) * self.slowness)
        except concurrent.futures.TimeoutError:
            raise Failure(f"the guest does not answer; {self._last_words()}") from None
        return result.check() if check else result

    def sleep(self):
        """The system sleeps, as deep as a guest can whose own devices do not wake it: devices are suspended and
        resumed. Then the kernel (7.3) asks QEMU whether somebody is at the other end of the agent's port before it
        has room for the answer: to connect anew tells it."""
        answer = self.start("echo devices > /sys/power/pm_test && echo mem > /sys/power/state", SLEEP_TIMEOUT)
        deadline = time.monotonic() + SLEEP_TIMEOUT * self.slowness
        while True:
            try:
                return answer.result(NAP).check()
            except concurrent.futures.TimeoutError:
                if time.monotonic() > deadline:
                    raise Failure(f"the guest does not wake up; {self._last_words()}") from None
            before, self._socket = self._socket, None
            before.shutdown(socket.SHUT_RDWR)
            before.close()
            self._attach()

    def output(self, command, timeout=60):
        """What a command printed, without white space around it."""
        return self.run(command, timeout).stdout.strip()

    @contextlib.contextmanager
    def paused(self):
        """The processors of a counted guest stand still within."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(60)
            monitor.connect(str(self.folder / "qmp.sock"))
            lines = monitor.makefile("rb")

            def execute(command):
                monitor.sendall(json.dumps({"execute": command}).encode())
                answer = {}
                while "return" not in answer:
                    answer = json.loads(lines.readline())
                    expect("error" not in answer, f"QEMU does not {command}: {answer}")

            execute("qmp_capabilities")
            execute("stop")
            try:
                yield
            finally:
                execute("cont")

    def alive(self):
        return self._qemu.poll() is None

    def close(self):
        """Ends the guest at once."""
        if self._socket:
            self._socket.close()
        if self._qemu.poll() is None:
            os.kill(self._qemu.pid, signal.SIGKILL)
        self._qemu.wait()


def fastest(settings: Settings, folder: pathlib.Path, payload):
    """The settings with KVM where a guest really boots with it: some machines offer /dev/kvm and
    cannot run a kernel on it."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return settings
    native = dataclasses.replace(settings, accelerator=NATIVE)
    folder.mkdir(parents=True)
    try:
        Guest(native, Boot(), folder, payload, [], NATIVE_TIMEOUT).close()
    except Failure:
        return settings
    return native
