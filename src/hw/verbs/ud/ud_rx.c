/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives datagrams: copies them from their slots to the posted receives. */
#include <string.h>

#define LOG_PROV "verbs"
#include "base/iov.h"
#include "base/log.h"
#include "hw/verbs/ud/ud.h"
#include "link/opener.h"

#define IP4_LEN    20 /* bytes of an IPv4 header without options */
#define IP4_AT     (UD_GRH - IP4_LEN)
#define REAP_CALLS 64u   /* progress calls between two calls of ud_reap */
#define POLL_CALLS 1024u /* progress calls between two polls for events of the device */

int ud_post(struct ud *u, uint32_t slot)
{
	struct ibv_sge sge = verbs_slots_sge(&u->recv, (uint16_t)slot, (uint32_t)u->recv.size);
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(u->qp, &wr, &bad);
}

/* Is this an IPv4 header, by its checksum? */
static bool is_ip4(const uint8_t *h)
{
	uint32_t sum = 0;

	for (int i = 0; i < IP4_LEN; i += 2)
		sum += (uint32_t)h[i] << 8 | h[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/*
 * Reads the sender's GID from the routing header. The header is one of InfiniBand, laid out like IPv6, or its last 20
 * bytes are an IPv4 header behind arbitrary bytes. Not every device fills in the IPv4 checksum.
 */
static bool ud_rx_read_gid(const uint8_t *grh, uint8_t gid[16])
{
	bool six = grh[0] >> 4 == 6, four = grh[IP4_AT] == 0x45;

	if (four && (!six || is_ip4(grh + IP4_AT))) {
		memset(gid, 0, 10);
		memset(gid + 10, 0xff, 2);
		memcpy(gid + 12, grh + IP4_AT + 12, 4);
		return true;
	}
	if (six)
		memcpy(gid, grh + 8, 16);
	return six;
}

/* Reads the sender's address. False: unknown. */
static bool read_source(const struct ud *u, const struct ibv_wc *wc, const uint8_t *grh,
			struct addr *from)
{
	bool infiniband = u->path.port.infiniband;

	*from = (struct addr){.kind = ADDR_IB,
			      .port = infiniband ? wc->slid : 0,
			      .scope = wc->src_qp & ADDR_IB_QP};
	if (infiniband)
		from->scope |= (uint32_t)wc->sl << ADDR_IB_SL_SHIFT;
	return wc->wc_flags & IBV_WC_GRH && ud_rx_read_gid(grh, from->ip);
}

static void ud_rx_deliver(struct ud *u, const struct ibv_wc *wc)
{
	const uint8_t *slot = verbs_slots_at(&u->recv, (uint16_t)wc->wr_id);
	size_t len = wc->byte_len - UD_GRH;
	struct recv *r;
	struct addr from;
	bool known;

	u->dgram.events->receives(&u->dgram, &r, 1);
	known = u->dgram.events->wants_source(&u->dgram) && read_source(u, wc, slot, &from);
	iov_scatter(r->iov, r->iov_count, 0, slot + UD_GRH, len);
	u->dgram.events->came(&u->dgram, r, len, known ? &from : NULL);
}

/* Handles a completion. After an error the slot is not reposted: the queue pair must be reset. */
static void ud_rx_take(struct ud *u, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		u->broken = true;
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			LOG_PEER(LOG_EP_DATA, "a datagram does not come in: %s",
				 verbs_status_text(wc->status));
		return;
	}
	if (wc->byte_len >= UD_GRH)
		ud_rx_deliver(u, wc);
	if (!u->broken && ud_post(u, (uint32_t)wc->wr_id)) {
		u->broken = true;
		LOG_PEER(LOG_EP_DATA, "%s does not take a slot back: the queue pair is reset",
			 u->path.dev->name);
	}
}

static bool ud_rx_fetch(struct ud *u)
{
	int n;

	if (u->at < u->got)
		return true;
	n = ibv_poll_cq(u->recv_cq, UD_BATCH, u->wc);
	u->at = 0;
	u->got = n > 0 ? (uint32_t)n : 0;
	return n > 0;
}

bool ud_progress(void *state)
{
	struct ud *u = state;
	bool progressed = u->dgram.batch_count && u->dgram.events->flush(&u->dgram);

	if (!(++u->progress_calls % REAP_CALLS) && u->sent != u->over)
		ud_reap(u);
	if (!(u->progress_calls % POLL_CALLS))
		ud_poll_device(u);
	if (__builtin_expect(u->broken, 0) && ud_mend(u)) {
		if (u->dgram.events->wanted(&u->dgram)) /* all posted receives fail */
			u->dgram.events->fail(&u->dgram, u->dead);
		return progressed;
	}
	for (unsigned int i = 0;
	     i < UD_BATCH && u->dgram.events->wanted(&u->dgram) && ud_rx_fetch(u); i++) {
		const struct ibv_wc *wc = &u->wc[u->at++];

		progressed = true;
		ud_rx_take(u, wc);
	}
	return progressed;
}

/* With a batch no sleep: no event announces that sends have completed, within microseconds. */
bool ud_arm(void *state)
{
	struct ud *u = state;

	if (u->dgram.batch_count)
		return false;
	ud_poll_device(u);
	if (u->broken && (!u->dead || u->dgram.events->wanted(&u->dgram)))
		return false;
	verbs_channel_read(u->path.dev, u->channel, u->recv_cq);
	if (!u->dgram.events->wanted(&u->dgram))
		return true;
	return !ud_rx_fetch(u) && !ibv_req_notify_cq(u->recv_cq, 0) && !ud_rx_fetch(u);
}
