/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links encrypted by the kernel where it has TLS, over HW=tcp, with FI_WEFT_AUTH=encrypt and a key file:
 *	tls_links both        both ends by the kernel
 *	tls_links first       the end that is asked first refuses: it goes on in user space, the other by the kernel
 *	tls_links second      the other way round
 *	tls_links none        no end by the kernel
 *	tls_links record      an end that gets a record that is no data ends the link
 * Long streams cross, so that each end has to read while it sends.
 */
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>

#include "../fault/node.h"

#define LEN     100001 /* no multiple of a record */
#define COUNT   100
#define WINDOW  8
#define WAIT_MS 30000
#define ALERT   21 /* the type of a record */

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

struct stream {
	struct node node;
	fi_addr_t to;
	unsigned int posted, sent, expected, received;
};

static struct stream ends[2];
static char out[LEN], in[2][WINDOW][LEN];
static int refused = -1; /* the number of the request of TLS_TX that is refused */
static int asked, installed;
static int socks[2]; /* that the kernel encrypts */

/* The library's calls lead here. */
__attribute__((visibility("default"))) int setsockopt(int sock, int level, int name,
						      const void *value, socklen_t len)
{
	bool tx = level == SOL_TLS && name == TLS_TX;

	if (tx && asked++ == refused) {
		errno = ENOENT;
		return -1;
	}
	if (tx)
		socks[installed++ % 2] = sock;
	return (int)syscall(SYS_setsockopt, sock, level, name, value, len);
}

static void open_ends(void)
{
	struct name name;

	for (int i = 0; i < 2; i++)
		node_open(&ends[i].node, NULL);
	for (int i = 0; i < 2; i++) {
		name = node_name(&ends[!i].node);
		ends[i].to = node_insert(&ends[i].node, &name);
	}
	for (size_t i = 0; i < LEN; i++)
		out[i] = (char)(i * 31 + i / 255);
}

static void expect(struct stream *s, char *to)
{
	memset(to, 0, LEN);
	must(fi_recv(s->node.ep, to, LEN, NULL, FI_ADDR_UNSPEC, to), "fi_recv");
	s->expected++;
}

static void check(struct stream *s, const struct event *e)
{
	if (e->err)
		fail("a message: %s", fi_strerror(e->err));
	if (!(e->flags & FI_RECV)) {
		s->sent++;
		return;
	}
	if (e->len != LEN || memcmp(e->context, out, LEN) != 0)
		fail("message %u has other bytes", s->received);
	s->received++;
	if (s->expected < COUNT)
		expect(s, e->context);
}

/* Both send COUNT messages to each other, and must be done in time. */
static void stream_both(void)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct event e;

	for (int i = 0; i < 2; i++)
		for (int slot = 0; slot < WINDOW; slot++)
			expect(&ends[i], in[i][slot]);
	while (ends[0].received + ends[1].received < 2 * COUNT ||
	       ends[0].sent + ends[1].sent < 2 * COUNT) {
		for (int i = 0; i < 2; i++) {
			struct stream *s = &ends[i];

			if (s->posted < COUNT && !fi_send(s->node.ep, out, LEN, NULL, s->to, out))
				s->posted++;
			if (node_poll(&s->node, &e))
				check(s, &e);
		}
		if (now_ms() > end)
			fail("%u and %u of %u messages came within %d ms", ends[0].received,
			     ends[1].received, COUNT, WAIT_MS);
	}
}

/* Sends an alert behind the library's back. The other end must report an error to a receive from this peer. */
static void send_alert(void)
{
	char control[CMSG_SPACE(1)] = {0}, alert[2] = {1, 0};
	struct iovec iov = {alert, sizeof(alert)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	struct event e;

	c->cmsg_level = SOL_TLS;
	c->cmsg_type = TLS_SET_RECORD_TYPE;
	c->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(c) = ALERT;
	for (int i = 0; i < 2; i++)
		must(fi_recv(ends[i].node.ep, in[i], LEN, NULL, ends[i].to, in[i]), "fi_recv");
	if (sendmsg(socks[0], &m, 0) != sizeof(alert))
		fail("sendmsg: %s", strerror(errno));
	for (uint64_t end = now_ms() + WAIT_MS; now_ms() < end;)
		for (int i = 0; i < 2; i++)
			if (node_poll(&ends[i].node, &e) && e.err)
				return;
	fail("a record that is no data did not end the link");
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"first", "second"};
	const char *mode = argc > 1 ? argv[1] : "both";
	bool none = !strcmp(mode, "none");
	int expected = 2;

	for (int i = 0; i < 2; i++)
		if (!strcmp(mode, modes[i])) {
			refused = i;
			expected = 1;
		}
	if (none)
		setenv("FI_WEFT_KERNEL_TLS", "no", 1);
	open_ends();
	stream_both();
	if (installed != (none ? 0 : expected))
		fail("%d ends are encrypted by the kernel", installed);
	if (!strcmp(mode, "record"))
		send_alert();
	else
		for (int i = 0; i < 2; i++)
			node_close(&ends[i].node);
	return 0;
}
