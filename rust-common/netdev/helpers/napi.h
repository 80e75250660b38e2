/* SPDX-License-Identifier: GPL-2.0 */
/* C helpers for NAPI; documented in napi.c. */
#ifndef RC_HELPERS_NAPI_H
#define RC_HELPERS_NAPI_H

#include <linux/netdevice.h>

bool rc_helper_napi_lock(struct net_device *dev);
void rc_helper_napi_add(struct net_device *dev, struct napi_struct *napi,
			int (*poll)(struct napi_struct *, int), u32 index);
void rc_helper_napi_enable(struct napi_struct *napi, int irq);
void rc_helper_napi_del(struct napi_struct *napi);
void rc_helper_napi_disable(struct napi_struct *napi);
void rc_helper_napi_schedule(struct napi_struct *napi);

#endif
