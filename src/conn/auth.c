/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/auth.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/env.h"
#include "base/tls.h"
#include "base/log.h"
#include "conn/conn_own.h"
#include "conn/station.h"
#include "core/av_keys.h"

/* What a code is computed of. */
struct covered {
	char role[16];
	uint8_t before[WIRE_PROOF];
	struct wire_hello hello; /* mac: zero */
};

_Static_assert(sizeof(struct covered) == 16 + WIRE_PROOF + sizeof(struct wire_hello),
	       "no byte of it is padding");

void auth_open(struct auth_own *own, const struct fi_info *info, struct station *station)
{
	static const char *const levels[2][3] = {
		{"open", "keyed", "keyed, encrypted"},
		{"closed", "keyed, closed", "keyed, encrypted, closed"}};

	*own = (struct auth_own){.closed = env_get()->closed, .station = station};
	job_key_of(info, &own->key);
	own->by_av = station && station->driven.dom->max_keys;
	own->keyed = own->by_av || own->key.len;
	own->keys = own->by_av ? NULL : &own->key;
	own->slots = own->key.len > 0;
	own->encrypts = own->keyed && job_key_encrypts();
	LOG_INFO(LOG_EP_CTRL, "level of connections: %s",
		 levels[own->closed][own->keyed + own->encrypts]);
}

void auth_close(struct auth_own *own)
{
	explicit_bzero(&own->key, sizeof(own->key));
}

struct auth *auth_new(const struct job_key *key, bool encrypts)
{
	struct auth *auth = calloc(1, sizeof(*auth));

	if (auth) {
		auth->key = *key;
		auth->encrypts = encrypts;
	}
	return auth;
}

void auth_end(struct auth **auth)
{
	if (!*auth)
		return;
	explicit_bzero(*auth, sizeof(**auth));
	free(*auth);
	*auth = NULL;
}

/* `mac` is the code of the hello, which is good. */
static void auth_add(struct auth *auth, const struct wire_hello *hello,
		     const uint8_t mac[WIRE_PROOF])
{
	memcpy(auth->chain, mac, sizeof(auth->chain));
	if (auth_asks(hello))
		memcpy(auth->asked, mac, sizeof(auth->asked));
}

static bool by_initiator(const struct wire_hello *hello)
{
	return hello->kind == HELLO_GREETING || auth_asks(hello);
}

/* The code of the next hello. False: the library has failed. */
static bool auth_code(const struct auth *auth, const struct wire_hello *hello,
		      uint8_t out[WIRE_PROOF])
{
	static const char roles[2][sizeof(((struct covered *)0)->role)] = {"weft target",
									   "weft initiator"};
	struct covered c = {.hello = *hello};

	memcpy(c.role, roles[by_initiator(hello)], sizeof(c.role));
	memcpy(c.before, auth->chain, sizeof(c.before));
	memset(c.hello.mac, 0, sizeof(c.hello.mac));
	return hmac_sha256(auth->key.bytes, auth->key.len, &c, sizeof(c), out);
}

int auth_seal(struct auth *auth, struct wire_hello *hello)
{
	uint8_t mac[WIRE_PROOF];

	if ((hello->kind == HELLO_GREETING || hello->kind == HELLO_CHALLENGE) &&
	    getrandom(hello->nonce, sizeof(hello->nonce), 0) != sizeof(hello->nonce))
		return -FI_EIO;
	if (auth->encrypts)
		hello->flags |=
			WIRE_HELLO_ENCRYPTS | (ktls_available() ? WIRE_HELLO_KERNEL_TLS : 0);
	if (!auth_code(auth, hello, mac)) {
		LOG_PEER(
			LOG_EP_CTRL,
			"libcrypto has failed: no proof of the key can be made; is libssl 3 whole?");
		return -FI_EIO;
	}
	memcpy(hello->mac, mac, sizeof(mac));
	auth_add(auth, hello, mac);
	return 0;
}

bool auth_check(struct auth *auth, const struct wire_hello *hello)
{
	uint8_t mac[WIRE_PROOF];

	if (!auth_code(auth, hello, mac) || !hmac_equal(mac, hello->mac, sizeof(mac)))
		return false;
	auth_add(auth, hello, mac);
	return true;
}

bool auth_link_key(const struct auth *auth, uint8_t key[TLS_KEY])
{
	struct {
		char label[16];
		uint8_t asked[WIRE_PROOF];
	} context = {.label = "weft link"};

	memcpy(context.asked, auth->asked, sizeof(context.asked));
	return tls_derive(auth->key.bytes, auth->key.len, &context, sizeof(context), key);
}

void auth_bind(struct auth_own *own, struct av *av)
{
	if (!own->by_av || own->keys)
		return;
	own->keys = av->keys->keys;
	own->slots = av_keys_enable(av);
}

void auth_unbind(struct auth_own *own, struct av *av)
{
	if (own->by_av && own->keys)
		av_keys_disable(av, own->slots);
}

const struct job_key *auth_key(const struct auth_own *own, unsigned int slot)
{
	return own->slots >> slot & 1 ? &own->keys[slot] : NULL;
}

/* ---- The proof of a key, as the initiator of a connection sees it ---- */

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
