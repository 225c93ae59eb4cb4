/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints of one key talk, those of two do not, nor do those with a key and those without: the operation ends with
 * FI_EACCES, and nothing is delivered.
 */
#include "api.h"
#include "lib/exchange.h"
#include "lib/key.h"

#define LEN    300000
#define ROUNDS 100
#define MR_KEY 5

static unsigned int number; /* of the key that this process opens its endpoint with; 0: none */

static void with_key(struct fi_info *hints)
{
	key_set(hints, number, KEY_LEN);
}

static void with_domain_key(struct fi_info *hints)
{
	key_set_domain(hints, number, KEY_LEN);
}

static void open_keyed(struct side *s, struct api *a, void (*tune)(struct fi_info *),
		       unsigned int key)
{
	number = key;
	side_open(s, a,
		  &(struct side_opts){.caps = FI_MSG | FI_TAGGED | FI_RMA,
				      .tx_flags = FI_DELIVERY_COMPLETE,
				      .tune = tune});
	s->yields = true;
}

/* Rank 0 writes to rank 1. */
static void write_to(struct side *s)
{
	char *region = s->a->shared;
	uint64_t mine[2], all[2][2];
	struct fid_mr *mr;

	OK(fi_mr_reg(s->domain, region + s->a->rank * 4096, 4096, FI_REMOTE_WRITE, 0, MR_KEY, 0,
		     &mr, NULL));
	mine[0] = fi_mr_key(mr);
	mine[1] = s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR
			  ? (uintptr_t)(region + s->a->rank * 4096)
			  : 0;
	api_swap(s->a, mine, all, sizeof(mine));
	if (!s->a->rank) {
		POST(s, fi_write(s->ep, "written", 8, NULL, s->addr[1], all[1][1], all[1][0], s));
		TAKE(s, s->tx);
	}
	api_meet(s->a);
	CHECK(!strcmp(region + 4096, "written"));
	OK(fi_close(&mr->fid));
}

static void talk(struct api *a, void (*tune)(struct fi_info *))
{
	struct side s;

	open_keyed(&s, a, tune, 1);
	exchange(&s, 8);
	exchange(&s, LEN);
	write_to(&s);
	side_close(&s);
}

static void one_key(struct api *a)
{
	talk(a, with_key);
}

static void one_domain_key(struct api *a)
{
	talk(a, with_domain_key);
}

/* The same bytes, whether the endpoint has them or its domain. */
static void key_of_either(struct api *a)
{
	talk(a, a->rank ? with_domain_key : with_key);
}

/* Both begin at once, again and again. */
static void crossing(struct api *a)
{
	struct side s;

	for (unsigned int i = api_times(ROUNDS); i; i--) {
		open_keyed(&s, a, with_key, 1);
		exchange(&s, 8);
		side_close(&s);
	}
}

static void to_oneself(struct api *a)
{
	static char in[8];
	struct side s;

	open_keyed(&s, a, with_key, 1);
	POST(&s, fi_trecv(s.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, &s));
	POST(&s, fi_tsend(s.ep, "oneself", 8, NULL, s.addr[0], 1, &s));
	GOT(&s, &s, FI_TAGGED, 8);
	SENT(&s, &s, FI_TAGGED);
	CHECK(!strcmp(in, "oneself"));
	side_close(&s);
}

/* Each in turn sends to the other, in vain. */
static void in_vain(struct api *a, unsigned int key0, unsigned int key1)
{
	static char in[8];
	struct side s;

	open_keyed(&s, a, with_key, a->rank ? key1 : key0);
	POST(&s, fi_trecv(s.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &s));
	for (int sender = 0; sender < 2; sender++) {
		for (int i = 0; a->rank == sender && i < 2; i++) {
			REFUSED(&s, FI_EACCES,
				fi_tsend(s.ep, "secret", 7, NULL, s.addr[!sender], 3, &s));
			REFUSED(&s, FI_EACCES,
				fi_write(s.ep, "secret", 7, NULL, s.addr[!sender], 0, MR_KEY, &s));
		}
		api_meet(a);
	}
	QUIET(&s, s.rx, 20);
	CHECK(!in[0]);
	side_close(&s);
}

static void two_keys(struct api *a)
{
	in_vain(a, 1, 2);
}

static void first_has_none(struct api *a)
{
	in_vain(a, 0, 1);
}

static void second_has_none(struct api *a)
{
	in_vain(a, 1, 0);
}

/* A refused peer and a good one, at once: the good one does not notice. */
static void among_others(struct api *a)
{
	static char in[8];
	struct side s;

	open_keyed(&s, a, with_key, a->rank == 2 ? 2 : 1);
	for (int i = 0; i < 10; i++) {
		if (a->rank == 2) {
			REFUSED(&s, FI_EACCES, fi_tsend(s.ep, "secret", 7, NULL, s.addr[0], 3, &s));
			continue;
		}
		if (a->rank == 1) {
			POST(&s, fi_tsend(s.ep, "good", 5, NULL, s.addr[0], 3, &s));
			SENT(&s, &s, FI_TAGGED);
			continue;
		}
		POST(&s, fi_trecv(s.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 3, 0, &s));
		GOT(&s, &s, FI_TAGGED, 5);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"one-key", one_key, 2, {0}},
		{"domain-key", one_domain_key, 2, {0}},
		{"key-of-either", key_of_either, 2, {0}},
		{"crossing", crossing, 2, {0}},
		{"oneself", to_oneself, 1, {0}},
		{"two-keys", two_keys, 2, {0}},
		{"first-none", first_has_none, 2, {0}},
		{"second-none", second_has_none, 2, {0}},
		{"among-others", among_others, 3, {0}},
		{"closed", one_key, 2, {"FI_WEFT_CLOSED=1"}},
	};

	key_need_library();
	return api_main(argc, argv, cases, API_COUNT(cases));
}
