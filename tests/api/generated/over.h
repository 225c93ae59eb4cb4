/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One place in the memory of a process that one endpoint of another writes and reads again and again: its
 * operations take effect in their order (FI_ORDER_WAW, FI_ORDER_RAW, FI_ORDER_WAR). Needs judge.h.
 */
#ifndef GENERATED_OVER_H
#define GENERATED_OVER_H

static inline bool over_promised(const struct fi_info *info)
{
	const uint64_t orders = FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_WAR;
	const struct fi_ep_attr *ep = info->ep_attr;

	return (info->tx_attr->msg_order & orders) == orders &&
	       ep->max_order_waw_size == SIZE_MAX && ep->max_order_raw_size == SIZE_MAX &&
	       ep->max_order_war_size == SIZE_MAX;
}

/* Puts what write `o` writes into the first `len` bytes of its place into `to`. */
static inline void over_write(const struct world *w, const struct op *o, unsigned char *to,
			      size_t len)
{
	size_t has = world_line(w, o)->len;
	unsigned char head[WORLD_FIRST];

	len = has < len ? has : len;
	world_head(head, has, op_number(w, o));
	memcpy(to, world_bytes(op_number(w, o)), len);
	memcpy(to, head, len < WORLD_FIRST ? len : WORLD_FIRST);
}

/*
 * Puts into `to` what the first `len` bytes of the place of `l` hold once all before `end` is performed, with `x`
 * only what has been. Returns whether anybody knows.
 */
static inline bool over_holds(const struct world *w, const struct matching *x, const struct line *l,
			      const struct op *end, unsigned char *to, size_t len)
{
	memset(to, WORLD_EMPTY, len);
	for (const struct op *o = w->ops; o < end; o++) {
		const struct line *k = world_line(w, o);

		if (k->verb != VERB_WRITE || !line_over(k, l) || !op_called(o))
			continue;
		if (op_unsure(w, o) || (x && judge_unknown(w, x, o)))
			return false;
		if (!x || judge_performed(w, x, o))
			over_write(w, o, to, len);
	}
	return true;
}

/* order: returns whether `at` holds what it must; see over_holds. */
static inline bool over_right(const struct world *w, const struct matching *x, const struct line *l,
			      const struct op *end, const unsigned char *at, size_t len)
{
	unsigned char *right = malloc(len + 1);
	bool good = !right || !over_holds(w, x, l, end, right, len) || !memcmp(at, right, len);

	free(right);
	return good;
}

#endif
