// SPDX-License-Identifier: GPL-2.0
/*
 * XDP programs of the tests. What they act on are UDP datagrams over IPv4 to
 * port PORT, or frames of EtherType SHIM; everything else passes.
 *
 * The "seen" map counts packets by what was done to them.
 */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#define PORT 7777
/* Stands before the EtherType proper, with six more bytes in between. */
#define SHIM 0x88b5
#define SHIM_LEN 8
/* What the tests have a program add to or take from a packet. */
#define CHANGE 40
#define MARK 0x600df00d

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

static void *(*const map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*const redirect_map)(void *map, __u64 key, __u64 flags) =
	(void *)BPF_FUNC_redirect_map;
static long (*const adjust_head)(struct xdp_md *xdp, int delta) = (void *)BPF_FUNC_xdp_adjust_head;
static long (*const adjust_tail)(struct xdp_md *xdp, int delta) = (void *)BPF_FUNC_xdp_adjust_tail;
static long (*const adjust_meta)(struct xdp_md *xdp, int delta) = (void *)BPF_FUNC_xdp_adjust_meta;

enum { ACTED, PASSED, MARKED, REFUSED, SEEN };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

static inline __attribute__((always_inline)) void count(__u32 what)
{
	__u64 *n = map_lookup(&seen, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static inline __attribute__((always_inline)) int pass(void)
{
	count(PASSED);
	return XDP_PASS;
}

static inline __attribute__((always_inline)) __u16 swap16(__u16 value)
{
	return __builtin_bswap16(value);
}

/* Whether it is one of the datagrams that the programs act on. */
static inline __attribute__((always_inline)) int is_ours(struct xdp_md *xdp)
{
	void *end = (void *)(long)xdp->data_end;
	struct ethhdr *eth = (void *)(long)xdp->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);

	if ((void *)(udp + 1) > end)
		return 0;
	return eth->h_proto == swap16(ETH_P_IP) && ip->ihl == 5 && ip->protocol == IPPROTO_UDP &&
	       udp->dest == swap16(PORT);
}

/* Exchanges the Ethernet addresses. */
static inline __attribute__((always_inline)) int turn(struct xdp_md *xdp)
{
	__u16 *eth = (void *)(long)xdp->data;
	__u16 word;
	int i;

	if ((void *)(eth + 6) > (void *)(long)xdp->data_end)
		return -1;
#pragma unroll
	for (i = 0; i < 3; i++) {
		word = eth[i];
		eth[i] = eth[i + 3];
		eth[i + 3] = word;
	}
	return 0;
}

static inline __attribute__((always_inline)) int send_back(struct xdp_md *xdp)
{
	if (turn(xdp))
		return XDP_ABORTED;
	count(ACTED);
	return XDP_TX;
}

SEC("xdp") int xdp_pass(struct xdp_md *xdp)
{
	return pass();
}

SEC("xdp") int xdp_pass_too(struct xdp_md *xdp)
{
	count(MARKED);
	return XDP_PASS;
}

SEC("xdp") int xdp_drop(struct xdp_md *xdp)
{
	if (!is_ours(xdp))
		return pass();
	count(ACTED);
	return XDP_DROP;
}

SEC("xdp") int xdp_abort(struct xdp_md *xdp)
{
	if (!is_ours(xdp))
		return pass();
	count(ACTED);
	return XDP_ABORTED;
}

SEC("xdp") int xdp_reflect(struct xdp_md *xdp)
{
	return is_ours(xdp) ? send_back(xdp) : pass();
}

/* Sends back all but the first CHANGE bytes behind the Ethernet header. */
SEC("xdp") int xdp_shrink_head(struct xdp_md *xdp)
{
	struct ethhdr copy, *eth;

	if (!is_ours(xdp))
		return pass();
	eth = (void *)(long)xdp->data;
	if ((void *)(eth + 1) > (void *)(long)xdp->data_end)
		return XDP_ABORTED;
	copy = *eth;
	if (adjust_head(xdp, CHANGE)) {
		count(REFUSED);
		return XDP_DROP;
	}
	eth = (void *)(long)xdp->data;
	if ((void *)(eth + 1) > (void *)(long)xdp->data_end)
		return XDP_ABORTED;
	*eth = copy;
	return send_back(xdp);
}

/* Sends it back with CHANGE bytes behind the Ethernet header. */
SEC("xdp") int xdp_grow_head(struct xdp_md *xdp)
{
	struct ethhdr copy, *eth;
	__u8 *fill;
	int i;

	if (!is_ours(xdp))
		return pass();
	eth = (void *)(long)xdp->data;
	if ((void *)(eth + 1) > (void *)(long)xdp->data_end)
		return XDP_ABORTED;
	copy = *eth;
	if (adjust_head(xdp, -CHANGE)) {
		count(REFUSED);
		return XDP_DROP;
	}
	eth = (void *)(long)xdp->data;
	fill = (void *)(eth + 1);
	if ((void *)(fill + CHANGE) > (void *)(long)xdp->data_end)
		return XDP_ABORTED;
	*eth = copy;
#pragma unroll
	for (i = 0; i < CHANGE; i++)
		fill[i] = i;
	return send_back(xdp);
}

/* Sends it back with CHANGE bytes less at its end. */
SEC("xdp") int xdp_shrink_tail(struct xdp_md *xdp)
{
	if (!is_ours(xdp))
		return pass();
	if (adjust_tail(xdp, -CHANGE)) {
		count(REFUSED);
		return XDP_DROP;
	}
	return send_back(xdp);
}

/* Sends it back with CHANGE more bytes at its end, all zero. */
SEC("xdp") int xdp_grow_tail(struct xdp_md *xdp)
{
	if (!is_ours(xdp))
		return pass();
	if (adjust_tail(xdp, CHANGE)) {
		count(REFUSED);
		return XDP_DROP;
	}
	return send_back(xdp);
}

/* Takes the shim out of a frame, and marks the packet that it passes. */
SEC("xdp") int xdp_unwrap(struct xdp_md *xdp)
{
	struct ethhdr *eth = (void *)(long)xdp->data;
	__u32 *mark;
	__u16 *words;
	int i;

	if ((void *)eth + sizeof(*eth) + SHIM_LEN > (void *)(long)xdp->data_end ||
	    eth->h_proto != swap16(SHIM))
		return pass();
	words = (void *)eth;
	/* The addresses move to what is left; the last of the words is there already. */
#pragma unroll
	for (i = 5; i >= 0; i--)
		words[i + SHIM_LEN / 2] = words[i];
	if (adjust_head(xdp, SHIM_LEN) || adjust_meta(xdp, -(int)sizeof(*mark))) {
		count(REFUSED);
		return XDP_DROP;
	}
	mark = (void *)(long)xdp->data_meta;
	if ((void *)(mark + 1) > (void *)(long)xdp->data)
		return XDP_ABORTED;
	*mark = MARK;
	count(ACTED);
	return XDP_PASS;
}

/* Counts the packets that came up with a mark. */
SEC("tc") int read_mark(struct __sk_buff *skb)
{
	__u32 *mark = (void *)(long)skb->data_meta;

	if ((void *)(mark + 1) <= (void *)(long)skb->data && *mark == MARK)
		count(MARKED);
	return TC_ACT_OK;
}

SEC("xdp") int xdp_to_port(struct xdp_md *xdp)
{
	if (!is_ours(xdp))
		return pass();
	count(ACTED);
	return redirect_map(&ports, 0, XDP_ABORTED);
}

/* Another CPU takes all packets up, in turn. */
SEC("xdp") int xdp_to_cpu(struct xdp_md *xdp)
{
	count(ACTED);
	return redirect_map(&cpus, 0, XDP_ABORTED);
}

SEC("xdp") int xdp_to_socket(struct xdp_md *xdp)
{
	if (!is_ours(xdp))
		return pass();
	count(ACTED);
	return redirect_map(&sockets, xdp->rx_queue_index, XDP_ABORTED);
}

char gpl[] SEC("license") = "GPL";
