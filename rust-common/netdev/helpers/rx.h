/* SPDX-License-Identifier: GPL-2.0 */
/* C helpers for reception; documented in rx.c. */
#ifndef RC_HELPERS_RX_H
#define RC_HELPERS_RX_H

#include <linux/netdevice.h>
#include <net/page_pool/types.h>
#include <net/xdp.h>

#include "tx.h"

/**
 * struct rc_helper_rx_buf - A buffer from a page pool
 * @va: its first byte
 * @dma: DMA address of @va
 * @size: bytes that it takes up, headroom and shared info included
 */
struct rc_helper_rx_buf {
	void *va;
	dma_addr_t dma;
	u32 size;
};

/* &rc_helper_rx_info.flags */
#define RC_HELPER_RX_CSUM_OK	0x01	/* the device verified the L4 checksum */
#define RC_HELPER_RX_HASH_L3	0x02	/* @hash is over the L3 addresses */
#define RC_HELPER_RX_HASH_L4	0x04	/* @hash is over addresses and ports */
#define RC_HELPER_RX_VLAN	0x08	/* @vlan_tci was taken out of the packet */

/**
 * struct rc_helper_rx_info - What is known about a received packet
 * @headroom: bytes before the packet
 * @len: bytes of the packet, at least ETH_HLEN
 * @hash: RSS hash
 * @vlan_tci: tag, of EtherType 0x8100
 * @queue: RX queue
 * @flags: RC_HELPER_RX_*
 */
struct rc_helper_rx_info {
	u32 headroom;
	u32 len;
	u32 hash;
	u16 vlan_tci;
	u16 queue;
	u8 flags;
};

/* rc_helper_rx_run_xdp(): what has become of a packet */
#define RC_HELPER_XDP_PASS	0	/* the stack has the buffer */
#define RC_HELPER_XDP_NOMEM	1	/* dropped by want of memory; the pool has the buffer */
#define RC_HELPER_XDP_REDIRECT	2	/* redirected; its target has the buffer */
#define RC_HELPER_XDP_TX	3	/* to be sent back; the frame is the buffer */
#define RC_HELPER_XDP_DROP	4	/* dropped; the buffer is as it was */
#define RC_HELPER_XDP_ABORTED	5	/* the same, by a fault */

/**
 * struct rc_helper_xdp_rx - What an RX queue runs
 * @slot: where the program is published
 * @rxq: the queue as programs see it
 * @capacity: bytes of a buffer that the device may write
 */
struct rc_helper_xdp_rx {
	struct bpf_prog __rcu **slot;
	struct xdp_rxq_info *rxq;
	u32 capacity;
};

/**
 * struct rc_helper_xdp_frame - A received frame that is to be sent back
 * @frame: the frame; owns the buffer
 * @piece: where it lies for the device, which can read it already
 */
struct rc_helper_xdp_frame {
	struct xdp_frame *frame;
	struct rc_helper_piece piece;
};

bool rc_helper_rx_alloc(struct page_pool *pool, u32 size, struct rc_helper_rx_buf *buf);
void rc_helper_rx_free(void *va);
int rc_helper_rx_receive(struct napi_struct *napi, const struct rc_helper_rx_buf *buf,
			 const struct rc_helper_rx_info *info);
u32 rc_helper_rx_run_xdp(struct napi_struct *napi, const struct rc_helper_rx_buf *buf,
			 const struct rc_helper_rx_info *info,
			 const struct rc_helper_xdp_rx *xdp_rx,
			 struct rc_helper_xdp_frame *frame);
void rc_helper_xdp_tx_failed(const struct net_device *dev, struct bpf_prog __rcu **slot);
int rc_helper_xdp_rxq_register(struct xdp_rxq_info *rxq, struct net_device *dev, u32 queue,
			       struct page_pool *pool);

#endif
