/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Agreeing on a rail. The initiator proposes an end at one of its devices; the target looks for a
 * device in the same network. Once a rail has worked it is made again between the same two devices.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/clock.h"
#include "base/log.h"
#include "hw/verbs/rails/verbs_rails.h"
#include "info/rails_setting.h"

#define PAUSE          30ull /* times FI_WEFT_RAIL_TIMEOUT: when no device has become a rail */
#define GID_BITS       128u
#define GID_INFINIBAND 64u /* bits of a GID that name the subnet */

int verbs_rails_say(struct verbs_rails *r, enum verbs_rail_what what, unsigned int rail,
		    uint32_t serial)
{
	return verbs_rails_post(
		r, &(struct verbs_rail_message){.what = what, .rail = rail, .serial = serial});
}

void verbs_rails_next(struct verbs_rails *r, unsigned int rail)
{
	unsigned int count = r->own->multi->count;

	if (r->rail[rail].device) /* it was a rail, and may become one again */
		return;
	r->candidate = (r->candidate + 1) % count;
	r->propose_due = 0;
	if (++r->refusals % count)
		return;
	r->propose_due = clock_coarse_ms() + PAUSE * rails_time_limit();
	LOG_INFO(LOG_EP_CTRL,
		 "peer %#x is reached by one device: no other one of ours reaches one of its",
		 r->id);
}

void verbs_rails_propose(struct verbs_rails *r)
{
	struct verbs_rail_message m = {.what = VERBS_RAIL_PROPOSED};
	struct verbs_multi *multi = r->own->multi;
	void *pending;
	struct verbs *v;

	while (m.rail < VERBS_RAILS && (r->rail[m.rail].link || r->rail[m.rail].closing))
		m.rail++;
	if (m.rail == VERBS_RAILS)
		return;
	v = r->rail[m.rail].device ? r->rail[m.rail].device : &multi->further[r->candidate];
	if (verbs_prepare(v, NULL, &m.nic, &pending)) {
		verbs_rails_next(r, m.rail);
		return;
	}
	if (m.rail)
		m.prefix = v->path.port.infiniband ? GID_INFINIBAND
						   : multi->prefix[v - multi->further];
	m.serial = ++r->serial;
	if (verbs_rails_post(r, &m)) {
		verbs_link_free(pending);
		return;
	}
	r->pending = pending;
	r->pending_rail = m.rail;
}

/* Are the two in one network? Containers' bridges have the same address on many hosts. */
static bool verbs_rails_join_same_network(const struct verbs *v, const struct verbs_rail_message *m)
{
	const uint8_t *ours = v->path.port.gid, *theirs = m->nic.gid;
	unsigned int bytes = m->prefix / 8, rest = m->prefix % 8;

	if (m->prefix > GID_BITS || m->nic.infiniband != v->path.port.infiniband ||
	    !memcmp(ours, theirs, sizeof(m->nic.gid)) || memcmp(ours, theirs, bytes) != 0)
		return false;
	return !rest || (ours[bytes] ^ theirs[bytes]) >> (8 - rest) == 0;
}

/* Returns the device for the other end of a proposed rail; NULL: none. */
static struct verbs *verbs_rails_join_partner(struct verbs_rails *r,
					      const struct verbs_rail_message *m)
{
	struct verbs *before = r->rail[m->rail].device;
	struct verbs_multi *multi = r->own->multi;

	if (before)
		return !m->rail || verbs_rails_join_same_network(before, m) ? before : NULL;
	for (unsigned int i = 0; i < multi->count; i++)
		if (!verbs_up(&multi->further[i]) &&
		    verbs_rails_join_same_network(&multi->further[i], m))
			return &multi->further[i];
	return NULL;
}

/* The link `l` becomes the rail: its queue pairs are connected. 0 or a negative error. */
static int verbs_rails_join_rail(struct verbs_rails *r, const struct verbs_rail_message *m,
				 struct verbs_link *l)
{
	int err;

	verbs_rails_add(r, m->rail, l, m->serial);
	err = verbs_link_join(l, &m->nic, r->id);
	if (err)
		verbs_rails_drop(r, m->rail);
	verbs_rails_update(r);
	return err;
}

/* Makes our end of a proposed rail, and tells it by `answer`. 0 or a negative error. */
static int accept_rail(struct verbs_rails *r, const struct verbs_rail_message *m,
		       struct verbs_rail_message *answer)
{
	struct verbs *v = r->rail[m->rail].link ? NULL : verbs_rails_join_partner(r, m);
	void *pending;
	int err = v ? verbs_prepare(v, &m->nic, &answer->nic, &pending) : -FI_EHOSTUNREACH;

	if (err)
		return err;
	err = verbs_rails_join_rail(r, m, pending);
	if (err)
		verbs_link_free(pending);
	return err;
}

static int verbs_rails_join_proposed(struct verbs_rails *r, const struct verbs_rail_message *m)
{
	struct verbs_rail_message answer = {
		.what = VERBS_RAIL_ACCEPTED, .rail = m->rail, .serial = m->serial};

	if (accept_rail(r, m, &answer))
		answer.what = VERBS_RAIL_REFUSED;
	return verbs_rails_post(r, &answer);
}

static int verbs_rails_join_accepted(struct verbs_rails *r, const struct verbs_rail_message *m)
{
	struct verbs_link *l = r->pending;

	r->pending = NULL;
	if (!verbs_rails_join_rail(r, m, l))
		return 0;
	verbs_link_free(l);
	r->rail[m->rail].closing = true;
	return verbs_rails_say(r, VERBS_RAIL_BROKEN, m->rail, m->serial);
}

/* 0 or a negative error; -FI_ENOTCONN: the link has ended. */
static int verbs_rails_join_broken(struct verbs_rails *r, const struct verbs_rail_message *m)
{
	struct verbs_rail *rail = &r->rail[m->rail];

	if (rail->link && rail->serial == m->serial) {
		if (verbs_rails_detach(r, m->rail, FI_ECONNRESET))
			return -FI_ENOTCONN;
		verbs_rails_closed(r, m->rail);
	}
	return verbs_rails_say(r, VERBS_RAIL_CLOSED, m->rail, m->serial);
}

static void verbs_rails_join_closed(struct verbs_rails *r, const struct verbs_rail_message *m)
{
	struct verbs_rail *rail = &r->rail[m->rail];

	if (!rail->closing || rail->serial != m->serial)
		return;
	rail->closing = false;
	verbs_rails_closed(r, m->rail);
}

static int verbs_rails_join_handle(struct verbs_rails *r, const struct verbs_rail_message *m)
{
	bool answers = r->pending && m->rail == r->pending_rail && m->serial == r->serial;

	switch (m->what) {
	case VERBS_RAIL_PROPOSED:
		return r->initiator ? -FI_EPROTO : verbs_rails_join_proposed(r, m);
	case VERBS_RAIL_ACCEPTED:
		return answers ? verbs_rails_join_accepted(r, m) : -FI_EPROTO;
	case VERBS_RAIL_REFUSED:
		if (!answers)
			return -FI_EPROTO;
		verbs_link_free(r->pending);
		r->pending = NULL;
		verbs_rails_next(r, m->rail);
		return 0;
	case VERBS_RAIL_BROKEN:
		return verbs_rails_join_broken(r, m);
	case VERBS_RAIL_CLOSED:
		verbs_rails_join_closed(r, m);
		return 0;
	case VERBS_RAIL_KEY_ASKED:
		return verbs_rails_key_asked(r, m);
	case VERBS_RAIL_KEY:
		return verbs_rails_key_answered(r, m);
	default:
		return -FI_EPROTO;
	}
}

void verbs_rails_hear(struct verbs_rails *r, const struct packet *p)
{
	struct opener *opener = r->own->opener;
	struct verbs_rail_message m = {.what = 0};
	uint32_t id = r->id;
	int err = -FI_EPROTO;

	if (p->len == sizeof(m)) {
		memcpy(&m, p->payload, sizeof(m));
		err = m.rail < VERBS_RAILS ? verbs_rails_join_handle(r, &m) : -FI_EPROTO;
	}
	if (!err || err == -FI_ENOTCONN)
		return;
	if (err == -FI_EPROTO)
		LOG_PEER(
			LOG_EP_DATA,
			"peer %#x sent a message of %zu bytes about rails with an invalid content: "
			"kind %u, rail %u, serial %u",
			id, p->len, m.what, m.rail, m.serial);
	opener->events->ended(opener, id, -err);
}
