/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA on links over two devices. A long message is read in pieces, over both rails; each has a few
 * pieces under way at a time, so it carries as much as it can. A piece whose rail breaks is read
 * again over the other one: nobody has been told yet that the message is there.
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "hw/verbs/dev/verbs_mem.h"
#include "hw/verbs/rdm/verbs_rails.h"
#include "link/upcall.h"

#define PIECE_MAX ((size_t)128 << 10) /* bytes */
#define DEPTH     2u                  /* pieces that a rail has under way */
#define OF_PIECE  (UINT64_C(1) << 63) /* in link_rdma.id: of a piece; the engine's ids are shorter */
#define NO_RAIL   VERBS_RAILS

/* A long message of the peer that is being read. */
struct verbs_read {
	struct list link; /* verbs_rails.reads */
	uint64_t id;
	unsigned int rails; /* mask: rails whose devices know the memory at both ends */
	size_t begun;       /* bytes that pieces stand for, or stood */
	size_t left;        /* bytes that are not there yet */
	size_t len;
	struct list pieces; /* struct verbs_piece.link: those that are not there yet */
	size_t local_count, remote_count;
	struct iovec local[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
};

struct verbs_piece {
	struct list link;
	struct verbs_read *read;
	unsigned int rail; /* NO_RAIL: it is to be posted again */
	size_t at, len;    /* bytes of the message */
};

/* The segments of a message, registered with the device of each rail. */
struct rails_region {
	size_t count;
	struct {
		struct verbs *device;
		struct verbs_mem *mem;
	} part[VERBS_RAILS][WIRE_IOV_MAX];
};

void verbs_rails_pool(struct pool *pool)
{
	pool_init(pool, sizeof(struct verbs_piece));
}

static uint32_t rkey(const struct fi_rma_iov *remote, unsigned int rail)
{
	return (uint32_t)(remote->key >> (32 * rail));
}

static bool can_read(const struct verbs_rail *rail)
{
	return verbs_rail_usable(rail) && rail->proven && rail->link->link.rdma_usable;
}

static unsigned int readable(const struct verbs_rails *r)
{
	unsigned int mask = 0;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		mask |= can_read(&r->rail[i]) ? 1u << i : 0;
	return mask;
}

void verbs_rails_update(struct verbs_rails *r)
{
	const struct verbs_link *first = r->rail[0].link;

	r->link.reaches = !r->active && can_read(&r->rail[0]) && first->link.reaches;
	r->link.counted = first ? first->link.counted : r->link.counted;
	r->link.rdma_usable = readable(r) != 0;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static unsigned int keys_of(const struct link_rdma *op)
{
	unsigned int mask = (1u << VERBS_RAILS) - 1;

	for (size_t n = 0; n < op->remote_count; n++)
		for (unsigned int i = 0; i < VERBS_RAILS; i++)
			if (op->remote[n].len && !rkey(&op->remote[n], i))
				mask &= ~(1u << i);
	return mask;
}

/* Returns the rail for the message's next piece: that with fewest under way. NO_RAIL: none now. */
static unsigned int choose(const struct verbs_rails *r, const struct verbs_read *read)
{
	unsigned int mask = read->rails & readable(r), best = NO_RAIL, least = DEPTH;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (mask & 1u << i && r->rail[i].pieces < least) {
			least = r->rail[i].pieces;
			best = i;
		}
	return best;
}

/* Returns a piece to post: one that a rail has lost, or a new one. NULL: none, or no memory. */
static struct verbs_piece *next_piece(struct verbs_rails *r, struct verbs_read *read)
{
	struct verbs_piece *piece;

	LIST_EACH (node, &read->pieces) {
		piece = LIST_ENTRY(node, struct verbs_piece, link);
		if (piece->rail == NO_RAIL)
			return piece;
	}
	piece = read->begun < read->len ? pool_get(&r->own->multi->pieces) : NULL;
	if (!piece)
		return NULL;
	*piece = (struct verbs_piece){
		.read = read, .rail = NO_RAIL, .at = read->begun, .len = read->len - read->begun};
	if (piece->len > PIECE_MAX)
		piece->len = PIECE_MAX;
	read->begun += piece->len;
	list_push(&read->pieces, &piece->link);
	return piece;
}

/* Writes the ranges of the piece, with the keys of the rail. Returns their number. */
static size_t ranges(struct fi_rma_iov *to, const struct verbs_piece *piece, unsigned int rail)
{
	const struct verbs_read *read = piece->read;
	size_t skip = piece->at, left = piece->len, count = 0;

	for (size_t n = 0; n < read->remote_count && left; n++) {
		const struct fi_rma_iov *from = &read->remote[n];
		size_t take = from->len > skip ? from->len - skip : 0;

		if (take > left)
			take = left;
		if (take)
			to[count++] =
				(struct fi_rma_iov){from->addr + skip, take, rkey(from, rail)};
		skip = take ? 0 : skip - from->len;
		left -= take;
	}
	return count;
}

/* 0 or a negative error. */
static int post_piece(struct verbs_rails *r, struct verbs_piece *piece, unsigned int rail)
{
	const struct verbs_read *read = piece->read;
	struct iovec local[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
	size_t len = piece->len;
	struct link_rdma op = {.id = OF_PIECE | pool_id(piece), .local = local, .remote = remote};
	int err;

	op.local_count = iov_slice(local, read->local, read->local_count, piece->at, &len);
	op.remote_count = ranges(remote, piece, rail);
	err = verbs_rdma(&r->rail[rail].link->link, &op);
	if (err)
		return err;
	piece->rail = rail;
	r->rail[rail].pieces++;
	return 0;
}

/* Posts pieces of the message. A rail whose device refuses the memory is not used for it. */
static void serve(struct verbs_rails *r, struct verbs_read *read)
{
	struct verbs_piece *piece;
	unsigned int rail;

	while ((rail = choose(r, read)) != NO_RAIL && (piece = next_piece(r, read)))
		if (post_piece(r, piece, rail))
			read->rails &= ~(1u << rail);
}

static void pump(struct verbs_rails *r)
{
	LIST_EACH (node, &r->reads)
		serve(r, LIST_ENTRY(node, struct verbs_read, link));
}

static void free_piece(struct verbs_rails *r, struct verbs_piece *piece)
{
	if (piece->rail != NO_RAIL)
		r->rail[piece->rail].pieces--;
	list_remove(&piece->link);
	pool_put(&r->own->multi->pieces, piece);
}

static void free_read(struct verbs_rails *r, struct verbs_read *read)
{
	while (!list_empty(&read->pieces))
		free_piece(r, LIST_ENTRY(read->pieces.next, struct verbs_piece, link));
	list_remove(&read->link);
	free(read);
}

/* ---- The engine's functions ------------------------------------------------------------------ */

static struct verbs_read *read_new(const struct link_rdma *op)
{
	struct verbs_read *read = malloc(sizeof(*read));

	if (!read)
		return NULL;
	*read = (struct verbs_read){.id = op->id,
				    .rails = keys_of(op),
				    .local_count = op->local_count,
				    .remote_count = op->remote_count};
	memcpy(read->local, op->local, op->local_count * sizeof(read->local[0]));
	memcpy(read->remote, op->remote, op->remote_count * sizeof(read->remote[0]));
	read->len = read->left = iov_bytes(op->local, op->local_count);
	list_init(&read->pieces);
	list_init(&read->link);
	return read;
}

static bool is_under_way(const struct verbs_read *read)
{
	LIST_EACH (node, &read->pieces) {
		if (LIST_ENTRY(node, struct verbs_piece, link)->rail != NO_RAIL)
			return true;
	}
	return false;
}

/* Can no rail read what is left? A device that still reads a piece may write to the memory. */
static bool is_hopeless(const struct verbs_rails *r, const struct verbs_read *read)
{
	return !(read->rails & readable(r)) && !is_under_way(read);
}

int verbs_rails_rdma(struct link *link, const struct link_rdma *op)
{
	struct verbs_rails *r = (struct verbs_rails *)link;
	struct verbs_read *read;

	if (!op->message)
		return link->reaches ? verbs_rdma(&r->rail[0].link->link, op) : -FI_EOPNOTSUPP;
	read = read_new(op);
	if (!read)
		return -FI_ENOMEM;
	list_push(&r->reads, &read->link);
	serve(r, read);
	if (!is_hopeless(r, read))
		return 0;
	free_read(r, read);
	return -FI_ENOMEM;
}

void verbs_rails_abort(struct link *link)
{
	struct verbs_rails *r = (struct verbs_rails *)link;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (r->rail[i].link)
			verbs_rdma_end(r->rail[i].link, true);
	while (!list_empty(&r->reads))
		free_read(r, LIST_ENTRY(r->reads.next, struct verbs_read, link));
	verbs_rails_update(r);
}

void verbs_rails_done(struct verbs_link *l, uint64_t id)
{
	struct verbs_rails *r = l->rails;
	struct worker *worker = r->own->worker;
	struct verbs_piece *piece;
	struct verbs_read *read;

	if (!(id & OF_PIECE)) {
		rx_rdma_done(worker, id);
		return;
	}
	piece = pool_find(&r->own->multi->pieces, (uint32_t)id);
	if (!piece)
		return;
	read = piece->read;
	read->left -= piece->len;
	free_piece(r, piece);
	if (read->left) {
		verbs_rails_resume(r);
		return;
	}
	id = read->id;
	free_read(r, read);
	verbs_rails_resume(r);
	rx_rdma_done(worker, id);
}

/* ---- Rails that break ------------------------------------------------------------------------ */

static void lose_pieces(struct verbs_rails *r, const struct verbs_read *read, unsigned int rail)
{
	LIST_EACH (node, &read->pieces) {
		struct verbs_piece *piece = LIST_ENTRY(node, struct verbs_piece, link);

		if (piece->rail != rail)
			continue;
		piece->rail = NO_RAIL;
		r->rail[rail].pieces--;
	}
}

void verbs_rails_lost(struct verbs_rails *r, unsigned int rail)
{
	LIST_EACH (node, &r->reads)
		lose_pieces(r, LIST_ENTRY(node, struct verbs_read, link), rail);
}

/* Returns a message that no rail can read, or NULL. */
static struct verbs_read *hopeless(struct verbs_rails *r)
{
	LIST_EACH (node, &r->reads) {
		struct verbs_read *read = LIST_ENTRY(node, struct verbs_read, link);

		if (is_hopeless(r, read)) /* NOLINT(clang-analyzer-unix.Malloc): as in list_pop */
			return read;
	}
	return NULL;
}

void verbs_rails_resume(struct verbs_rails *r)
{
	struct worker *worker = r->own->worker;
	struct verbs_read *read;

	pump(r);
	while ((read = hopeless(r))) {
		uint64_t id = read->id;

		free_read(r, read);
		rx_rdma_refused(worker, id);
	}
}

void verbs_rails_rdma_ended(struct verbs_link *l)
{
	struct verbs_rails *r = l->rails;
	unsigned int rail = r->rail[0].link == l ? 0 : 1;

	verbs_rails_lost(r, rail);
	verbs_rails_update(r);
	if (!rail)
		rx_rma_failed(r->own->worker, r->id);
	verbs_rails_resume(r);
}

/* ---- Memory that the peer reads -------------------------------------------------------------- */

static void drop(struct rails_region *e)
{
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		for (size_t n = 0; n < e->count; n++) {
			if (!e->part[i][n].mem)
				continue;
			verbs_mem_put(e->part[i][n].mem);
			e->part[i][n].device->regions--;
		}
	free(e);
}

void verbs_rails_deregister(struct link *link, void *registered)
{
	(void)link;
	drop(registered);
}

/*
 * Registers a segment with the device of a rail, if it has one. Returns the rkey; 0: none. A removed
 * device is closed once nothing is registered with it, and gets nothing new until then.
 */
static uint32_t add_part(const struct verbs_rails *r, struct rails_region *e, unsigned int rail,
			 const struct iovec *segment)
{
	struct verbs *v = r->rail[rail].device;
	struct verbs_mem *mem =
		v && v->up && verbs_usable(v)
			? verbs_mem_get(v->path.dev, segment, IBV_ACCESS_REMOTE_READ)
			: NULL;

	if (!mem)
		return 0;
	e->part[rail][e->count].device = v;
	e->part[rail][e->count].mem = mem;
	v->regions++;
	return mem->mr->rkey;
}

int verbs_rails_register(struct link *link, enum proto proto, const struct iovec *iov, size_t count,
			 const void *batch, struct fi_rma_iov *at, void **registered)
{
	const struct verbs_rails *r = (const struct verbs_rails *)link;
	struct rails_region *e = calloc(1, sizeof(*e));

	(void)proto; /* always PROTO_RDMA */
	(void)batch;
	if (!e)
		return -FI_ENOMEM;
	while (e->count < count) {
		const struct iovec *s = &iov[e->count];
		uint64_t key = 0;

		for (unsigned int i = 0; s->iov_len && i < VERBS_RAILS; i++)
			key |= (uint64_t)add_part(r, e, i, s) << (32 * i);
		at[e->count++] = (struct fi_rma_iov){(uintptr_t)s->iov_base, s->iov_len, key};
		if (s->iov_len && !key) {
			drop(e);
			return -FI_ENOMEM;
		}
	}
	*registered = e;
	return 0;
}
