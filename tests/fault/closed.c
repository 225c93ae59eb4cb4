/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_WEFT_CLOSED: a raw client under a name that is not in the address vector, or that is the address of another host,
 * is refused and logged. One that is known and comes from where it says is let in.
 */
#include <rdma/fi_ext_weft.h>

#include "echo.h"
#include "raw_client.h"

enum { KNOWN = 4711, UNKNOWN, FOREIGN };

static struct node n;
static struct name name;

/* A hello under this name. */
static struct hello named(in_addr_t host, uint16_t port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(host)};
	static unsigned int number = 1;
	struct hello h = good_hello(number++);

	if (!strcmp(provider(), "shm")) {
		h.name_len = (uint32_t)snprintf(h.name, sizeof(h.name), "raw-%u", port) + 1;
		return h;
	}
	memcpy(h.name, &in, sizeof(in));
	return h;
}

static void insert(const struct hello *h)
{
	struct name peer = {.len = h->name_len};

	memcpy(peer.bytes, h->name, h->name_len);
	node_insert(&n, &peer);
}

static bool is_let_in(const struct hello *h, bool inside)
{
	const struct page page = {RING_MAGIC, RING_SLOTS, 1};
	int fd = ring_file(RING_LEN, SEALS, page);
	int sock = inside ? raw_connect(&name) : raw_connect_tcp(&name);
	uint64_t end = now_ms() + PING_MS;
	struct hello answer = {.kind = 0};
	struct event e;

	say(sock, h, sizeof(*h), &fd, inside);
	close(fd);
	while (recv(sock, &answer, sizeof(answer), MSG_DONTWAIT | MSG_WAITALL) < 0)
		if (node_poll(&n, &e) || now_ms() > end)
			fail("no answer within %d ms", PING_MS);
	close(sock);
	if (answer.kind == HELLO_ACCEPT)
		return true;
	if (answer.kind != HELLO_REJECT || answer.error != FI_EACCES)
		fail("answer %u, error %u", answer.kind, answer.error);
	return false;
}

static void try_all(bool inside)
{
	/* Of a network for documentation: no address of this host. */
	struct hello foreign = named(0xc6336401, FOREIGN);
	struct hello known = named(INADDR_LOOPBACK, KNOWN),
		     unknown = named(INADDR_LOOPBACK, UNKNOWN);

	if (!is_let_in(&known, inside))
		fail("one who is known is refused");
	if (is_let_in(&unknown, inside))
		fail("one who is not known is let in");
	if (!inside && is_let_in(&foreign, inside))
		fail("one who calls itself by an address of another host is let in");
	if (!is_let_in(&known, inside))
		fail("one who is known is refused afterwards");
}

static uint64_t refused(void)
{
	struct fi_weft_ops_stats *ops;
	struct fi_weft_stats stats;

	must(fi_open_ops(&n.ep->fid, FI_WEFT_STATS, 0, (void **)&ops, NULL), "fi_open_ops");
	must(ops->read(&n.ep->fid, &stats, sizeof(stats)), "reading the statistics");
	return stats.unauthorized_refused;
}

int main(void)
{
	struct hello known = named(INADDR_LOOPBACK, KNOWN), foreign = named(0xc6336401, FOREIGN);
	int stderr_fd = dup(STDERR_FILENO);

	alarm(LIMIT);
	need_provider();
	setenv("FI_WEFT_CLOSED", "1", 1);
	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_INTERVAL", "0", 1);
	node_open(&n, NULL);
	name = node_name(&n);
	insert(&known);
	if (strcmp(provider(), "shm"))
		insert(&foreign);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	dup2(log_fd, STDERR_FILENO);
	if (strcmp(provider(), "tcp"))
		try_all(true);
	if (strcmp(provider(), "shm"))
		try_all(false);
	dup2(stderr_fd, STDERR_FILENO);
	if (!logged("not in the address vector") ||
	    (strcmp(provider(), "shm") && !logged("an address of another host")))
		fail("the log does not say who is refused");
	if (!refused())
		fail("nobody is counted as refused");
	node_close(&n);
	return EXIT_SUCCESS;
}
