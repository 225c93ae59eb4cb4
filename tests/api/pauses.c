/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More messages that no receive waits for than the receiver keeps (FI_WEFT_UNEXPECTED_MAX): the sender is asked to
 * pause, and yet each message that it has sent takes part in matching, in its order. A receive for the last one, posted
 * first, gets it.
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/atomic.h"
#include "lib/forms.h"
#include "lib/tagged.h"

#define LAST    UINT64_C(1000000) /* tag of the message that is received first */
#define KEPT    65536             /* FI_WEFT_UNEXPECTED_MAX of these cases */
#define LONGEST 300000
#define MANY    400 /* messages of 40000 bytes: more than the kernels hold */

static unsigned char room[LONGEST];

/* The messages before the last one. */
struct crowd {
	size_t len; /* of each */
	unsigned int count;
	enum form form;
	bool tagged;
	struct data *d;
};

static struct form_args one_of(const struct side *s, const struct crowd *c, unsigned int i)
{
	return (struct form_args){.form = c->form,
				  .tagged = c->tagged,
				  .tag = i,
				  .d = &c->d[i],
				  .peer = s->addr[!s->a->rank],
				  .context = &c->d[i]};
}

/* Sends all of a crowd; how many reports there will be is returned. */
static unsigned int send_crowd(struct side *s, struct crowd *c)
{
	c->d = calloc(c->count, sizeof(*c->d));
	for (unsigned int i = 0; i < c->count; i++) {
		struct form_args f;

		c->d[i] = data_full(c->len, 1, i);
		f = one_of(s, c, i);
		POST(s, form_send(s, &f));
	}
	return form_injects(c->form) ? 0 : c->count;
}

static void end_crowd(struct side *s, struct crowd *c, unsigned int reports)
{
	while (reports--)
		TAKE(s, s->tx);
	for (unsigned int i = 0; i < c->count; i++)
		data_free(&c->d[i]);
	free(c->d);
}

static void receive_crowd(struct side *s, const struct crowd *c)
{
	for (unsigned int i = 0; i < c->count; i++) {
		uint64_t ignore = i % 2 ? UINT64_MAX : 0;
		struct fi_cq_tagged_entry e;

		if (c->tagged)
			POST(s,
			     fi_trecv(s->ep, room, c->len, NULL, FI_ADDR_UNSPEC, i, ignore, room));
		else
			POST(s, fi_recv(s->ep, room, c->len, NULL, FI_ADDR_UNSPEC, room));
		e = GOT(s, room, c->tagged ? FI_TAGGED : FI_MSG, c->len);
		CHECK(!c->tagged || e.tag == i);
		data_check(room, c->len, i);
	}
}

/* The message that the receiver wants first is of the other kind if the crowd is untagged. */
static void send_last(struct side *s, bool inject)
{
	static const uint64_t word = 77;

	if (inject) {
		POST(s, fi_tinject(s->ep, &word, sizeof(word), s->addr[0], LAST));
		return;
	}
	POST(s, fi_tsend(s->ep, &word, sizeof(word), NULL, s->addr[0], LAST, NULL));
}

static void receive_last(struct side *s)
{
	uint64_t word = 0;

	POST(s, fi_trecv(s->ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, LAST, 0, &word));
	GOT(s, &word, FI_TAGGED, sizeof(word));
	CHECK_EQ(word, 77);
}

static void last_first(struct api *a, struct crowd c, bool inject)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (a->rank) {
		unsigned int reports = send_crowd(&s, &c);

		send_last(&s, inject);
		end_crowd(&s, &c, reports + !inject);
	} else {
		receive_last(&s);
		receive_crowd(&s, &c);
		QUIET(&s, s.rx, 2);
	}
	side_close(&s);
}

/* Lengths around what goes whole while the peer pauses, and around what is long for the transports. */
static const size_t lengths[] = {0, 8, 4096, 4097, 20000, 262144, LONGEST};

static void each_length(struct api *a, enum form form, bool tagged)
{
	for (size_t i = 0; i < API_COUNT(lengths); i++) {
		unsigned int count = (unsigned int)(4 * KEPT / (lengths[i] + 256)) + 20;

		if (!form_injects(form) || lengths[i] <= 4096)
			last_first(a, (struct crowd){lengths[i], count, form, tagged, NULL}, i % 2);
	}
}

static void tagged(struct api *a)
{
	each_length(a, FORM_PLAIN, true);
}

static void untagged(struct api *a)
{
	each_length(a, FORM_PLAIN, false);
}

static void injected(struct api *a)
{
	each_length(a, FORM_INJECT, true);
}

/* As many as the default of FI_WEFT_UNEXPECTED_MAX does not hold. */
static void by_default(struct api *a)
{
	last_first(a, (struct crowd){250000, 400, FORM_PLAIN, true, NULL}, false);
}

/* Sends complete, though nothing of theirs is received: short ones have left. */
static void short_ones_end(struct api *a)
{
	struct crowd c = {.len = 1000, .count = 500, .tagged = true};
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (a->rank)
		end_crowd(&s, &c, send_crowd(&s, &c));
	api_meet(a);
	if (!a->rank)
		receive_crowd(&s, &c);
	side_close(&s);
}

/* What is not received is bounded by the sender's tx_attr->size, though each message is short. */
static void bounded(struct api *a)
{
	unsigned int sent = 0, misses = 0, all[2];
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	while (a->rank && misses < 100000) {
		ssize_t ret = fi_tinject(s.ep, room, 1000, s.addr[0], sent);

		CHECK(!ret || ret == -FI_EAGAIN);
		side_progress(&s);
		sent += !ret;
		misses = ret ? misses + 1 : 0;
	}
	api_swap(a, &sent, all, sizeof(sent));
	CHECK(all[1] >= s.info->tx_attr->size);
	for (unsigned int i = 0; !a->rank && i < all[1]; i++) {
		POST(&s, fi_trecv(s.ep, room, 1000, NULL, FI_ADDR_UNSPEC, i, 0, room));
		GOT(&s, room, FI_TAGGED, 1000);
	}
	side_close(&s);
}

/* A fence does not wait for messages that were reported, only for what was not. */
static void fenced(struct api *a)
{
	struct crowd c = {.len = 2000, .count = 200, .tagged = true};
	struct side s;

	side_open(&s, a, &(struct side_opts){.caps = FI_TAGGED | FI_MSG | FI_FENCE});
	if (a->rank) {
		unsigned int reports = send_crowd(&s, &c);
		uint64_t word = 77;
		struct iovec iov = {&word, sizeof(word)};
		struct fi_msg_tagged m = {
			.msg_iov = &iov, .iov_count = 1, .addr = s.addr[0], .tag = LAST};

		POST(&s, fi_tsendmsg(s.ep, &m, FI_FENCE | FI_COMPLETION));
		end_crowd(&s, &c, reports + 1);
	} else {
		receive_last(&s);
		receive_crowd(&s, &c);
	}
	side_close(&s);
}

/* Finds the last message by peeking, claims it, and receives it before the others. */
static void claimed(struct api *a)
{
	struct crowd c = {.len = 40000, .count = MANY, .tagged = true};
	struct fi_context2 context = {0};
	struct iovec iov = {room, sizeof(room)};
	struct fi_msg_tagged m = {.msg_iov = &iov,
				  .iov_count = 1,
				  .addr = FI_ADDR_UNSPEC,
				  .tag = MANY - 1,
				  .context = &context};
	struct fi_cq_tagged_entry e;
	struct side s;
	ssize_t ret;

	side_open(&s, a, &(struct side_opts){0});
	if (a->rank)
		end_crowd(&s, &c, send_crowd(&s, &c));
	for (ret = -FI_EAVAIL; !a->rank && ret == -FI_EAVAIL;) {
		struct fi_cq_err_entry err = {0};

		POST(&s, fi_trecvmsg(s.ep, &m, FI_PEEK | FI_CLAIM));
		while ((ret = fi_cq_read(s.rx, &e, 1)) == -FI_EAGAIN)
			side_progress(&s);
		if (ret == -FI_EAVAIL)
			CHECK_EQ(fi_cq_readerr(s.rx, &err, 0), 1);
	}
	if (!a->rank) {
		CHECK_EQ(ret, 1);
		POST(&s, fi_trecvmsg(s.ep, &m, FI_CLAIM));
		GOT(&s, &context, FI_TAGGED, c.len);
		data_check(room, c.len, MANY - 1);
		c.count--;
		receive_crowd(&s, &c);
	}
	side_close(&s);
}

/* An untagged crowd goes into one multi-receive buffer, after a tagged message was received. */
static void multi_recv(struct api *a)
{
	struct crowd c = {.len = 40000, .count = MANY};
	static unsigned char all[MANY * 40000];
	struct iovec iov = {all, sizeof(all)};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = all};
	struct side s;

	side_open(&s, a,
		  &(struct side_opts){.caps = FI_TAGGED | FI_MSG | FI_MULTI_RECV,
				      .min_multi_recv = 1});
	if (a->rank) {
		unsigned int reports = send_crowd(&s, &c);

		send_last(&s, false);
		end_crowd(&s, &c, reports + 1);
	} else {
		receive_last(&s);
		POST(&s, fi_recvmsg(s.ep, &m, FI_MULTI_RECV | FI_COMPLETION));
		for (unsigned int i = 0; i < c.count; i++) {
			struct fi_cq_tagged_entry e = TAKE(&s, s.rx);

			CHECK_EQ(e.len, c.len);
			data_check(e.buf, c.len, i);
		}
	}
	side_close(&s);
}

/* An atomic on a tagged receive, behind a crowd of such atomics and of messages. */
static void atomic(struct api *a)
{
	struct crowd c = {.len = 40000, .count = MANY, .tagged = true};
	static struct amo ones[600];
	static uint64_t value = 5;
	unsigned int reports = 0;
	struct amo_side m;

	tagged_open(&m, a);
	tagged_ready(a, 3);
	api_meet(a);
	if (a->rank)
		reports = send_crowd(&m.s, &c);
	for (size_t i = 0; a->rank && i < API_COUNT(ones); i++) {
		ones[i] = (struct amo){.type = FI_UINT64, .op = FI_SUM};
		tagged_aim(&ones[i], &m, i + 1 < API_COUNT(ones) ? 5000 : LAST, 0, 1);
		ones[i].buf->addr = &value;
		POST(&m.s, amo_post(m.s.ep, &ones[i]));
	}
	for (size_t i = 0; !a->rank && i < API_COUNT(ones); i++) {
		uint64_t tag = i ? 5000 : LAST;

		tagged_receive(&m, 8, tag, 0, &m);
		tagged_ended(&m, &m, tag, 8);
	}
	if (a->rank)
		end_crowd(&m.s, &c, reports + API_COUNT(ones));
	else
		receive_crowd(&m.s, &c);
	amo_close(&m);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"tagged", tagged, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"tagged-no-cma",
		 tagged,
		 2,
		 {"FI_WEFT_UNEXPECTED_MAX=65536", "FI_SHM_DISABLE_CMA=yes"}},
		{"untagged", untagged, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"injected", injected, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"by-default", by_default, 2, {0}},
		{"short-ones-end", short_ones_end, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"bounded", bounded, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"fenced", fenced, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"claimed", claimed, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"multi-recv", multi_recv, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"atomic", atomic, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
