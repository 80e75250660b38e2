// SPDX-License-Identifier: GPL-2.0
/*
 * Exports of the Rust symbols of ring_common.ko. The C helpers export
 * themselves.
 */

#include <linux/export.h>

/* v0 symbol names are unique; their C type does not matter for an export. */
#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)

#include "exports-generated.h"

/* The name carries the ABI id; every driver module refers to it. */
extern const char RING_COMMON_ABI;
const char RING_COMMON_ABI;
EXPORT_SYMBOL_GPL(RING_COMMON_ABI);
