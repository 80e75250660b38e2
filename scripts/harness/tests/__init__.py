# SPDX-License-Identifier: GPL-2.0
"""The tests, in the order in which they run."""

from . import (  # noqa: F401
    host,
    bringup,
    traffic,
    offload,
    doorbells,
    modules,
    faults,
    commands,
    removal,
    recovery,
    liar,
    mana,
    lifecycle,
    xdp,
    counting,
    allocations,
)
