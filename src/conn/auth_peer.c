/* SPDX-License-Identifier: BSD-2-Clause */
/* The proof of a key, as the initiator of a connection sees it. */
#include <rdma/fi_errno.h>

#include "conn/conn_own.h"

int auth_greet(struct contact *peer, int sock, bool inside, struct auth **auth)
{
	struct station *station = peer->station;
	const struct job_key *key = auth_key(&station->auth, peer->key_slot);

	if (!key)
		return -FI_EACCES;
	*auth = auth_new(key, station->auth.encrypts && !inside);
	if (!*auth)
		return -FI_ENOMEM;
	return hello_send(station, sock, inside,
			  &(struct hello_fields){.kind = HELLO_GREETING, .auth = *auth});
}

/* A challenge of our own endpoint, to which we did not connect: somebody passes our hellos back to us. */
static bool is_reflected(const struct contact *peer, const struct wire_hello *hello)
{
	const struct station *station = peer->station;

	return hello->incarnation == station->incarnation && !station_goes_by(station, &peer->key);
}

/* NULL: the hello is good. */
static const char *auth_peer_fault(const struct contact *peer, struct auth *auth,
				   const struct wire_hello *hello)
{
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

bool auth_hear(struct contact *peer, struct auth *auth, struct accepted *conn)
{
	const char *why = auth ? auth_peer_fault(peer, auth, &conn->hello) : NULL;

	if (!why)
		return true;
	auth_refuse(&peer->station->auth, conn, why);
	hello_close_fds(conn->fds);
	return false;
}
