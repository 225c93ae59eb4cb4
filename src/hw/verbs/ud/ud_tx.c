/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/clock.h"
#include "base/log.h"
#include "hw/verbs/ud/ud.h"

#define HOPS     64
#define WAYS_MIN 16
#define LATE     (2 * UD_TELLS) /* sends under way after which to query the queue pair */
#define POLL_MS  100            /* ms between two such queries, which are slow */
#define DRAIN_US 10000          /* us that closing waits for sends */

/* ---- Paths to other workers ------------------------------------------------------------------ */

/* Returns the entry of the path, or a free one. */
static struct ud_way *ud_tx_place(struct ud_way *ways, uint32_t room, const struct addr *port)
{
	for (uint32_t at = (uint32_t)addr_hash(port);; at++) {
		struct ud_way *w = &ways[at & (room - 1)];

		if (!w->ah || !addr_compare(&w->port, port))
			return w;
	}
}

/* Makes sure that the table has a free entry. 0 or -FI_ENOMEM. */
static int ud_tx_make_space(struct ud *u)
{
	uint32_t room = u->way_capacity ? u->way_capacity * 2 : WAYS_MIN;
	struct ud_way *ways;

	if (u->way_count * 2 < u->way_capacity)
		return 0;
	ways = calloc(room, sizeof(*ways));
	if (!ways)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < u->way_capacity; i++)
		if (u->ways[i].ah)
			*ud_tx_place(ways, room, &u->ways[i].port) = u->ways[i];
	free(u->ways);
	u->ways = ways;
	u->way_capacity = room;
	return 0;
}

static struct ibv_ah *make_way(const struct ud *u, const struct addr *to)
{
	const struct verbs_path *path = &u->path;
	struct ibv_ah_attr attr = {
		.grh = {.sgid_index = (uint8_t)path->port.gid_index, .hop_limit = HOPS},
		.dlid = to->port,
		.sl = (uint8_t)(to->scope >> ADDR_IB_SL_SHIFT),
		.is_global = 1,
		.port_num = path->port.port};
	struct ibv_ah *ah;
	char text[ADDR_STR_MAX];

	memcpy(attr.grh.dgid.raw, to->ip, sizeof(attr.grh.dgid.raw));
	ah = path->dev->lib->create_ah(path->dev->pd, &attr);
	if (!ah) {
		addr_print(to, text, sizeof(text));
		LOG_WARN(LOG_EP_DATA, "no way from %s to %s: %s", path->dev->name, text,
			 fi_strerror(errno ? errno : FI_EHOSTUNREACH));
	}
	return ah;
}

/* Returns the address handle of the path to `to`; NULL: error. */
static struct ibv_ah *way_to(struct ud *u, const struct addr *to)
{
	struct addr port = *to;
	struct ud_way *w;

	port.scope &= ~ADDR_IB_QP; /* all queue pairs of one port share a path */
	if (ud_tx_make_space(u))
		return NULL;
	w = ud_tx_place(u->ways, u->way_capacity, &port);
	if (__builtin_expect(w->ah != NULL, 1))
		return w->ah;
	*w = (struct ud_way){port, make_way(u, to)};
	u->way_count += w->ah != NULL;
	return w->ah;
}

void ud_drop_ways(struct ud *u)
{
	for (uint32_t i = 0; i < u->way_capacity; i++)
		if (u->ways[i].ah)
			u->path.dev->lib->destroy_ah(u->ways[i].ah);
	free(u->ways);
}

/* ---- Sending --------------------------------------------------------------------------------- */

void ud_reap(struct ud *u)
{
	struct ibv_wc wc[UD_BATCH];
	int n = ibv_poll_cq(u->send_cq, UD_BATCH, wc);

	for (int i = 0; i < n; i++) {
		u->over = (uint32_t)wc[i].wr_id + 1;
		if (__builtin_expect(wc[i].status == IBV_WC_SUCCESS, 1))
			continue;
		u->broken = true;
		if (wc[i].status != IBV_WC_WR_FLUSH_ERR)
			LOG_WARN(LOG_EP_DATA, "a datagram does not go out: %s",
				 verbs_status_text(wc[i].status));
	}
}

static size_t ud_tx_gather(unsigned char *to, const struct iovec *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(to + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	return len;
}

/* Posts a datagram; a slot is free. 0 or a negative error. */
static int ud_tx_post(struct ud *u, const struct addr *to, const struct iovec *iov, size_t count,
		      unsigned int flags)
{
	uint16_t slot = u->sent & (UD_SENDS - 1);
	struct ibv_sge sge = verbs_slots_sge(&u->send, slot, 0);
	struct ibv_send_wr wr = {.wr_id = u->sent,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = flags},
			   *bad;
	int err;

	wr.wr.ud.ah = way_to(u, to);
	if (!wr.wr.ud.ah)
		return -FI_EHOSTUNREACH;
	wr.wr.ud.remote_qpn = to->scope & ADDR_IB_QP;
	wr.wr.ud.remote_qkey = UD_QKEY;
	sge.length = (uint32_t)ud_tx_gather(verbs_slots_at(&u->send, slot), iov, count);
	err = ibv_post_send(u->qp, &wr, &bad);
	if (err)
		return err == ENOMEM ? -FI_EAGAIN : -err;
	u->sent++;
	return 0;
}

/* Queries the queue pair: some devices accept sends on a broken one and never complete them. */
static void poll_closer(struct ud *u)
{
	uint64_t now = clock_coarse_ms();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (now - u->looked < POLL_MS)
		return;
	u->looked = now;
	u->broken |= u->path.dev->lib->query_qp(u->qp, &attr, IBV_QP_STATE, &init) ||
		     attr.qp_state != IBV_QPS_RTS;
}

/* The last send of each UD_TELLS is signaled, so when all slots are in use a completion is due. */
int ud_send(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count)
{
	struct ud *u = (struct ud *)d;

	if (!(u->sent % UD_TELLS)) {
		ud_reap(u);
		if (__builtin_expect(u->sent - u->over >= LATE, 0))
			poll_closer(u);
	}
	if (__builtin_expect(u->broken, 0) && ud_mend(u))
		return -u->dead;
	if (u->sent - u->over == UD_SENDS)
		return -FI_EAGAIN;
	return ud_tx_post(u, to, iov, count, (u->sent + 1) % UD_TELLS ? 0 : IBV_SEND_SIGNALED);
}

/* If the last send was unsignaled, sends ourselves an empty, signaled datagram behind it. */
void ud_drain(struct ud *u, const struct addr *own)
{
	uint64_t end = clock_us() + DRAIN_US;

	if (u->broken || u->sent == u->over)
		return;
	if (u->sent % UD_TELLS && ud_tx_post(u, own, NULL, 0, IBV_SEND_SIGNALED))
		return;
	for (ud_reap(u); u->sent != u->over && !u->broken && clock_us() < end; ud_reap(u))
		sched_yield();
}

/* One by one: who asks for more calls again. */
int ud_send_many(struct dgram *d, const struct dgram_out *outs, unsigned int count)
{
	int err = ud_send(d, &outs->to, outs->iov, outs->count);

	(void)count;
	return err ? err : 1;
}
