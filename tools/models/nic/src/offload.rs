// SPDX-License-Identifier: GPL-2.0
//! Checksum, segmentation and receive hash offloads, on plain frames.
