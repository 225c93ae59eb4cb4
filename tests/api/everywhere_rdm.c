/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDM endpoints without an address of their own, or with a wildcard, are reached by each address of their host, and are
 * one peer whichever of these others know. In a network namespace of its own. Not for shm, which names them by strings.
 * fi_getinfo(3), fi_cm(3), docs/NETWORKS.md.
 */
#include <arpa/inet.h>
#include <rdma/fi_rma.h>

#include "obj.h"
#include "lib/own_net.h"

#define PORT0  "47120" /* of rank 0, and of rank 1 */
#define PORT1  "47121"
#define LONG   ((size_t)1 << 20)
#define ROUNDS 20
#define KEY    7

static const char *const ports[] = {PORT0, PORT1};
/* The first is the name, or not: which one that is, is the library's choice. */
static const char *const own4[] = {OWN_NET_IN, "127.0.0.1", "127.0.0.2"};

/* An endpoint with memory that its peer may write. */
struct side {
	struct obj o;
	struct fid_mr *mr;
	uint64_t words[2], base, key;
};

/* What a side tells the other one of its memory. */
struct target {
	uint64_t base, key;
};

/* `node`, `service`: as for fi_getinfo; FI_SOURCE: of this side, else of the peer. */
static void open_side(struct side *s, const char *node, const char *service, uint64_t flags)
{
	int mode;

	memset(s, 0, sizeof(*s));
	s->o.hints = obj_hints(FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_SOURCE_ERR |
			       FI_DIRECTED_RECV);
	s->o.hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	OK(fi_getinfo(FI_VERSION(1, 17), node, service, flags, s->o.hints, &s->o.info));
	obj_open(&s->o);
	mode = s->o.info->domain_attr->mr_mode;
	OK(fi_mr_reg(s->o.domain, s->words, sizeof(s->words), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		     KEY, 0, &s->mr, NULL));
	s->base = mode & FI_MR_VIRT_ADDR ? (uintptr_t)s->words : 0;
	s->key = fi_mr_key(s->mr);
}

/* Of rank 0 or 1, at all addresses. */
static void open_all(struct side *s, int rank, const char *node)
{
	open_side(s, node, ports[rank], FI_SOURCE);
}

static void close_side(struct side *s)
{
	CLOSE(s->mr);
	obj_close(&s->o);
}

/* Enters the endpoint of the other rank in the vector, by one of its addresses. */
static fi_addr_t insert_at(struct side *s, const char *node, const char *service)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	CHECK_EQ(fi_av_insertsvc(s->o.av, node, service, &addr, 0, NULL), 1);
	return addr;
}

/* A vector of IPv6 addresses has IPv4 ones in their mapped form. */
static struct obj_name as_in6(struct obj_name name)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	memcpy(&in, name.bytes, sizeof(in));
	if (in.sin_family != AF_INET)
		return name;
	in6.sin6_port = in.sin_port;
	in6.sin6_addr.s6_addr32[2] = htonl(0xffff);
	in6.sin6_addr.s6_addr32[3] = in.sin_addr.s_addr;
	memcpy(name.bytes, &in6, sizeof(in6));
	name.len = sizeof(in6);
	return name;
}

/* ---- Messages and writes with a peer that has one entry ---- */

static void send_word(struct side *s, fi_addr_t to, uint64_t *word)
{
	POST(s->o.cq, fi_send(s->o.ep, word, sizeof(*word), NULL, to, word));
}

/* The next completion is that of a receive or of `sent`; both come, the receive from `from`. */
static void both_done(struct side *s, const void *sent, const void *received, fi_addr_t from)
{
	for (int left = 2; left; left--) {
		fi_addr_t src = FI_ADDR_UNSPEC;
		struct fi_cq_tagged_entry e = obj_next(s->o.cq, &src);

		if (e.op_context == sent)
			continue;
		CHECK_EQ((uintptr_t)e.op_context, (uintptr_t)received);
		CHECK_EQ(src, from);
	}
}

/* Numbered words both ways, received from this entry alone, in order. */
static void exchange(struct side *s, fi_addr_t peer)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t out = i, in = ~i;

		OK(fi_recv(s->o.ep, &in, sizeof(in), NULL, peer, &in));
		send_word(s, peer, &out);
		both_done(s, &out, &in, peer);
		CHECK_EQ(in, i);
	}
}

static void exchange_long(struct api *a, struct side *s, fi_addr_t peer)
{
	unsigned char *out = malloc(LONG), *in = calloc(1, LONG);

	CHECK(out && in);
	memset(out, 'a' + a->rank, LONG);
	OK(fi_recv(s->o.ep, in, LONG, NULL, peer, in));
	POST(s->o.cq, fi_send(s->o.ep, out, LONG, NULL, peer, out));
	both_done(s, out, in, peer);
	CHECK(in[0] == 'a' + !a->rank && !memcmp(in, in + 1, LONG - 1));
	free(out);
	free(in);
}

static void write_over(struct api *a, struct side *s, fi_addr_t peer)
{
	struct target mine = {s->base, s->key}, all[2];
	uint64_t out = 4711 + (uint64_t)a->rank;

	obj_progress(a, s->o.cq);
	api_swap(a, &mine, all, sizeof(mine));
	POST(s->o.cq, fi_write(s->o.ep, &out, sizeof(out), NULL, peer, all[!a->rank].base,
			       all[!a->rank].key, &out));
	obj_done(s->o.cq, &out);
	api_meet(a);
	CHECK_EQ(s->words[0], 4711 + !a->rank);
	a->progress = NULL;
}

static void talk(struct api *a, struct side *s, fi_addr_t peer)
{
	exchange(s, peer);
	exchange_long(a, s, peer);
	write_over(a, s, peer);
}

/* ---- Cases ---- */

/* A client that knows one address of the server, and tells its own name; then the server sends, too. */
static void client_by(struct api *a, const char *node, const char *to)
{
	struct obj_name mine, all[2];
	struct side s;
	fi_addr_t peer;

	if (a->rank)
		api_meet(a);
	if (a->rank)
		open_side(&s, to, PORT0, 0);
	else
		open_all(&s, 0, node);
	if (!a->rank)
		api_meet(a);
	mine = obj_name(&s.o.ep->fid);
	api_swap(a, &mine, all, sizeof(mine));
	if (s.o.info->addr_format == FI_SOCKADDR_IN6)
		all[1] = as_in6(all[1]);
	peer = a->rank ? insert_at(&s, to, PORT0) : obj_insert(s.o.av, &all[1]);
	talk(a, &s, peer);
	obj_progress(a, s.o.cq);
	api_meet(a);
	a->progress = NULL;
	close_side(&s);
}

static void ipv4(struct api *a)
{
	static const char *const nodes[] = {NULL, "0.0.0.0"};

	for (size_t n = 0; n < API_COUNT(nodes); n++)
		for (size_t i = 0; i < API_COUNT(own4); i++)
			client_by(a, nodes[n], own4[i]);
}

/* The kernel's setting is that :: takes IPv4, too. */
static void ipv6(struct api *a)
{
	static const char *const own[] = {OWN_NET_IN6, "::1", OWN_NET_IN, "127.0.0.1"};

	for (size_t i = 0; i < API_COUNT(own); i++)
		client_by(a, "::", own[i]);
}

/* Both know the other by an address of their choice, and begin at once. */
static void crossing(struct api *a)
{
	for (size_t i = 0; i < API_COUNT(own4) * API_COUNT(own4); i++) {
		const char *to = own4[a->rank ? i % API_COUNT(own4) : i / API_COUNT(own4)];
		struct side s;
		fi_addr_t peer;

		open_all(&s, a->rank, NULL);
		peer = insert_at(&s, to, ports[!a->rank]);
		api_meet(a);
		talk(a, &s, peer);
		close_side(&s);
		api_meet(a);
	}
}

/*
 * Rank 1 connects; rank 0 knows it by an address that it learns before that, or after: `late`. A
 * message from it is from this entry, whose operations use the connection that there is.
 */
static void called_by(struct api *a, const char *to, bool late)
{
	fi_addr_t peer = FI_ADDR_NOTAVAIL;
	uint64_t word = 0;
	struct side s;

	open_all(&s, a->rank, NULL);
	if (a->rank || !late)
		peer = insert_at(&s, a->rank ? OWN_NET_IN : to, ports[!a->rank]);
	api_meet(a);
	if (a->rank) {
		send_word(&s, peer, &word);
		obj_done(s.o.cq, &word);
	} else if (late) {
		OK(fi_recv(s.o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		CHECK_EQ(obj_error(s.o.cq).err, FI_EADDRNOTAVAIL);
		peer = insert_at(&s, to, PORT1);
	} else {
		OK(fi_recv(s.o.ep, &word, sizeof(word), NULL, peer, &word));
		obj_done(s.o.cq, &word);
	}
	talk(a, &s, peer);
	close_side(&s);
	api_meet(a);
}

static void called(struct api *a)
{
	for (size_t i = 0; i < API_COUNT(own4); i++)
		called_by(a, own4[i], false);
}

static void called_late(struct api *a)
{
	for (size_t i = 0; i < API_COUNT(own4); i++)
		called_by(a, own4[i], true);
}

static void itself(struct api *a)
{
	for (size_t i = 0; i < API_COUNT(own4); i++) {
		fi_addr_t self;
		struct side s;

		open_all(&s, a->rank, NULL);
		self = insert_at(&s, own4[i], PORT0);
		exchange(&s, self);
		close_side(&s);
	}
}

/* Who is unknown is told with a name that others can use. */
static void unknown(struct api *a)
{
	uint64_t word = 0;
	fi_addr_t peer;
	struct side s;

	open_all(&s, a->rank, NULL);
	api_meet(a);
	if (a->rank) {
		peer = insert_at(&s, "127.0.0.1", PORT0);
		send_word(&s, peer, &word);
		obj_done(s.o.cq, &word);
	} else {
		struct fi_cq_err_entry err;

		OK(fi_recv(s.o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		err = obj_error(s.o.cq);
		CHECK_EQ(err.err, FI_EADDRNOTAVAIL);
		CHECK_EQ(fi_av_insert(s.o.av, err.err_data, 1, &peer, 0, NULL), 1);
	}
	talk(a, &s, peer);
	close_side(&s);
	api_meet(a);
}

/* A vector with two addresses of one endpoint: what is sent by both goes by one connection, in order. */
static void two_entries(struct api *a)
{
	struct side s;
	fi_addr_t peer[2];

	open_all(&s, a->rank, NULL);
	obj_progress(a, s.o.cq);
	api_meet(a);
	for (unsigned int i = 0; a->rank && i < API_COUNT(peer); i++)
		peer[i] = insert_at(&s, own4[i], PORT0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t word = a->rank ? i : ~i;

		if (a->rank)
			send_word(&s, peer[i % 2], &word);
		else
			OK(fi_recv(s.o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		if (a->rank)
			obj_done(s.o.cq, &word);
		else
			CHECK_EQ(obj_error(s.o.cq).err, FI_EADDRNOTAVAIL);
		CHECK_EQ(word, i);
	}
	api_meet(a);
	close_side(&s);
}

static void refused_by(struct api *a, const char *to)
{
	uint64_t word = 0;
	struct side s;
	fi_addr_t peer;
	ssize_t ret;

	(void)a;
	open_side(&s, to, PORT0, 0);
	peer = insert_at(&s, to, PORT0);
	OBJ_UNTIL((ret = fi_send(s.o.ep, &word, sizeof(word), NULL, peer, NULL)) != -FI_EAGAIN,
		  fi_cq_read(s.o.cq, NULL, 0));
	CHECK_EQ(ret, -FI_ECONNREFUSED);
	close_side(&s);
}

/* An endpoint at one address, or of an interface that the user names, is at that one. */
static void one_alone(struct api *a)
{
	struct side s;

	open_all(&s, 0, getenv("FI_TCP_IFACE") ? NULL : OWN_NET_IN);
	refused_by(a, "127.0.0.1");
	close_side(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"ipv4", ipv4, 2, {0}},
		{"ipv6", ipv6, 2, {0}},
		{"crossing", crossing, 2, {0}},
		{"closed", crossing, 2, {"FI_WEFT_CLOSED=1"}},
		{"called", called, 2, {0}},
		{"called-late", called_late, 2, {0}},
		{"itself", itself, 1, {0}},
		{"unknown", unknown, 2, {0}},
		{"two-entries", two_entries, 2, {0}},
		{"address", one_alone, 1, {0}},
		{"setting", one_alone, 1, {"FI_TCP_IFACE=weft0"}},
	};

	if (!strcmp(api_provider(), "shm")) {
		printf("shm names endpoints by strings\n");
		return API_SKIP;
	}
	if (!own_net_enter())
		return API_SKIP;
	return api_main(argc, argv, cases, API_COUNT(cases));
}
