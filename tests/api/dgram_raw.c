/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A datagram endpoint and a plain UDP socket interoperate: a datagram is the message alone, and
 * comes from the address that is the endpoint's name. HW=udp
 */
#include <arpa/inet.h>

#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"
#include "lib/dgram_side.h"

union name {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static socklen_t length(bool in6)
{
	return in6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Returns a UDP socket on loopback, and its name. */
static int plain_socket(bool in6, union name *name)
{
	int fd = socket(in6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	struct timeval patience = {.tv_sec = 5};
	socklen_t len = length(in6);

	memset(name, 0, sizeof(*name));
	name->sa.sa_family = in6 ? AF_INET6 : AF_INET;
	if (in6)
		name->in6.sin6_addr = in6addr_loopback;
	else
		name->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && bind(fd, &name->sa, len) == 0);
	CHECK(getsockname(fd, &name->sa, &len) == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
	return fd;
}

static union name name_of(struct fid_ep *ep, bool in6)
{
	union name name;
	size_t len = sizeof(name);

	OK(fi_getname(&ep->fid, &name, &len));
	CHECK_EQ(len, length(in6));
	return name;
}

static in_port_t number_of(const union name *name)
{
	return name->sa.sa_family == AF_INET6 ? name->in6.sin6_port : name->in.sin_port;
}

/* The socket receives what the endpoint sends, from the endpoint's name. */
static void goes_out(struct side *s, int fd, fi_addr_t to, const union name *own, size_t len)
{
	struct data d = data_full(len, 1, (unsigned int)len);
	unsigned char *got = malloc(len + 1);
	union name from;
	socklen_t from_len = sizeof(from);

	CHECK(got);
	POST(s, fi_send(s->ep, data_at(&d), len, NULL, to, &d));
	SENT(s, &d, FI_MSG);
	CHECK_EQ(recvfrom(fd, got, len + 1, 0, &from.sa, &from_len), len);
	data_check(got, len, (unsigned int)len);
	CHECK_EQ(from_len, length(own->sa.sa_family == AF_INET6));
	CHECK(!memcmp(&from, own, from_len));
	free(got);
	data_free(&d);
}

static void comes_in(struct side *s, int fd, fi_addr_t want, const union name *own, size_t len)
{
	struct data out = data_full(len, 1, 77), in = data_new(len, 1);
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	POST(s, fi_recv(s->ep, data_at(&in), len, NULL, FI_ADDR_UNSPEC, &in));
	CHECK_EQ(sendto(fd, data_at(&out), len, 0, &own->sa, length(own->sa.sa_family == AF_INET6)),
		 len);
	e = TAKE_FROM(s, s->rx, &src);
	CHECK(e.op_context == &in && e.len == len);
	CHECK_EQ(src, want);
	DATA_EXPECT(&in, len, 77);
	data_free(&out);
	data_free(&in);
}

static void understand(struct api *a, bool in6)
{
	static const size_t lens[] = {0, 1, 8, 1472, 20000};
	struct side_opts o = dgram_opts(FI_MSG | FI_SOURCE, in6);
	union name own, theirs;
	struct side s;
	fi_addr_t to;
	int fd;

	side_open(&s, a, &o);
	fd = plain_socket(in6, &theirs);
	own = name_of(s.ep, in6);
	CHECK(number_of(&own) != 0);
	CHECK_EQ(fi_av_insert(s.av, &theirs, 1, &to, 0, NULL), 1);
	for (size_t i = 0; i < API_COUNT(lens); i++)
		if (lens[i] <= s.info->ep_attr->max_msg_size) {
			goes_out(&s, fd, to, &own, lens[i]);
			comes_in(&s, fd, to, &own, lens[i]);
		}
	close(fd);
	side_close(&s);
}

static void wire(struct api *a)
{
	understand(a, false);
}

static void wire6(struct api *a)
{
	understand(a, true);
}

/* A receive whose memory cannot be written ends by an error and takes one datagram with it; the next one is received. */
static void unwritable(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), got[8] = {0};
	struct iovec list[2] = {{none, 4}, {none + 4, 4}};
	struct side s;

	CHECK(none != MAP_FAILED);
	for (int pieces = 1; pieces <= 2; pieces++) {
		side_open(&s, a, &o);
		OK(fi_recvv(s.ep, list, NULL, pieces, FI_ADDR_UNSPEC, list));
		OK(fi_recv(s.ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, got));
		for (int i = 0; i < 2; i++)
			POST(&s, fi_send(s.ep, "datagram", 8, NULL, s.addr[0], &s));
		CHECK(TAKE_ERR(&s, s.rx, FI_EFAULT).op_context == list);
		CHECK(TAKE(&s, s.rx).op_context == got);
		CHECK(!memcmp(got, "datagram", 8));
		side_close(&s);
	}
	munmap(none, 4096);
}

/* Sending to a port without a socket is no error; the endpoint works on. */
static void nobody(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG | FI_SOURCE, false);
	union name own, theirs;
	uint64_t value = 0;
	struct side s;
	fi_addr_t to;
	int fd;

	side_open(&s, a, &o);
	fd = plain_socket(false, &theirs);
	close(fd);
	CHECK_EQ(fi_av_insert(s.av, &theirs, 1, &to, 0, NULL), 1);
	POST(&s, fi_recv(s.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
	for (int i = 0; i < 50; i++) {
		POST(&s, fi_send(s.ep, "hello", 5, NULL, to, &s));
		SENT(&s, &s, FI_MSG);
	}
	QUIET(&s, s.rx, 5);
	own = name_of(s.ep, false);
	fd = plain_socket(false, &theirs);
	CHECK_EQ(sendto(fd, "abcdefgh", 8, 0, &own.sa, sizeof(own.in)), 8);
	GOT(&s, &value, FI_MSG, 8);
	close(fd);
	side_close(&s);
}

/* Sends to a removed entry are dropped; other entries work. */
static void removed(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	union name theirs[2], own;
	fi_addr_t to[2];
	struct side s;
	int fd[2];

	side_open(&s, a, &o);
	own = name_of(s.ep, false);
	for (int i = 0; i < 2; i++) {
		fd[i] = plain_socket(false, &theirs[i]);
		CHECK_EQ(fi_av_insert(s.av, &theirs[i], 1, &to[i], 0, NULL), 1);
	}
	goes_out(&s, fd[0], to[0], &own, 8);
	OK(fi_av_remove(s.av, &to[0], 1, 0));
	CHECK_EQ(fi_send(s.ep, "hello", 5, NULL, to[0], NULL), -FI_EINVAL);
	goes_out(&s, fd[1], to[1], &own, 8);
	close(fd[0]);
	close(fd[1]);
	side_close(&s);
}

static size_t limit(struct side *s, int option)
{
	size_t value = SIZE_MAX, len = sizeof(value);

	OK(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, option, &value, &len));
	return value;
}

/* Domains offer messages only, of at most one datagram. */
static void limits(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct side s;

	if (api_other())
		api_skip("later than this library");
	side_open(&s, a, &o);
	CHECK_EQ(limit(&s, FI_OPT_MAX_MSG_SIZE), s.info->ep_attr->max_msg_size);
	CHECK_EQ(limit(&s, FI_OPT_INJECT_MSG_SIZE), s.info->tx_attr->inject_size);
	CHECK_EQ(limit(&s, FI_OPT_MAX_TAGGED_SIZE), 0);
	CHECK_EQ(limit(&s, FI_OPT_INJECT_TAGGED_SIZE), 0);
	CHECK_EQ(limit(&s, FI_OPT_MAX_RMA_SIZE), 0);
	CHECK_EQ(limit(&s, FI_OPT_MAX_ATOMIC_SIZE), 0);
	side_close(&s);
}

/* A destination that the system forbids: the send completes with that error. */
static void no_way(struct api *a)
{
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct side s;
	fi_addr_t to;

	side_open(&s, a, &o);
	CHECK(inet_pton(AF_INET, "255.255.255.255", &far.sin_addr) == 1);
	CHECK_EQ(fi_av_insert(s.av, &far, 1, &to, 0, NULL), 1);
	if (api_other()) { /* another library fails the call */
		CHECK_EQ(fi_send(s.ep, "hello", 5, NULL, to, &s), -FI_EACCES);
	} else {
		OK(fi_send(s.ep, "hello", 5, NULL, to, &s));
		CHECK(TAKE_ERR(&s, s.tx, FI_EACCES).op_context == &s);
	}
	CHECK_EQ(fi_inject(s.ep, "hello", 5, to), -FI_EACCES);
	QUIET(&s, s.tx, 2);
	side_close(&s);
}

static struct fid_ep *bare_ep(struct side *s, struct fi_info *info)
{
	struct fid_ep *ep;

	OK(fi_endpoint(s->domain, info, &ep, NULL));
	OK(fi_ep_bind(ep, &s->av->fid, 0));
	OK(fi_ep_bind(ep, &s->tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &s->rx->fid, FI_RECV));
	return ep;
}

/* The endpoint gets the port it asks for, unless the port is in use. */
static void numbers(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct fid_ep *ep;
	union name theirs, got;
	struct side s;
	int fd;

	side_open(&s, a, &o);
	fd = plain_socket(false, &theirs);
	ep = bare_ep(&s, s.info);
	if (!api_other()) /* another library reports this later, or never */
		CHECK_EQ(fi_setname(&ep->fid, &theirs, sizeof(theirs.in)), -FI_EADDRINUSE);
	OK(fi_close(&ep->fid));
	close(fd);
	ep = bare_ep(&s, s.info);
	OK(fi_setname(&ep->fid, &theirs, sizeof(theirs.in)));
	OK(fi_enable(ep));
	got = name_of(ep, false);
	CHECK(!memcmp(&got, &theirs, sizeof(got.in)));
	CHECK(fi_setname(&ep->fid, &theirs, sizeof(theirs.in)) < 0);
	OK(fi_close(&ep->fid));
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"wire", wire, 1, {0}},       {"wire6", wire6, 1, {0}},
		{"nobody", nobody, 1, {0}},   {"removed", removed, 1, {0}},
		{"numbers", numbers, 1, {0}}, {"limits", limits, 1, {0}},
		{"no_way", no_way, 1, {0}},   {"unwritable", unwritable, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
