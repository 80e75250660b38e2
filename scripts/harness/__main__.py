# SPDX-License-Identifier: GPL-2.0
"""Entry point: `python3 -m harness test|demo|list`; scripts/test and scripts/demo call it."""

import argparse
import os
import pathlib
import sys
import time

from . import tests  # noqa: F401 - registers every test
from . import runner
from .common import DRIVERS, Settings


def arguments():
    parser = argparse.ArgumentParser(prog="test", description=__doc__)
    parser.add_argument("--release", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="name the tests and run none")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="tests whose name contains it; * matches anything")
    parser.add_argument("--driver", choices=DRIVERS, help="guest tests of one driver")
    parser.add_argument("--long", action="store_true", help="also the tests that take long")
    return parser.parse_args()


def main():
    options = arguments()
    chosen = runner.select(options.only, options.driver, options.long)
    if options.list:
        print("\n".join(test.name for test in chosen))
        return 0
    settings = Settings(options.release)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    results = settings.cache / "results" / stamp
    results.mkdir(parents=True)
    shown = pathlib.Path(os.environ.get("RING_NICS_CACHE", settings.cache)) / "results" / stamp
    run = runner.Runner(settings, results, str(shown))
    return 0 if run.run(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
