# SPDX-License-Identifier: GPL-2.0
"""The test rig of ring-nics: guests with an unmodified Debian kernel, NICs that are models, and
this machine's own network stack as the peer on the wire. Runs in the Debian root of
scripts/setup, in a network namespace of its own."""
