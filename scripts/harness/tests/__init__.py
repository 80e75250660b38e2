# SPDX-License-Identifier: GPL-2.0
"""The tests, in the order in which they run."""

from . import host, bringup, traffic  # noqa: F401 - in this order
