/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints of one key connect, others get FI_EACCES and are no request to the listener. */
#include "obj.h"
#include "lib/cm.h"
#include "lib/key.h"

static unsigned int number; /* of the listener's key; 0: none */

static void with_key(struct fi_info *hints)
{
	key_set(hints, number, KEY_LEN);
}

static void open_keyed(struct cm *c, unsigned int key)
{
	if (cm_bare())
		api_skip("a bare queue pair has no key");
	number = key;
	cm_domain(c, 0, with_key);
	cm_listen(c);
}

/* Begins to connect an endpoint of this key to the listener. */
static void call(struct cm *c, struct cm_end *e, unsigned int key)
{
	struct fi_info *info = fi_dupinfo(c->o.info);
	struct obj_name name = obj_name(&c->pep->fid);

	key_set(info, key, KEY_LEN);
	cm_end(c, e, info);
	fi_freeinfo(info);
	cm_enable(e);
	OK(fi_connect(e->ep, name.bytes, "please", 6));
}

static void one_key(struct api *a)
{
	static char in[8];
	struct cm_end active, passive;
	struct cm_event got;
	struct cm c;

	(void)a;
	open_keyed(&c, 1);
	call(&c, &active, 1);
	got = EVENT(&c, c.eq, FI_CONNREQ, &c.pep->fid);
	CHECK_EQ(got.len, 6);
	CHECK(!memcmp(got.data, "please", 6));
	cm_accept(&c, &passive, got.entry.info);
	EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
	OK(fi_recv(passive.ep, in, sizeof(in), NULL, 0, &c));
	POST(active.cq, fi_send(active.ep, "message", 8, NULL, 0, &c));
	obj_done(active.cq, &c);
	obj_done(passive.cq, &c);
	CHECK(!strcmp(in, "message"));
	cm_close_end(&c, &active);
	cm_close_end(&c, &passive);
	cm_close(&c);
}

/* The words of a listener that has proven its key arrive. */
static void rejected(struct api *a)
{
	struct fi_info *request;
	struct cm_event got;
	struct cm_end e;
	struct cm c;

	(void)a;
	open_keyed(&c, 1);
	call(&c, &e, 1);
	request = cm_request(&c);
	OK(fi_reject(c.pep, request->handle, "full", 4));
	fi_freeinfo(request);
	got = FAILURE(&c, &e, FI_ECONNREFUSED);
	CHECK_EQ(got.len, 4);
	cm_close_end(&c, &e);
	cm_close(&c);
}

static void in_vain(unsigned int listens, unsigned int calls)
{
	struct cm_end e;
	struct cm c;

	open_keyed(&c, listens);
	call(&c, &e, calls);
	/* The listener is driven meanwhile. */
	CHECK_EQ(FAILURE(&c, &e, FI_EACCES).len, 0);
	SILENCE(&c, c.eq);
	cm_close_end(&c, &e);
	cm_close(&c);
}

static void two_keys(struct api *a)
{
	(void)a;
	in_vain(1, 2);
}

static void caller_has_none(struct api *a)
{
	(void)a;
	in_vain(1, 0);
}

static void listener_has_none(struct api *a)
{
	(void)a;
	in_vain(0, 1);
}

/* The endpoint that is to accept has another key than the listener that has got the request. */
static void accepted_by_another(struct api *a)
{
	struct cm_end active, passive;
	struct fi_info *request;
	struct cm c;

	(void)a;
	open_keyed(&c, 1);
	call(&c, &active, 1);
	request = cm_request(&c);
	key_set(request, 2, KEY_LEN);
	cm_end(&c, &passive, request);
	fi_freeinfo(request);
	cm_enable(&passive);
	OK(fi_accept(passive.ep, NULL, 0));
	FAILURE(&c, &passive, FI_EACCES);
	FAILURE(&c, &active, FI_EACCES);
	cm_close_end(&c, &active);
	cm_close_end(&c, &passive);
	cm_close(&c);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"one-key", one_key, 1, {0}},
		{"one-key-closed", one_key, 1, {"FI_WEFT_CLOSED=1"}},
		{"rejected", rejected, 1, {0}},
		{"two-keys", two_keys, 1, {0}},
		{"caller-none", caller_has_none, 1, {0}},
		{"listener-none", listener_has_none, 1, {0}},
		{"other-accepts", accepted_by_another, 1, {0}},
	};

	key_need_library();
	return api_main(argc, argv, cases, API_COUNT(cases));
}
