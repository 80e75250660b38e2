// SPDX-License-Identifier: GPL-2.0
/* C helpers for transmission: coarse, so that a packet costs few calls. */

#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/netdev_queues.h>
#include <net/tcp.h>
#include <net/xdp.h>

#include "tx.h"

/* Reads the IP header at @offset if all of it lies in the linear part. */
static void read_ip_header(const struct sk_buff *skb, struct rc_helper_tx_meta *meta)
{
	const void *header = skb->data + meta->network_offset;
	u32 room;

	if (meta->network_offset > meta->head_len)
		return;
	room = meta->head_len - meta->network_offset;

	if (room >= sizeof(struct iphdr) && ((const struct iphdr *)header)->version == 4) {
		meta->l3 = 4;
		meta->l4 = ((const struct iphdr *)header)->protocol;
	} else if (room >= sizeof(struct ipv6hdr) &&
		   ((const struct ipv6hdr *)header)->version == 6) {
		u8 next = ((const struct ipv6hdr *)header)->nexthdr;
		__be16 frag_off;

		meta->l3 = 6;
		if (ipv6_ext_hdr(next) &&
		    ipv6_skip_exthdr(skb, meta->network_offset + sizeof(struct ipv6hdr),
				     &next, &frag_off) < 0)
			next = 0;
		meta->l4 = next;
	}
}

static u8 gso_kind(const struct sk_buff *skb, const struct rc_helper_tx_meta *meta)
{
	switch (skb_shinfo(skb)->gso_type &
		(SKB_GSO_TCPV4 | SKB_GSO_TCPV6 | SKB_GSO_UDP_L4)) {
	case SKB_GSO_TCPV4:
		return RC_HELPER_GSO_TCP4;
	case SKB_GSO_TCPV6:
		return RC_HELPER_GSO_TCP6;
	case SKB_GSO_UDP_L4:
		return meta->l3 == 6 ? RC_HELPER_GSO_UDP6 : RC_HELPER_GSO_UDP4;
	default:
		return RC_HELPER_GSO_OTHER;
	}
}

/* What is asked of the device. Out of line: most small packets ask for nothing. */
static noinline void describe_offloads(const struct sk_buff *skb, struct rc_helper_tx_meta *meta)
{
	if (skb->encapsulation) {
		meta->flags |= RC_HELPER_TX_ENCAP;
		meta->network_offset = skb_inner_network_offset(skb);
		meta->transport_offset = skb_inner_transport_offset(skb);
	} else {
		meta->network_offset = skb_network_offset(skb);
		meta->transport_offset = skb_transport_offset(skb);
	}
	read_ip_header(skb, meta);

	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		meta->flags |= RC_HELPER_TX_CSUM;
		meta->csum_start = skb_checksum_start_offset(skb);
		meta->csum_offset = skb->csum_offset;
	}
	if (skb_is_gso(skb)) {
		u32 l4_len = sizeof(struct udphdr);

		meta->gso_size = skb_shinfo(skb)->gso_size;
		meta->gso_kind = gso_kind(skb, meta);
		if (skb_is_gso_tcp(skb))
			l4_len = skb->encapsulation ? inner_tcp_hdrlen(skb) :
						      tcp_hdrlen(skb);
		meta->header_len = meta->transport_offset + l4_len;

		meta->packets = skb_shinfo(skb)->gso_segs;
		if (unlikely(!meta->packets))	/* SKB_GSO_DODGY */
			meta->packets = DIV_ROUND_UP(skb->len - meta->header_len,
						     meta->gso_size) ? : 1;
		meta->wire_bytes += (meta->packets - 1) * meta->header_len;
	}
}

/* Whether this CPU holds the xmit lock of a queue, which may not be there. */
static bool tx_owned(const struct net_device *dev, unsigned int queue)
{
	return queue < dev->num_tx_queues &&
	       netif_tx_owned(netdev_get_tx_queue(dev, queue), smp_processor_id());
}

/* The queue whose xmit lock this CPU holds, or the number of queues. */
static noinline unsigned int owned_queue(const struct net_device *dev)
{
	unsigned int queue = 0;

	while (queue < dev->num_tx_queues && !tx_owned(dev, queue))
		queue++;
	return queue;
}

/**
 * rc_helper_tx_describe() - Collect what a driver asks about a packet
 * @dev: network device that sends it
 * @skb: packet
 * @meta: filled in
 *
 * Reads only the metadata and headers within the linear part. Headers are
 * looked at only where an offload is asked for: nothing is known about those of
 * other packets.
 *
 * The packet's queue is the one whose xmit lock this CPU holds: the core sends
 * what a queueing discipline hands out under the lock of the queue that this
 * belongs to, and a filter may have mapped the packet elsewhere.
 *
 * Context: ndo_start_xmit().
 * Return: true if this CPU holds the xmit lock of a queue of the device, else
 * nothing is filled in.
 */
bool rc_helper_tx_describe(const struct net_device *dev, const struct sk_buff *skb,
			   struct rc_helper_tx_meta *meta)
{
	unsigned int queue = skb_get_queue_mapping(skb);

	if (unlikely(!tx_owned(dev, queue))) {
		queue = owned_queue(dev);
		if (queue == dev->num_tx_queues)
			return false;
	}

	/* One by one: the compiler makes few stores of it, and no loop. */
	meta->len = skb->len;
	meta->head_len = skb_headlen(skb);
	meta->wire_bytes = skb->len;
	meta->packets = 1;
	meta->header_len = 0;
	meta->gso_size = 0;
	meta->network_offset = 0;
	meta->transport_offset = 0;
	meta->csum_start = 0;
	meta->csum_offset = 0;
	meta->vlan_tci = skb_vlan_tag_get(skb);
	meta->queue = queue;
	meta->nr_frags = skb_shinfo(skb)->nr_frags;
	meta->gso_kind = RC_HELPER_GSO_NONE;
	meta->l3 = 0;
	meta->l4 = 0;
	meta->flags = netdev_xmit_more() ? RC_HELPER_TX_MORE : 0;
	/* The core inserts tags of the other EtherType: no driver offers those. */
	if (skb_vlan_tag_present(skb))
		meta->flags |= RC_HELPER_TX_VLAN;

	if (skb->ip_summed == CHECKSUM_PARTIAL || skb_is_gso(skb))
		describe_offloads(skb, meta);
	return true;
}
EXPORT_SYMBOL_GPL(rc_helper_tx_describe);

/**
 * rc_helper_tx_prepare_tso() - Bring the headers of a TSO packet into the form
 *				that devices take as a template
 * @skb: TCP GSO packet
 *
 * Clears the IP length fields and the IPv4 checksum, and leaves the checksum of
 * the pseudo header without its length in the TCP header. Copies the head first
 * where it is shared.
 *
 * Context: ndo_start_xmit().
 * Return: 0, -EINVAL if this is no TCP GSO packet of our own, or -ENOMEM.
 */
int rc_helper_tx_prepare_tso(struct sk_buff *skb)
{
	int err;

	if (!skb_is_gso_tcp(skb) || skb_shared(skb))
		return -EINVAL;
	err = skb_cow_head(skb, 0);
	if (err)
		return err;

	if (skb_shinfo(skb)->gso_type & SKB_GSO_TCPV4) {
		struct iphdr *iph = skb->encapsulation ? inner_ip_hdr(skb) : ip_hdr(skb);
		struct tcphdr *th = skb->encapsulation ? inner_tcp_hdr(skb) : tcp_hdr(skb);

		iph->tot_len = 0;
		iph->check = 0;
		th->check = ~csum_tcpudp_magic(iph->saddr, iph->daddr, 0, IPPROTO_TCP, 0);
	} else {
		struct ipv6hdr *iph = skb->encapsulation ? inner_ipv6_hdr(skb) : ipv6_hdr(skb);
		struct tcphdr *th = skb->encapsulation ? inner_tcp_hdr(skb) : tcp_hdr(skb);

		iph->payload_len = 0;
		th->check = ~csum_ipv6_magic(&iph->saddr, &iph->daddr, 0, IPPROTO_TCP, 0);
	}
	return 0;
}
EXPORT_SYMBOL_GPL(rc_helper_tx_prepare_tso);

/**
 * rc_helper_tx_pad() - Pad a packet with zeroes
 * @skb: packet; freed on error
 * @len: least length in bytes
 *
 * Context: ndo_start_xmit().
 * Return: 0 or -ENOMEM.
 */
int rc_helper_tx_pad(struct sk_buff *skb, unsigned int len)
{
	return skb_put_padto(skb, len);
}
EXPORT_SYMBOL_GPL(rc_helper_tx_pad);

/**
 * rc_helper_tx_checksum() - Fill in the checksum that was left to the device
 * @skb: packet
 *
 * Context: ndo_start_xmit().
 * Return: 0, -EINVAL if it is shared or damaged, or -ENOMEM.
 */
int rc_helper_tx_checksum(struct sk_buff *skb)
{
	if (skb_shared(skb))
		return -EINVAL;
	return skb_checksum_help(skb);
}
EXPORT_SYMBOL_GPL(rc_helper_tx_checksum);

/**
 * rc_helper_tx_linearize() - Copy a packet into one linear part
 * @skb: packet, not shared
 *
 * Context: ndo_start_xmit().
 * Return: 0, -EINVAL if it is shared, or -ENOMEM.
 */
int rc_helper_tx_linearize(struct sk_buff *skb)
{
	if (skb_shared(skb))
		return -EINVAL;
	return skb_linearize(skb);
}
EXPORT_SYMBOL_GPL(rc_helper_tx_linearize);

static __always_inline bool map_head(const struct rc_helper_pieces *pieces, u32 at, void *data, u32 len)
{
	struct rc_helper_piece *piece = &pieces->slots[at & pieces->mask];

	/* Heads of packets for a driver are never in vmalloc memory. */
	piece->addr = dma_map_phys(pieces->dev, virt_to_phys(data), len, DMA_TO_DEVICE, 0);
	piece->len = len;
	return !dma_mapping_error(pieces->dev, piece->addr);
}

static bool map_frag(const struct rc_helper_pieces *pieces, u32 at, const skb_frag_t *frag)
{
	struct rc_helper_piece *piece = &pieces->slots[at & pieces->mask];

	piece->addr = skb_frag_dma_map(pieces->dev, frag);
	piece->len = skb_frag_size(frag);
	return !dma_mapping_error(pieces->dev, piece->addr);
}

/* Out of line: most small packets are one piece. */
static noinline int map_all(const struct rc_helper_pieces *pieces, const struct sk_buff *skb,
			    u32 split, u32 start, u32 room)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 head_len = skb_headlen(skb);
	u32 offset = 0;
	int err = -ENOSPC;
	u32 n = 0;
	u32 i;

	if (split >= head_len)
		split = 0;

	while (offset < head_len) {
		u32 len = offset || !split ? head_len - offset : split;

		if (n == room)
			goto undo;
		if (!map_head(pieces, start + n, skb->data + offset, len))
			goto undo_nomem;
		offset += len;
		n++;
	}

	for (i = 0; i < info->nr_frags; i++) {
		if (!skb_frag_size(&info->frags[i]))
			continue;
		if (n == room)
			goto undo;
		if (!map_frag(pieces, start + n, &info->frags[i]))
			goto undo_nomem;
		n++;
	}

	return n ? n : -EINVAL;

undo_nomem:
	err = -ENOMEM;
undo:
	rc_helper_tx_unmap(pieces, start, n);
	return err;
}

/**
 * rc_helper_tx_map() - Map a packet for the device to read
 * @pieces: where the pieces are noted
 * @skb: packet without frag_list
 * @split: the first piece ends after this many bytes of the linear part; 0, or
 *	   the length of the linear part or more, for no split
 * @start: free-running index of the first piece
 * @room: most pieces to write
 *
 * Context: ndo_start_xmit().
 * Return: Number of pieces, at least 1; -ENOSPC when @room is too small,
 * -ENOMEM when mapping failed, or -EINVAL for an empty packet. On error nothing
 * stays mapped.
 */
int rc_helper_tx_map(const struct rc_helper_pieces *pieces, const struct sk_buff *skb, u32 split,
		     u32 start, u32 room)
{
	if (split || skb_is_nonlinear(skb) || !skb->len || !room)
		return map_all(pieces, skb, split, start, room);
	return map_head(pieces, start, skb->data, skb->len) ? 1 : -ENOMEM;
}
EXPORT_SYMBOL_GPL(rc_helper_tx_map);

/**
 * rc_helper_tx_map_frame() - Map an XDP frame of one piece for the device to read
 * @pieces: where the piece is noted
 * @frame: frame
 * @at: free-running index of the piece
 *
 * Context: Under the queue's xmit lock.
 * Return: 0, -EINVAL for a frame of several pieces, or -ENOMEM.
 */
int rc_helper_tx_map_frame(const struct rc_helper_pieces *pieces, const struct xdp_frame *frame,
			   u32 at)
{
	if (unlikely(xdp_frame_has_frags(frame) || !frame->len))
		return -EINVAL;
	return map_head(pieces, at, frame->data, frame->len) ? 0 : -ENOMEM;
}
EXPORT_SYMBOL_GPL(rc_helper_tx_map_frame);

/**
 * rc_helper_tx_unmap() - Undo rc_helper_tx_map()
 * @pieces: where the pieces are noted
 * @start: free-running index of the first piece
 * @n: number of pieces
 *
 * Context: Any.
 */
void rc_helper_tx_unmap(const struct rc_helper_pieces *pieces, u32 start, u32 n)
{
	for (; n; n--, start++) {
		const struct rc_helper_piece *piece = &pieces->slots[start & pieces->mask];

		dma_unmap_phys(pieces->dev, piece->addr, piece->len, DMA_TO_DEVICE, 0);
	}
}
EXPORT_SYMBOL_GPL(rc_helper_tx_unmap);

/**
 * rc_helper_tx_drop() - Free a packet that was not sent
 * @skb: packet
 * @reason: why, for drop monitors
 *
 * Context: Any.
 */
void rc_helper_tx_drop(struct sk_buff *skb, enum skb_drop_reason reason)
{
	dev_kfree_skb_any_reason(skb, reason);
}
EXPORT_SYMBOL_GPL(rc_helper_tx_drop);

/**
 * rc_helper_txq_sent() - Account a posted packet, and stop a queue that is full
 * @txq: TX queue
 * @skb: the packet; stamped with the time if its sender has asked for that
 * @meta: what rc_helper_tx_describe() said of it
 * @room: when the queue stops and starts
 * @tail: units that were completed, free-running; NAPI publishes it
 * @head: units that were posted, free-running, this packet included
 *
 * Context: ndo_start_xmit(), or under the queue's xmit lock.
 * Return: RC_HELPER_SENT_*.
 */
u32 rc_helper_txq_sent(struct netdev_queue *txq, struct sk_buff *skb,
		       const struct rc_helper_tx_meta *meta, const struct rc_helper_tx_room *room,
		       const u32 *tail, u32 head)
{
	u32 sent = 0;

	skb_tx_timestamp(skb);

	/* First, so that a queue that stops here rings for the whole burst. */
	if (!netif_txq_maybe_stop(txq, room->size - (head - READ_ONCE(*tail)), room->stop,
				  room->wake))
		sent |= RC_HELPER_SENT_STOPPED;
	if (__netdev_tx_sent_queue(txq, meta->wire_bytes, meta->flags & RC_HELPER_TX_MORE))
		sent |= RC_HELPER_SENT_KICK;
	return sent;
}
EXPORT_SYMBOL_GPL(rc_helper_txq_sent);

/**
 * rc_helper_txq_completed() - Account completed packets, and wake the queue
 * @txq: TX queue
 * @room: when the queue stops and starts
 * @head: units that were posted, free-running; the xmit side publishes it
 * @tail: units that were completed, free-running, which the xmit side can see
 * @packets: packets and XDP frames completed
 * @bytes: bytes on the wire of the packets, as rc_helper_tx_describe() said;
 *	   BQL knows of no others
 * @down: the queue is being taken down: leave it stopped
 *
 * Context: NAPI poll; at most once per poll.
 * Return: true if it woke the queue.
 */
bool rc_helper_txq_completed(struct netdev_queue *txq, const struct rc_helper_tx_room *room,
			     const u32 *head, u32 tail, unsigned int packets,
			     unsigned int bytes, const u8 *down)
{
	return !__netif_txq_completed_wake(txq, packets, bytes,
					   room->size - (READ_ONCE(*head) - tail),
					   room->wake, READ_ONCE(*down));
}
EXPORT_SYMBOL_GPL(rc_helper_txq_completed);

/**
 * rc_helper_txq_reset() - Forget what BQL has in flight
 * @txq: TX queue, stopped, with no packet in flight
 *
 * Context: Process.
 */
void rc_helper_txq_reset(struct netdev_queue *txq)
{
	netdev_tx_reset_queue(txq);
}
EXPORT_SYMBOL_GPL(rc_helper_txq_reset);

/**
 * rc_helper_xdp_return_bulk() - Give back the frames that were collected
 * @bulk: frames of xdp_return_frame_bulk()
 *
 * Context: NAPI poll.
 */
void rc_helper_xdp_return_bulk(struct xdp_frame_bulk *bulk)
{
	xdp_flush_frame_bulk(bulk);
}
EXPORT_SYMBOL_GPL(rc_helper_xdp_return_bulk);
