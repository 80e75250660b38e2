// SPDX-License-Identifier: GPL-2.0
/* C helpers for reception: one call per buffer, one per packet. */

#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/if_vlan.h>
#include <linux/skbuff.h>
#include <net/page_pool/helpers.h>

#include "rx.h"

static struct page_pool *pool_of(const void *va)
{
	return __netmem_get_pp(page_to_netmem(virt_to_head_page(va)));
}

/**
 * rc_helper_rx_alloc() - Get a buffer
 * @pool: page pool that maps its pages
 * @size: bytes wanted, at most those of a page of the pool
 * @buf: filled in
 *
 * Several buffers share a page where they fit; the rest of the page goes to the
 * last of them, so that the sizes add up to the page's.
 *
 * Context: NAPI poll of the pool's NAPI, or process context while that NAPI is
 * disabled.
 * Return: true on success, false without memory.
 */
bool rc_helper_rx_alloc(struct page_pool *pool, u32 size, struct rc_helper_rx_buf *buf)
{
	unsigned int offset, got = size;
	struct page *page;

	page = page_pool_dev_alloc(pool, &offset, &got);
	if (unlikely(!page))
		return false;

	buf->va = page_address(page) + offset;
	buf->dma = page_pool_get_dma_addr(page) + offset;
	buf->size = got;
	return true;
}
EXPORT_SYMBOL_GPL(rc_helper_rx_alloc);

/**
 * rc_helper_rx_free() - Give a buffer back to its pool
 * @va: first byte of the buffer
 *
 * Within the poll of the pool's NAPI the page pool takes the direct way by itself.
 *
 * Context: Any.
 */
void rc_helper_rx_free(void *va)
{
	page_pool_free_va(pool_of(va), va, false);
}
EXPORT_SYMBOL_GPL(rc_helper_rx_free);

/**
 * rc_helper_rx_receive() - Give a received packet to the stack
 * @napi: the NAPI that polls
 * @buf: buffer that holds the packet; belongs to the stack afterwards
 * @info: where it lies in the buffer, and what the device found out; headroom
 *	  and length are within the buffer
 *
 * Checksum and hash are dropped if the user has switched the feature off.
 *
 * Context: NAPI poll with a budget.
 * Return: 0, or -ENOMEM, and the buffer is back in its pool.
 */
int rc_helper_rx_receive(struct napi_struct *napi, const struct rc_helper_rx_buf *buf,
			 const struct rc_helper_rx_info *info)
{
	struct page_pool *pool = pool_of(buf->va);
	struct net_device *dev = napi->dev;
	struct sk_buff *skb;

	dma_sync_single_for_cpu(pool->p.dev, buf->dma + info->headroom, info->len,
				page_pool_get_dma_dir(pool));

	skb = napi_build_skb(buf->va, buf->size);
	if (unlikely(!skb)) {
		rc_helper_rx_free(buf->va);
		return -ENOMEM;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, info->headroom);
	skb_put(skb, info->len);

	skb->protocol = eth_type_trans(skb, dev);
	skb_record_rx_queue(skb, info->queue);
	if ((info->flags & RC_HELPER_RX_CSUM_OK) && (dev->features & NETIF_F_RXCSUM))
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	if ((info->flags & (RC_HELPER_RX_HASH_L3 | RC_HELPER_RX_HASH_L4)) &&
	    (dev->features & NETIF_F_RXHASH))
		skb_set_hash(skb, info->hash,
			     info->flags & RC_HELPER_RX_HASH_L4 ? PKT_HASH_TYPE_L4 :
								  PKT_HASH_TYPE_L3);
	if (info->flags & RC_HELPER_RX_VLAN)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), info->vlan_tci);

	napi_gro_receive(napi, skb);
	return 0;
}
EXPORT_SYMBOL_GPL(rc_helper_rx_receive);
