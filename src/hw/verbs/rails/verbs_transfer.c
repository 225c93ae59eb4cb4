/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/rails/verbs_rails.h"

#include <stdlib.h>
#include <string.h>

#include "base/iov.h"

#define PIECE_MAX ((size_t)128 << 10) /* bytes */
#define DEPTH     (2 * PIECE_MAX) /* a rail with so many bytes under way gets no further piece */
#define NO_RAIL   VERBS_RAILS

static bool can_access(const struct verbs_rail *rail)
{
	return verbs_rail_usable(rail) && rail->proven && rail->link->link.rdma_usable;
}

unsigned int verbs_transfer_rails(const struct verbs_rails *r)
{
	unsigned int mask = 0;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		mask |= can_access(&r->rail[i]) ? 1u << i : 0;
	return mask;
}

unsigned int verbs_transfer_suits(const struct verbs_rails *r, const struct verbs_transfer *t)
{
	return t->known & ~t->refused & verbs_transfer_rails(r);
}

/* ---- Keys of the peer's memory --------------------------------------------------------------- */

/* Fills in the rkey of a range at the peer's device of a rail; 0: there is none. False: not known. */
static bool rkey_of(struct verbs_rails *r, const struct verbs_transfer *t, unsigned int rail,
		    uint64_t key, uint32_t *rkey)
{
	if (!t->message && !r->rail[rail].link->link.reaches)
		return verbs_rails_rkey(r, rail, key, rkey);
	*rkey = (uint32_t)(t->message ? key >> (32 * rail) : key);
	return true;
}

/* Learns the rail's rkeys of the ranges that lack one. */
static void verbs_transfer_learn(struct verbs_rails *r, struct verbs_transfer *t, unsigned int rail)
{
	bool all = true;

	for (size_t n = 0; n < t->remote_count; n++) {
		uint32_t *rkey = &t->rkey[rail][n];

		if (!t->remote[n].len || *rkey)
			continue;
		if (rkey_of(r, t, rail, t->remote[n].key, rkey) && !*rkey)
			t->unknown |= 1u << rail;
		all &= *rkey != 0;
	}
	t->known |= all ? 1u << rail : 0;
}

/* A short operation needs no second rail: the peer is not asked for the keys of that. */
void verbs_transfer_name(struct verbs_rails *r, struct verbs_transfer *t)
{
	for (unsigned int i = 0; i < VERBS_RAILS; i++) {
		bool has_earlier = t->known & ((1u << i) - 1);

		if (!t->message && !can_access(&r->rail[i])) {
			/* What the rail's next link leads to may be another device. */
			t->known &= ~(1u << i);
			t->unknown &= ~(1u << i);
			memset(t->rkey[i], 0, sizeof(t->rkey[i]));
		} else if (!((t->known | t->unknown) & 1u << i) &&
			   (t->message || t->len > PIECE_MAX || !has_earlier)) {
			verbs_transfer_learn(r, t, i);
		}
	}
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* Returns the rail for the next piece: that with fewest bytes under way. NO_RAIL: none now. */
static unsigned int verbs_transfer_choose(const struct verbs_rails *r,
					  const struct verbs_transfer *t, unsigned int mask)
{
	unsigned int best = NO_RAIL;
	size_t least = DEPTH;

	mask &= verbs_transfer_suits(r, t);
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (mask & 1u << i && r->rail[i].under_way < least) {
			least = r->rail[i].under_way;
			best = i;
		}
	return best;
}

static void verbs_transfer_give(struct verbs_rails *r, struct verbs_piece *piece, unsigned int rail)
{
	struct verbs_transfer *t = piece->transfer;

	r->rail[rail].under_way += piece->len;
	r->rail[rail].operations += !t->message;
	t->on[rail]++;
	t->idle--;
	piece->rail = rail;
}

static void take_back(struct verbs_rails *r, struct verbs_piece *piece)
{
	struct verbs_transfer *t = piece->transfer;

	r->rail[piece->rail].under_way -= piece->len;
	r->rail[piece->rail].operations -= !t->message;
	t->on[piece->rail]--;
	t->idle++;
	piece->rail = NO_RAIL;
}

bool verbs_transfer_is_posted(const struct verbs_transfer *t)
{
	return t->begun == t->len && !t->idle;
}

bool verbs_transfer_is_under_way(const struct verbs_transfer *t)
{
	return t->on[0] || t->on[1];
}

/* Returns a piece to post: one that a rail has lost, or a new one. NULL: none, or no memory. */
static struct verbs_piece *next_piece(struct verbs_rails *r, struct verbs_transfer *t)
{
	struct verbs_piece *piece;

	LIST_EACH (node, &t->pieces) {
		piece = LIST_ENTRY(node, struct verbs_piece, link);
		if (t->idle && piece->rail == NO_RAIL)
			return piece;
	}
	piece = t->begun < t->len ? pool_get(&r->own->multi->pieces) : NULL;
	if (!piece)
		return NULL;
	*piece = (struct verbs_piece){
		.transfer = t, .rail = NO_RAIL, .at = t->begun, .len = t->len - t->begun};
	if (piece->len > PIECE_MAX)
		piece->len = PIECE_MAX;
	t->begun += piece->len;
	t->idle++;
	list_push(&t->pieces, &piece->link);
	return piece;
}

/* Writes the ranges of the piece, with the keys of the rail. Returns their number. */
static size_t verbs_transfer_ranges(struct fi_rma_iov *to, const struct verbs_piece *piece,
				    unsigned int rail)
{
	const struct verbs_transfer *t = piece->transfer;
	size_t skip = piece->at, left = piece->len, count = 0;

	for (size_t n = 0; n < t->remote_count && left; n++) {
		const struct fi_rma_iov *from = &t->remote[n];
		size_t take = from->len > skip ? from->len - skip : 0;

		if (take > left)
			take = left;
		if (take)
			to[count++] =
				(struct fi_rma_iov){from->addr + skip, take, t->rkey[rail][n]};
		skip = take ? 0 : skip - from->len;
		left -= take;
	}
	return count;
}

static bool post_piece(struct verbs_rails *r, struct verbs_piece *piece, unsigned int rail)
{
	const struct verbs_transfer *t = piece->transfer;
	struct iovec local[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
	size_t len = piece->len;
	struct link_copy op = {.id = pool_id(piece),
			       .write = t->write,
			       .now = t->now,
			       .local = local,
			       .remote = remote};

	op.local_count = iov_slice(local, t->local, t->local_count, piece->at, &len);
	op.remote_count = verbs_transfer_ranges(remote, piece, rail);
	if (verbs_rdma(&r->rail[rail].link->link, &op) < 0)
		return false;
	verbs_transfer_give(r, piece, rail);
	return true;
}

/* A rail whose device refuses the memory is not used for the transfer. */
void verbs_transfer_serve(struct verbs_rails *r, struct verbs_transfer *t, unsigned int mask)
{
	struct verbs_piece *piece;
	unsigned int rail;

	while (!verbs_transfer_is_posted(t) &&
	       (rail = verbs_transfer_choose(r, t, mask)) != NO_RAIL && (piece = next_piece(r, t)))
		if (!post_piece(r, piece, rail))
			t->refused |= 1u << rail;
}

void verbs_transfer_lose(struct verbs_rails *r, struct verbs_transfer *t, unsigned int rail)
{
	LIST_EACH_OF (struct verbs_piece, piece, &t->pieces, link)
		if (piece->rail == rail)
			take_back(r, piece);
}

static void free_piece(struct verbs_rails *r, struct verbs_piece *piece)
{
	if (piece->rail != NO_RAIL)
		take_back(r, piece);
	piece->transfer->idle--;
	list_remove(&piece->link);
	pool_put(&r->own->multi->pieces, piece);
}

bool verbs_transfer_advance(struct verbs_rails *r, struct verbs_piece *piece)
{
	struct verbs_transfer *t = piece->transfer;

	t->left -= piece->len;
	free_piece(r, piece);
	return !t->left;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void verbs_transfer_pool(struct pool *pool)
{
	pool_init(pool, sizeof(struct verbs_piece));
}

struct verbs_transfer *verbs_transfer_new(struct verbs_rails *r, const struct link_copy *op)
{
	struct verbs_transfer *t = malloc(sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct verbs_transfer){.id = op->id,
				     .message = op->message,
				     .write = op->write,
				     .now = op->now,
				     .local_count = op->local_count,
				     .remote_count = op->remote_count};
	memcpy(t->local, op->local, op->local_count * sizeof(t->local[0]));
	memcpy(t->remote, op->remote, op->remote_count * sizeof(t->remote[0]));
	t->len = t->left = iov_bytes(op->local, op->local_count);
	list_init(&t->pieces);
	list_init(&t->link);
	verbs_transfer_name(r, t);
	return t;
}

void verbs_transfer_free(struct verbs_rails *r, struct verbs_transfer *t)
{
	while (!list_empty(&t->pieces))
		free_piece(r, LIST_ENTRY(t->pieces.next, struct verbs_piece, link));
	list_remove(&t->link);
	free(t);
}
