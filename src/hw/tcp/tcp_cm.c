/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a worker's state; makes links of bootstrap sockets. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "info/providers.h"
#include "hw/tcp/tcp_output.h"
#include "hw/tcp/tcp_tls.h"
#include "hw/transports.h"
#include "link/link.h"

static int tcp_open(struct opener *opener, void **state)
{
	struct tcp *t = calloc(1, sizeof(*t));
	int err = -FI_ENOMEM;

	if (!t)
		return err;
	t->buf = malloc(TCP_READ);
	if (!t->buf)
		goto free_state;
	t->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (t->epfd < 0) {
		err = -errno;
		goto free_buf;
	}
	t->opener = opener;
	opener->rails = tcp_rails_ops;
	t->timer = -1;
	list_init(&t->links);
	list_init(&t->closed);
	list_init(&t->lingering);
	list_init(&t->attend);
	list_init(&t->answers);
	list_init(&t->gathering);
	*state = t;
	return 0;
free_buf:
	free(t->buf);
free_state:
	free(t);
	return err;
}

/* The engine has closed all links before. */
static void tcp_close(void *state)
{
	struct tcp *t = state;

	tcp_linger_out(t);
	tcp_flusher_close(t);
	if (t->timer >= 0)
		close(t->timer);
	close(t->epfd);
	free(t->tls_out.bytes);
	free(t->cipher);
	free(t->buf);
	free(t);
}

static int tcp_fd(void *state)
{
	return ((struct tcp *)state)->epfd;
}

static const struct link_ops tcp_link_ops = {
	.send = tcp_send,
	.sendv = tcp_sendv,
	.close = tcp_close_link,
};

static const struct link_zcopy_ops tcp_zcopy_ops = {
	.sendv = tcp_zcopy,
	.copy_out = tcp_zcopy_copy_out,
	.cork = tcp_gather_cork,
};

/* An injected message is always one packet. */
void tcp_bare(struct tcp_link *l)
{
	struct link *link = &l->link;
	size_t eager = env_get()->tcp_eager_max;

	l->stream = &tcp_socket_ops;
	link->ops = &tcp_link_ops;
	link->zcopy = &tcp_zcopy_ops;
	link->eager_max = eager < LINK_INJECT_MAX ? LINK_INJECT_MAX
			  : eager > TCP_BATCH_MAX ? TCP_BATCH_MAX
						  : eager;
	link->zcopy_min = l->zcopy_min = TCP_ZCOPY_MIN;
	link->packet_max = TCP_PACKET_MAX;
}

static int tcp_connect(void *state, const struct link_peer *peer, struct link **link)
{
	struct tcp *t = state;
	struct tcp_link *l = calloc(1, sizeof(*l));
	int err = 0;

	if (!l)
		return -FI_ENOMEM;
	l->link = (struct link){LINK_BARE};
	tcp_bare(l);
	l->link.silent = true;
	l->own = t;
	l->id = peer->id;
	l->sock = peer->sock;
	list_init(&l->in_state);
	list_init(&l->in_attend);
	list_init(&l->in_gathering);
	list_init(&l->in_answers);
	list_init(&l->output.in_flusher);
	if (t->live >= TCP_DIRECT_MAX && !t->watching)
		err = tcp_watch_all(t);
	if (!err && t->watching)
		err = l->stream->watch(l, EPOLLIN);
	/* One whose socket carries more than packets: on failure the link is as it was. */
	if (!err && peer->rails)
		err = tcp_rails_ops->open(l, peer);
	else if (!err && peer->key)
		err = tcp_tls_open(l, peer);
	if (err) {
		l->stream->watch(l, 0);
		free(l);
		return err;
	}
	t->count++;
	t->live++;
	t->idle = 0;
	list_push(&t->links, &l->in_state);
	*link = &l->link;
	return 0;
}

static int tcp_join(struct link *link, uint32_t rail, const struct link_peer *peer)
{
	return tcp_rails_ops->join(link, rail, peer);
}

static int tcp_sock(const struct link *link)
{
	return ((const struct tcp_link *)link)->sock;
}

static bool tcp_arrived(const struct link *link)
{
	const struct tcp_link *l = (const struct tcp_link *)link;

	return l->stream->arrived(l);
}

static void tcp_describe(const struct link *link, struct link_state *state)
{
	struct tcp_info info = {.tcpi_total_retrans = 0};
	socklen_t len = sizeof(info);
	int sock = tcp_sock(link), unsent = 0;

	if (!ioctl(sock, SIOCOUTQ, &unsent))
		state->unsent_bytes = (uint64_t)unsent;
	if (!getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len))
		state->retransmissions = info.tcpi_total_retrans;
}

/* The one line that names the folder rails/. */
const struct tcp_rails_ops *const tcp_rails_ops = &tcp_rails_here;

const struct transport tcp_transport = {
	.name = "tcp",
	.bit = PROVIDER_TCP,
	.kind = LINK_SOCKET,
	.open = tcp_open,
	.close = tcp_close,
	.progress = tcp_progress,
	.idle = tcp_idle,
	.arm = tcp_arm,
	.fd = tcp_fd,
	.connect = tcp_connect,
	.sock = tcp_sock,
	.join = tcp_join,
	.arrived = tcp_arrived,
	.describe = tcp_describe,
};
