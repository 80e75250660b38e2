// SPDX-License-Identifier: GPL-2.0
/* C helpers for reception: one call per buffer, one per packet. */

#include <linux/bpf.h>
#include <linux/bpf_trace.h>
#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>
#include <linux/skbuff.h>
#include <net/page_pool/helpers.h>
#include <net/xdp.h>

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

/* Builds the packet of @len bytes at @headroom, with @meta bytes of a program's before it. */
static __always_inline int give_to_stack(struct napi_struct *napi,
					 const struct rc_helper_rx_buf *buf,
					 const struct rc_helper_rx_info *info, u32 headroom,
					 u32 len, u32 meta)
{
	struct net_device *dev = napi->dev;
	struct sk_buff *skb;

	skb = napi_build_skb(buf->va, buf->size);
	if (unlikely(!skb)) {
		rc_helper_rx_free(buf->va);
		return -ENOMEM;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, headroom);
	skb_put(skb, len);
	if (meta)
		skb_metadata_set(skb, meta);

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

	dma_sync_single_for_cpu(pool->p.dev, buf->dma + info->headroom, info->len,
				page_pool_get_dma_dir(pool));
	return give_to_stack(napi, buf, info, info->headroom, info->len, 0);
}
EXPORT_SYMBOL_GPL(rc_helper_rx_receive);

/* Whether what a program made of a packet lies in its buffer, behind what a frame needs. */
static bool is_within(const struct xdp_buff *xdp)
{
	return xdp->data_meta >= xdp->data_hard_start + sizeof(struct xdp_frame) &&
	       xdp->data >= xdp->data_meta && xdp->data_end >= xdp->data + ETH_HLEN &&
	       xdp->data_end <= xdp_data_hard_end(xdp);
}

/**
 * rc_helper_rx_run_xdp() - Run the XDP program on a received packet, and do what
 *			    it says
 * @napi: the NAPI that polls
 * @buf: buffer that holds the packet, of a pool with DMA in both directions
 * @info: where it lies in the buffer, and what the device found out; headroom
 *	  and length are within the buffer
 * @xdp_rx: what the queue runs
 * @frame: filled in for RC_HELPER_XDP_TX
 *
 * The core sets up bpf_net_context around each poll.
 *
 * Context: NAPI poll with a budget.
 * Return: RC_HELPER_XDP_*, which says what has become of the buffer.
 */
u32 rc_helper_rx_run_xdp(struct napi_struct *napi, const struct rc_helper_rx_buf *buf,
			 const struct rc_helper_rx_info *info,
			 const struct rc_helper_xdp_rx *xdp_rx,
			 struct rc_helper_xdp_frame *frame)
{
	struct bpf_prog *prog = rcu_dereference_bh(*xdp_rx->slot);
	struct page_pool *pool = pool_of(buf->va);
	struct device *dma_dev = pool->p.dev;
	u32 headroom = info->headroom;
	u32 result = RC_HELPER_XDP_DROP;
	u32 len = info->len;
	struct xdp_buff xdp;
	u32 meta = 0;
	u32 act;

	dma_sync_single_for_cpu(dma_dev, buf->dma + headroom, len, DMA_BIDIRECTIONAL);
	/* On the way to the first program, or from the last one. */
	if (unlikely(!prog))
		goto pass;

	xdp_init_buff(&xdp, buf->size, xdp_rx->rxq);
	xdp_prepare_buff(&xdp, buf->va, headroom, len, true);
	act = bpf_prog_run_xdp(prog, &xdp);
	if (unlikely(!is_within(&xdp)))
		goto exception;

	headroom = xdp.data - xdp.data_hard_start;
	len = xdp.data_end - xdp.data;
	meta = xdp.data - xdp.data_meta;

	switch (act) {
	case XDP_PASS:
		goto pass;
	case XDP_TX:
		frame->frame = xdp_convert_buff_to_frame(&xdp);
		if (unlikely(!frame->frame))
			goto exception;
		frame->piece.addr = buf->dma + headroom;
		frame->piece.len = len;
		dma_sync_single_for_device(dma_dev, frame->piece.addr, len, DMA_BIDIRECTIONAL);
		return RC_HELPER_XDP_TX;
	case XDP_REDIRECT:
		if (unlikely(xdp_do_redirect(napi->dev, &xdp, prog)))
			goto exception;
		return RC_HELPER_XDP_REDIRECT;
	case XDP_DROP:
		break;
	default:
		bpf_warn_invalid_xdp_action(napi->dev, prog, act);
		fallthrough;
	case XDP_ABORTED:
exception:
		trace_xdp_exception(napi->dev, prog, act);
		result = RC_HELPER_XDP_ABORTED;
	}
	/* The device writes here next. */
	dma_sync_single_for_device(dma_dev, buf->dma + info->headroom, xdp_rx->capacity,
				   DMA_BIDIRECTIONAL);
	return result;

pass:
	return give_to_stack(napi, buf, info, headroom, len, meta) ? RC_HELPER_XDP_NOMEM :
								     RC_HELPER_XDP_PASS;
}
EXPORT_SYMBOL_GPL(rc_helper_rx_run_xdp);

/**
 * rc_helper_xdp_tx_failed() - Trace frames that there was no room to send back
 * @dev: network device
 * @slot: where the program is published
 *
 * Context: NAPI poll.
 */
void rc_helper_xdp_tx_failed(const struct net_device *dev, struct bpf_prog __rcu **slot)
{
	struct bpf_prog *prog = rcu_dereference_bh(*slot);

	if (prog)
		trace_xdp_exception(dev, prog, XDP_TX);
}
EXPORT_SYMBOL_GPL(rc_helper_xdp_tx_failed);

/**
 * rc_helper_xdp_rxq_register() - Make a page pool known to XDP as that of a queue
 * @rxq: zeroed memory
 * @dev: network device
 * @queue: RX queue
 * @pool: its page pool
 *
 * Context: Process.
 * Return: 0, or a negative error, and nothing is registered.
 */
int rc_helper_xdp_rxq_register(struct xdp_rxq_info *rxq, struct net_device *dev, u32 queue,
			       struct page_pool *pool)
{
	int err;

	err = xdp_rxq_info_reg(rxq, dev, queue, 0);
	if (err)
		return err;
	err = xdp_rxq_info_reg_mem_model(rxq, MEM_TYPE_PAGE_POOL, pool);
	if (err)
		xdp_rxq_info_unreg(rxq);
	return err;
}
EXPORT_SYMBOL_GPL(rc_helper_xdp_rxq_register);
