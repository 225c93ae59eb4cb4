/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile of an endpoint: its variables have names, and tell of messages that no receive has taken. fi_profile(3). */
#include <rdma/fi_profile.h>

#include "api.h"
#include "lib/side.h"

enum { COUNT = 5, MOST = 32 };

static uint64_t value_of(struct fid_profile *p, uint32_t id)
{
	uint64_t value = UINT64_MAX;

	OK((int)fi_profile_read_u64(p, id, &value));
	return value;
}

static uint32_t id_of(struct fid_profile *p, const char *name)
{
	struct fi_profile_desc list[MOST];
	size_t count = MOST;

	OK((int)fi_profile_query_vars(p, list, &count));
	CHECK(count <= MOST);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i].name, name))
			return list[i].id;
	api_fail("a variable is missing");
}

/* Each variable has a text of its own, and can be read; a list may be too short for all. */
static void expect_list(struct fid_profile *p)
{
	struct fi_profile_desc list[MOST], first[2] = {{.id = 0}, {.id = 77}};
	size_t count = 0, all, one = 1;

	OK((int)fi_profile_query_vars(p, NULL, &count));
	CHECK(count > 1 && count <= MOST);
	all = count;
	OK((int)fi_profile_query_vars(p, list, &all));
	CHECK_EQ(all, count);
	OK((int)fi_profile_query_vars(p, first, &one));
	CHECK_EQ(one, count);
	CHECK_EQ(first[0].id, list[0].id);
	CHECK_EQ(first[1].id, 77);
	for (size_t i = 0; i < count; i++) {
		CHECK_EQ(list[i].datatype_sel, fi_primitive_type);
		CHECK_EQ(list[i].datatype.primitive, FI_UINT64);
		CHECK_EQ(list[i].size, 8);
		CHECK(*list[i].name && *list[i].desc);
		for (size_t k = 0; k < i; k++)
			CHECK(list[k].id != list[i].id && strcmp(list[k].name, list[i].name) != 0);
		value_of(p, list[i].id);
	}
	count = 1;
	OK((int)fi_profile_query_events(p, list, &count));
	CHECK_EQ(count, 0);
}

static void expect_refusals(struct fid_profile *p, struct side *s)
{
	struct fid_profile *none;
	uint64_t value;
	size_t size = 4;

	CHECK_EQ(fi_profile_read_u64(p, 9999, &value), -FI_EINVAL);
	CHECK_EQ(fi_profile_read_u64(p, FI_VAR_UNEXP_MSG_QUEUE, &value), -FI_EINVAL);
	CHECK_EQ(p->ops->read_var(p, FI_VAR_UNEXP_MSG_CNT, &value, &size), -FI_ETOOSMALL);
	CHECK_EQ(fi_profile_register_callback(p, FI_EVENT_UNEXP_MSG_RECVD, NULL, NULL), -FI_EINVAL);
	CHECK_EQ(fi_profile_open(&s->domain->fid, 0, &none, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_profile_open(&s->ep->fid, 1, &none, NULL), -FI_EINVAL);
}

/* Side 1 sends messages that side 0 does not expect. */
static void unexpected(struct api *a)
{
	uint64_t message = 7, bytes;
	struct fid_profile *p;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	OK(fi_profile_open(&s.ep->fid, 0, &p, NULL));
	for (int i = 0; i < COUNT && a->rank; i++) {
		POST(&s, fi_send(s.ep, &message, sizeof(message), NULL, s.addr[0], NULL));
		TAKE(&s, s.tx);
	}
	api_meet(a);
	if (!a->rank) {
		expect_list(p);
		expect_refusals(p, &s);
		while (value_of(p, FI_VAR_UNEXP_MSG_CNT) < COUNT)
			side_progress(&s);
		CHECK_EQ(value_of(p, FI_VAR_UNEXP_MSG_CNT), COUNT);
		bytes = value_of(p, id_of(p, "unexpected_bytes"));
		CHECK(bytes >= COUNT * sizeof(message));
		fi_profile_start_reads(p, 0);
		for (int i = 0; i < COUNT; i++) {
			POST(&s,
			     fi_recv(s.ep, &message, sizeof(message), NULL, FI_ADDR_UNSPEC, NULL));
			TAKE(&s, s.rx);
		}
		/* What was read then stays together; resetting takes back no message that is there. */
		CHECK_EQ(value_of(p, FI_VAR_UNEXP_MSG_CNT), COUNT);
		fi_profile_end_reads(p, 0);
		fi_profile_reset(p, 0);
		CHECK_EQ(value_of(p, FI_VAR_UNEXP_MSG_CNT), 0);
	}
	api_meet(a);
	OK(fi_profile_close(p));
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {{"unexpected", unexpected, 2, {0}}};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
