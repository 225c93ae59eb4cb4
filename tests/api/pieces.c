/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages that a transport may send in fragments before it is asked: all lengths, segment
 * lists, short buffers, posted early and late, by processes that poll rarely or sleep.
 * fi_endpoint(3).
 */
#include "obj.h"
#include "lib/ends.h"

static const size_t lens[] = {1,      4095,   4097,   16383,  16385,  65536,   65537,
			      131071, 131072, 131073, 147456, 262145, 1 << 19, ENDS_MOST};

static void wait_sent(struct ends *e)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(e->o.cq, &entry, 1)) != -FI_EAGAIN, ends_progress(e));
	if (ret != 1)
		obj_cq_failed(e->o.cq, ret);
}

/*
 * ---- All lengths, receives posted early and late -----------------------------------------------
 */

static void one(struct ends *e, size_t len, size_t segments, bool late)
{
	unsigned int seed = (unsigned int)(len + segments + late);

	if (e->a->rank && !late)
		ends_post(e, 0, len, segments);
	api_meet(e->a);
	if (!e->a->rank) {
		data_fill(ends_out[0], len, seed);
		ends_send(e, 0, len, 5 - segments);
	}
	if (late)
		api_meet(e->a);
	if (e->a->rank && late)
		ends_post(e, 0, len, segments);
	if (e->a->rank) {
		CHECK_EQ(obj_done(e->rx, ends_in[0]).len, len);
		data_check(ends_in[0], len, seed);
		memset(ends_in[0], 0, len);
	} else {
		wait_sent(e);
	}
}

static void sizes(struct api *a)
{
	struct ends e;

	ends_open(&e, a);
	for (int late = 0; late < 2; late++)
		for (size_t segments = 1; segments <= 4; segments += 3)
			for (size_t i = 0; i < API_COUNT(lens); i++)
				one(&e, lens[i], segments, late);
	ends_close(&e);
}

/*
 * ---- Buffers that are too short ----------------------------------------------------------------
 */

static void into(struct ends *e, size_t len, size_t room, bool late)
{
	if (e->a->rank)
		memset(ends_in[0], DATA_GUARD, ENDS_MOST);
	if (e->a->rank && !late)
		ends_post(e, 0, room, room % 2 ? 1 : 3);
	api_meet(e->a);
	if (!e->a->rank) {
		data_fill(ends_out[0], len, 3);
		ends_send(e, 0, len, 2);
	}
	if (late)
		api_meet(e->a);
	if (e->a->rank && late)
		ends_post(e, 0, room, room % 2 ? 1 : 3);
	if (e->a->rank) {
		struct fi_cq_err_entry err = obj_error(e->rx);

		CHECK_EQ(err.err, FI_ETRUNC);
		CHECK_EQ(err.len, room);
		CHECK_EQ(err.olen, len - room);
		data_check(ends_in[0], room, 3);
		CHECK(data_all(ends_in[0] + room, ENDS_MOST - room, DATA_GUARD));
	} else {
		wait_sent(e);
	}
}

static void truncated(struct api *a)
{
	static const size_t rooms[] = {0, 1, 4000, 16384, 16385, 65537, 131072, 150001, 262144};
	struct ends e;

	ends_open(&e, a);
	for (size_t i = 0; i < API_COUNT(lens); i++)
		for (size_t j = 0; j < API_COUNT(rooms) && rooms[j] < lens[i]; j++)
			into(&e, lens[i], rooms[j], (i + j) % 3 == 0);
	ends_close(&e);
}

/*
 * ---- Many messages in any order ----------------------------------------------------------------
 */

static unsigned int dice;

static unsigned int throw(unsigned int sides)
{
	dice = dice * 1103515245 + 12345;
	return (dice >> 8) % sides;
}

struct plan {
	size_t len, room;
	unsigned int seed;
};

/* Fills the messages that `rank` sends in `round`; both ranks compute the same. */
static void plan(struct plan *p, int rank, unsigned int round)
{
	dice = round * 2 + (unsigned int)rank + 17;
	for (int i = 0; i < ENDS; i++) {
		p[i].len = throw(3) ? lens[throw(API_COUNT(lens))] : throw(300000) + 1;
		p[i].room = throw(5) ? p[i].len : throw((unsigned int)p[i].len);
		p[i].seed = round * 100 + (unsigned int)(rank * 50 + i);
	}
}

static void check_entry(struct ends *e, const struct plan *p, bool *seen)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = {0};
	ssize_t ret = fi_cq_read(e->rx, &entry, 1);
	int i;

	if (ret == -FI_EAGAIN)
		return;
	if (ret == -FI_EAVAIL) {
		CHECK_EQ(fi_cq_readerr(e->rx, &err, 0), 1);
		CHECK_EQ(err.err, FI_ETRUNC);
		i = (int)err.tag;
		CHECK_EQ(err.olen, p[i].len - p[i].room);
	} else {
		CHECK_EQ(ret, 1);
		i = (int)entry.tag;
		CHECK_EQ(entry.len, p[i].len);
		CHECK_EQ(p[i].len, p[i].room);
	}
	CHECK(!seen[i]);
	seen[i] = true;
	data_check(ends_in[i], p[i].room, p[i].seed);
	CHECK(data_all(ends_in[i] + p[i].room, ENDS_MOST - p[i].room, DATA_GUARD));
}

static bool all(const bool *seen)
{
	for (int i = 0; i < ENDS; i++)
		if (!seen[i])
			return false;
	return true;
}

static void round_of(struct ends *e, unsigned int round)
{
	struct plan mine[ENDS], theirs[ENDS];
	bool sent[ENDS] = {0}, posted[ENDS] = {0}, seen[ENDS] = {0};
	int dones = 0;

	plan(mine, e->a->rank, round);
	plan(theirs, !e->a->rank, round);
	for (int i = 0; i < ENDS; i++) {
		data_fill(ends_out[i], mine[i].len, mine[i].seed);
		memset(ends_in[i], DATA_GUARD, ENDS_MOST);
	}
	api_meet(e->a);
	dice = round * 31 + (unsigned int)e->a->rank;
	OBJ_UNTIL(all(seen) && dones == ENDS, {
		struct fi_cq_tagged_entry entry;
		int i = (int) throw(ENDS);
		ssize_t ret;

		if (!sent[i]) {
			ends_send(e, i, mine[i].len, 1 + throw(4));
			sent[i] = true;
		}
		i = (int) throw(ENDS);
		if (!posted[i]) {
			ends_post(e, i, theirs[i].room, 1 + throw(4));
			posted[i] = true;
		}
		if (throw(8) == 0)
			obj_sleep_us(throw(300));
		check_entry(e, theirs, seen);
		ret = fi_cq_read(e->o.cq, &entry, 1);
		if (ret == 1)
			dones++;
		else
			CHECK_EQ(ret, -FI_EAGAIN);
	});
}

static void any_order(struct api *a)
{
	struct ends e;

	ends_open(&e, a);
	for (unsigned int round = 0; round < api_times(20); round++)
		round_of(&e, round);
	ends_close(&e);
}

/*
 * ---- Multi-receive buffers ---------------------------------------------------------------------
 */

#define ROOM (6u << 20)

static void into_one(struct api *a)
{
	static const size_t len[] = {200000, 100, 20000, 131072, 5, 300000, 131073, 4097};
	unsigned char *buf = malloc(ROOM);
	struct iovec iov = {buf, ROOM};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf};
	struct ends e;
	unsigned int count = 0;
	size_t used = 0;

	ends_open(&e, a);
	if (a->rank)
		OK(fi_recvmsg(e.o.ep, &m, FI_MULTI_RECV | FI_COMPLETION));
	api_meet(a);
	for (int i = 0; i < ENDS; i++)
		data_fill(ends_out[i], ENDS_MOST, (unsigned int)i);
	for (; used + ENDS_MOST <= ROOM; count++) {
		size_t l = len[count % API_COUNT(len)];
		struct fi_cq_tagged_entry entry;

		used += l;
		if (!a->rank) {
			POST(e.rx, fi_send(e.o.ep, ends_out[count % ENDS], l, NULL, e.to, NULL));
			continue;
		}
		entry = obj_next(e.rx, NULL);
		CHECK(entry.op_context == buf && (unsigned char *)entry.buf >= buf);
		CHECK((unsigned char *)entry.buf + entry.len <= buf + ROOM);
		CHECK(!(entry.flags & FI_MULTI_RECV));
		for (unsigned int i = 0;; i++) { /* short messages may complete before long ones */
			CHECK(i < ENDS);
			if (((unsigned char *)entry.buf)[0] == data_byte(i, 0)) {
				data_check(entry.buf, entry.len, i);
				break;
			}
		}
	}
	for (unsigned int i = 0; !a->rank && i < count; i++)
		obj_next(e.o.cq, NULL);
	ends_close(&e);
	free(buf);
}

/* ---- Receivers that poll rarely, or sleep ---------------------------------------------------- */

#define LEN 150000

static void fill_all(struct ends *e)
{
	for (int i = 0; i < ENDS; i++) {
		data_fill(ends_out[i], LEN, (unsigned int)i);
		if (e->a->rank)
			ends_post(e, i, LEN, 1);
	}
	api_meet_still(e->a);
}

static void rare(struct api *a)
{
	struct fi_cq_tagged_entry entry;
	struct ends e;
	int done = 0;

	ends_open(&e, a);
	for (int round = 0; round < 3; round++) {
		fill_all(&e);
		for (int i = 0; i < ENDS && !a->rank; i++)
			ends_send(&e, i, LEN, 1);
		done = 0;
		OBJ_UNTIL(done == ENDS, {
			struct fid_cq *cq = a->rank ? e.rx : e.o.cq;

			if (a->rank)
				obj_sleep_us(1500);
			if (fi_cq_read(cq, &entry, 1) != 1)
				continue;
			done++;
			if (a->rank)
				data_check(ends_in[entry.tag], LEN, (unsigned int)entry.tag);
		});
		api_meet(a);
	}
	ends_close(&e);
}

static void asleep(struct api *a)
{
	struct fi_cq_tagged_entry entry;
	struct ends e;

	ends_open(&e, a);
	for (int round = 0; round < 20; round++) {
		fill_all(&e);
		for (int i = 0; i < ENDS && !a->rank; i++)
			ends_send(&e, i, LEN, 1);
		for (int i = 0; i < ENDS; i++) {
			struct fid_cq *cq = a->rank ? e.rx : e.o.cq;
			int patience = OBJ_PATIENCE_MS * (int)obj_slower();

			CHECK_EQ(fi_cq_sread(cq, &entry, 1, NULL, patience), 1);
			if (a->rank)
				data_check(ends_in[entry.tag], LEN, (unsigned int)entry.tag);
		}
		api_meet(a);
	}
	ends_close(&e);
}

/*
 * The receiver makes no calls for a while: the sender can sleep, and is not woken without reason.
 */
static void sleep_until_sent(struct ends *e)
{
	struct fid *fids[] = {&e->o.cq->fid};
	struct fi_cq_tagged_entry entry;
	char byte = 0;

	for (int i = 0; i < ENDS; i++)
		ends_send(e, i, LEN, 1);
	OBJ_UNTIL(fi_trywait(e->o.fabric, fids, 1) == 0,
		  CHECK_EQ(fi_cq_read(e->o.cq, &entry, 1), -FI_EAGAIN));
	api_tell(e->a, 1, &byte, 1);
	for (int i = 0; i < ENDS; i++)
		CHECK_EQ(fi_cq_sread(e->o.cq, &entry, 1, NULL, OBJ_PATIENCE_MS * (int)obj_slower()),
			 1);
}

static void sender_sleeps(struct api *a)
{
	struct ends e;
	char byte;

	if (!strcmp(api_provider(), "tcp"))
		api_skip("its messages of this length are sent when they have been written");
	ends_open(&e, a);
	fill_all(&e);
	if (!a->rank) {
		sleep_until_sent(&e);
	} else {
		a->progress = NULL;
		api_hear(a, 0, &byte, 1);
		a->progress = ends_progress;
		for (int i = 0; i < ENDS; i++) {
			struct fi_cq_tagged_entry entry = obj_next(e.rx, NULL);

			data_check(ends_in[entry.tag], LEN, (unsigned int)entry.tag);
		}
	}
	ends_close(&e);
}

#define ROW     60
#define ROW_LEN 60000

/* Many long sends can be posted at once: the receiver needs no buffer space for their data. */
static void posted_at_once(struct api *a)
{
	struct ends e;

	if (!strcmp(api_provider(), "tcp"))
		api_skip("it writes messages of this length at once, as long as there is room");
	ends_open(&e, a);
	data_fill(ends_out[0], ROW_LEN, 1);
	api_meet_still(a);
	for (int i = 0; i < ROW && !a->rank; i++)
		OK(fi_tsend(e.o.ep, ends_out[0], ROW_LEN, NULL, e.to, 0, ends_out[0]));
	api_meet_still(a);
	for (int i = 0; i < ROW; i++) {
		if (a->rank) {
			ends_post(&e, 0, ROW_LEN, 1);
			CHECK_EQ(obj_done(e.rx, ends_in[0]).len, ROW_LEN);
			data_check(ends_in[0], ROW_LEN, 1);
		} else {
			wait_sent(&e);
		}
	}
	ends_close(&e);
}

int main(int argc, char **argv)
{
	static const char small[] = "FI_WEFT_RING_SIZE=65536", alone[] = "FI_SHM_DISABLE_CMA=1";
	static const struct api_case cases[] = {
		{"sizes", sizes, 2, {0}},
		{"sizes_small", sizes, 2, {small}},
		{"sizes_no_cma", sizes, 2, {alone}},
		{"sizes_small_no_cma", sizes, 2, {small, alone}},
		{"truncated", truncated, 2, {0}},
		{"truncated_no_cma", truncated, 2, {alone}},
		{"any_order", any_order, 2, {0}},
		{"any_order_small", any_order, 2, {small}},
		{"any_order_no_cma", any_order, 2, {alone}},
		{"any_order_small_no_cma", any_order, 2, {small, alone}},
		{"into_one", into_one, 2, {0}},
		{"into_one_no_cma", into_one, 2, {small, alone}},
		{"rare", rare, 2, {0}},
		{"rare_no_cma", rare, 2, {alone}},
		{"asleep", asleep, 2, {0}},
		{"asleep_no_cma", asleep, 2, {alone}},
		{"posted_at_once", posted_at_once, 2, {0}},
		{"posted_at_once_no_cma", posted_at_once, 2, {alone}},
		{"sender_sleeps", sender_sleeps, 2, {0}},
		{"sender_sleeps_no_cma", sender_sleeps, 2, {alone}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
