/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection setup: requests, answers, user data, names, many at a time. fi_cm(3). */
#include <netinet/in.h>

#include "obj.h"
#include "lib/cm.h"

static void fill(unsigned char *data, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (unsigned char)(seed + i * 7);
}

static void check_data(const struct cm_event *got, size_t len, unsigned int seed)
{
	unsigned char wanted[CM_DATA];

	fill(wanted, len, seed);
	if (cm_bare()) /* the RDMA connection manager pads the user data */
		CHECK(got->len >= len);
	else
		CHECK_EQ(got->len, len);
	CHECK(!memcmp(got->data, wanted, len));
}

static void check_name(const struct obj_name *name, const void *bytes, size_t len)
{
	CHECK_EQ(name->len, len);
	CHECK(!memcmp(name->bytes, bytes, len));
}

/* User data in the request and in the answer; longer data is truncated. */
static void say(struct cm *c, const struct obj_name *to, size_t asked, size_t answered)
{
	size_t heard = asked < CM_DATA ? asked : CM_DATA;
	unsigned char data[2 * CM_DATA];
	struct cm_end active, passive;
	struct cm_event got;

	cm_end(c, &active, c->o.info);
	fill(data, asked, 1);
	OK(fi_connect(active.ep, to->bytes, asked ? data : NULL, asked));
	got = EVENT(c, c->eq, FI_CONNREQ, &c->pep->fid);
	check_data(&got, heard, 1);
	cm_end(c, &passive, got.entry.info);
	fill(data, answered, 2);
	OK(fi_accept(passive.ep, answered ? data : NULL, answered));
	fi_freeinfo(got.entry.info);
	got = EVENT(c, passive.eq, FI_CONNECTED, &passive.ep->fid);
	CHECK_EQ(got.len, 0);
	got = EVENT(c, active.eq, FI_CONNECTED, &active.ep->fid);
	check_data(&got, answered < CM_DATA ? answered : CM_DATA, 2);
	cm_talk(&active, &passive);
	cm_close_end(c, &active);
	EVENT(c, passive.eq, FI_SHUTDOWN, &passive.ep->fid);
	cm_close_end(c, &passive);
}

static void data(struct api *a)
{
	static const size_t lengths[] = {0, 1, 255, 256, CM_DATA - 1, CM_DATA, CM_DATA + 1, 1000};
	struct obj_name name;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	name = obj_name(&c.pep->fid);
	for (size_t i = 0; i < API_COUNT(lengths); i++) {
		size_t asked = lengths[i], answered = lengths[API_COUNT(lengths) - 1 - i];

		if (cm_bare() && asked > CM_BARE_DATA)
			asked = CM_BARE_DATA;
		if (cm_bare() && answered > CM_BARE_DATA)
			answered = CM_BARE_DATA;
		say(&c, &name, asked, answered);
	}
	cm_close(&c);
}

static void data_size(struct api *a)
{
	struct cm c;
	struct cm_end e;
	size_t size = 0, len = sizeof(size);

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	cm_end(&c, &e, c.o.info);
	OK(fi_getopt(&c.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len));
	CHECK_EQ(size, cm_bare() ? CM_BARE_DATA : CM_DATA);
	size = 0;
	OK(fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len));
	CHECK_EQ(size, cm_bare() ? CM_BARE_DATA : CM_DATA);
	CHECK_EQ(len, sizeof(size));
	cm_close_end(&c, &e);
	cm_close(&c);
}

/*
 * The user data of an event is truncated to the buffer. If the event itself does not fit, it stays
 * queued.
 */
static void small_buffer(struct api *a)
{
	struct fi_eq_cm_entry *entry;
	unsigned char bytes[sizeof(*entry) + 3];
	struct obj_name name;
	struct cm_end e;
	uint32_t event;
	struct cm c;
	ssize_t ret;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	name = obj_name(&c.pep->fid);
	cm_end(&c, &e, c.o.info);
	OK(fi_connect(e.ep, name.bytes, "hello", 5));
	OBJ_UNTIL((ret = fi_eq_read(c.eq, &event, bytes, 8, 0)) != -FI_EAGAIN, cm_progress(&c));
	CHECK_EQ(ret, -FI_ETOOSMALL);
	CHECK_EQ(fi_eq_read(c.eq, &event, bytes, sizeof(bytes), 0), sizeof(bytes));
	CHECK_EQ(event, FI_CONNREQ);
	CHECK(!memcmp(bytes + sizeof(*entry), "hel", 3));
	entry = (struct fi_eq_cm_entry *)bytes;
	OK(fi_reject(c.pep, entry->info->handle, NULL, 0));
	fi_freeinfo(entry->info);
	FAILURE(&c, &e, FI_ECONNREFUSED);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/* Checks the fi_info of a request. */
static void check_info(const struct cm *c, const struct fi_info *got)
{
	const struct fi_info *own = c->o.info;
	struct obj_name listener = obj_name(&c->pep->fid);

	CHECK_EQ(got->ep_attr->type, FI_EP_MSG);
	CHECK_EQ(got->caps, own->caps);
	CHECK_EQ(got->addr_format, own->addr_format);
	CHECK(!strcmp(got->fabric_attr->prov_name, own->fabric_attr->prov_name));
	CHECK(!strcmp(got->domain_attr->name, own->domain_attr->name));
	CHECK_EQ(got->tx_attr->inject_size, own->tx_attr->inject_size);
	check_name(&listener, got->src_addr, got->src_addrlen);
}

/* Both processes agree on the names of both ends. */
static void names(struct api *a)
{
	struct obj_name mine = {0}, all[2], peer;
	struct fi_info *request;
	struct cm_end e;
	struct cm c;

	cm_domain(&c, 0, NULL);
	if (a->rank == 0) {
		cm_listen(&c);
		mine = obj_name(&c.pep->fid);
	}
	api_swap(a, &mine, all, sizeof(mine));
	if (a->rank) {
		cm_connect(&c, &e, &all[0]);
		peer = cm_peer(e.ep);
		check_name(&peer, all[0].bytes, all[0].len);
		EVENT(&c, e.eq, FI_CONNECTED, &e.ep->fid);
	} else {
		request = cm_request(&c);
		check_info(&c, request);
		mine = (struct obj_name){.len = request->dest_addrlen};
		memcpy(mine.bytes, request->dest_addr, mine.len);
		cm_accept(&c, &e, request);
	}
	if (a->rank)
		mine = obj_name(&e.ep->fid);
	api_swap(a, &mine, all, sizeof(mine));
	CHECK(((struct sockaddr_in *)(void *)all[1].bytes)->sin_port != 0);
	/* Rank 1's name: from fi_getname, from the request, and from fi_getpeer. */
	check_name(&all[0], all[1].bytes, all[1].len);
	peer = cm_peer(e.ep);
	if (a->rank == 0)
		check_name(&peer, all[1].bytes, all[1].len);
	api_meet(a);
	cm_close_end(&c, &e);
	cm_close(&c);
}

#define CROWD 8

/* Connections accepted in any order do not mix. */
static void crowd(struct api *a)
{
	struct cm_end active[CROWD], passive[CROWD];
	struct fi_info *request[CROWD];
	struct obj_name name, other[CROWD];
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	name = obj_name(&c.pep->fid);
	for (int i = 0; i < CROWD; i++)
		cm_connect(&c, &active[i], &name);
	for (int i = 0; i < CROWD; i++)
		request[i] = cm_request(&c);
	for (int i = CROWD; i-- > 0;)
		cm_accept(&c, &passive[i], request[i]);
	for (int i = 0; i < CROWD; i++) {
		EVENT(&c, active[i].eq, FI_CONNECTED, &active[i].ep->fid);
		other[i] = cm_peer(passive[i].ep);
	}
	for (int i = 0; i < CROWD; i++) {
		struct obj_name own = obj_name(&active[i].ep->fid);
		int at = 0;

		while (at < CROWD && memcmp(other[at].bytes, own.bytes, own.len) != 0)
			at++;
		CHECK(at < CROWD);
		cm_talk(&active[i], &passive[at]);
	}
	for (int i = 0; i < CROWD; i++) {
		cm_close_end(&c, &active[i]);
		cm_close_end(&c, &passive[i]);
	}
	cm_close(&c);
}

/* More requests than the backlog holds: the rest arrive later. */
static void backlog(struct api *a)
{
	struct cm_end active[CROWD], passive[CROWD];
	struct obj_name name;
	int one = 1;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	c.eq = cm_eq(&c, FI_WAIT_UNSPEC);
	c.pep = cm_pep(&c, c.eq);
	OK(fi_control(&c.pep->fid, FI_BACKLOG, &one));
	OK(fi_listen(c.pep));
	name = obj_name(&c.pep->fid);
	for (int i = 0; i < CROWD; i++)
		cm_connect(&c, &active[i], &name);
	for (int i = 0; i < CROWD; i++)
		cm_accept(&c, &passive[i], cm_request(&c));
	for (int i = 0; i < CROWD; i++)
		EVENT(&c, active[i].eq, FI_CONNECTED, &active[i].ep->fid);
	for (int i = 0; i < CROWD; i++) {
		cm_close_end(&c, &active[i]);
		cm_close_end(&c, &passive[i]);
	}
	cm_close(&c);
}

/* Connects again and again; earlier connections leave nothing behind. */
static void often(struct api *a)
{
	struct cm_end active, passive;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	for (int i = 0; i < 100; i++) {
		cm_both(&c, &active, &passive);
		cm_talk(&active, &passive);
		cm_close_end(&c, i & 1 ? &active : &passive);
		cm_close_end(&c, i & 1 ? &passive : &active);
	}
	cm_close(&c);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"data", data, 1, {0}},
		{"data-size", data_size, 1, {0}},
		{"small-buffer", small_buffer, 1, {0}},
		{"names", names, 2, {0}},
		{"crowd", crowd, 1, {0}},
		{"backlog", backlog, 1, {0}},
		{"often", often, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
