# SPDX-License-Identifier: GPL-2.0
"""The tests, in the order in which they run."""

from . import boot  # noqa: F401
