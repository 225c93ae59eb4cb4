/* SPDX-License-Identifier: BSD-2-Clause */
/* The source in completions for a peer that was removed from the vector, and user ids. fi_av(3). */
#include "obj.h"

static fi_addr_t source_of_next(struct obj *o, struct fid_ep *ep)
{
	fi_addr_t src;
	int word;

	OK(fi_recv(ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
	CHECK(obj_next(o->cq, &src).op_context == &word);
	return src;
}

/*
 * Messages of a removed peer arrive without source. After inserting it again the source is the new
 * entry.
 */
static void removed(struct api *a)
{
	struct obj o = {0};
	fi_addr_t peer, spare;
	struct obj_name name = {0};
	int word = 1;

	o.hints = obj_hints(FI_MSG | FI_SOURCE);
	obj_open(&o);
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	name.len = sizeof(name.bytes);
	OK(fi_av_lookup(o.av, peer, name.bytes, &name.len));
	for (int step = 0; step < 3; step++) {
		if (a->rank == 1 && step == 1) {
			OK(fi_av_remove(o.av, &peer, 1, 0));
			peer = FI_ADDR_NOTAVAIL;
		} else if (a->rank == 1 && step == 2) {
			spare = obj_insert_ep(o.av, o.ep);
			peer = obj_insert(o.av, &name);
			CHECK(peer != spare);
		}
		api_meet(a);
		if (a->rank == 0)
			POST(o.cq, fi_inject(o.ep, &word, sizeof(word), peer));
		else
			CHECK_EQ(source_of_next(&o, o.ep), peer);
		api_meet(a);
	}
	api_meet(a);
	obj_close(&o);
}

/*
 * A directed receive for a peer that was inserted twice matches its messages, also after one of the
 * insertions was removed (MPI_Comm_disconnect, then MPI_Comm_connect).
 */
static void inserted_again(struct api *a)
{
	struct obj o = {0};
	struct obj_name name = {.len = sizeof(name.bytes)};
	fi_addr_t peer, second, src;
	int word = 1;

	o.hints = obj_hints(FI_MSG | FI_DIRECTED_RECV | FI_SOURCE);
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_TABLE, 0);
	obj_open(&o);
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	OK(fi_av_lookup(o.av, peer, name.bytes, &name.len));
	second = obj_insert(o.av, &name);
	CHECK_EQ(second, peer);
	for (int step = 0; step < 3; step++) {
		if (a->rank == 0) {
			POST(o.cq, fi_inject(o.ep, &word, sizeof(word), peer));
		} else {
			OK(fi_recv(o.ep, &word, sizeof(word), NULL, second, &word));
			CHECK(obj_next(o.cq, &src).op_context == &word);
			CHECK_EQ(src, peer);
		}
		api_meet(a);
		if (step == 0)
			OK(fi_av_remove(o.av, &peer, 1, 0));
		else if (step == 1)
			CHECK_EQ(obj_insert(o.av, &name), peer);
	}
	obj_close(&o);
}

/*
 * A message to oneself, unexpected when the entry was removed, has no source even if another peer
 * gets the same index.
 */
static void self_removed(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *other;
	fi_addr_t self;
	int word = 1;

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_SOURCE);
	obj_open(&o);
	other = obj_ready_ep(&o, o.cq);
	self = obj_insert_ep(o.av, o.ep);
	for (int i = 0; i < 2; i++)
		POST(o.cq, fi_inject(o.ep, &word, sizeof(word), self));
	CHECK_EQ(source_of_next(&o, o.ep), self);
	OK(fi_av_remove(o.av, &self, 1, 0));
	CHECK_EQ(obj_insert_ep(o.av, other), self);
	CHECK_EQ(source_of_next(&o, o.ep), FI_ADDR_NOTAVAIL);
	CLOSE(other);
	obj_close(&o);
}

/* Completions report the user id; sends use the fi_addr_t. */
static void user_ids(struct api *a)
{
	struct obj o = {0};
	struct obj_name name;
	fi_addr_t addr = 0xabcdef0123456789;
	int word = 1;

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_SOURCE | FI_AV_USER_ID);
	if (!obj_find(&o, FI_VERSION(1, 20))) {
		if (!api_other())
			api_fail("FI_AV_USER_ID is not offered");
		fi_freeinfo(o.hints);
		o.hints = obj_hints(FI_MSG | FI_SOURCE);
	}
	obj_open(&o);
	name = obj_name(&o.ep->fid);
	if (fi_av_insert(o.av, name.bytes, 1, &addr, FI_AV_USER_ID, NULL) != 1) {
		if (!api_other())
			api_fail("FI_AV_USER_ID is refused");
		api_skip("no user ids");
	}
	CHECK(addr != 0xabcdef0123456789);
	POST(o.cq, fi_inject(o.ep, &word, sizeof(word), addr));
	CHECK_EQ(source_of_next(&o, o.ep), 0xabcdef0123456789);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"removed", removed, 2, {0}},
		{"inserted_again", inserted_again, 2, {0}},
		{"self_removed", self_removed, 1, {0}},
		{"user_ids", user_ids, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
