/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/tcp/rails/tcp_window.h"

#include <string.h>
#include <sys/mman.h>

#include "base/iov.h"

#define MEMORY (TCP_WINDOW + TCP_SPANS * sizeof(struct tcp_span))

bool tcp_window_open(struct tcp_window *w)
{
	void *memory;

	if (w->bytes)
		return true;
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	w->bytes = memory;
	w->span = (struct tcp_span *)(w->bytes + TCP_WINDOW);
	return true;
}

void tcp_window_close(struct tcp_window *w)
{
	if (w->bytes)
		munmap(w->bytes, MEMORY);
	w->bytes = NULL;
	w->span = NULL;
}

void tcp_window_forget(struct tcp_window *w)
{
	if (w->bytes)
		madvise(w->bytes, TCP_WINDOW, MADV_DONTNEED);
}

void tcp_window_trim(struct tcp_window *w)
{
	bool empty = w->begin == w->next && w->end <= w->next && !w->count;

	if (empty && !w->used)
		tcp_window_close(w);
	w->used = false;
}

size_t tcp_window_iov(const struct tcp_window *w, uint64_t at, size_t len, struct iovec iov[2])
{
	size_t place = at % TCP_WINDOW, first = TCP_WINDOW - place;

	if (first >= len) {
		iov[0] = (struct iovec){w->bytes + place, len};
		return 1;
	}
	iov[0] = (struct iovec){w->bytes + place, first};
	iov[1] = (struct iovec){w->bytes, len - first};
	return 2;
}

void tcp_window_put(struct tcp_window *w, const void *bytes, size_t len)
{
	struct iovec iov[2];
	size_t count = tcp_window_iov(w, w->end, len, iov);

	iov_scatter(iov, count, 0, bytes, len);
	w->end += len;
	w->used = true;
}

static void tcp_window_insert(struct tcp_window *w, uint32_t at, struct tcp_span span)
{
	memmove(&w->span[at + 1], &w->span[at], (w->count - at) * sizeof(w->span[0]));
	w->span[at] = span;
	w->count++;
}

static void tcp_window_erase(struct tcp_window *w, uint32_t at, uint32_t count)
{
	w->count -= count;
	if (at < w->count)
		memmove(&w->span[at], &w->span[at + count], (w->count - at) * sizeof(w->span[0]));
}

/* The first part that has to be sent again; no more than a chunk of it, if the table has space for two parts. */
static bool take_again(struct tcp_window *w, uint32_t rail, struct tcp_span *chunk)
{
	uint32_t i = 0;

	while (i < w->count && w->span[i].rail != TCP_NO_RAIL)
		i++;
	if (i == w->count ||
	    (w->span[i].to - w->span[i].from > TCP_CHUNK && w->count == TCP_SPANS)) {
		w->again = i < w->count;
		return false;
	}
	*chunk = w->span[i];
	chunk->rail = rail;
	if (chunk->to - chunk->from > TCP_CHUNK) {
		chunk->to = chunk->from + TCP_CHUNK;
		w->span[i].from = chunk->to;
		tcp_window_insert(w, i, *chunk);
	} else {
		w->span[i].rail = rail;
	}
	return true;
}

static bool take_new(struct tcp_window *w, uint32_t rail, struct tcp_span *chunk)
{
	struct tcp_span *last = w->count ? &w->span[w->count - 1] : NULL;
	uint64_t left = w->end - w->next;
	bool joins = last && last->rail == rail;

	if (!left || (!joins && w->count >= TCP_SPANS_NEW))
		return false;
	*chunk = (struct tcp_span){w->next, w->next + (left < TCP_CHUNK ? left : TCP_CHUNK), rail};
	w->next = chunk->to;
	if (joins)
		last->to = chunk->to;
	else
		tcp_window_insert(w, w->count, *chunk);
	return true;
}

bool tcp_window_take(struct tcp_window *w, uint32_t rail, struct tcp_span *chunk)
{
	return (w->again && take_again(w, rail, chunk)) || take_new(w, rail, chunk);
}

uint64_t tcp_window_lost(struct tcp_window *w, uint32_t rail)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		if (w->span[i].rail != rail)
			continue;
		w->span[i].rail = TCP_NO_RAIL;
		w->again = true;
		bytes += w->span[i].to - w->span[i].from;
	}
	return bytes;
}

uint64_t tcp_window_taken(const struct tcp_window *w)
{
	for (uint32_t i = 0; w->again && i < w->count; i++)
		if (w->span[i].rail == TCP_NO_RAIL)
			return w->span[i].from;
	return w->next;
}

bool tcp_window_acked(struct tcp_window *w, uint64_t to)
{
	uint32_t done = 0;

	if (to > w->next)
		return false;
	if (to <= w->begin)
		return true; /* it came later than a newer one, by another rail */
	w->begin = to;
	while (done < w->count && w->span[done].to <= to)
		done++;
	tcp_window_erase(w, 0, done);
	if (w->count && w->span[0].from < to)
		w->span[0].from = to;
	return true;
}

/* The index of the first part that ends at `at` or behind. */
static uint32_t tcp_window_find(const struct tcp_window *w, uint64_t at)
{
	uint32_t i = 0;

	while (i < w->count && w->span[i].to < at)
		i++;
	return i;
}

bool tcp_window_came(struct tcp_window *w, uint64_t at, size_t len)
{
	struct tcp_span new = {at, at + len, 0};
	uint32_t first, behind;

	w->used = true;
	if (new.from <= w->next && !w->count) {
		w->next = new.to > w->next ? new.to : w->next;
		return true;
	}
	first = behind = tcp_window_find(w, new.from);
	for (; behind < w->count && w->span[behind].from <= new.to; behind++) {
		if (w->span[behind].from < new.from)
			new.from = w->span[behind].from;
		if (w->span[behind].to > new.to)
			new.to = w->span[behind].to;
	}
	tcp_window_erase(w, first, behind - first);
	if (new.from > w->next) {
		if (w->count == TCP_SPANS)
			return false;
		tcp_window_insert(w, first, new);
	} else if (new.to > w->next) {
		w->next = new.to;
	}
	return true;
}

bool tcp_window_lacks(const struct tcp_window *w, uint64_t at, size_t len)
{
	uint32_t i = tcp_window_find(w, at + 1);

	return at >= w->next && (i == w->count || w->span[i].from >= at + len);
}

size_t tcp_window_read(struct tcp_window *w, const struct iovec *iov, size_t count)
{
	struct iovec have[2];
	size_t left = (size_t)(w->next - w->begin), done = 0;
	size_t parts = left ? tcp_window_iov(w, w->begin, left, have) : 0;

	for (size_t i = 0; i < parts; i++)
		done += iov_scatter(iov, count, done, have[i].iov_base, have[i].iov_len);
	w->begin += done;
	return done;
}
