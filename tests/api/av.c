/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors: inserting, finding, removing. fi_av(3). */
#include "obj.h"

#define PEERS 5

/* Addresses of real endpoints, for the vectors of these cases. */
struct peers {
	struct obj o;
	struct fid_ep *ep[PEERS];
	struct obj_name name[PEERS];
	struct fid_av *av; /* vector under test */
};

static void open_peers(struct peers *p, enum fi_av_type type)
{
	obj_domain(&p->o);
	p->o.av = obj_av(&p->o, FI_AV_UNSPEC, 0);
	p->o.cq = obj_cq(&p->o, FI_WAIT_NONE);
	for (int i = 0; i < PEERS; i++) {
		p->ep[i] = obj_ready_ep(&p->o, p->o.cq);
		p->name[i] = obj_name(&p->ep[i]->fid);
	}
	p->av = obj_av(&p->o, type, 0);
}

static void close_peers(struct peers *p)
{
	CLOSE(p->av);
	for (int i = 0; i < PEERS; i++)
		CLOSE(p->ep[i]);
	obj_close(&p->o);
}

/* Checks that the vector returns the inserted address. */
static void holds(struct fid_av *av, fi_addr_t addr, const struct obj_name *name)
{
	char bytes[256];
	size_t len = sizeof(bytes);

	OK(fi_av_lookup(av, addr, bytes, &len));
	CHECK_EQ(len, name->len);
	CHECK(memcmp(bytes, name->bytes, len) == 0);
}

static void table(struct api *a)
{
	struct peers p = {0};
	fi_addr_t addr;

	(void)a;
	open_peers(&p, FI_AV_TABLE);
	for (int i = 0; i < PEERS; i++) {
		/* Indices are consecutive, with and without an array for them. */
		if (i % 2) {
			CHECK_EQ(fi_av_insert(p.av, p.name[i].bytes, 1, NULL, 0, NULL), 1);
			continue;
		}
		CHECK_EQ(fi_av_insert(p.av, p.name[i].bytes, 1, &addr, 0, NULL), 1);
		CHECK_EQ(addr, i);
	}
	for (int i = 0; i < PEERS; i++)
		holds(p.av, (fi_addr_t)i, &p.name[i]);
	/* The lowest free index is used first. */
	for (addr = 1; addr < 4; addr += 2)
		OK(fi_av_remove(p.av, &addr, 1, 0));
	CHECK_EQ(obj_insert(p.av, &p.name[3]), 1);
	CHECK_EQ(obj_insert(p.av, &p.name[1]), 3);
	holds(p.av, 1, &p.name[3]);
	holds(p.av, 3, &p.name[1]);
	close_peers(&p);
}

static void map(struct api *a)
{
	struct peers p = {0};
	fi_addr_t addr[PEERS];

	(void)a;
	open_peers(&p, FI_AV_MAP);
	for (int i = 0; i < PEERS; i++)
		addr[i] = obj_insert(p.av, &p.name[i]);
	for (int i = 0; i < PEERS; i++) {
		CHECK(addr[i] != FI_ADDR_NOTAVAIL && addr[i] != FI_ADDR_UNSPEC);
		holds(p.av, addr[i], &p.name[i]);
	}
	OK(fi_av_remove(p.av, addr, PEERS, 0));
	addr[2] = obj_insert(p.av, &p.name[2]);
	holds(p.av, addr[2], &p.name[2]);
	close_peers(&p);
}

/*
 * Inserting an address again gives the same index. The address stays until it has been removed as
 * often as inserted.
 */
static void again(struct api *a, enum fi_av_type type)
{
	struct peers p = {0};
	fi_addr_t addr[PEERS], more[2];

	(void)a;
	open_peers(&p, type);
	for (int i = 0; i < 3; i++)
		addr[i] = obj_insert(p.av, &p.name[i]);
	for (int i = 2; i >= 0; i--)
		CHECK_EQ(obj_insert(p.av, &p.name[i]), addr[i]);
	for (int i = 0; i < 2; i++)
		more[i] = obj_insert(p.av, &p.name[1]);
	CHECK_EQ(more[0], addr[1]);
	CHECK_EQ(more[1], addr[1]);
	for (int i = 0; i < 3; i++) {
		OK(fi_av_remove(p.av, &addr[1], 1, 0));
		holds(p.av, addr[1], &p.name[1]);
	}
	holds(p.av, addr[0], &p.name[0]);
	OK(fi_av_remove(p.av, &addr[1], 1, 0));
	if (!api_other())
		FAILS(fi_av_remove(p.av, &addr[1], 1, 0));
	addr[1] = obj_insert(p.av, &p.name[1]);
	addr[3] = obj_insert(p.av, &p.name[3]);
	CHECK(addr[3] != addr[1]);
	for (int i = 0; i < 4; i++)
		holds(p.av, addr[i], &p.name[i]);
	close_peers(&p);
}

static void again_map(struct api *a)
{
	again(a, FI_AV_MAP);
}

static void again_table(struct api *a)
{
	again(a, FI_AV_TABLE);
}

/* Inserts several addresses from one array: socket addresses or strings. */
static void many(struct api *a)
{
	struct peers p = {0};
	char all[PEERS * 256];
	fi_addr_t addr[PEERS];
	size_t at = 0;

	(void)a;
	open_peers(&p, FI_AV_TABLE);
	for (int i = 0; i < PEERS; i++) {
		memcpy(all + at, p.name[i].bytes, p.name[i].len);
		at += p.name[i].len;
	}
	CHECK_EQ(fi_av_insert(p.av, all, PEERS, addr, 0, NULL), PEERS);
	for (int i = 0; i < PEERS; i++) {
		CHECK_EQ(addr[i], i);
		holds(p.av, addr[i], &p.name[i]);
	}
	close_peers(&p);
}

/* fi_av_straddr truncates to the buffer and returns the full length. */
static void text(struct api *a)
{
	struct peers p = {0};
	char whole[256], part[9], bytes[256];
	size_t len = sizeof(whole), cut = sizeof(part), need = 4;
	fi_addr_t addr;

	(void)a;
	open_peers(&p, FI_AV_MAP);
	CHECK(fi_av_straddr(p.av, p.name[0].bytes, whole, &len) == whole);
	CHECK_EQ(len, strlen(whole) + 1);
	CHECK(len > sizeof(part));
	fi_av_straddr(p.av, p.name[0].bytes, part, &cut);
	CHECK_EQ(cut, len);
	CHECK(!strncmp(part, whole, sizeof(part) - 1));
	addr = obj_insert(p.av, &p.name[0]);
	memset(bytes, 0x5a, sizeof(bytes));
	fi_av_lookup(p.av, addr, bytes, &need);
	CHECK_EQ(need, p.name[0].len);
	CHECK(memcmp(bytes, p.name[0].bytes, 4) == 0);
	CHECK_EQ(bytes[4], 0x5a);
	close_peers(&p);
}

/* Inserts by node and service, for IP address formats only. */
static void service(struct api *a)
{
	struct peers p = {0};
	fi_addr_t addr[6];
	char bytes[256], str[256], want[64];
	size_t len;

	(void)a;
	open_peers(&p, FI_AV_TABLE);
	if (p.o.info->addr_format == FI_ADDR_STR) {
		CHECK_EQ(fi_av_insertsvc(p.av, p.name[1].bytes, NULL, &addr[0], 0, NULL), 1);
		holds(p.av, addr[0], &p.name[1]);
		close_peers(&p);
		return;
	}
	CHECK_EQ(fi_av_insertsvc(p.av, "10.1.1.1", "4999", &addr[0], 0, NULL), 1);
	CHECK_EQ(addr[0], 0);
	CHECK_EQ(fi_av_insertsym(p.av, "10.1.1.1", 2, "5000", 3, addr, 0, NULL), 6);
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(addr[i], i + 1);
		len = sizeof(bytes);
		OK(fi_av_lookup(p.av, addr[i], bytes, &len));
		len = sizeof(str);
		fi_av_straddr(p.av, bytes, str, &len);
		snprintf(want, sizeof(want), "10.1.1.%d:%d", 1 + i / 3, 5000 + i % 3);
		CHECK(strstr(str, want) != NULL);
	}
	close_peers(&p);
}

/* Invalid addresses are marked, the others are inserted; FI_SYNC_ERR reports the errors. */
static void failures(struct api *a)
{
	struct peers p = {0};
	fi_addr_t addr = 0;
	int errs[1] = {-1};

	(void)a;
	open_peers(&p, FI_AV_TABLE);
	CHECK_EQ(fi_av_insertsvc(p.av, "no.such.host.invalid", "1", &addr, 0, NULL) <= 0, 1);
	if (!api_other()) {
		CHECK_EQ(fi_av_insert(p.av, p.name[0].bytes, 1, &addr, FI_SYNC_ERR, errs), 1);
		CHECK_EQ(errs[0], 0);
		CHECK_EQ(addr, 0);
		CHECK_EQ(fi_av_insert(p.av, p.name[1].bytes, 1, NULL, FI_FIREWALL_ADDR, NULL),
			 obj_connects() ? 1 : -FI_ENOSYS);
		addr = 2;
		FAILS(fi_av_remove(p.av, &addr, 1, 0));
		FAILS(fi_av_lookup(p.av, 7, NULL, &(size_t){0}));
	}
	close_peers(&p);
}

/* Asynchronous insertion ends with an event, and needs an event queue. */
static void events(struct api *a)
{
	struct peers p = {0};
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = FI_EVENT};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_eq_entry entry;
	struct fid_av *av;
	struct fid_eq *eq;
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	uint32_t event;
	int context;

	(void)a;
	open_peers(&p, FI_AV_TABLE);
	OK(fi_eq_open(p.o.fabric, &eq_attr, &eq, NULL));
	OK(fi_av_open(p.o.domain, &attr, &av, NULL));
	CHECK_EQ(fi_av_insert(av, p.name[0].bytes, 1, &addr, 0, &context), -FI_ENOEQ);
	OK(fi_av_bind(av, &eq->fid, 0));
	OK(fi_av_insert(av, p.name[0].bytes, 1, &addr, 0, &context));
	CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), OBJ_PATIENCE_MS, 0), sizeof(entry));
	CHECK_EQ(event, FI_AV_COMPLETE);
	CHECK(entry.fid == &av->fid && entry.context == &context);
	CHECK_EQ(entry.data, 1);
	CHECK_EQ(addr, 0);
	CLOSE(av);
	CLOSE(eq);
	close_peers(&p);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"table", table, 1, {0}},
		{"map", map, 1, {0}},
		{"many", many, 1, {0}},
		{"text", text, 1, {0}},
		{"service", service, 1, {0}},
		{"failures", failures, 1, {0}},
		{"events", events, 1, {0}},
		{"again_map", again_map, 1, {0}},
		{"again_table", again_table, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
