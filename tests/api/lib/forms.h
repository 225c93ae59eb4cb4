/* SPDX-License-Identifier: BSD-2-Clause */
/* Wraps each form of send and receive in one call. Needs api.h, data.h, side.h. */
#ifndef API_FORMS_H
#define API_FORMS_H

enum form {
	FORM_PLAIN,  /* fi_send, fi_recv */
	FORM_VECTOR, /* fi_sendv, fi_recvv */
	FORM_MSG,    /* fi_sendmsg, fi_recvmsg, with .flags */
	FORM_INJECT,
	FORM_DATA,
	FORM_INJECTDATA,
	FORM_COUNT
};

static const char *const form_names[] = {"plain", "vector", "msg", "inject", "data", "injectdata"};

struct form_args {
	enum form form;
	bool tagged;
	const struct data *d; /* NULL: no data. Plain and inject forms use one piece. */
	fi_addr_t peer;       /* destination or source */
	uint64_t tag, ignore;
	uint64_t data, flags;
	void *context;
};

static inline uint64_t form_kind(const struct form_args *f)
{
	return f->tagged ? FI_TAGGED : FI_MSG;
}

static inline bool form_injects(enum form form)
{
	return form == FORM_INJECT || form == FORM_INJECTDATA;
}

static inline bool form_has_data(const struct form_args *f)
{
	return f->form == FORM_DATA || f->form == FORM_INJECTDATA ||
	       (f->form == FORM_MSG && f->flags & FI_REMOTE_CQ_DATA);
}

static inline struct fi_msg form_msg(const struct form_args *f)
{
	return (struct fi_msg){.msg_iov = f->d ? f->d->iov : NULL,
			       .iov_count = f->d ? f->d->count : 0,
			       .addr = f->peer,
			       .context = f->context,
			       .data = f->data};
}

static inline struct fi_msg_tagged form_tagged(const struct form_args *f)
{
	return (struct fi_msg_tagged){.msg_iov = f->d ? f->d->iov : NULL,
				      .iov_count = f->d ? f->d->count : 0,
				      .addr = f->peer,
				      .tag = f->tag,
				      .ignore = f->ignore,
				      .context = f->context,
				      .data = f->data};
}

static inline ssize_t form_send_msg(struct fid_ep *ep, const struct form_args *f)
{
	void *buf = f->d ? data_at(f->d) : NULL;
	size_t len = f->d ? f->d->len : 0;
	struct fi_msg m = form_msg(f);

	switch (f->form) {
	case FORM_VECTOR:
		return fi_sendv(ep, f->d->iov, NULL, f->d->count, f->peer, f->context);
	case FORM_MSG:
		return fi_sendmsg(ep, &m, f->flags);
	case FORM_INJECT:
		return fi_inject(ep, buf, len, f->peer);
	case FORM_DATA:
		return fi_senddata(ep, buf, len, NULL, f->data, f->peer, f->context);
	case FORM_INJECTDATA:
		return fi_injectdata(ep, buf, len, f->data, f->peer);
	default:
		return fi_send(ep, buf, len, NULL, f->peer, f->context);
	}
}

static inline ssize_t form_send_tagged(struct fid_ep *ep, const struct form_args *f)
{
	void *buf = f->d ? data_at(f->d) : NULL;
	size_t len = f->d ? f->d->len : 0;
	struct fi_msg_tagged m = form_tagged(f);

	switch (f->form) {
	case FORM_VECTOR:
		return fi_tsendv(ep, f->d->iov, NULL, f->d->count, f->peer, f->tag, f->context);
	case FORM_MSG:
		return fi_tsendmsg(ep, &m, f->flags);
	case FORM_INJECT:
		return fi_tinject(ep, buf, len, f->peer, f->tag);
	case FORM_DATA:
		return fi_tsenddata(ep, buf, len, NULL, f->data, f->peer, f->tag, f->context);
	case FORM_INJECTDATA:
		return fi_tinjectdata(ep, buf, len, f->data, f->peer, f->tag);
	default:
		return fi_tsend(ep, buf, len, NULL, f->peer, f->tag, f->context);
	}
}

static inline ssize_t form_send(struct side *s, const struct form_args *f)
{
	return f->tagged ? form_send_tagged(s->ep, f) : form_send_msg(s->ep, f);
}

static inline ssize_t form_recv(struct side *s, const struct form_args *f)
{
	void *buf = f->d ? data_at(f->d) : NULL;
	size_t len = f->d ? f->d->len : 0;
	struct fi_msg_tagged t = form_tagged(f);
	struct fi_msg m = form_msg(f);

	switch (f->form) {
	case FORM_VECTOR:
		return f->tagged
			       ? fi_trecvv(s->ep, f->d->iov, NULL, f->d->count, f->peer, f->tag,
					   f->ignore, f->context)
			       : fi_recvv(s->ep, f->d->iov, NULL, f->d->count, f->peer, f->context);
	case FORM_MSG:
		return f->tagged ? fi_trecvmsg(s->ep, &t, f->flags)
				 : fi_recvmsg(s->ep, &m, f->flags);
	default:
		return f->tagged ? fi_trecv(s->ep, buf, len, NULL, f->peer, f->tag, f->ignore,
					    f->context)
				 : fi_recv(s->ep, buf, len, NULL, f->peer, f->context);
	}
}

/* Sends and waits for the completion. Injected sends have none. */
static inline void form_send_all(struct side *s, const struct form_args *f)
{
	POST(s, form_send(s, f));
	if (!form_injects(f->form))
		side_sent(s, f->context, form_kind(f));
}

#define FORM_SEND(...) (api_at(__FILE__, __LINE__), form_send_all(__VA_ARGS__))

#endif
