/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads, and what layout.c is compiled against, besides the
 * headers of the C helpers.
 */

#include <linux/bpf.h>
#include <linux/bpf_trace.h>
#include <linux/cpu_rmap.h>
#include <linux/cpumask.h>
#include <linux/dim.h>
#include <linux/dma-mapping.h>
#include <linux/dynamic_queue_limits.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/irq.h>
#include <linux/msi.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/timer.h>
#include <linux/u64_stats_sync.h>
#include <linux/udp.h>
#include <linux/workqueue.h>
#include <net/netdev_lock.h>
#include <net/netdev_queues.h>
#include <net/netdev_rx_queue.h>
#include <net/page_pool/helpers.h>
#include <net/page_pool/types.h>
#include <net/rps.h>
#include <net/xdp.h>

/*
 * Macros that bindgen cannot evaluate. The recipe strips the prefix from the
 * names.
 */
#define RC_CONST(name) static const u32 __maybe_unused RC_CONST_##name = name

RC_CONST(ETHTOOL_COALESCE_RX_USECS);
RC_CONST(ETHTOOL_COALESCE_RX_MAX_FRAMES);
RC_CONST(ETHTOOL_COALESCE_TX_USECS);
RC_CONST(ETHTOOL_COALESCE_TX_MAX_FRAMES);
RC_CONST(ETHTOOL_COALESCE_USE_ADAPTIVE_RX);
RC_CONST(ETHTOOL_COALESCE_USE_ADAPTIVE_TX);
RC_CONST(ETHTOOL_OP_NEEDS_RTNL_SRINGPARAM);
RC_CONST(ETHTOOL_OP_NEEDS_RTNL_SCHANNELS);
RC_CONST(ETH_RSS_HASH_TOP);
RC_CONST(PAGE_ALLOC_COSTLY_ORDER);
RC_CONST(PP_FLAG_DMA_MAP);
RC_CONST(PP_FLAG_DMA_SYNC_DEV);
RC_CONST(SMP_CACHE_BYTES);

/* Bytes that napi_build_skb() takes at the end of a buffer. */
static const u32 __maybe_unused RC_CONST_SKB_SHARED_INFO_SIZE =
	SKB_DATA_ALIGN(sizeof(struct skb_shared_info));

/* NET_SKB_PAD, as an expression that a constant may have. */
static const u32 __maybe_unused RC_CONST_NET_SKB_PAD = MAX(32, L1_CACHE_BYTES);
