# SPDX-License-Identifier: GPL-2.0
"""Finds, orders and runs the tests, and tells how they went."""

import contextlib
import dataclasses
import fnmatch
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import traceback
from xml.etree import ElementTree

from . import build
from .checks import SKIPS, reviewed
from .common import DRIVERS, Driver, Failure, OutOfTime, Settings, Skip
from .guest import Boot, fastest
from .rig import Rig

TIMEOUT = 180
BOTH = tuple(DRIVERS)
OURS = tuple(name for name, driver in DRIVERS.items() if driver.ours)


@dataclasses.dataclass
class Test:
    """One test of one driver in one kind of guest, or one test of the host (no driver)."""

    name: str
    function: object
    driver: Driver = None
    boot: Boot = None
    long: bool = False
    # Runs on the debug kernel only.
    debug: bool = False
    timeout: int = TIMEOUT

    @property
    def group(self):
        return (self.driver, self.boot)


REGISTRY = []


def host_test(timeout=TIMEOUT):
    """Registers a test that takes (settings, log): no guest, output in the file log."""

    def register(function):
        REGISTRY.append(Test(f"host.{function.__name__}", function, timeout=timeout))
        return function

    return register


def test(drivers=BOTH, boots=(Boot(),), long=False, debug=False, timeout=TIMEOUT):
    """Registers a test that takes a Rig, once per driver and boot."""

    def register(function):
        for boot in boots:
            for name in drivers:
                full = f"{name}.{boot.name}.{function.__name__}"
                REGISTRY.append(Test(full, function, DRIVERS[name], boot, long, debug, timeout))
        return function

    return register


def select(only, driver, long, debug):
    """The tests to run, those that share a guest next to each other. On the debug kernel only guests
    are tested."""
    chosen = [
        test
        for test in REGISTRY
        if (not only or any(fnmatch.fnmatch(test.name, f"*{pattern}*") for pattern in only))
        and (not driver or test.driver is None or test.driver.name == driver)
        and (long or not test.long)
        and (test.driver is not None if debug else not test.debug)
    ]
    groups = {}
    for test in chosen:
        groups.setdefault(test.group, []).append(test)
    order = {driver: number for number, driver in enumerate([None, *DRIVERS.values()])}
    return [test for key in sorted(groups, key=lambda key: order[key[0]]) for test in groups[key]]


class Ticker:
    """Shows on a terminal what runs, and for how long."""

    def __init__(self, label):
        self._label, self._start = label, time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)
        if sys.stdout.isatty():
            self._thread.start()

    def _show(self):
        while not self._done.wait(0.5):
            seconds = int(time.monotonic() - self._start)
            print(f"\r\033[K{self._label}  {seconds // 60}:{seconds % 60:02}", end="", flush=True)

    def stop(self):
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
            print("\r\033[K", end="")
        return time.monotonic() - self._start


@contextlib.contextmanager
def time_limit(seconds):
    """Ends what runs within when it takes longer. Main thread only."""

    def expired(_signal, _frame):
        raise OutOfTime(f"not done in {seconds} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


class Runner:
    def __init__(self, settings: Settings, results: pathlib.Path, shown_results: str):
        self.settings = settings
        self.results = results
        # The results folder as the user of the host machine finds it.
        self.shown_results = shown_results
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.excused = {}
        self._verdicts = []
        self._number = 0
        self._skips = reviewed(SKIPS)
        self._payload = None
        self._unprepared = None

    def run(self, tests):
        """Runs the tests and returns whether all went well."""
        self._total = len(tests)
        print(f"1..{self._total}", flush=True)
        start = time.monotonic()
        self._run_host([test for test in tests if test.driver is None])
        guests = [test for test in tests if test.driver is not None]
        if guests:
            self._prepare()
            for group in dict.fromkeys(test.group for test in guests):
                self._run_group(group, [test for test in guests if test.group == group])
        self._summary(time.monotonic() - start)
        return self.counts["failed"] == 0

    def _run_host(self, tests):
        for test in tests:
            folder = self.results / test.name
            self._run_one(test, folder, lambda log=folder / "log.txt": test.function(self.settings, log))

    def _run_group(self, group, tests):
        """Runs tests that share a guest. A failed test takes its guest with it."""
        driver, boot = group
        rig = None
        serial = 0
        for test in tests:
            if rig is None:
                serial += 1
            folder = self.results / f"{driver.name}.{boot.name}.{serial}"

            def body():
                nonlocal rig
                if rig is None:
                    if self._unprepared:
                        raise self._unprepared
                    rig = Rig(self.settings, driver, boot, folder, self._payload)
                test.function(rig)
                rig.check()

            passed = self._run_one(test, folder, body)
            if rig and (not passed or rig.is_spent):
                if not passed:
                    rig.save()
                self._close(rig)
                rig = None
        if rig:
            self._close(rig)

    def _close(self, rig):
        for line in rig.log.excused:
            self.excused[line] = self.excused.get(line, 0) + 1
        rig.close()

    def _prepare(self):
        """Makes what every guest needs. Without our modules the stock driver's tests still run."""
        ticker = Ticker("preparing the guests")
        log = self.results / "prepare.txt"
        with_modules = True
        try:
            build.build_models(self.settings, log)
            build.build_plugin(self.settings, log)
            try:
                build.build_modules(self.settings, log)
                build.build_foreign_modules(self.settings, log)
            except Failure as failure:
                with_modules = False
                print(f"# no modules of ours: {failure}", flush=True)
            self._payload = build.build_payload(self.settings, log, with_modules)
            self.settings = fastest(self.settings, self.results / "kvm", self._payload)
        except (Failure, OSError, subprocess.SubprocessError) as failure:
            print(f"# {failure}", flush=True)
            self._unprepared = Failure("the guests could not be prepared, see above")
        print(f"# guests prepared in {ticker.stop():.1f} s", flush=True)

    def _run_one(self, test, folder, body):
        """Runs one test and prints its line; false if the guest must not be used again."""
        self._number += 1
        ticker = Ticker(f"[{self._number}/{self._total}] {test.name}")
        folder.mkdir(parents=True, exist_ok=True)
        verdict, why = "passed", ""
        try:
            with time_limit(test.timeout * self.settings.slowness):
                body()
        except Skip as skip:
            text = f"{test.name}: {skip}"
            verdict = "skipped" if any(p.search(text) for p, _ in self._skips) else "failed"
            why = f"skip: {skip}" if verdict == "skipped" else f"a skip not on the reviewed list: {skip}"
        except (Failure, OutOfTime) as failure:
            verdict, why = "failed", str(failure)
        except Exception:  # a test that cannot even run is a failed test
            verdict, why = "failed", traceback.format_exc()
        seconds = ticker.stop()
        self.counts[verdict] += 1
        self._verdicts.append((test, verdict, why, seconds))
        word = "not ok" if verdict == "failed" else "ok"
        note = " # SKIP" if verdict == "skipped" else ""
        print(f"{word} {self._number} - {test.name}{note}  # {seconds:.1f} s")
        if why:
            print("\n".join(f"#   {line}" for line in why.splitlines()))
        if verdict == "failed":
            (folder / "failure.txt").write_text(f"{test.name}\n{why}\n")
            print(f"#   artefacts: {self.shown_results}/{folder.name}")
            again = self._again(test)
            print(f"#   again: {again}")
            (folder / "again").write_text(f"{again}\n")
        sys.stdout.flush()
        return verdict != "failed"

    def _again(self, test):
        """The command that runs a test once more."""
        options = f"--only '{test.name}'" + (" --long" if test.long else "")
        variables = [f"{name}={os.environ[name]}" for name in ("RING_NICS_CACHE", "KVER") if os.environ.get(name)]
        if self.settings.debug:
            options += " --debug-kernel"
        else:
            variables.append(f"FLAVOUR={self.settings.release.split('-', 1)[1]}")
        return " ".join(("sudo", *variables, "scripts/test", options))

    def _write_junit(self):
        """The verdicts once more, in the form that CI systems read."""
        suite = ElementTree.Element("testsuite", name=f"ring-nics on {self.settings.release}")
        for test, verdict, why, seconds in self._verdicts:
            group, _, name = test.name.rpartition(".")
            case = ElementTree.SubElement(
                suite, "testcase", classname=group, name=name, time=f"{seconds:.1f}"
            )
            if verdict != "passed":
                ElementTree.SubElement(case, verdict.replace("failed", "failure")).text = why
        for key, word in (("tests", None), ("failures", "failed"), ("skipped", "skipped")):
            suite.set(key, str(self.counts[word] if word else len(self._verdicts)))
        ElementTree.ElementTree(suite).write(self.results / "junit.xml", encoding="unicode")

    def _summary(self, seconds):
        print(f"# {self._number} tests in {seconds / 60:.1f} minutes, kernel {self.settings.release}")
        if self.excused:
            print("# kernel log lines that the reviewed list allows, and how many guests printed them:")
            for line, count in sorted(self.excused.items()):
                print(f"#   {count} x {line}")
        self._write_junit()
        print(f"# as JUnit: {self.shown_results}/junit.xml")
        counts = self.counts
        print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped", flush=True)
