# SPDX-License-Identifier: GPL-2.0
"""Entry point; the programs in scripts/ call it in the Debian root."""

import argparse
import os
import pathlib
import sys
import time

from . import tests  # noqa: F401 - registers every test
from . import bench, demo, runner
from .common import DRIVERS, Settings


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/test")
    parser.add_argument("command", choices=("test", "demo", "bench"), help=argparse.SUPPRESS)
    parser.add_argument("--release", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="name the tests and run none")
    parser.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="only tests whose name contains it, * matches anything; may be repeated",
    )
    parser.add_argument("--driver", choices=DRIVERS, help="guest tests of one driver only")
    parser.add_argument("--long", action="store_true", help="also the tests that take long")
    parser.add_argument("--runs", type=int, default=5, help=argparse.SUPPRESS)
    return parser.parse_args()


def results_folder(settings):
    """A new folder for what a run leaves, and its name on the host machine."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    folder = settings.cache / "results" / stamp
    folder.mkdir(parents=True)
    return folder, str(pathlib.Path(os.environ["RING_NICS_CACHE"]) / "results" / stamp)


def main():
    options = arguments()
    settings = Settings(options.release)
    if options.command == "demo":
        return demo.run(settings, *results_folder(settings))
    if options.command == "bench":
        return bench.run(settings, *results_folder(settings), options.runs)
    chosen = runner.select(options.only, options.driver, options.long)
    if options.list:
        print("\n".join(test.name for test in chosen))
        return 0
    if not chosen:
        sys.exit("scripts/test: no test has such a name, --list names them")
    run = runner.Runner(settings, *results_folder(settings))
    return 0 if run.run(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
