/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes with one endpoint each and buffers for tagged messages of up to 1 MiB. The tag of a
 * message is the index of its buffer. Each process has one queue for sends and one for receives.
 * Needs obj.h.
 */
#ifndef API_ENDS_H
#define API_ENDS_H

#define ENDS_MOST ((1u << 20) + 3)
#define ENDS      12 /* messages in flight */

struct ends {
	struct obj o; /* o.cq takes sends */
	struct fid_cq *rx;
	fi_addr_t to;
	struct api *a;
};

static unsigned char *ends_out[ENDS], *ends_in[ENDS];

static inline void ends_progress(void *arg)
{
	struct ends *e = arg;

	fi_cq_read(e->o.cq, NULL, 0);
	fi_cq_read(e->rx, NULL, 0);
}

/* Connects both sides, so that later sends are not queued for the connection setup. */
static inline void ends_greet(struct ends *e)
{
	uint64_t word = 1, got;

	if (e->a->rank) {
		OK(fi_trecv(e->o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, 99, 0, &got));
		obj_done(e->rx, &got);
	} else {
		POST(e->o.cq, fi_tinject(e->o.ep, &word, sizeof(word), e->to, 99));
	}
	api_meet(e->a);
}

static inline void ends_open(struct ends *e, struct api *a)
{
	*e = (struct ends){.a = a};
	obj_time_limit(40);
	obj_domain(&e->o);
	e->o.av = obj_av(&e->o, FI_AV_UNSPEC, 0);
	e->o.cq = obj_cq(&e->o, FI_WAIT_FD);
	e->rx = obj_cq(&e->o, FI_WAIT_UNSPEC);
	e->o.ep = obj_ep(&e->o);
	OK(fi_ep_bind(e->o.ep, &e->o.av->fid, 0));
	OK(fi_ep_bind(e->o.ep, &e->o.cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(e->o.ep, &e->rx->fid, FI_RECV));
	OK(fi_enable(e->o.ep));
	e->to = obj_swap(a, e->o.ep, e->o.av);
	a->progress = ends_progress;
	a->progress_arg = e;
	for (int i = 0; i < ENDS; i++) {
		ends_out[i] = malloc(ENDS_MOST);
		ends_in[i] = malloc(ENDS_MOST);
		CHECK(ends_out[i] && ends_in[i]);
	}
	ends_greet(e);
}

static inline void ends_close(struct ends *e)
{
	api_meet(e->a);
	e->a->progress = NULL;
	CLOSE(e->o.ep);
	e->o.ep = NULL;
	CLOSE(e->rx);
	obj_close(&e->o);
	for (int i = 0; i < ENDS; i++) {
		free(ends_out[i]);
		free(ends_in[i]);
	}
}

/* Splits `buf` into `count` segments of uneven lengths, the second one empty. */
static inline size_t ends_cut(struct iovec *iov, void *buf, size_t len, size_t count)
{
	unsigned char *at = buf;

	for (size_t i = 0; i < count; i++) {
		size_t some = i + 1 == count ? len : i == 1 ? 0 : len / (count - i) + i;

		if (some > len)
			some = len;
		iov[i] = (struct iovec){at, some};
		at += some;
		len -= some;
	}
	return count;
}

static inline void ends_post(struct ends *e, int i, size_t room, size_t segments)
{
	struct iovec iov[4];
	struct fi_msg_tagged m = {.msg_iov = iov,
				  .iov_count = ends_cut(iov, ends_in[i], room, segments),
				  .addr = FI_ADDR_UNSPEC,
				  .tag = (uint64_t)i,
				  .context = ends_in[i]};

	POST(e->rx, fi_trecvmsg(e->o.ep, &m, FI_COMPLETION));
}

static inline void ends_send(struct ends *e, int i, size_t len, size_t segments)
{
	struct iovec iov[4];
	struct fi_msg_tagged m = {.msg_iov = iov,
				  .iov_count = ends_cut(iov, ends_out[i], len, segments),
				  .addr = e->to,
				  .tag = (uint64_t)i,
				  .context = ends_out[i]};
	ssize_t ret;

	OBJ_UNTIL((ret = fi_tsendmsg(e->o.ep, &m, FI_COMPLETION)) != -FI_EAGAIN, ends_progress(e));
	CHECK_EQ(ret, 0);
}

#endif
