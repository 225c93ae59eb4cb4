/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys in address vectors (FI_AV_AUTH_KEY): one endpoint serves peers of several keys, each under its own, and nobody
 * else; a name counts only together with the key that it was inserted under. fi_av(3).
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/key.h"

#define LEN    300000
#define ROUNDS 50
#define MR_KEY 5

static fi_addr_t handle[4]; /* by the number of a key: its fi_addr_t in this process */

static void in_vector(struct fi_info *hints)
{
	hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
}

static void in_endpoint(struct fi_info *hints)
{
	key_set(hints, 1, KEY_LEN);
}

static void add_key(struct side *s, unsigned int number)
{
	uint8_t *bytes = key_bytes(number, KEY_LEN);

	OK(fi_av_insert_auth_key(s->av, bytes, KEY_LEN, &handle[number], 0));
	free(bytes);
}

/* Opens an endpoint; its vector gets the keys that stand in `numbers`, a digit each. */
static void open_side(struct side *s, struct api *a, uint64_t caps, const char *numbers)
{
	side_open(s, a,
		  &(struct side_opts){.caps = caps ? caps : FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE,
				      .tx_flags = FI_DELIVERY_COMPLETE,
				      .not_enabled = true,
				      .tune = in_vector});
	for (; *numbers; numbers++)
		add_key(s, (unsigned int)(*numbers - '0'));
	s->yields = true;
}

static void meet(struct side *s)
{
	unsigned char name[SIDE_NAME] = {0};

	OK(fi_enable(s->ep));
	s->name_len = sizeof(name);
	OK(fi_getname(&s->ep->fid, name, &s->name_len));
	api_swap(s->a, name, s->names, sizeof(name));
	s->a->progress = side_progress;
	s->a->progress_arg = s;
}

/* Inserts a process under the key of this number. */
static void know(struct side *s, int rank, unsigned int number)
{
	s->addr[rank] = handle[number];
	CHECK_EQ(fi_av_insert(s->av, s->names[rank], 1, &s->addr[rank], FI_AUTH_KEY, NULL), 1);
	CHECK(s->addr[rank] != handle[number]);
}

/* Rank 0 has two keys, ranks 1 and 2 one each. */
static void open_star(struct side *s, struct api *a)
{
	open_side(s, a, 0, a->rank == 0 ? "12" : a->rank == 1 ? "1" : "2");
	meet(s);
	for (int i = 1; i < a->ranks; i++)
		if (a->rank == 0 || a->rank == i)
			know(s, a->rank ? 0 : i, (unsigned int)i);
}

static void exchange(struct side *s, int with, size_t len)
{
	int me = s->a->rank;
	uint64_t tag = (uint64_t)(me + with); /* one of both is 0 */
	struct data out = data_full(len, 1, (unsigned int)me), in = data_new(len, 1);
	fi_addr_t src = FI_ADDR_UNSPEC;

	POST(s, fi_trecv(s->ep, in.iov[0].iov_base, len, NULL, FI_ADDR_UNSPEC, tag, 0, &in));
	POST(s, fi_tsend(s->ep, out.iov[0].iov_base, len, NULL, s->addr[with], tag, &out));
	CHECK_EQ(TAKE_FROM(s, s->rx, &src).len, len);
	CHECK_EQ(src, s->addr[with]);
	SENT(s, &out, FI_TAGGED);
	DATA_EXPECT(&in, len, (unsigned int)with);
	data_free(&out);
	data_free(&in);
}

/* Region of rank 0, for those who prove any key of its vector. */
static struct fid_mr *region(struct side *s, void *at, size_t len)
{
	struct fi_mr_auth_key keys = {.av = s->av, .src_addr = FI_ADDR_UNSPEC};
	struct iovec iov = {at, len};
	struct fi_mr_attr attr = {.mr_iov = &iov,
				  .iov_count = 1,
				  .access = FI_REMOTE_WRITE,
				  .requested_key = MR_KEY,
				  .auth_key_size = sizeof(keys),
				  .auth_key = (uint8_t *)&keys};
	struct fid_mr *mr;

	OK(fi_mr_regattr(s->domain, &attr, 0, &mr));
	return mr;
}

/* Each of the others writes to rank 0. */
static void write_to_first(struct side *s)
{
	char *words = s->a->shared;
	struct fid_mr *mr = s->a->rank ? NULL : region(s, words, 4096);
	uint64_t to[2] = {mr ? fi_mr_key(mr) : 0,
			  s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)words : 0};
	uint64_t all[API_RANKS][2];

	api_swap(s->a, to, all, sizeof(to));
	if (s->a->rank) {
		POST(s, fi_write(s->ep, "written", 8, NULL, s->addr[0],
				 all[0][1] + (uint64_t)s->a->rank * 8, all[0][0], s));
		TAKE(s, s->tx);
	}
	api_meet(s->a);
	for (int i = 1; i < s->a->ranks; i++)
		CHECK(!strcmp(words + i * 8, "written"));
	if (mr)
		OK(fi_close(&mr->fid));
}

static void two_keys_served(struct api *a)
{
	struct side s;

	open_star(&s, a);
	for (int i = 1; i < a->ranks; i++) {
		if (a->rank == 0 || a->rank == i) {
			exchange(&s, a->rank ? 0 : i, 8);
			exchange(&s, a->rank ? 0 : i, LEN);
		}
	}
	write_to_first(&s);
	side_close(&s);
}

/* All begin at once, again and again. */
static void crossing(struct api *a)
{
	struct side s;

	for (unsigned int i = api_times(ROUNDS); i; i--) {
		open_star(&s, a);
		for (int r = 1; r < a->ranks; r++)
			if (a->rank == 0 || a->rank == r)
				exchange(&s, a->rank ? 0 : r, 8);
		side_close(&s);
	}
}

/* One endpoint has a key of its own, the other has it in its vector. */
static void key_of_endpoint(struct api *a)
{
	struct side s;

	if (a->rank) {
		side_open(&s, a,
			  &(struct side_opts){.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
					      .tx_flags = FI_DELIVERY_COMPLETE,
					      .tune = in_endpoint});
	} else {
		open_side(&s, a, 0, "21");
		meet(&s);
		know(&s, 1, 1);
	}
	exchange(&s, !a->rank, 8);
	exchange(&s, !a->rank, LEN);
	side_close(&s);
}

/* A send from each side in turn ends with FI_EACCES, and nothing comes. */
static void in_vain(struct side *s)
{
	static char in[8];

	POST(s, fi_trecv(s->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, s));
	for (int sender = 0; sender < 2; sender++) {
		for (int i = 0; s->a->rank == sender && i < 2; i++)
			REFUSED(s, FI_EACCES,
				fi_tsend(s->ep, "secret", 7, NULL, s->addr[!sender], 3, s));
		api_meet(s->a);
	}
	QUIET(s, s->rx, 20);
	CHECK(!in[0]);
}

static void wrong_key(struct api *a)
{
	struct side s;

	open_side(&s, a, 0, a->rank ? "3" : "12");
	meet(&s);
	know(&s, !a->rank, a->rank ? 3 : 2);
	in_vain(&s);
	side_close(&s);
}

/* A key that comes after the endpoint was enabled is none of its keys. */
static void late_key(struct api *a)
{
	struct side s;

	open_side(&s, a, 0, "1");
	meet(&s);
	add_key(&s, 2);
	know(&s, !a->rank, 2);
	in_vain(&s);
	side_close(&s);
}

static void with_thread(struct fi_info *hints)
{
	in_vector(hints);
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
}

/* One who connects after the endpoint has a name, but no vector yet, waits for its keys. */
static void before_enabled(struct api *a)
{
	unsigned char name[SIDE_NAME] = {0};
	struct side s;

	side_open(&s, a,
		  &(struct side_opts){.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
				      .tx_flags = FI_DELIVERY_COMPLETE,
				      .not_enabled = true,
				      .tune = with_thread});
	add_key(&s, 1);
	if (a->rank)
		OK(fi_enable(s.ep));
	s.name_len = sizeof(name);
	OK(fi_getname(&s.ep->fid, name, &s.name_len));
	api_swap(a, name, s.names, sizeof(name));
	know(&s, !a->rank, 1);
	if (!a->rank) {
		usleep(50000); /* the other is at the door */
		OK(fi_enable(s.ep));
	}
	exchange(&s, !a->rank, 8);
	side_close(&s);
}

/* An endpoint without any key lets nobody in, not even those without one. */
static void no_key(struct api *a)
{
	struct side s;

	if (a->rank) {
		side_open(&s, a,
			  &(struct side_opts){.caps = FI_MSG | FI_TAGGED,
					      .tx_flags = FI_DELIVERY_COMPLETE,
					      .not_enabled = true});
		meet(&s);
		CHECK_EQ(fi_av_insert(s.av, s.names[0], 1, &s.addr[0], 0, NULL), 1);
		REFUSED(&s, FI_EACCES, fi_tsend(s.ep, "secret", 7, NULL, s.addr[0], 3, &s));
	} else {
		open_side(&s, a, 0, "");
		meet(&s);
	}
	side_close(&s);
}

/* ---- Whom a message is from ---- */

static void send_one(struct side *s)
{
	POST(s, fi_tsend(s->ep, "word", 5, NULL, s->addr[0], 3, s));
	SENT(s, s, FI_TAGGED);
}

/* A message comes from somebody unknown who has proven a key: what names him? */
static void expect_unknown(struct side *s, fi_addr_t want)
{
	static char in[8];
	struct fi_cq_err_entry e;

	POST(s, fi_trecv(s->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 3, 0, s));
	e = TAKE_ERR(s, s->rx, FI_EADDRNOTAVAIL);
	CHECK(!strcmp(in, "word"));
	CHECK_EQ(e.src_addr, want);
	CHECK_EQ(e.err_data_size, s->name_len);
	CHECK(!memcmp(e.err_data, s->names[1], s->name_len));
}

#define TELLING (FI_MSG | FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR)

static void unknown_peer(struct api *a)
{
	struct side s;

	open_side(&s, a, TELLING, a->rank ? "2" : "12");
	meet(&s);
	if (a->rank) {
		know(&s, 0, 2);
		send_one(&s);
		send_one(&s);
	} else {
		expect_unknown(&s, handle[2]);
		OK(fi_av_set_user_id(s.av, handle[2], 777, FI_AUTH_KEY));
		expect_unknown(&s, 777);
		know(&s, 1, 2);
	}
	api_meet(a);
	exchange(&s, !a->rank, 8);
	side_close(&s);
}

/* The sender has gone when its message is received: it waited for no delivery. */
static void unknown_peer_gone(struct api *a)
{
	struct iovec word = {"word", 5};
	struct side s;
	struct fi_msg_tagged msg = {.msg_iov = &word, .iov_count = 1, .tag = 3, .context = &s};

	open_side(&s, a, TELLING, a->rank ? "2" : "12");
	meet(&s);
	if (a->rank) {
		know(&s, 0, 2);
		msg.addr = s.addr[0];
		POST(&s, fi_tsendmsg(s.ep, &msg, FI_TRANSMIT_COMPLETE));
		SENT(&s, &s, FI_TAGGED);
		side_close(&s);
	}
	api_meet(a);
	if (a->rank)
		return;
	QUIET(&s, s.rx, 20); /* the message comes, and the end of the connection */
	expect_unknown(&s, handle[2]);
	side_close(&s);
}

/* A receive for one key alone is refused, unless the flag means nothing. */
static void receive_of_a_key(struct api *a)
{
	static char in[8];
	struct iovec iov = {in, sizeof(in)};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .ignore = UINT64_MAX};
	struct side s;

	for (int directed = 0; directed < 2; directed++) {
		open_side(&s, a, FI_MSG | FI_TAGGED | (directed ? FI_DIRECTED_RECV : 0), "1");
		meet(&s);
		know(&s, 0, 1);
		msg.addr = handle[1];
		msg.context = &s;
		CHECK_EQ(fi_trecvmsg(s.ep, &msg, FI_AUTH_KEY), directed ? -FI_EOPNOTSUPP : 0);
		msg.addr = FI_ADDR_UNSPEC;
		if (directed)
			POST(&s, fi_trecvmsg(s.ep, &msg, FI_AUTH_KEY));
		POST(&s, fi_tsend(s.ep, "oneself", 8, NULL, s.addr[0], 1, &s));
		GOT(&s, &s, FI_TAGGED, 8);
		SENT(&s, &s, FI_TAGGED);
		CHECK(!strcmp(in, "oneself"));
		side_close(&s);
	}
}

/* Rank 1 proves key 2, but its name was inserted under key 1: it is not that peer. */
static void name_under_other_key(struct api *a)
{
	struct side s;

	open_side(&s, a, TELLING, a->rank ? "2" : "12");
	meet(&s);
	if (a->rank) {
		know(&s, 0, 2);
		send_one(&s);
	} else {
		know(&s, 1, 1);
		expect_unknown(&s, handle[2]);
		/* What is meant for the holder of key 1 does not go to that of key 2. */
		REFUSED(&s, FI_EACCES, fi_tsend(s.ep, "secret", 7, NULL, s.addr[1], 3, &s));
	}
	api_meet(a);
	QUIET(&s, s.rx, 20);
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"two-keys", two_keys_served, 3, {0}},
		{"crossing", crossing, 3, {0}},
		{"key-of-endpoint", key_of_endpoint, 2, {0}},
		{"wrong-key", wrong_key, 2, {0}},
		{"late-key", late_key, 2, {0}},
		{"no-key", no_key, 2, {0}},
		{"before-enabled", before_enabled, 2, {0}},
		{"unknown-peer", unknown_peer, 2, {0}},
		{"unknown-peer-gone", unknown_peer_gone, 2, {0}},
		{"name-under-other-key", name_under_other_key, 2, {0}},
		{"receive-of-a-key", receive_of_a_key, 1, {0}},
		{"closed", two_keys_served, 3, {"FI_WEFT_CLOSED=1"}},
	};

	key_need_library();
	if (pair_wanted()) {
		printf("connected endpoints have no address vector\n");
		return API_SKIP;
	}
	return api_main(argc, argv, cases, API_COUNT(cases));
}
