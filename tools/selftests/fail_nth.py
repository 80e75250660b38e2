#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Has the n-th memory allocation of a command fail, for one n after the other.

fail_nth.py filter MODULE...   only allocations that the code of these modules asks for, itself or
                               through the kernel's, count and fail from now on, in every task
fail_nth.py sweep              reads a plan from standard input

The plan is a JSON object of shell texts and a number:

    before   makes the state that the command needs
    command  one program, or a builtin of the shell: allocations of the first process count
    after    takes the effect back
    check    ends with 0 if all is well
    look     prints what the command may change
    tries    how many n to try, spread over all that there are; 0 is all of them

The first line of output is {"allocations": N}, as counted with none failing. Then comes a line for
each n: {"n": N, "failed": whether the n-th was reached, "rc": of the command, "output": TEXT,
"kept": whether check was well behind the command, "look": TEXT before the command if that did well, else
behind it, "well": whether check was well behind after}.
"""

import json
import os
import pathlib
import subprocess
import sys

DEBUGFS = pathlib.Path("/sys/kernel/debug")
# What allocates, and so can fail. The rest of fault injection is to leave the count alone.
ALLOCATORS = ("failslab", "fail_page_alloc")
NEVER = 1 << 30
# A command that takes longer hangs, seconds.
PATIENCE = 120


def code(symbols, belongs):
    """Start of the first function, and start of the one behind the last, of those that belong; `belongs`
    takes a name and a module."""
    addresses = [address for address, name, module in symbols if belongs(name, module)]
    last = max(addresses)
    behind = min((address for address, *_ in symbols if address > last), default=last | 0xFFFF)
    return hex(min(addresses)), hex(behind)


def set_filter(modules):
    symbols = []
    with open("/proc/kallsyms", encoding="ascii") as lines:
        for line in lines:
            address, kind, name, *module = line.split()
            if kind in "tT":
                symbols.append((int(address, 16), name, module[0].strip("[]") if module else ""))
    ours, behind_ours = code(symbols, lambda _name, module: module in modules)
    # kmemleak remembers each allocation in one of its own, which this function makes.
    kmemleak, behind_kmemleak = code(symbols, lambda name, module: (name, module) == ("__alloc_object", ""))
    for attribute in DEBUGFS.glob("fail*/require-start"):
        folder = attribute.parent
        settings = {
            "require-start": ours,
            "require-end": behind_ours,
            "reject-start": kmemleak,
            "reject-end": behind_kmemleak,
            "verbose": "0",
            "probability": "0",
            "times": "-1",
            "task-filter": "N",
        }
        if folder.name in ALLOCATORS:
            settings["ignore-gfp-wait"] = "N"
        if folder.name == "fail_page_alloc":
            settings |= {"ignore-gfp-highmem": "N", "min-order": "0"}
        for name, value in settings.items():
            (folder / name).write_text(value)


def run_failing(command, n):
    """Runs a command whose n-th allocation fails. Returns how many were left to go, how it ended and
    what it said."""
    output, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(into, 1)
            os.dup2(into, 2)
            os.closerange(3, 64)
            pathlib.Path("/proc/self/fail-nth").write_text(str(n))
            # Which replaces itself with a command that is one program.
            os.execv("/bin/bash", ["bash", "-c", command])
        finally:
            os._exit(127)
    os.close(into)
    with os.fdopen(output, errors="replace") as stream:
        text = stream.read()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    left = int(pathlib.Path(f"/proc/{child}/fail-nth").read_text())
    _, status = os.waitpid(child, 0)
    return left, os.waitstatus_to_exitcode(status), text.strip()


def shell(text):
    return subprocess.run(
        ["/bin/bash", "-c", text], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def is_well(text):
    return shell(text).returncode == 0


def spread(total, tries):
    """Which n to try: all, or the first ones and then some of the rest."""
    if not tries or tries >= total:
        yield from range(1, total + 1)
        return
    dense = tries // 2
    yield from range(1, dense + 1)
    rest = tries - dense
    for number in range(1, rest + 1):
        yield dense + (total - dense) * number // rest


def attempt(plan, n):
    shell(plan["before"])
    look = shell(plan["look"]).stdout
    left, rc, output = run_failing(plan["command"], n)
    kept = is_well(plan["check"])
    if rc:
        look = shell(plan["look"]).stdout
    shell(plan["after"])
    return {
        "n": n,
        "failed": left == 0,
        "rc": rc,
        "output": output[-500:],
        "kept": kept,
        "look": look,
        "well": is_well(plan["check"]),
    }, left


def sweep(plan):
    result, left = attempt(plan, NEVER)
    total = NEVER - left
    print(json.dumps({"allocations": total}), flush=True)
    print(json.dumps(result), flush=True)
    for n in spread(total, plan["tries"]):
        result, _ = attempt(plan, n)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "filter":
        set_filter(sys.argv[2:])
    else:
        sweep(json.load(sys.stdin))
