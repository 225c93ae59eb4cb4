/* SPDX-License-Identifier: BSD-2-Clause */
/* Exclusive ports, failed listening that is tried again, and requests across fork(2). */
#include <errno.h>
#include <netinet/in.h>
#include <sys/wait.h>

#include "obj.h"
#include "lib/cm.h"

static struct sockaddr_in in_of(const struct obj_name *name)
{
	struct sockaddr_in in;

	CHECK_EQ(name->len, sizeof(in));
	memcpy(&in, name->bytes, sizeof(in));
	return in;
}

/* Hints for IPv4 address `ip` with a port chosen by the library. */
static void ask_source(struct fi_info *hints, uint32_t ip)
{
	struct sockaddr_in *in = calloc(1, sizeof(*in));

	CHECK(in);
	*in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = in;
	hints->src_addrlen = sizeof(*in);
}

/* Hints for 127.0.0.1; a device has its own address. */
static void ask_loopback(struct fi_info *hints)
{
	if (!cm_bare())
		ask_source(hints, INADDR_LOOPBACK);
}

/*
 * ---- Narrow port ranges ------------------------------------------------------------------------
 */

static bool is_free(uint16_t number)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(number)};
	int sock = socket(AF_INET, SOCK_STREAM, 0);
	bool is = bind(sock, (struct sockaddr *)&in, sizeof(in)) == 0;

	close(sock);
	return is;
}

/* Limits the library's port range to `count` free ports. Call before the library is used. */
static void narrow(unsigned int count)
{
	unsigned int low = 20000 + (unsigned int)getpid() % 10000, have = 0;
	char text[16];

	for (; have < count; low++) {
		CHECK(low < 32000);
		have = is_free((uint16_t)low) ? have + 1 : 0;
	}
	snprintf(text, sizeof(text), "%u", low - count);
	CHECK(setenv("FI_TCP_PORT_LOW_RANGE", text, 1) == 0);
	snprintf(text, sizeof(text), "%u", low - 1);
	CHECK(setenv("FI_TCP_PORT_HIGH_RANGE", text, 1) == 0);
}

/* A passive endpoint has its port exclusively, listening or not, and can be connected to. */
static void range_of_two(struct api *a)
{
	struct fid_pep *pep[3];
	struct obj_name name[2];
	struct cm_end active, passive;
	size_t len = sizeof(name[0].bytes);
	struct cm c;

	(void)a;
	narrow(2);
	cm_domain(&c, 0, ask_loopback);
	c.eq = cm_eq(&c, FI_WAIT_UNSPEC);
	for (int i = 0; i < 3; i++)
		pep[i] = cm_pep(&c, c.eq);
	for (int i = 0; i < 2; i++)
		name[i] = obj_name(&pep[i]->fid);
	CHECK(in_of(&name[0]).sin_port != in_of(&name[1]).sin_port);
	CHECK_EQ(fi_getname(&pep[2]->fid, name[0].bytes, &len), -FI_EADDRINUSE);
	CHECK_EQ(fi_listen(pep[2]), -FI_EADDRINUSE);
	OK(fi_listen(pep[1]));
	OK(fi_listen(pep[0]));
	for (int i = 0; i < 2; i++) {
		cm_connect(&c, &active, &name[i]);
		c.pep = pep[i];
		cm_accept(&c, &passive, cm_request(&c));
		EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
		cm_close_end(&c, &active);
		cm_close_end(&c, &passive);
	}
	for (int i = 0; i < 3; i++)
		CLOSE(pep[i]);
	c.pep = NULL;
	cm_close(&c);
}

/* An endpoint of another type cannot listen on a reserved port either. */
static void range_of_one(struct api *a)
{
	struct obj rdm = {.hints = obj_hints(FI_MSG | FI_TAGGED)};
	struct obj_name name;
	struct cm c;

	(void)a;
	if (cm_inside())
		api_skip("endpoints of the other kind have names that are strings");
	narrow(1);
	cm_domain(&c, 0, ask_loopback);
	c.eq = cm_eq(&c, FI_WAIT_UNSPEC);
	c.pep = cm_pep(&c, c.eq);
	obj_name(&c.pep->fid);
	ask_loopback(rdm.hints);
	obj_domain(&rdm);
	rdm.av = obj_av(&rdm, FI_AV_UNSPEC, 0);
	rdm.cq = obj_cq(&rdm, FI_WAIT_NONE);
	rdm.ep = obj_ep(&rdm);
	OK(fi_ep_bind(rdm.ep, &rdm.av->fid, 0));
	OK(fi_ep_bind(rdm.ep, &rdm.cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK_EQ(fi_enable(rdm.ep), -FI_EADDRINUSE);
	CLOSE(c.pep);
	c.pep = NULL;
	OK(fi_enable(rdm.ep));
	name = obj_name(&rdm.ep->fid);
	CHECK_EQ(ntohs(in_of(&name).sin_port), atoi(getenv("FI_TCP_PORT_LOW_RANGE")));
	obj_close(&rdm);
	cm_close(&c);
}

/* ---- Listening that fails -------------------------------------------------------------------- */

/*
 * Returns a passive endpoint for all addresses with the port of `name`, or NULL if another process
 * uses that port.
 */
static struct fid_pep *pep_at_all(struct cm *c, const struct obj_name *name)
{
	struct sockaddr_in in = in_of(name);
	struct fid_pep *pep = cm_pep(c, c->eq);
	int ret;

	in.sin_addr.s_addr = htonl(INADDR_ANY);
	ret = fi_setname(&pep->fid, &in, sizeof(in));
	if (!ret)
		return pep;
	CHECK_EQ(ret, -FI_EADDRINUSE);
	CLOSE(pep);
	return NULL;
}

/*
 * Opens c->pep at one address, writes its name, and returns a second one for all addresses with the
 * same port.
 */
static struct fid_pep *one_and_all(struct cm *c, struct obj_name *name)
{
	struct fid_pep *all = NULL;

	for (int tries = 0; !all; tries++) {
		CHECK(tries < 20);
		if (c->pep)
			CLOSE(c->pep);
		c->pep = cm_pep(c, c->eq);
		*name = obj_name(&c->pep->fid);
		all = pep_at_all(c, name);
	}
	return all;
}

/*
 * While another endpoint listens on all addresses, listening on one of them with the same port
 * fails each time.
 */
static void again(struct api *a)
{
	struct cm_end active, passive;
	struct obj_name name;
	struct fid_pep *all;
	struct cm c;

	(void)a;
	if (cm_inside())
		api_skip("each address is one socket's from the start");
	cm_domain(&c, 0, ask_loopback);
	c.eq = cm_eq(&c, FI_WAIT_UNSPEC);
	all = one_and_all(&c, &name);
	OK(fi_listen(all));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(fi_listen(c.pep), -FI_EADDRINUSE);
	CLOSE(all);
	OK(fi_listen(c.pep));
	cm_connect(&c, &active, &name);
	cm_accept(&c, &passive, cm_request(&c));
	EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
	cm_talk(&active, &passive);
	cm_close_both(&c, &active, &passive);
}

/* ---- Across fork ----------------------------------------------------------------------------- */

#define SOCKS 40 /* more than the descriptors of a request */

/*
 * Opens many sockets in the child, one of which gets the descriptor number of the request's socket.
 */
static void fill_numbers(int pairs[SOCKS][2])
{
	for (int i = 0; i < SOCKS; i++)
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) == 0);
}

/* Checks that the sockets are open and no data was sent on them. */
static void check_numbers(int pairs[SOCKS][2])
{
	char byte;

	for (int i = 0; i < 2 * SOCKS; i++)
		CHECK(recv(pairs[i / 2][i % 2], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

static const void *volatile left[2]; /* keeps the parent's objects reachable in the child */

/* The child uses its copies of a read and an unread request in one of three ways. */
static void child(struct cm *c, struct fi_info *read, int how)
{
	int pairs[SOCKS][2];
	struct fid_ep *ep;

	fill_numbers(pairs);
	left[0] = read;
	left[1] = read->handle;
	if (how == 0) {
		CHECK_EQ(fi_reject(c->pep, read->handle, "no", 2), -FI_EINVAL);
		OK(fi_close(read->handle));
		fi_freeinfo(read);
	} else if (how == 1) {
		struct obj o = {0};

		obj_domain(&o);
		CHECK_EQ(fi_endpoint(o.domain, read, &ep, NULL), -FI_EINVAL);
		obj_close(&o);
	} else {
		CLOSE(c->pep);
	}
	check_numbers(pairs);
	if (how == 2)
		exit(0);
	_exit(0);
}

/* Two requests wait, one of them read. The child's calls must not affect the parent's requests. */
static void forked(struct api *a)
{
	struct cm_end active[2], passive[2];
	struct fi_info *read;
	struct obj_name to;
	int status;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	for (int i = 0; i < 2; i++)
		cm_connect(&c, &active[i], &to);
	read = cm_request(&c);
	for (int how = 0; how < 3; how++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			child(&c, read, how);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK_EQ(status, 0);
	}
	cm_accept(&c, &passive[0], read);
	cm_accept(&c, &passive[1], cm_request(&c));
	for (int i = 0; i < 2; i++)
		EVENT(&c, active[i].eq, FI_CONNECTED, &active[i].ep->fid);
	for (int i = 0; i < 2; i++) {
		cm_close_end(&c, &active[i]);
		EVENT(&c, passive[i].eq, FI_SHUTDOWN, &passive[i].ep->fid);
		cm_close_end(&c, &passive[i]);
	}
	cm_close(&c);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"range-of-two", range_of_two, 1, {0}},
		{"range-of-one", range_of_one, 1, {0}},
		{"again", again, 1, {0}},
		{"forked", forked, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
