/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, sends, receives and checks hellos. */
#ifndef WEFT_CONN_HELLO_H
#define WEFT_CONN_HELLO_H

#include "base/addr.h"
#include "conn/station.h"
#include "link/link.h"
#include "link/wire.h"

/* The fields of a hello that differ between hellos of one station. */
struct hello_fields {
	enum hello_kind kind;
	uint32_t id;      /* id by which the receiver's packets name the sender */
	int error;        /* of HELLO_REJECT; positive */
	const void *data; /* application data, at most WIRE_CM_DATA_MAX bytes */
	size_t data_len;
	struct wire_nic nic;            /* our end of a link between RDMA devices */
	const struct wire_rails *rails; /* of WIRE_HELLO_RAILS, instead of `data`; or NULL */
	const uint8_t *token;           /* WIRE_PROOF bytes for the nonce; or NULL */
	struct auth *auth; /* the proof that the hello is part of; NULL or key.len 0: none */
};

/*
 * Sends a hello on `sock`; within a host, with the shm transport's descriptors. `station` may be
 * NULL for HELLO_REJECT, HELLO_JOIN and HELLO_JOINED. 0 or a negative error.
 */
int hello_send(struct station *station, int sock, bool inside, const struct hello_fields *fields);

/*
 * Receives a hello from `sock`. 1: *hello is valid; the caller owns the received descriptors `fds` (-1: none; of a hello that
 * brings some: our table had no room for them). 0: not complete yet. -FI_ECONNRESET: the connection ended; -FI_EPROTO: no hello
 * of our version (logged with both sides' figures); or another error.
 */
int hello_recv(int sock, bool inside, struct wire_hello *hello, int fds[WIRE_FDS]);

/* Duplicates the descriptors that our own hello carries; the caller owns them. 0 or a negative error. */
int hello_own_fds(struct station *station, int fds[WIRE_FDS]);

/* Closes the descriptors and sets all to -1. */
void hello_close_fds(int fds[WIRE_FDS]);

/*
 * Returns the address in a hello in *name; the caller frees it with addr_free. 0, -FI_EPROTO or
 * -FI_ENOMEM.
 */
int hello_name(const struct wire_hello *hello, struct addr *name);

/* Returns whether the hello brings a list of interfaces. */
bool hello_rails(const struct wire_hello *hello, struct wire_rails *rails);

/* ---- addresses.c: by which addresses an endpoint is reached that all those of its host reach ---- */

struct station;

/* Reads an address that came from another process. False: it is none of an endpoint. */
bool addresses_read(const struct wire_address *w, struct addr *a);
/* Writes an IP address. */
struct wire_address addresses_write(const struct addr *a);
/* Adds to a hello that is sent on `sock`, across the network, by which addresses the station is reached. */
void addresses_tell(struct station *station, int sock, struct wire_hello *hello);
/* Reads those that a hello tells. Returns how many. */
unsigned int addresses_heard(const struct wire_hello *hello, struct addr at[WIRE_ADDRESSES_MAX]);

#endif
