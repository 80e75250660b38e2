/* SPDX-License-Identifier: GPL-2.0 */
/* C helpers for reception; documented in rx.c. */
#ifndef RC_HELPERS_RX_H
#define RC_HELPERS_RX_H

#include <linux/netdevice.h>
#include <net/page_pool/types.h>

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

bool rc_helper_rx_alloc(struct page_pool *pool, u32 size, struct rc_helper_rx_buf *buf);
void rc_helper_rx_free(void *va);
int rc_helper_rx_receive(struct napi_struct *napi, const struct rc_helper_rx_buf *buf,
			 const struct rc_helper_rx_info *info);

#endif
