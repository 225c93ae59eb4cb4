/* SPDX-License-Identifier: BSD-2-Clause */
/* Failing connection attempts, and invalid calls. fi_cm(3), fi_eq(3). */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "obj.h"
#include "lib/cm.h"

static uint64_t word;

/* Checks an endpoint after its failed attempt: posted receives have ended, calls fail. */
static void check_failed(struct cm *c, struct cm_end *e, const struct obj_name *to)
{
	struct fi_cq_err_entry err = obj_error(e->cq);
	size_t len = sizeof(struct sockaddr_in);
	char name[128];

	CHECK_EQ(err.err, FI_ECANCELED);
	CHECK_EQ((intptr_t)err.op_context, (intptr_t)e);
	CHECK_EQ(err.flags, FI_MSG | FI_RECV);
	SILENCE(c, e->eq);
	CHECK_EQ(fi_send(e->ep, &word, 8, NULL, 0, &word), -FI_ENOTCONN);
	CHECK_EQ(fi_inject(e->ep, &word, 8, 0), -FI_ENOTCONN);
	if (!cm_bare()) /* bare queue pairs flush such receives */
		CHECK_EQ(fi_recv(e->ep, &word, 8, NULL, 0, &word), -FI_ENOTCONN);
	CHECK_EQ(fi_connect(e->ep, to->bytes, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_getpeer(e->ep, name, &len), -FI_ENOTCONN);
	OK(fi_shutdown(e->ep, 0));
	SILENCE(c, e->eq);
	obj_quiet(e->cq, 5);
}

/* Connects an endpoint that has a receive posted. */
static void attempt(struct cm *c, struct cm_end *e, const struct obj_name *to)
{
	cm_end(c, e, c->o.info);
	cm_enable(e);
	OK(fi_recv(e->ep, &word, 8, NULL, FI_ADDR_UNSPEC, e));
	OK(fi_connect(e->ep, to->bytes, "please", 6));
}

/* Returns an address without a listener. */
static struct obj_name nobody(struct cm *c)
{
	struct fid_eq *eq = cm_eq(c, FI_WAIT_NONE);
	struct fid_pep *pep = cm_pep(c, eq);
	struct obj_name name = obj_name(&pep->fid);

	CLOSE(pep);
	cm_close_eq(c, eq);
	return name;
}

static void to_nobody(struct api *a)
{
	struct cm_event got;
	struct obj_name to;
	struct cm_end e;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	to = nobody(&c);
	attempt(&c, &e, &to);
	got = FAILURE(&c, &e, FI_ECONNREFUSED);
	CHECK_EQ(got.len, 0);
	check_failed(&c, &e, &to);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/* An address to which not even the first packet can be sent. */
static void no_way(struct api *a)
{
	struct sockaddr_in all = {.sin_family = AF_INET,
				  .sin_port = htons(4711),
				  .sin_addr.s_addr = htonl(INADDR_BROADCAST)};
	struct obj_name to = {.len = sizeof(all)};
	struct cm_end e;
	struct cm c;

	(void)a;
	memcpy(to.bytes, &all, sizeof(all));
	cm_domain(&c, 0, NULL);
	attempt(&c, &e, &to);
	FAILURE(&c, &e, cm_inside() ? FI_EHOSTUNREACH : FI_ENETUNREACH);
	check_failed(&c, &e, &to);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/* Rejecting with and without user data; a second answer fails. */
static void rejected(struct api *a)
{
	static const size_t lengths[] = {0, 7, CM_DATA, CM_DATA + 88};
	unsigned char why[CM_DATA + 88];
	struct fi_info *request;
	struct cm_event got;
	struct obj_name to;
	struct cm_end e;
	struct cm c;

	(void)a;
	memset(why, 'n', sizeof(why));
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	for (size_t i = 0; i < API_COUNT(lengths); i++) {
		size_t most = cm_bare() ? CM_BARE_REJECT : CM_DATA;
		size_t heard = lengths[i] < most ? lengths[i] : most;

		attempt(&c, &e, &to);
		request = cm_request(&c);
		OK(fi_reject(c.pep, request->handle, lengths[i] ? why : NULL, lengths[i]));
		fi_freeinfo(request);
		got = FAILURE(&c, &e, FI_ECONNREFUSED);
		if (cm_bare()) /* the RDMA connection manager pads the user data */
			CHECK(got.len >= heard);
		else
			CHECK_EQ(got.len, heard);
		CHECK(!memcmp(got.data, why, heard));
		check_failed(&c, &e, &to);
		cm_close_end(&c, &e);
	}
	SILENCE(&c, c.eq);
	cm_close(&c);
}

/* The object closed instead of answering a request. */
enum going { PEP_AT_ONCE, PEP_UNREAD, QUEUE_UNREAD, HANDLE, ENDPOINT, GOINGS };

/* Waits until the request is in the event queue, unread. */
static void wait_unread(struct cm *c)
{
	struct cm_event scratch;
	uint32_t event;

	OBJ_UNTIL(fi_eq_read(c->eq, &event, &scratch, sizeof(scratch), FI_PEEK) > 0,
		  cm_progress(c));
}

static void go(struct cm *c, enum going going)
{
	struct cm_end passive;
	struct fi_info *request;

	if (going == PEP_UNREAD || going == QUEUE_UNREAD)
		wait_unread(c);
	if (going <= QUEUE_UNREAD) {
		CLOSE(c->pep);
		c->pep = NULL;
	}
	if (going == QUEUE_UNREAD) {
		cm_close_eq(c, c->eq);
		c->eq = NULL;
	}
	if (going <= QUEUE_UNREAD)
		return;
	request = cm_request(c);
	if (going == HANDLE) {
		OK(fi_close(request->handle));
	} else {
		cm_end(c, &passive, request);
		cm_close_end(c, &passive);
	}
	fi_freeinfo(request);
}

static void unanswered(struct api *a)
{
	struct obj_name to;
	struct cm_end e;
	struct cm c;

	(void)a;
	for (enum going going = 0; going < GOINGS; going++) {
		cm_domain(&c, 0, NULL);
		cm_listen(&c);
		to = obj_name(&c.pep->fid);
		attempt(&c, &e, &to);
		go(&c, going);
		FAILURE(&c, &e, FI_ECONNREFUSED);
		check_failed(&c, &e, &to);
		if (c.eq)
			SILENCE(&c, c.eq);
		cm_close_end(&c, &e);
		cm_close(&c);
	}
}

/* A request that was read can be accepted after its passive endpoint was closed. */
static void orphan(struct api *a)
{
	struct cm_end active, passive;
	struct fi_info *request;
	struct obj_name to;
	struct cm c;

	(void)a;
	request = cm_ask(&c, &active, &to);
	CLOSE(c.pep);
	c.pep = NULL;
	cm_accept(&c, &passive, request);
	EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
	cm_talk(&active, &passive);
	cm_close_both(&c, &active, &passive);
}

/* The initiator closes before the answer: fi_accept leads to a failure event. */
static void given_up(struct api *a)
{
	struct cm_end active, passive;
	struct fi_info *request;
	struct obj_name to;
	struct cm c;

	(void)a;
	request = cm_ask(&c, &active, &to);
	cm_close_end(&c, &active);
	cm_end(&c, &passive, request);
	cm_enable(&passive);
	OK(fi_recv(passive.ep, &word, 8, NULL, FI_ADDR_UNSPEC, &passive));
	OK(fi_accept(passive.ep, NULL, 0));
	FAILURE(&c, &passive, FI_ECONNABORTED);
	check_failed(&c, &passive, &to);
	CHECK_EQ(fi_accept(passive.ep, NULL, 0), -FI_EINVAL);
	fi_freeinfo(request);
	cm_close_end(&c, &passive);
	cm_close(&c);
}

/* A request allows one endpoint and one answer. */
static void once(struct api *a)
{
	struct cm_end active, passive;
	struct fi_info *request;
	struct fid_ep *second;
	struct obj_name to;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	cm_connect(&c, &active, &to);
	CHECK_EQ(fi_connect(active.ep, to.bytes, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_accept(active.ep, NULL, 0), -FI_EINVAL);
	request = cm_request(&c);
	cm_end(&c, &passive, request);
	CHECK_EQ(fi_endpoint(c.o.domain, request, &second, NULL), -FI_EINVAL);
	CHECK_EQ(fi_close(request->handle), -FI_EBUSY);
	CHECK_EQ(fi_connect(passive.ep, to.bytes, NULL, 0), -FI_EINVAL);
	OK(fi_accept(passive.ep, NULL, 0));
	CHECK_EQ(fi_accept(passive.ep, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_reject(c.pep, request->handle, NULL, 0), -FI_EINVAL);
	EVENT(&c, passive.eq, FI_CONNECTED, &passive.ep->fid);
	EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
	cm_talk(&active, &passive);
	SILENCE(&c, passive.eq);
	SILENCE(&c, active.eq);
	fi_freeinfo(request);
	cm_close_both(&c, &active, &passive);
}

/* A request can still be rejected after an endpoint was opened for it. */
static void rejected_late(struct api *a)
{
	struct cm_end active, passive;
	struct fi_info *request;
	struct obj_name to;
	struct cm c;

	(void)a;
	request = cm_ask(&c, &active, &to);
	cm_end(&c, &passive, request);
	OK(fi_reject(c.pep, request->handle, "no", 2));
	CHECK_EQ(fi_accept(passive.ep, NULL, 0), -FI_EINVAL);
	FAILURE(&c, &active, FI_ECONNREFUSED);
	fi_freeinfo(request);
	cm_close_both(&c, &active, &passive);
}

static void senseless(struct api *a)
{
	struct fi_info *info;
	struct fid_pep *pep;
	struct obj_name to;
	struct fid_ep *ep;
	struct cm_end e;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	OK(fi_passive_ep(c.o.fabric, c.o.info, &pep, NULL));
	CHECK_EQ(fi_listen(pep), -FI_ENOEQ);
	CHECK_EQ(fi_reject(pep, NULL, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_reject(pep, &pep->fid, NULL, 0), -FI_EINVAL);
	CLOSE(pep);
	info = fi_dupinfo(c.o.info);
	info->handle = &c.o.domain->fid;
	CHECK_EQ(fi_endpoint(c.o.domain, info, &ep, NULL), -FI_EINVAL);
	fi_freeinfo(info);
	OK(fi_endpoint(c.o.domain, c.o.info, &ep, NULL));
	CHECK_EQ(fi_connect(ep, to.bytes, NULL, 0), -FI_ENOEQ);
	CLOSE(ep);
	cm_end(&c, &e, c.o.info);
	CHECK_EQ(fi_connect(e.ep, NULL, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_connect(e.ep, to.bytes, NULL, 3), -FI_EINVAL);
	CHECK_EQ(fi_accept(e.ep, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_shutdown(e.ep, 0), -FI_ENOTCONN);
	CHECK_EQ(fi_shutdown(e.ep, 1), -FI_EINVAL);
	CHECK_EQ(fi_getpeer(e.ep, to.bytes, &to.len), -FI_ENOTCONN);
	SILENCE(&c, e.eq);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/* Before the connection, sends fail and receives can be posted. */
static void before(struct api *a)
{
	struct cm_end active, passive;
	uint64_t heard = 0;
	struct obj_name to;
	struct cm c;

	(void)a;
	word = 77;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	cm_end(&c, &active, c.o.info);
	cm_enable(&active);
	CHECK_EQ(fi_send(active.ep, &word, 8, NULL, 0, &word), -FI_ENOTCONN);
	OK(fi_recv(active.ep, &heard, 8, NULL, FI_ADDR_UNSPEC, &heard));
	OK(fi_connect(active.ep, to.bytes, NULL, 0));
	cm_accept(&c, &passive, cm_request(&c));
	OK(fi_send(passive.ep, &word, 8, NULL, 0, &word));
	EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
	obj_done(passive.cq, &word);
	obj_done(active.cq, &heard);
	CHECK_EQ(heard, 77);
	cm_close_both(&c, &active, &passive);
}

/* A connected endpoint and a reliable datagram endpoint cannot connect, whichever begins. */
static void other_kind(struct api *a)
{
	struct obj_name to;
	struct obj rdm = {0};
	fi_addr_t addr;
	struct cm_end e;
	struct cm c;
	ssize_t ret;

	(void)a;
	if (cm_inside())
		api_skip("endpoints of the other kind have names that are strings");
	obj_open(&rdm);
	to = obj_name(&rdm.ep->fid);
	cm_domain(&c, 0, NULL);
	cm_end(&c, &e, c.o.info);
	OK(fi_connect(e.ep, to.bytes, NULL, 0));
	OBJ_UNTIL(fi_eq_read(e.eq, &(uint32_t){0}, NULL, 0, 0) == -FI_EAVAIL,
		  fi_cq_read(rdm.cq, NULL, 0));
	FAILURE(&c, &e, FI_ECONNREFUSED);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	addr = obj_insert(rdm.av, &to);
	OBJ_UNTIL((ret = fi_send(rdm.ep, &word, 8, NULL, addr, &word)) != -FI_EAGAIN,
		  cm_progress(&c));
	CHECK_EQ(ret, -FI_ECONNREFUSED);
	SILENCE(&c, c.eq);
	cm_close_end(&c, &e);
	cm_close(&c);
	obj_close(&rdm);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"to-nobody", to_nobody, 1, {0}},
		{"no-way", no_way, 1, {0}},
		{"rejected", rejected, 1, {0}},
		{"unanswered", unanswered, 1, {0}},
		{"orphan", orphan, 1, {0}},
		{"given-up", given_up, 1, {0}},
		{"once", once, 1, {0}},
		{"rejected-late", rejected_late, 1, {0}},
		{"senseless", senseless, 1, {0}},
		{"before", before, 1, {0}},
		{"other-kind", other_kind, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
