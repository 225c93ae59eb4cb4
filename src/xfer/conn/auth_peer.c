/* SPDX-License-Identifier: BSD-2-Clause */
/* The proof of a key, as the initiator of a connection sees it. */
#include <rdma/fi_errno.h>

#include "xfer/conn/conn_own.h"

int auth_greet(struct peer *peer)
{
	struct worker *worker = peer->worker;
	struct hello_fields fields = {.kind = HELLO_GREETING};
	const struct job_key *key = auth_key(&worker->auth, peer->key_slot);

	if (!key)
		return -FI_EACCES;
	peer->conn.auth = auth_new(key, worker->auth.encrypts && !peer->conn.inside);
	if (!peer->conn.auth)
		return -FI_ENOMEM;
	fields.auth = peer->conn.auth;
	return hello_send(worker, peer->conn.sock, peer->conn.inside, &fields);
}

/* A challenge of our own endpoint, to which we did not connect: somebody passes our hellos back to us. */
static bool is_reflected(const struct peer *peer, const struct wire_hello *hello)
{
	const struct worker *worker = peer->worker;

	return hello->incarnation == worker->incarnation && !addr_equal(&peer->key, &worker->key);
}

/* NULL: the hello is good. */
static const char *fault(struct peer *peer, const struct wire_hello *hello)
{
	struct auth *auth = peer->conn.auth;
	bool challenge = hello->kind == HELLO_CHALLENGE;

	if (hello->kind == HELLO_REJECT && !auth->challenged)
		return "it refuses our key: it has another one, or none, or another FI_WEFT_AUTH";
	if (challenge == auth->challenged)
		return challenge ? "it asks twice" : "it does not ask for our key";
	if (auth->encrypts != !!(hello->flags & WIRE_HELLO_ENCRYPTS))
		return auth->encrypts ? "it does not encrypt, as our FI_WEFT_AUTH asks"
				      : "it encrypts: FI_WEFT_AUTH";
	if (!auth_check(auth, hello))
		return challenge ? "it does not know our key" : "its answer is not proven";
	if (challenge && is_reflected(peer, hello))
		return "it passes our own hellos back to us";
	auth->challenged = true;
	return NULL;
}

bool auth_hear(struct peer *peer, struct accepted *conn)
{
	const char *why = peer->conn.auth ? fault(peer, &conn->hello) : NULL;

	if (!why)
		return true;
	auth_refuse(&peer->worker->auth, conn, why);
	hello_close_fds(conn->fds);
	return false;
}
