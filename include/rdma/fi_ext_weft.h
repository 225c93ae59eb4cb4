/* SPDX-License-Identifier: BSD-2-Clause */
/* Extensions of this library. fi_weft(7) */
#ifndef FI_EXT_WEFT_H
#define FI_EXT_WEFT_H

#include <rdma/fabric.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name for fi_open_ops on an endpoint of any type, which then returns struct fi_weft_ops_stats. */
#define FI_WEFT_STATS "weft_stats"

/*
 * What an endpoint keeps for its peers. Members are only ever added at the end; a program that was
 * compiled with an older header reads those it knows.
 */
struct fi_weft_stats {
	size_t size; /* bytes of this structure that are filled in, as the library sets it */
	/* Messages that no receive has taken yet, and the bytes that they occupy. */
	uint64_t unexpected_count;
	uint64_t unexpected_bytes;
	/*
	 * Messages that were dropped, and peers that were disconnected, since
	 * FI_WEFT_UNEXPECTED_LIMIT or FI_WEFT_UNEXPECTED_COUNT was reached. weft-env(7)
	 */
	uint64_t unexpected_dropped;
	uint64_t unexpected_disconnected;
	/* Accepted connections that wait for their hello or for an answer to it. */
	uint64_t pending_count;
	/* Such connections that were closed for others, or as their hello did not come in time. */
	uint64_t pending_dropped;
	/* Control messages about collective groups: beyond FI_WEFT_JOINS_MAX; not of a member. */
	uint64_t joins_refused;
	uint64_t nonmember_refused;
	/* One-sided accesses from the network with an unknown key; the same key again not counted. */
	uint64_t wrong_keys;
	/* Connections, of either direction, refused by FI_WEFT_CLOSED or for want of the job's key. */
	uint64_t unauthorized_refused;
	/* Bytes of answers that peers have not read yet. */
	uint64_t answers_bytes;
	/* Peers that were disconnected as they left too many unread. FI_WEFT_ANSWERS_LIMIT */
	uint64_t answers_disconnected;
	/* Peers refused, as too many are not in the address vector. FI_WEFT_UNKNOWN_MAX */
	uint64_t unknown_refused;
};

/* Static; valid as long as the library is loaded. */
struct fi_weft_ops_stats {
	size_t size; /* of this structure */
	/*
	 * Writes the figures of endpoint `fid` into *stats, `size` bytes of it at most. 0,
	 * -FI_EINVAL (`size` is too small for the first member) or -FI_EOPBADSTATE (not enabled).
	 */
	int (*read)(struct fid *fid, struct fi_weft_stats *stats, size_t size);
};

#ifdef __cplusplus
}
#endif

#endif
