/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers of crate netdev, for what the kernel offers as inline functions or
 * macros only. helpers.c documents each function.
 *
 * Rust calls out of line, so the helpers of the data path do a whole step per
 * call: map a packet, announce it, complete a batch, refill a batch, deliver a
 * packet.
 */
#ifndef RC_HELPERS_H
#define RC_HELPERS_H

#include <linux/dma-mapping.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/page_pool/types.h>

/**
 * struct rc_tx_meta - What a driver reads of a packet that it transmits
 * @len: bytes, linear part and fragments
 * @headlen: bytes of the linear part
 * @nr_frags: page fragments, at most MAX_SKB_FRAGS
 * @protocol: EtherType behind VLAN tags in the data, host order
 * @gso_size: payload bytes of each segment; 0: the packet is one segment
 * @gso_segs: number of segments, 1 when @gso_size is 0
 * @gso_type: SKB_GSO_* flags
 * @header_len: bytes of headers that each segment repeats, of the innermost
 *	transport header and all before; 0 when @gso_size is 0
 * @network_offset: bytes from the start to the outer network header
 * @transport_offset: bytes from the start to the outer transport header; valid
 *	with @checksum or @gso_size
 * @checksum: the device must fill in the checksum at @csum_start +
 *	@csum_offset, over everything from @csum_start on
 * @csum_start: bytes from the start to the first checksummed byte
 * @csum_offset: bytes from @csum_start to the checksum field
 * @l4_protocol: IPPROTO_* after the outer IPv4 or fixed IPv6 header; 0 without
 *	@checksum or for any other network protocol
 * @encapsulation: inner headers are valid
 * @vlan: @vlan_tci is to be inserted as an 802.1Q tag
 * @vlan_tci: tag control information, host order
 */
struct rc_tx_meta {
	u32 len;
	u32 headlen;
	u32 gso_type;
	u16 nr_frags;
	u16 protocol;
	u16 gso_size;
	u16 gso_segs;
	u16 header_len;
	u16 network_offset;
	u16 transport_offset;
	u16 csum_start;
	u16 csum_offset;
	u16 vlan_tci;
	u8 l4_protocol;
	bool checksum;
	bool encapsulation;
	bool vlan;
};

/**
 * struct rc_tx_piece - One DMA-mapped piece of a packet
 * @addr: bus address
 * @len: bytes, not 0
 */
struct rc_tx_piece {
	dma_addr_t addr;
	u32 len;
};

/* The linear part and every fragment. */
#define RC_TX_MAX_PIECES (MAX_SKB_FRAGS + 1)

/**
 * struct rc_tx_room - Free space of a TX ring, for stopping and waking its queue
 * @producer: free-running index behind the last posted unit
 * @consumer: free-running index behind the last completed unit
 * @size: units of the ring
 * @stop: stop the queue with fewer free units
 * @wake: wake the queue with at least this many, not less than @stop
 *
 * Both indices are read while the other side writes them: atomics in Rust.
 */
struct rc_tx_room {
	const u32 *producer;
	const u32 *consumer;
	u32 size;
	u32 stop;
	u32 wake;
};

/* Result of rc_helper_tx_sent() */
#define RC_TX_DOORBELL	1u	/* ring the doorbell now */
#define RC_TX_STOPPED	2u	/* this packet stopped the queue */

/**
 * struct rc_rx_buf - A receive buffer of a page pool
 * @page: page, or head of a compound page
 * @dma: bus address of the buffer's first byte
 * @offset: bytes from the start of @page to the buffer
 * @truesize: bytes of the buffer, headroom and skb_shared_info included
 */
struct rc_rx_buf {
	struct page *page;
	dma_addr_t dma;
	u32 offset;
	u32 truesize;
};

/**
 * struct rc_rx_meta - What a device says of a packet that it received
 * @len: bytes
 * @hash: RSS hash
 * @csum: with CHECKSUM_COMPLETE: sum over the packet
 * @queue: index of the RX queue
 * @vlan_tci: tag control information of a stripped tag, host order
 * @hash_type: PKT_HASH_TYPE_*; PKT_HASH_TYPE_NONE: there is no @hash
 * @ip_summed: CHECKSUM_NONE, CHECKSUM_UNNECESSARY or CHECKSUM_COMPLETE
 * @csum_level: with CHECKSUM_UNNECESSARY: further checksums that were verified
 * @vlan: an 802.1Q tag was stripped
 */
struct rc_rx_meta {
	u32 len;
	u32 hash;
	u32 csum;
	u16 queue;
	u16 vlan_tci;
	u8 hash_type;
	u8 ip_summed;
	u8 csum_level;
	bool vlan;
};

/* Network device */
void *rc_helper_netdev_priv(const struct net_device *dev);
void rc_helper_netdev_lock(struct net_device *dev);
void rc_helper_netdev_unlock(struct net_device *dev);
bool rc_helper_netif_running(const struct net_device *dev);
bool rc_helper_netif_carrier_ok(const struct net_device *dev);
void rc_helper_netif_tx_start_all_queues(struct net_device *dev);
void rc_helper_netif_tx_disable(struct net_device *dev);
void rc_helper_netdev_tx_reset_queue(struct netdev_queue *txq);

/* NAPI */
void rc_helper_netif_napi_add_config_locked(struct net_device *dev,
					    struct napi_struct *napi,
					    int (*poll)(struct napi_struct *napi, int budget),
					    int index);
void rc_helper_netif_napi_del_locked(struct napi_struct *napi);
void rc_helper_napi_schedule_irqoff(struct napi_struct *napi);
void rc_helper_napi_kick(struct napi_struct *napi);

/* Transmit */
void rc_helper_tx_meta(const struct sk_buff *skb, struct rc_tx_meta *meta);
int rc_helper_tx_prepare_tso(struct sk_buff *skb);
int rc_helper_tx_checksum_help(struct sk_buff *skb);
int rc_helper_tx_map(struct device *dma_dev, const struct sk_buff *skb,
		     struct rc_tx_piece pieces[RC_TX_MAX_PIECES]);
void rc_helper_tx_unmap(struct device *dma_dev, const struct rc_tx_piece *pieces,
			unsigned int n);
unsigned int rc_helper_tx_sent(struct netdev_queue *txq, struct sk_buff *skb,
			       const struct rc_tx_room *room);
bool rc_helper_tx_completed(struct netdev_queue *txq, unsigned int packets,
			    unsigned int bytes, const struct rc_tx_room *room);

/* Receive */
unsigned int rc_helper_rx_alloc(struct page_pool *pool, u32 size, gfp_t gfp,
				struct rc_rx_buf *bufs, unsigned int n);
void rc_helper_rx_free(struct page_pool *pool, const struct rc_rx_buf *bufs,
		       unsigned int n, bool in_napi);
void *rc_helper_rx_sync(struct page_pool *pool, const struct rc_rx_buf *buf,
			u32 headroom, u32 len);
int rc_helper_rx_deliver(struct napi_struct *napi, struct page_pool *pool,
			 const struct rc_rx_buf *buf, u32 headroom,
			 const struct rc_rx_meta *meta);

/* Streaming DMA */
int rc_helper_dma_map(struct device *dma_dev, void *ptr, size_t len,
		      enum dma_data_direction dir, dma_addr_t *addr);
void rc_helper_dma_sync_for_cpu(struct device *dma_dev, dma_addr_t addr, size_t len,
				enum dma_data_direction dir);
void rc_helper_dma_sync_for_device(struct device *dma_dev, dma_addr_t addr, size_t len,
				   enum dma_data_direction dir);

#endif
