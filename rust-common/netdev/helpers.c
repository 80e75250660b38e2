// SPDX-License-Identifier: GPL-2.0
/*
 * C helpers of crate netdev, for what the kernel offers as inline functions or
 * macros only.
 */

#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/prefetch.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip6_checksum.h>
#include <net/netdev_lock.h>
#include <net/netdev_queues.h>
#include <net/page_pool/helpers.h>

#include "helpers.h"

/* Network device ---------------------------------------------------------- */

/**
 * rc_helper_netdev_priv() - Private data of a network device
 * @dev: network device
 *
 * Context: Any.
 * Return: The private data, of the size given to alloc_etherdev_mqs().
 */
void *rc_helper_netdev_priv(const struct net_device *dev)
{
	return netdev_priv(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netdev_priv);

/**
 * rc_helper_netdev_lock() - Take the instance lock
 * @dev: network device
 *
 * Context: Process context, may sleep. Under the RTNL or without it; never
 * under cpus_read_lock() or a queue lock.
 */
void rc_helper_netdev_lock(struct net_device *dev)
{
	netdev_lock(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netdev_lock);

/**
 * rc_helper_netdev_unlock() - Release the instance lock
 * @dev: network device
 *
 * Context: Process context, by the task that took the lock.
 */
void rc_helper_netdev_unlock(struct net_device *dev)
{
	netdev_unlock(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netdev_unlock);

/**
 * rc_helper_netif_running() - Is the device up?
 * @dev: network device
 *
 * Context: Any; the answer holds only under the instance lock.
 * Return: true from before ndo_open() until before ndo_stop().
 */
bool rc_helper_netif_running(const struct net_device *dev)
{
	return netif_running(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_running);

/**
 * rc_helper_netif_carrier_ok() - Is there a link?
 * @dev: network device
 *
 * Context: Any.
 * Return: What the last netif_carrier_on() or netif_carrier_off() set.
 */
bool rc_helper_netif_carrier_ok(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_carrier_ok);

/**
 * rc_helper_netif_tx_start_all_queues() - Allow transmission on every queue
 * @dev: network device
 *
 * Does not schedule queues that have packets waiting; at ndo_open() none has.
 *
 * Context: Process context, under the instance lock.
 */
void rc_helper_netif_tx_start_all_queues(struct net_device *dev)
{
	netif_tx_start_all_queues(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_tx_start_all_queues);

/**
 * rc_helper_netif_tx_disable() - Stop every TX queue
 * @dev: network device
 *
 * No ndo_start_xmit() runs any more on return. A completion that runs
 * meanwhile may wake a queue again: stop NAPI too, then call this once more,
 * or detach the device first.
 *
 * Context: Process context. Takes each queue's lock.
 */
void rc_helper_netif_tx_disable(struct net_device *dev)
{
	netif_tx_disable(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_tx_disable);

/**
 * rc_helper_netdev_tx_reset_queue() - Forget what byte queue limits know
 * @txq: TX queue whose buffers were dropped without completion
 *
 * Context: Any, with the queue stopped and no completion running.
 */
void rc_helper_netdev_tx_reset_queue(struct netdev_queue *txq)
{
	netdev_tx_reset_queue(txq);
}
EXPORT_SYMBOL_GPL(rc_helper_netdev_tx_reset_queue);

/* NAPI -------------------------------------------------------------------- */

/**
 * rc_helper_netif_napi_add_config_locked() - Add a NAPI with persistent settings
 * @dev: network device
 * @napi: zeroed; must stay in place until it is deleted
 * @poll: poll function
 * @index: slot of the settings, below max(TX queues, RX queues) of @dev
 *
 * Context: Process context, under the instance lock.
 */
void rc_helper_netif_napi_add_config_locked(struct net_device *dev,
					    struct napi_struct *napi,
					    int (*poll)(struct napi_struct *napi, int budget),
					    int index)
{
	netif_napi_add_config_locked(dev, napi, poll, index);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_napi_add_config_locked);

/**
 * rc_helper_netif_napi_del_locked() - Delete a NAPI
 * @napi: added and disabled
 *
 * Nothing refers to @napi any more on return: waits for an RCU grace period.
 *
 * Context: Process context, under the instance lock, may sleep.
 */
void rc_helper_netif_napi_del_locked(struct napi_struct *napi)
{
	netif_napi_del_locked(napi);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_napi_del_locked);

/**
 * rc_helper_napi_schedule_irqoff() - Schedule a NAPI from its interrupt handler
 * @napi: added
 *
 * Context: Hard interrupt, interrupts disabled.
 */
void rc_helper_napi_schedule_irqoff(struct napi_struct *napi)
{
	napi_schedule_irqoff(napi);
}
EXPORT_SYMBOL_GPL(rc_helper_napi_schedule_irqoff);

/**
 * rc_helper_napi_kick() - Schedule a NAPI and let it run
 * @napi: added
 *
 * For work that may be waiting without an interrupt to come, as after enabling.
 *
 * Context: Process context.
 */
void rc_helper_napi_kick(struct napi_struct *napi)
{
	local_bh_disable();
	napi_schedule(napi);
	local_bh_enable();
}
EXPORT_SYMBOL_GPL(rc_helper_napi_kick);

/* Transmit ---------------------------------------------------------------- */

static u16 gso_header_len(const struct sk_buff *skb)
{
	if (skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4)
		return (skb->encapsulation ? skb_inner_transport_offset(skb) :
					     skb_transport_offset(skb)) +
		       sizeof(struct udphdr);

	return skb->encapsulation ? skb_inner_tcp_all_headers(skb) :
				    skb_tcp_all_headers(skb);
}

static u8 l4_protocol(const struct sk_buff *skb, u16 protocol)
{
	switch (protocol) {
	case ETH_P_IP:
		return ip_hdr(skb)->protocol;
	case ETH_P_IPV6:
		return ipv6_hdr(skb)->nexthdr;
	default:
		return 0;
	}
}

/**
 * rc_helper_tx_meta() - Read what a driver needs to know of a packet
 * @skb: packet, only read
 * @meta: filled in completely
 *
 * Context: ndo_start_xmit().
 */
void rc_helper_tx_meta(const struct sk_buff *skb, struct rc_tx_meta *meta)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	u16 protocol = ntohs(vlan_get_protocol(skb));

	*meta = (struct rc_tx_meta) {
		.len = skb->len,
		.headlen = skb_headlen(skb),
		.nr_frags = shinfo->nr_frags,
		.protocol = protocol,
		.gso_segs = 1,
		.network_offset = skb_network_offset(skb),
		.encapsulation = skb->encapsulation,
	};

	if (skb_is_gso(skb)) {
		meta->gso_size = shinfo->gso_size;
		meta->gso_segs = shinfo->gso_segs;
		meta->gso_type = shinfo->gso_type;
		meta->header_len = gso_header_len(skb);
	}
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		meta->checksum = true;
		meta->csum_start = skb_checksum_start_offset(skb);
		meta->csum_offset = skb->csum_offset;
		meta->transport_offset = skb_transport_offset(skb);
		meta->l4_protocol = l4_protocol(skb, protocol);
	}
	if (skb_vlan_tag_present(skb)) {
		meta->vlan = true;
		meta->vlan_tci = skb_vlan_tag_get(skb);
	}
}
EXPORT_SYMBOL_GPL(rc_helper_tx_meta);

/**
 * rc_helper_tx_prepare_tso() - Write the headers of a TCP packet for segmentation
 * @skb: packet with SKB_GSO_TCPV4 or SKB_GSO_TCPV6, not encapsulated
 *
 * Clears the IP length and the IPv4 checksum, and leaves the sum of a pseudo
 * header without length in the TCP checksum, for devices that fill in all of
 * them per segment.
 *
 * Context: ndo_start_xmit(). May move the linear part: call it before mapping.
 * Return: 0; -EBUSY if someone else holds the packet; -ENOMEM.
 */
int rc_helper_tx_prepare_tso(struct sk_buff *skb)
{
	int err;

	if (skb_shared(skb))
		return -EBUSY;
	err = skb_cow_head(skb, 0);
	if (err)
		return err;

	if (skb_shinfo(skb)->gso_type & SKB_GSO_TCPV6) {
		tcp_v6_gso_csum_prep(skb);
	} else {
		struct iphdr *ip = ip_hdr(skb);

		ip->tot_len = 0;
		ip->check = 0;
		tcp_hdr(skb)->check = ~csum_tcpudp_magic(ip->saddr, ip->daddr, 0,
							 IPPROTO_TCP, 0);
	}
	return 0;
}
EXPORT_SYMBOL_GPL(rc_helper_tx_prepare_tso);

/**
 * rc_helper_tx_checksum_help() - Fill in the checksum that the device cannot
 * @skb: packet with CHECKSUM_PARTIAL
 *
 * Context: ndo_start_xmit(). May move the linear part: call it before mapping.
 * Return: 0; -EBUSY if someone else holds the packet; -ENOMEM or -EINVAL as
 * skb_checksum_help().
 */
int rc_helper_tx_checksum_help(struct sk_buff *skb)
{
	if (skb_shared(skb))
		return -EBUSY;
	return skb_checksum_help(skb);
}
EXPORT_SYMBOL_GPL(rc_helper_tx_checksum_help);

/**
 * rc_helper_tx_map() - Map a packet for the device to read
 * @dma_dev: device that reads
 * @skb: packet without frag list, of host memory
 * @pieces: receives the linear part, if it is not empty, then each fragment
 *
 * Context: ndo_start_xmit().
 * Return: Number of pieces; -ENOMEM if a mapping failed, with nothing left
 * mapped.
 */
int rc_helper_tx_map(struct device *dma_dev, const struct sk_buff *skb,
		     struct rc_tx_piece pieces[RC_TX_MAX_PIECES])
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	u32 len = skb_headlen(skb);
	unsigned int n = 0, i;
	dma_addr_t addr;

	if (len) {
		addr = dma_map_single(dma_dev, skb->data, len, DMA_TO_DEVICE);
		if (unlikely(dma_mapping_error(dma_dev, addr)))
			return -ENOMEM;
		pieces[n++] = (struct rc_tx_piece) { addr, len };
	}

	for (i = 0; i < shinfo->nr_frags; i++) {
		len = skb_frag_size(&shinfo->frags[i]);
		addr = skb_frag_dma_map(dma_dev, &shinfo->frags[i], 0, len,
					DMA_TO_DEVICE);
		if (unlikely(dma_mapping_error(dma_dev, addr))) {
			rc_helper_tx_unmap(dma_dev, pieces, n);
			return -ENOMEM;
		}
		pieces[n++] = (struct rc_tx_piece) { addr, len };
	}
	return n;
}
EXPORT_SYMBOL_GPL(rc_helper_tx_map);

/**
 * rc_helper_tx_unmap() - Undo rc_helper_tx_map()
 * @dma_dev: device that read
 * @pieces: what was mapped; may join the pieces of several packets
 * @n: number of pieces
 *
 * Context: Any.
 */
void rc_helper_tx_unmap(struct device *dma_dev, const struct rc_tx_piece *pieces,
			unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		dma_unmap_page(dma_dev, pieces[i].addr, pieces[i].len, DMA_TO_DEVICE);
}
EXPORT_SYMBOL_GPL(rc_helper_tx_unmap);

static u32 free_units(const struct rc_tx_room *room)
{
	return room->size - (READ_ONCE(*room->producer) - READ_ONCE(*room->consumer));
}

/**
 * rc_helper_tx_sent() - Account for a packet that was posted
 * @txq: its queue
 * @skb: the packet; its descriptors are written, the device was not told yet
 * @room: space of the ring, its producer index past the packet
 *
 * Stops the queue when the ring is nearly full, reports the packet to byte
 * queue limits and stamps it if it asks for a software time stamp.
 *
 * Context: ndo_start_xmit().
 * Return: RC_TX_DOORBELL, if no further packet is certain to follow or the
 * queue is stopped; RC_TX_STOPPED.
 */
unsigned int rc_helper_tx_sent(struct netdev_queue *txq, struct sk_buff *skb,
			       const struct rc_tx_room *room)
{
	unsigned int result = 0;

	skb_tx_timestamp(skb);

	if (!netif_txq_maybe_stop(txq, free_units(room), room->stop, room->wake))
		result |= RC_TX_STOPPED;
	if (__netdev_tx_sent_queue(txq, skb->len, netdev_xmit_more()))
		result |= RC_TX_DOORBELL;
	return result;
}
EXPORT_SYMBOL_GPL(rc_helper_tx_sent);

/**
 * rc_helper_tx_completed() - Account for packets that the device has sent
 * @txq: their queue
 * @packets: number of packets
 * @bytes: sum of their lengths
 * @room: space of the ring, its consumer index past the packets
 *
 * Reports to byte queue limits and wakes the queue when there is room again,
 * unless the device is detached or has no carrier.
 *
 * Context: NAPI poll of the queue's completions.
 * Return: true if the queue was woken.
 */
bool rc_helper_tx_completed(struct netdev_queue *txq, unsigned int packets,
			    unsigned int bytes, const struct rc_tx_room *room)
{
	return !__netif_txq_completed_wake(txq, packets, bytes, free_units(room), room->wake,
					   !netif_device_present(txq->dev) ||
					   !netif_carrier_ok(txq->dev));
}
EXPORT_SYMBOL_GPL(rc_helper_tx_completed);

/* Receive ----------------------------------------------------------------- */

/**
 * rc_helper_rx_alloc() - Allocate receive buffers
 * @pool: page pool that maps (PP_FLAG_DMA_MAP) its pages, of lowmem
 * @size: bytes of each buffer, headroom and skb_shared_info included, at most
 *	the size of the pool's pages
 * @gfp: allocation flags
 * @bufs: receives the buffers
 * @n: number of buffers wanted
 *
 * Context: NAPI poll of the pool's NAPI, or process context while it cannot
 * run.
 * Return: Number of buffers allocated; less than @n when memory is short.
 */
unsigned int rc_helper_rx_alloc(struct page_pool *pool, u32 size, gfp_t gfp,
				struct rc_rx_buf *bufs, unsigned int n)
{
	unsigned int i, offset, truesize;

	for (i = 0; i < n; i++) {
		struct page *page;

		truesize = size;
		page = page_pool_alloc(pool, &offset, &truesize, gfp);
		if (unlikely(!page))
			break;
		bufs[i] = (struct rc_rx_buf) {
			.page = page,
			.dma = page_pool_get_dma_addr(page) + offset,
			.offset = offset,
			.truesize = truesize,
		};
	}
	return i;
}
EXPORT_SYMBOL_GPL(rc_helper_rx_alloc);

/**
 * rc_helper_rx_free() - Give receive buffers back
 * @pool: their page pool
 * @bufs: buffers that the device no longer writes to
 * @n: number of buffers
 * @in_napi: called from the poll of the pool's NAPI
 *
 * Context: Any context but hard interrupt.
 */
void rc_helper_rx_free(struct page_pool *pool, const struct rc_rx_buf *bufs,
		       unsigned int n, bool in_napi)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		page_pool_put_full_page(pool, bufs[i].page, in_napi);
}
EXPORT_SYMBOL_GPL(rc_helper_rx_free);

/**
 * rc_helper_rx_sync() - Make a received packet visible to the CPU
 * @pool: page pool of the buffer
 * @buf: buffer that the device has written
 * @headroom: bytes before the packet
 * @len: bytes of the packet; @headroom + @len within the buffer
 *
 * Context: Any.
 * Return: First byte of the packet.
 */
void *rc_helper_rx_sync(struct page_pool *pool, const struct rc_rx_buf *buf,
			u32 headroom, u32 len)
{
	void *data = page_address(buf->page) + buf->offset + headroom;

	dma_sync_single_for_cpu(pool->p.dev, buf->dma + headroom, len,
				page_pool_get_dma_dir(pool));
	net_prefetch(data);
	return data;
}
EXPORT_SYMBOL_GPL(rc_helper_rx_sync);

/**
 * rc_helper_rx_deliver() - Hand a received packet to the stack
 * @napi: NAPI that polls
 * @pool: page pool of the buffer
 * @buf: buffer that the device has written
 * @headroom: bytes before the packet
 * @meta: what the device says of it
 *
 * Syncs the packet for the CPU and delivers it through GRO, in place: the stack
 * returns the buffer to @pool.
 *
 * Context: NAPI poll.
 * Return: 0; on error the buffer remains the caller's: -EMSGSIZE if the packet
 * is shorter than an Ethernet header or does not fit the buffer, -ENOMEM.
 */
int rc_helper_rx_deliver(struct napi_struct *napi, struct page_pool *pool,
			 const struct rc_rx_buf *buf, u32 headroom,
			 const struct rc_rx_meta *meta)
{
	u32 room = SKB_WITH_OVERHEAD(buf->truesize);
	struct sk_buff *skb;

	if (unlikely(meta->len < ETH_HLEN || headroom > room ||
		     meta->len > room - headroom))
		return -EMSGSIZE;

	rc_helper_rx_sync(pool, buf, headroom, meta->len);
	skb = napi_build_skb(page_address(buf->page) + buf->offset, buf->truesize);
	if (unlikely(!skb))
		return -ENOMEM;

	skb_mark_for_recycle(skb);
	skb_reserve(skb, headroom);
	skb_put(skb, meta->len);
	skb->protocol = eth_type_trans(skb, napi->dev);
	skb_record_rx_queue(skb, meta->queue);

	skb->ip_summed = meta->ip_summed;
	if (meta->ip_summed == CHECKSUM_UNNECESSARY)
		skb->csum_level = meta->csum_level;
	else if (meta->ip_summed == CHECKSUM_COMPLETE)
		skb->csum = (__force __wsum)meta->csum;
	if (meta->hash_type != PKT_HASH_TYPE_NONE)
		skb_set_hash(skb, meta->hash, meta->hash_type);
	if (meta->vlan)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), meta->vlan_tci);

	napi_gro_receive(napi, skb);
	return 0;
}
EXPORT_SYMBOL_GPL(rc_helper_rx_deliver);

/* Streaming DMA ----------------------------------------------------------- */

/**
 * rc_helper_dma_map() - Map memory for a device
 * @dma_dev: device
 * @ptr: memory of the linear map, not of the stack
 * @len: bytes
 * @dir: direction
 * @addr: receives the bus address
 *
 * dma_unmap_page_attrs() undoes it.
 *
 * Context: Any.
 * Return: 0; -ENOMEM if the mapping failed.
 */
int rc_helper_dma_map(struct device *dma_dev, void *ptr, size_t len,
		      enum dma_data_direction dir, dma_addr_t *addr)
{
	*addr = dma_map_single(dma_dev, ptr, len, dir);
	return dma_mapping_error(dma_dev, *addr);
}
EXPORT_SYMBOL_GPL(rc_helper_dma_map);

/**
 * rc_helper_dma_sync_for_cpu() - Let the CPU see what the device wrote
 * @dma_dev: device
 * @addr: bus address within a mapping
 * @len: bytes
 * @dir: direction of the mapping
 *
 * Context: Any.
 */
void rc_helper_dma_sync_for_cpu(struct device *dma_dev, dma_addr_t addr, size_t len,
				enum dma_data_direction dir)
{
	dma_sync_single_for_cpu(dma_dev, addr, len, dir);
}
EXPORT_SYMBOL_GPL(rc_helper_dma_sync_for_cpu);

/**
 * rc_helper_dma_sync_for_device() - Let the device see what the CPU wrote
 * @dma_dev: device
 * @addr: bus address within a mapping
 * @len: bytes
 * @dir: direction of the mapping
 *
 * Context: Any.
 */
void rc_helper_dma_sync_for_device(struct device *dma_dev, dma_addr_t addr, size_t len,
				   enum dma_data_direction dir)
{
	dma_sync_single_for_device(dma_dev, addr, len, dir);
}
EXPORT_SYMBOL_GPL(rc_helper_dma_sync_for_device);
