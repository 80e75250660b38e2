# SPDX-License-Identifier: GPL-2.0
"""Entry point; the programs in scripts/ call it in the Debian root."""

import argparse
import os
import pathlib
import sys
import time

from . import tests  # noqa: F401 - registers every test
from . import bench, build, demo, runner
from .common import DRIVERS, Settings


# Exit status of a run that only named the tests.
LISTED = 100


def arguments():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--release", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", prog="scripts/demo")
    test = commands.add_parser("test", prog="scripts/test", allow_abbrev=False)
    test.add_argument("--list", action="store_true", help="name the tests and run none")
    test.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="only tests whose name contains it, * matches anything; may be repeated",
    )
    test.add_argument("--driver", choices=DRIVERS, help="guest tests of one driver only")
    test.add_argument("--long", action="store_true", help="also the tests that take long")
    test.add_argument(
        "--debug-kernel", action="store_true", help="the guest tests, on a kernel that watches itself"
    )
    bench_parser = commands.add_parser("bench", prog="scripts/bench", allow_abbrev=False)
    bench_parser.add_argument("drivers", nargs="*", metavar="DRIVER", help="drivers of these vendors only")
    length = bench_parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="a few loads, one boot of each driver")
    length.add_argument("--long", action="store_true", help="the full matrix")
    bench_parser.add_argument("--counts", action="store_true", help="instructions only")
    options, unknown = parser.parse_known_args()
    for vendor in getattr(options, "drivers", ()):
        if vendor not in bench.VENDORS:
            bench_parser.error(f"no driver {vendor}, there is: {', '.join(bench.VENDORS)}")
    if unknown:
        commands.choices[options.command].error(f"unknown: {' '.join(unknown)}")
    return options


def results_folder(settings):
    """A new folder for what a run leaves, and its name on the host machine."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    folder = settings.cache / "results" / stamp
    folder.mkdir(parents=True)
    return folder, str(pathlib.Path(os.environ["RING_NICS_CACHE"]) / "results" / stamp)


def main():
    """Without --release, only looks at the options: what is wrong with them is told before a long
    set-up, not after it."""
    options = arguments()
    chosen = None
    if options.command == "test":
        chosen = runner.select(options.only, options.driver, options.long, options.debug_kernel)
        if options.list:
            print("\n".join(test.name for test in chosen))
            return LISTED
        if not chosen:
            sys.exit("scripts/test: no test has such a name, --list names them")
    if options.release is None:
        return 0
    settings = Settings(options.release)
    build.notice_changes(settings)
    results = results_folder(settings)
    if options.command == "demo":
        return demo.run(settings, *results)
    if options.command == "bench":
        return bench.run(settings, *results, options)
    return 0 if runner.Runner(settings, *results).run(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
