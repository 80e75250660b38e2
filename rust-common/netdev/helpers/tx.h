/* SPDX-License-Identifier: GPL-2.0 */
/* C helpers for transmission; documented in tx.c. */
#ifndef RC_HELPERS_TX_H
#define RC_HELPERS_TX_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/xdp.h>

/**
 * struct rc_helper_piece - A mapped part of a packet
 * @addr: DMA address
 * @len: Length in bytes, never 0
 */
struct rc_helper_piece {
	dma_addr_t addr;
	u32 len;
};

/**
 * struct rc_helper_pieces - A ring of mapped parts
 * @dev: The device that does DMA
 * @slots: The parts; the @mask + 1 entries wrap
 * @mask: Number of entries, a power of two, minus 1
 */
struct rc_helper_pieces {
	struct device *dev;
	struct rc_helper_piece *slots;
	u32 mask;
};

/* How a packet is to be segmented: &rc_helper_tx_meta.gso_kind. */
#define RC_HELPER_GSO_NONE	0
#define RC_HELPER_GSO_TCP4	1
#define RC_HELPER_GSO_TCP6	2
#define RC_HELPER_GSO_UDP4	3
#define RC_HELPER_GSO_UDP6	4
#define RC_HELPER_GSO_OTHER	5

/* &rc_helper_tx_meta.flags */
#define RC_HELPER_TX_CSUM	0x01	/* a checksum is left to the device */
#define RC_HELPER_TX_VLAN	0x02	/* @vlan_tci is to be inserted */
#define RC_HELPER_TX_ENCAP	0x04	/* offsets are those of the inner headers */
#define RC_HELPER_TX_MORE	0x08	/* another packet follows at once */

/**
 * struct rc_helper_tx_meta - What a driver asks about a packet to send
 * @len: Bytes in all
 * @head_len: Bytes in the linear part
 * @wire_bytes: Bytes on the wire, headers of each segment included, without FCS
 * @packets: Packets on the wire, at least 1
 * @header_len: Bytes up to the end of the L4 header of a GSO packet, else 0
 * @gso_size: Payload bytes of a segment, 0 without GSO
 * @network_offset: Offset of the L3 header
 * @transport_offset: Offset of the L4 header; 0 where there is none to speak of
 * @csum_start: Offset from which the device sums up
 * @csum_offset: Offset behind @csum_start of the checksum field
 * @vlan_tci: Tag to insert, of EtherType 0x8100
 * @queue: TX queue
 * @nr_frags: Pieces besides the linear part
 * @gso_kind: One of RC_HELPER_GSO_*
 * @l3: IP version, 4 or 6, or 0 for anything else
 * @l4: IP protocol number, 0 unless known
 * @flags: RC_HELPER_TX_*
 */
struct rc_helper_tx_meta {
	u32 len;
	u32 head_len;
	u32 wire_bytes;
	u32 packets;
	u32 header_len;
	u32 gso_size;
	u32 network_offset;
	u32 transport_offset;
	u32 csum_start;
	u16 csum_offset;
	u16 vlan_tci;
	u16 queue;
	u8 nr_frags;
	u8 gso_kind;
	u8 l3;
	u8 l4;
	u8 flags;
};

/**
 * struct rc_helper_tx_room - When a TX queue stops and starts, in units
 * @size: Units of the ring
 * @stop: Stop if fewer than this are free
 * @wake: Start again if this many are
 */
struct rc_helper_tx_room {
	u32 size;
	u32 stop;
	u32 wake;
};

/* rc_helper_txq_sent() */
#define RC_HELPER_SENT_KICK	0x01	/* __netdev_tx_sent_queue() returned true */
#define RC_HELPER_SENT_STOPPED	0x02	/* the queue is stopped now */

bool rc_helper_tx_describe(const struct net_device *dev, const struct sk_buff *skb,
			   struct rc_helper_tx_meta *meta);
int rc_helper_tx_prepare_tso(struct sk_buff *skb);
int rc_helper_tx_checksum(struct sk_buff *skb);
int rc_helper_tx_pad(struct sk_buff *skb, unsigned int len);
int rc_helper_tx_linearize(struct sk_buff *skb);
int rc_helper_tx_map(const struct rc_helper_pieces *pieces, const struct sk_buff *skb, u32 split,
		     u32 start, u32 room);
int rc_helper_tx_map_frame(const struct rc_helper_pieces *pieces, const struct xdp_frame *frame,
			   u32 at);
void rc_helper_tx_unmap(const struct rc_helper_pieces *pieces, u32 start, u32 n);
void rc_helper_tx_drop(struct sk_buff *skb, enum skb_drop_reason reason);
u32 rc_helper_txq_sent(struct netdev_queue *txq, struct sk_buff *skb,
		       const struct rc_helper_tx_meta *meta, const struct rc_helper_tx_room *room,
		       const u32 *tail, u32 head);
bool rc_helper_txq_completed(struct netdev_queue *txq, const struct rc_helper_tx_room *room,
			     const u32 *head, u32 tail, unsigned int packets,
			     unsigned int bytes, const u8 *down);
void rc_helper_txq_reset(struct netdev_queue *txq);
void rc_helper_xdp_return_bulk(struct xdp_frame_bulk *bulk);

#endif
