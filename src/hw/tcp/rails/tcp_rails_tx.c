/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending over several rails. */
#include <errno.h>
#include <linux/sockios.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/log.h"
#include "hw/tcp/tcp_output.h"
#include "hw/tcp/rails/tcp_rails.h"
#include "hw/tcp/tcp_tls.h"

#define ASK_SPANS (TCP_SPANS_NEW / 2) /* the sender also asks when so many parts are under way */

bool tcp_rails_usable(const struct tcp_rail *r)
{
	return r->sock >= 0 && !r->securing && !r->silent && !r->broken;
}

uint64_t tcp_rails_again(struct tcp_link *l, uint32_t rail)
{
	struct tcp_rails *rails = l->rails;

	rails->ask_due |=
		rails->ask > rails->out.begin; /* the question may be lost with the rail */
	return tcp_window_lost(&rails->out, rail);
}

/* Names the bytes of the rail's chunk behind `sent`. Returns the number of segments. */
static size_t tcp_rails_tx_unsent(const struct tcp_link *l, struct tcp_rail *r, struct iovec iov[3])
{
	const size_t head = sizeof(r->out);
	size_t skip = r->sent > head ? r->sent - head : 0, count = 0;

	if (r->sent < head)
		iov[count++] = (struct iovec){(char *)&r->out + r->sent, head - r->sent};
	if (r->out.len > skip)
		count += tcp_window_iov(&l->rails->out, r->out.at + skip, r->out.len - skip,
					&iov[count]);
	return count;
}

/* Notes what a system call that sends has returned. Returns the bytes. */
static size_t sent_now(struct tcp_rail *r, ssize_t sent)
{
	r->broken |= sent < 0 && !tcp_passing(errno);
	return sent > 0 ? (size_t)sent : 0;
}

/* A chunk is encrypted as a whole when it begins. */
static void push_encrypted(struct tcp_link *l, struct tcp_rail *r)
{
	const struct tls_out *out = &r->encrypted;
	struct iovec iov[3], left;

	if (r->sent) {
		r->left -= sent_now(r, send(r->sock, out->bytes + out->len - r->left, r->left,
					    MSG_DONTWAIT | MSG_NOSIGNAL));
	} else {
		r->broken |=
			tcp_tls_send(&r->secure, iov, tcp_rails_tx_unsent(l, r, iov), &left) != 0;
		r->left = left.iov_len;
		r->sent = sizeof(r->out) + r->out.len;
	}
	r->busy = r->left;
}

/* Sends more of the rail's chunk. True: all of it went. */
static bool tcp_rails_tx_push(struct tcp_link *l, struct tcp_rail *r)
{
	struct iovec iov[3];
	struct msghdr m = {.msg_iov = iov};

	if (r->secure.tls) {
		push_encrypted(l, r);
	} else {
		m.msg_iovlen = tcp_rails_tx_unsent(l, r, iov);
		r->sent += sent_now(r, sendmsg(r->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL));
		r->busy = r->sent < sizeof(r->out) + r->out.len;
	}
	if (r->broken) {
		tcp_rails_again(l, (uint32_t)(r - l->rails->rail));
		l->rails->ack_due = true;
	}
	return !r->busy;
}

/* Begins with a chunk. True: all of it went. */
static bool tcp_rails_tx_begin(struct tcp_link *l, struct tcp_rail *r,
			       const struct tcp_chunk *chunk)
{
	r->out = *chunk;
	r->out.ack = l->rails->in.begin;
	r->sent = 0;
	r->busy = true;
	l->rails->acked = r->out.ack;
	l->rails->ack_due = false;
	return tcp_rails_tx_push(l, r);
}

/* Has the rail as much on its way as it may? */
static bool tcp_rails_tx_is_full(const struct tcp_rail *r)
{
	int unacknowledged;

	return r->most != UINT64_MAX && !ioctl(r->sock, SIOCOUTQ, &unacknowledged) &&
	       (uint64_t)unacknowledged > r->most;
}

/* Sends over one rail until its kernel takes no more. True: something went. */
static bool tcp_rails_tx_fill(struct tcp_link *l, uint32_t rail)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	struct tcp_span span;
	struct tcp_chunk chunk = {.asks = 0};
	bool any = false;

	if (!tcp_rails_usable(r) || (r->busy && !tcp_rails_tx_push(l, r)))
		return false;
	while (!tcp_rails_tx_is_full(r) && tcp_window_take(&l->rails->out, rail, &span)) {
		chunk.at = span.from;
		chunk.len = (uint32_t)(span.to - span.from);
		any = true;
		if (!tcp_rails_tx_begin(l, r, &chunk))
			break;
	}
	return any;
}

static void tcp_rails_tx_ask(struct tcp_rails *rails)
{
	const struct tcp_window *out = &rails->out;
	uint64_t place = out->next / TCP_ASK * TCP_ASK;

	if (rails->ask <= out->begin && out->count >= ASK_SPANS)
		place = out->next;
	if (place <= rails->ask || place <= out->begin)
		return;
	rails->ask = place;
	rails->ask_due = true;
}

/* Questions and acknowledgements go over the rail that brought something last, which is no other than a live one. */
static void tcp_rails_tx_control(struct tcp_link *l)
{
	struct tcp_rails *rails = l->rails;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX && (rails->ack_due || rails->ask_due); i++) {
		struct tcp_rail *r = &rails->rail[(rails->latest + i) % WIRE_RAILS_MAX];
		struct tcp_chunk chunk = {.at = rails->ask_due ? rails->ask : rails->out.next,
					  .asks = rails->ask_due};

		if (!tcp_rails_usable(r) || r->busy)
			continue;
		rails->ask_due = false;
		tcp_rails_tx_begin(l, r, &chunk);
	}
}

/* Up to where is the stream with the kernels, and no late acknowledgement makes ours drop it? */
static uint64_t out_to(const struct tcp_rails *rails)
{
	const struct tcp_window *out = &rails->out;
	uint64_t to = tcp_window_taken(out);

	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		const struct tcp_rail *r = &rails->rail[i];

		/* What a silent rail has begun with goes again over another one. */
		if (tcp_rails_usable(r) && r->busy && r->out.len && r->out.at < to)
			to = r->out.at;
	}
	if (rails->ask > out->begin) { /* the place of the next answer */
		uint64_t answer = (out->begin / TCP_ASK + 1) * TCP_ASK;

		answer = answer < rails->ask ? answer : rails->ask;
		to = answer < to ? answer : to;
	}
	return to;
}

static void tcp_rails_tx_report(struct tcp_link *l)
{
	struct tcp_rails *rails = l->rails;
	uint32_t done = 0;
	uint64_t to;

	if (!rails->marks)
		return;
	to = out_to(rails);
	while (done < rails->marks && rails->mark[done].end <= to)
		done++;
	if (!done)
		return;
	l->link.zcopy_done = rails->mark[done - 1].posted;
	rails->marks -= done;
	memmove(rails->mark, rails->mark + done, rails->marks * sizeof(rails->mark[0]));
}

static bool fill_all(struct tcp_link *l)
{
	bool any = false;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		any |= tcp_rails_tx_fill(l, i);
	return any;
}

void tcp_rails_fill(struct tcp_link *l)
{
	fill_all(l);
}

bool tcp_rails_flush(struct tcp_link *l)
{
	bool any, waits;

	if (l->tx >= TCP_SECURING || l->shut)
		return false;
	TCP_OUTPUT_LOCKED(l);
	any = fill_all(l);
	tcp_rails_tx_ask(l->rails);
	tcp_rails_tx_control(l);
	tcp_rails_tx_report(l);
	waits = tcp_window_unsent(&l->rails->out);
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		waits |= l->rails->rail[i].busy && tcp_rails_usable(&l->rails->rail[i]);
	if (waits)
		tcp_block(l, TCP_REST);
	else if (l->tx == TCP_REST)
		tcp_reopen(l);
	return any;
}

/* May a packet of `len` bytes enter the window? If not, the link is blocked. */
static bool tcp_rails_tx_fits(struct tcp_link *l, size_t len)
{
	struct tcp_window *out = &l->rails->out;
	bool fits = tcp_window_space(out) >= len;

	if (fits && tcp_window_open(out))
		return true;
	if (fits)
		LOG_PEER(LOG_EP_DATA,
			 "tcp: no memory for the %zu bytes that rails to peer %#x keep: sends wait "
			 "(FI_WEFT_RAILS=1 needs none)",
			 TCP_WINDOW, l->id);
	tcp_block(l, l->tx == TCP_REST ? TCP_REST : TCP_FULL);
	return false;
}

/* Is it a part of a long message, or of a long answer? Progress calls send the next one whenever it is taken. */
static bool is_fragment(const struct packet *p)
{
	return wire_op(p->head) == WIRE_FRAG || wire_op(p->head) == WIRE_RESULT;
}

/*
 * May a packet go behind others that wait for the rails? Were it for none, fragments would be there whenever the rails take
 * more: short messages would wait for the end of long ones, and so would the announcements of the next long ones, for which
 * the rails would then have to wait. So fragments wait for each other alone, and all else may follow the last one, a chunk
 * of it at a time. Each announcement keeps a request of the engine, so their number is limited, too. A disconnect message is
 * always taken.
 */
static bool may_follow(const struct tcp_rails *rails, const struct packet *p)
{
	const struct tcp_window *out = &rails->out;
	uint64_t begin = rails->bulk > out->next ? rails->bulk : out->next;

	if (is_fragment(p))
		return rails->bulk <= out->next && !out->again;
	if (wire_op(p->head) == WIRE_RTS && rails->unanswered + rails->granted >= TCP_ANNOUNCED_MAX)
		return false;
	return out->end - begin < TCP_CHUNK || wire_op(p->head) == WIRE_DISCONNECT;
}

/* Notes a packet that is taken. */
static void tcp_rails_tx_note(struct tcp_rails *rails, const struct packet *p)
{
	bool begins = wire_op(p->head) == WIRE_FRAG && !p->tag;

	if (is_fragment(p))
		rails->bulk = rails->out.end;
	if (wire_op(p->head) == WIRE_RTS && rails->unanswered < TCP_ANNOUNCED_MAX)
		rails->announced[rails->unanswered++] = wire_id(p->head);
	else if (begins && rails->granted)
		rails->granted--;
}

/* Removes a number from some. False: it is none of them. */
static bool tcp_rails_tx_take_out(uint32_t *ids, uint32_t *count, uint32_t id)
{
	uint32_t i = 0;

	while (i < *count && ids[i] != id)
		i++;
	if (i == *count)
		return false;
	ids[i] = ids[--*count];
	return true;
}

/*
 * A message that the peer has asked for counts until its first fragment, or an ATS if it has none. A fragment does not say
 * whose first it is: it stands for any, and the ATS behind the message's last one for what was left.
 */
void tcp_rails_hear(struct tcp_link *l, const struct packet *p)
{
	struct tcp_rails *rails = l->rails;
	unsigned int op = wire_op(p->head);
	uint32_t id = wire_id(p->head);

	if (op != WIRE_CTS && op != WIRE_ATS)
		return;
	if (tcp_rails_tx_take_out(rails->announced, &rails->unanswered, id)) {
		if (op == WIRE_CTS && rails->granted < TCP_ANNOUNCED_MAX)
			rails->allowed[rails->granted++] = id;
	} else if (op == WIRE_ATS) {
		tcp_rails_tx_take_out(rails->allowed, &rails->granted, id);
	}
}

/* A packet is taken if it fits the window, and if it need not wait for those before it. */
static int tcp_rails_tx_put(struct tcp_link *l, const struct packet *p, const struct iovec *iov,
			    size_t count, bool counted)
{
	struct tcp_rails *rails = l->rails;
	struct tcp_window *out = &rails->out;
	struct tcp_frame f = tcp_frame_of(p);
	bool last = wire_op(p->head) == WIRE_DISCONNECT; /* there is always space for it */

	TCP_OUTPUT_LOCKED(l);
	if (p->len > TCP_PACKET_MAX)
		return -FI_EMSGSIZE;
	if (l->tx >= TCP_SECURING || (l->tx == TCP_REST && !may_follow(rails, p)) ||
	    !tcp_rails_tx_fits(l, sizeof(f) + p->len + (last ? 0 : sizeof(f))))
		return -FI_EAGAIN;
	tcp_window_put(out, &f, sizeof(f));
	for (size_t i = 0; i < count; i++)
		if (iov[i].iov_len)
			tcp_window_put(out, iov[i].iov_base, iov[i].iov_len);
	tcp_rails_tx_note(rails, p);
	if (counted) {
		/* Where there is no place for its end, the packet before is reported with this one. */
		rails->marks += rails->marks < TCP_MARKS;
		rails->mark[rails->marks - 1] =
			(struct tcp_mark){.end = out->end, .posted = ++l->link.zcopy_posted};
	}
	tcp_rails_flush(l);
	return 0;
}

int tcp_rails_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		    size_t count)
{
	return tcp_rails_tx_put((struct tcp_link *)link, p, iov, count, false);
}

int tcp_rails_post(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	return tcp_rails_tx_put((struct tcp_link *)link, p, iov, count, true);
}

/* The window has copies of all. */
int tcp_rails_copy_out(struct link *link)
{
	((struct tcp_link *)link)->rails->marks = 0;
	link->zcopy_done = link->zcopy_posted;
	return 0;
}

/* Each packet goes at once, as far as the rails take it. */
void tcp_rails_cork(struct link *link, bool more)
{
	if (!more)
		tcp_rails_flush((struct tcp_link *)link);
}

/* A message is reported when it is out: tcp_rails_post says when. */
int tcp_rails_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		   uint64_t tag)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct packet p = {.head = head, .tag = tag, .data = data, .payload = buf, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	l->own->idle = 0; /* an answer may come soon */
	if (len > link->eager_max)
		return -FI_EMSGSIZE;
	return wire_op(head) == WIRE_MSG ? -FI_EAGAIN : tcp_rails_tx_put(l, &p, &iov, 1, false);
}
