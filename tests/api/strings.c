/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_ADDR_STR: addresses as strings, "fi_sockaddr_in://1.2.3.4:5" for IP addresses. fi_getinfo(3),
 * fi_av(3), fi_cm(3).
 */
#include "obj.h"
#include "lib/cm.h"

static bool has_ip(const struct fi_info *info)
{
	return strncmp(info->src_addr, "fi_sockaddr", 11) == 0;
}

/* Checks that the string is terminated at its length, and has the form "name://...". */
static void check_string(const char *text, size_t len)
{
	CHECK(len > 0 && memchr(text, '\0', len) == text + len - 1);
	CHECK(strstr(text, "://") != NULL);
}

static struct fi_info *string_hints(uint64_t caps)
{
	struct fi_info *hints = obj_hints(caps);

	hints->addr_format = FI_ADDR_STR;
	return hints;
}

static void open_strings(struct obj *o, uint64_t caps)
{
	o->hints = string_hints(caps);
	obj_open(o);
	CHECK_EQ(o->info->addr_format, FI_ADDR_STR);
	check_string(o->info->src_addr, o->info->src_addrlen);
}

/* ---- Endpoints with address vectors ---------------------------------------------------------- */

static void looks_up(struct fid_av *av, fi_addr_t addr, const struct obj_name *name)
{
	char text[256], again[256];
	size_t len = sizeof(text);

	OK(fi_av_lookup(av, addr, text, &len));
	CHECK_EQ(len, name->len);
	CHECK(strcmp(text, name->bytes) == 0);
	len = sizeof(again);
	CHECK(fi_av_straddr(av, text, again, &len) == again);
	CHECK(strcmp(again, name->bytes) == 0);
	len = 3; /* in: space; out: required length */
	OK(fi_av_lookup(av, addr, text, &len));
	CHECK_EQ(len, name->len);
}

static void talk(struct api *a)
{
	struct obj o = {0};
	struct obj_name mine, all[2];
	size_t none = 0;
	fi_addr_t peer;
	int word = 5;

	open_strings(&o, FI_MSG | FI_SOURCE);
	mine = obj_name(&o.ep->fid);
	check_string(mine.bytes, mine.len);
	CHECK_EQ(fi_getname(&o.ep->fid, NULL, &none), -FI_ETOOSMALL);
	CHECK_EQ(none, mine.len);
	api_swap(a, &mine, all, sizeof(mine));
	peer = obj_insert(o.av, &all[!a->rank]);
	looks_up(o.av, peer, &all[!a->rank]);
	obj_progress(a, o.cq);
	if (a->rank == 0) {
		POST(o.cq, fi_send(o.ep, &word, sizeof(word), NULL, peer, &word));
		obj_done(o.cq, &word);
	} else {
		fi_addr_t src;

		OK(fi_recv(o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		CHECK(obj_next(o.cq, &src).op_context == &word);
		CHECK_EQ(src, peer);
	}
	api_meet(a);
	a->progress = NULL;
	obj_close(&o);
}

/* Inserts an array of pointers, as fi_av(3) says, and invalid addresses. */
static void inserted(struct api *a)
{
	const char *ip[] = {"fi_sockaddr_in://127.0.0.1:4711", "fi_sockaddr_in6://[::1]:4712",
			    "fi_sockaddr://127.0.0.1:4713"};
	char text[256];
	fi_addr_t addr[3], other;
	struct obj o = {0};
	size_t len;

	(void)a;
	if (api_other())
		api_skip("what is taken is ours to say");
	open_strings(&o, FI_MSG);
	if (!has_ip(o.info))
		api_skip("names are no addresses here");
	CHECK_EQ(fi_av_insert(o.av, ip, 3, addr, 0, NULL), 3);
	for (int i = 0; i < 2; i++) {
		len = sizeof(text);
		OK(fi_av_lookup(o.av, addr[i], text, &len));
		CHECK(strcmp(text, ip[i]) == 0);
	}
	CHECK_EQ(fi_av_insertsvc(o.av, "fi_sockaddr_in://127.0.0.1:4714", NULL, &other, 0, NULL),
		 1);
	CHECK_EQ(fi_av_insertsvc(o.av, "127.0.0.1", "4715", &other, 0, NULL), 1);
	len = sizeof(text);
	OK(fi_av_lookup(o.av, other, text, &len));
	CHECK(strcmp(text, "fi_sockaddr_in://127.0.0.1:4715") == 0);
	CHECK(fi_av_insert(o.av, "fi_shm://1234567", 1, &other, 0, NULL) != 1);
	CHECK(fi_av_insert(o.av, "fi_sockaddr_in://nobody:1", 1, &other, 0, NULL) != 1);
	CHECK(fi_av_insert(o.av, "fi_sockaddr_in://1.2.3.4:70000", 1, &other, 0, NULL) != 1);
	obj_close(&o);
}

/* The address of an unknown sender is a string too. */
static void unknown_source(struct api *a)
{
	struct obj o = {0};
	struct obj_name mine, all[2];
	struct fi_cq_err_entry err;
	char text[256] = "";
	int word = 5;

	if (api_other())
		api_skip("what is told is ours to say");
	open_strings(&o, FI_MSG | FI_SOURCE | FI_SOURCE_ERR);
	mine = obj_name(&o.ep->fid);
	api_swap(a, &mine, all, sizeof(mine));
	obj_progress(a, o.cq);
	if (a->rank == 0) {
		fi_addr_t peer = obj_insert(o.av, &all[1]);

		POST(o.cq, fi_send(o.ep, &word, sizeof(word), NULL, peer, &word));
		obj_done(o.cq, &word);
	} else {
		struct fi_cq_tagged_entry e;

		err = (struct fi_cq_err_entry){.err_data = text, .err_data_size = sizeof(text)};
		OK(fi_recv(o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		OBJ_UNTIL(fi_cq_read(o.cq, &e, 1) == -FI_EAVAIL, );
		CHECK_EQ(fi_cq_readerr(o.cq, &err, 0), 1);
		CHECK_EQ(err.err, FI_EADDRNOTAVAIL);
		CHECK_EQ(err.err_data_size, all[0].len);
		CHECK(strcmp(text, all[0].bytes) == 0);
	}
	api_meet(a);
	a->progress = NULL;
	obj_close(&o);
}

/* ---- Entries --------------------------------------------------------------------------------- */

static void asked(struct api *a)
{
	static const char src[] = "fi_sockaddr_in://127.0.0.1:4711",
			  dest[] = "fi_sockaddr_in://127.0.0.1:1";
	struct fi_info *hints = string_hints(FI_MSG), *list, *none;

	(void)a;
	if (api_other())
		api_skip("what is offered is ours to say");
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list));
	for (struct fi_info *info = list; info; info = info->next) {
		CHECK_EQ(info->addr_format, FI_ADDR_STR);
		check_string(info->src_addr, info->src_addrlen);
	}
	if (!has_ip(list)) {
		fi_freeinfo(list);
		fi_freeinfo(hints);
		api_skip("names are no addresses here");
	}
	fi_freeinfo(list);
	/* All addresses of an entry are strings, and addr_format says so. */
	hints->src_addr = strdup(src);
	hints->src_addrlen = sizeof(src);
	hints->dest_addr = strdup(dest);
	hints->dest_addrlen = sizeof(dest);
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list));
	CHECK(strcmp(list->src_addr, src) == 0);
	CHECK(strcmp(list->dest_addr, dest) == 0);
	CHECK_EQ(list->dest_addrlen, sizeof(dest));
	fi_freeinfo(list);
	OK(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "77", 0, hints, &list));
	CHECK(strcmp(list->dest_addr, "fi_sockaddr_in://127.0.0.1:77") == 0);
	fi_freeinfo(list);
	strcpy(hints->src_addr, "fi_shm://1");
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &none), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* ---- Connected endpoints --------------------------------------------------------------------- */

static void want_strings(struct fi_info *hints)
{
	hints->addr_format = FI_ADDR_STR;
}

static void peer_is(struct fid_ep *ep, const char *text)
{
	char peer[256];
	size_t len = sizeof(peer);

	OK(fi_getpeer(ep, peer, &len));
	CHECK_EQ(len, strlen(text) + 1);
	CHECK(strcmp(peer, text) == 0);
}

static void connected(struct api *a)
{
	struct cm_end from, to;
	struct fi_info *request;
	struct obj_name at;
	struct cm c;

	(void)a;
	if (api_other())
		api_skip("what is offered is ours to say");
	cm_domain(&c, 0, want_strings);
	CHECK_EQ(c.o.info->addr_format, FI_ADDR_STR);
	cm_listen(&c);
	at = obj_name(&c.pep->fid);
	check_string(at.bytes, at.len);
	cm_connect(&c, &from, &at);
	request = cm_request(&c);
	CHECK_EQ(request->addr_format, FI_ADDR_STR);
	check_string(request->dest_addr, request->dest_addrlen);
	CHECK(strcmp(request->src_addr, at.bytes) == 0);
	cm_end(&c, &to, request);
	OK(fi_accept(to.ep, NULL, 0));
	EVENT(&c, from.eq, FI_CONNECTED, &from.ep->fid);
	EVENT(&c, to.eq, FI_CONNECTED, &to.ep->fid);
	peer_is(from.ep, at.bytes);
	peer_is(to.ep, request->dest_addr);
	fi_freeinfo(request);
	cm_close_both(&c, &from, &to);
}

/* A passive endpoint takes a string as its name. */
static void named(struct api *a)
{
	static const char any[] = "fi_sockaddr_in://127.0.0.1:0";
	struct obj_name name;
	struct fid_pep *pep;
	struct fid_eq *eq;
	struct cm c;

	(void)a;
	if (api_other())
		api_skip("what is offered is ours to say");
	cm_domain(&c, 0, want_strings);
	eq = cm_eq(&c, FI_WAIT_NONE);
	pep = cm_pep(&c, eq);
	OK(fi_setname(&pep->fid, (void *)(uintptr_t)any, sizeof(any)));
	name = obj_name(&pep->fid);
	CHECK(strncmp(name.bytes, any, sizeof(any) - 2) == 0);
	CHECK(atoi(name.bytes + sizeof(any) - 2) > 0);
	FAILS(fi_setname(&pep->fid, (void *)(uintptr_t) "fi_shm://1", 11));
	CLOSE(pep);
	cm_close_eq(&c, eq);
	cm_close(&c);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"talk", talk, 2, {0}},
		{"inserted", inserted, 1, {0}},
		{"unknown_source", unknown_source, 2, {0}},
		{"asked", asked, 1, {0}},
		{"connected", connected, 1, {0}},
		{"named", named, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
