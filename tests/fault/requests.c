/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a flood of connection requests at a passive endpoint keeps out nobody: good requests that are never taken back, taken
 * back at once or never finished, silence and garbage, all the time, inside the host and across the network. The listener
 * rejects what it does not know; meanwhile one that it knows is connected again and again, and what the listener keeps is bounded.
 */
#include "raw_link.h"

#define HELLO_REQUEST 4u
#define CROWD         400 /* connections at a time */
#define VISITS        20  /* of the one who is let in */
#define SOON_MS       10000
#define GROWTH_KB     4096
#define WORD          "friend"

enum manner { ASKS, ASKS_AND_LEAVES, SILENT, HALF_A_HELLO, JUNK, MANNERS_COUNT };

static int ends[2];
static struct name listener_name;

/* ---- The listener ---- */

/* The data stand behind the entry. */
union event_cm {
	struct fi_eq_cm_entry entry;
	char bytes[sizeof(struct fi_eq_cm_entry) + 512];
};

static struct fi_info *msg_info(const struct name *to)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup(provider());
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	if (to) {
		hints->dest_addr = malloc(to->len);
		hints->dest_addrlen = to->len;
		memcpy(hints->dest_addr, to->bytes, to->len);
	} else {
		struct sockaddr_in *in = calloc(1, sizeof(*in));

		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		hints->src_addr = in;
		hints->src_addrlen = sizeof(*in);
	}
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

/* An end of a connection with its objects; `domain` is NULL until there is one. */
struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
};

static void open_end(struct end *e, struct fi_info *info)
{
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG};

	e->info = info;
	must(fi_fabric(info->fabric_attr, &e->fabric, NULL), "fi_fabric");
	must(fi_domain(e->fabric, info, &e->domain, NULL), "fi_domain");
	must(fi_eq_open(e->fabric, &eq, &e->eq, NULL), "fi_eq_open");
	must(fi_cq_open(e->domain, &cq, &e->cq, NULL), "fi_cq_open");
}

static struct fid_ep *open_ep(const struct end *e, struct fi_info *info)
{
	struct fid_ep *ep;

	must(fi_endpoint(e->domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &e->eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	return ep;
}

static void take_request(const struct end *e, struct fid_pep *pep, const union event_cm *event,
			 size_t len)
{
	struct fid_ep *ep;

	if (len == sizeof(event->entry) + sizeof(WORD) &&
	    !strcmp(event->bytes + sizeof(event->entry), WORD)) {
		ep = open_ep(e, event->entry.info);
		must(fi_accept(ep, NULL, 0), "fi_accept");
	} else {
		fi_reject(pep, event->entry.info->handle, NULL, 0);
	}
	fi_freeinfo(event->entry.info);
}

static void listener(void *arg)
{
	struct name name = {.len = sizeof(name.bytes)};
	struct fid_pep *pep;
	struct end e;

	(void)arg;
	open_end(&e, msg_info(NULL));
	must(fi_passive_ep(e.fabric, e.info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &e.eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	must(fi_getname(&pep->fid, name.bytes, &name.len), "fi_getname");
	tell(ends[1], &name, sizeof(name));
	for (;;) {
		struct fi_eq_err_entry error = {0};
		union event_cm event = {.bytes = ""};
		uint32_t kind;
		ssize_t got = fi_eq_sread(e.eq, &kind, &event, sizeof(event), 1000, 0);

		if (got == -FI_EAVAIL)
			fi_eq_readerr(e.eq, &error, 0);
		else if (got > 0 && kind == FI_CONNREQ)
			take_request(&e, pep, &event, (size_t)got);
		else if (got > 0 && kind == FI_SHUTDOWN)
			must(fi_close(event.entry.fid), "fi_close");
	}
}

/* ---- Those who flood it ---- */

static int come(bool inside)
{
	struct timeval soon = {.tv_usec = 10000};
	struct sockaddr_un un;
	socklen_t len = raw_address(&listener_name, &un);
	int sock;

	if (!inside)
		return raw_link_tcp(&listener_name, INADDR_LOOPBACK + 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	connect(sock, (struct sockaddr *)&un, len);
	return sock;
}

/* As `say`, but the connection may have failed. */
static void tell_maybe(int sock, const void *bytes, size_t len, int fd)
{
	struct sockaddr_storage there;
	socklen_t size = sizeof(there);

	if (!getpeername(sock, (struct sockaddr *)&there, &size))
		say(sock, bytes, len, &fd, fd >= 0);
}

static int ask(enum manner how, bool inside, unsigned int number)
{
	struct hello h = good_hello(number);
	size_t len = how == HALF_A_HELLO ? sizeof(h) / 2 : sizeof(h);
	int sock = come(inside), fd = -1;

	h.kind = HELLO_REQUEST;
	h.data_len = number % sizeof(h.data);
	if (how == JUNK)
		memset(&h, (int)number, sizeof(h));
	if (inside)
		fd = ring_file(RING_LEN, SEALS, (struct page){RING_MAGIC, RING_SLOTS, 1});
	if (how != SILENT)
		tell_maybe(sock, &h, len, fd);
	if (fd >= 0)
		close(fd);
	return sock;
}

/* Each comes in a manner of its own, and stays until CROWD others have come. */
static void flood(void *arg)
{
	bool inside = *(bool *)arg;
	int socks[CROWD];

	memset(socks, -1, sizeof(socks));
	for (unsigned int i = 0;; i++) {
		enum manner how = i % MANNERS_COUNT;
		int *sock = &socks[i % CROWD];

		if (*sock >= 0)
			close(*sock);
		*sock = ask(how, inside, i);
		if (how == ASKS_AND_LEAVES) {
			close(*sock);
			*sock = -1;
		}
		if (i == 2 * CROWD)
			tell(ends[1], "", 1);
	}
}

/* ---- The one who is let in ---- */

static void visit(const struct end *e)
{
	struct fid_ep *ep = open_ep(e, e->info);
	union event_cm event;
	uint32_t kind = 0;
	ssize_t got;

	must(fi_connect(ep, e->info->dest_addr, WORD, sizeof(WORD)), "fi_connect");
	got = fi_eq_sread(e->eq, &kind, &event, sizeof(event), SOON_MS, 0);
	if (got < 0 || kind != FI_CONNECTED)
		fail("no connection with the listener: %s, event %u",
		     got < 0 ? fi_strerror((int)-got) : "", kind);
	must(fi_close(&ep->fid), "fi_close");
}

static void one(bool inside)
{
	pid_t pid = start("listener", listener, NULL), crowd;
	struct end e;
	long kb;
	int fds;

	hear(ends[0], &listener_name, sizeof(listener_name));
	open_end(&e, msg_info(&listener_name));
	visit(&e);
	fds = count_fds(pid);
	crowd = start("flood", flood, &inside);
	hear(ends[0], &(char){0}, 1);
	visit(&e);
	kb = memory_of(pid);
	for (unsigned int i = 0; i < VISITS; i++)
		visit(&e);
	if (memory_of(pid) > kb + GROWTH_KB)
		fail("the listener has grown from %ld to %ld kB", kb, memory_of(pid));
	slay(crowd);
	for (uint64_t end = now_ms() + SOON_MS; count_fds(pid) > fds; usleep(10000))
		if (now_ms() > end)
			fail("%d descriptors have become %d", fds, count_fds(pid));
	slay(pid);
	must(fi_close(&e.eq->fid), "fi_close");
	must(fi_close(&e.cq->fid), "fi_close");
	must(fi_close(&e.domain->fid), "fi_close");
	must(fi_close(&e.fabric->fid), "fi_close");
	fi_freeinfo(e.info);
}

int main(void)
{
	alarm(LIMIT);
	need_network();
	wire(ends);
	one(false);
	if (!strcmp(provider(), "weft"))
		one(true);
	return EXIT_SUCCESS;
}
