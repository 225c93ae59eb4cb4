/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may connect, as the target of a connection sees it. */
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "conn/acceptor.h"
#include "conn/connect.h"
#include "conn/hello.h"
#include "conn/station.h"

void auth_refuse(struct auth_own *own, const struct accepted *conn, const char *why)
{
	char from[ADDR_STR_MAX + 32] = "?";
	struct addr addr = conn->auth.from;

	own->refused++;
	if (conn->inside)
		snprintf(from, sizeof(from), "process %d", (int)conn->pid);
	else if (connect_remote(conn->sock, &addr) || addr.kind != ADDR_NONE)
		addr_print(&addr, from, sizeof(from));
	LOG_PEER(LOG_EP_CTRL, "%s: connection refused: %s (%u refused so far)", from, why,
		 own->refused);
}

/* Tells the peer, who has proven nothing, and closes the descriptors it has sent. */
static int auth_accept_refuse(struct auth_own *own, struct accepted *conn, const char *why)
{
	auth_refuse(own, conn, why);
	hello_send(NULL, conn->sock, conn->inside,
		   &(struct hello_fields){.kind = HELLO_REJECT, .error = FI_EACCES});
	hello_close_fds(conn->fds);
	return -FI_EACCES;
}

/* Looks for the key that the greeting is made with; the proof goes on with it. */
static bool auth_accept_find_key(const struct auth_own *own, struct auth *auth,
				 const struct wire_hello *greeting)
{
	for (unsigned int i = 0; i < JOB_KEYS_MAX; i++) {
		const struct job_key *key = auth_key(own, i);

		if (!key)
			continue;
		auth->key = *key;
		auth->slot = i;
		if (auth_check(auth, greeting))
			return true;
	}
	return false;
}

/* Answers a greeting. 0 or a negative error. */
static int auth_accept_challenge(struct auth_own *own, struct auth **held, struct accepted *conn)
{
	*held = auth_new(&own->key, own->encrypts && !conn->inside);
	if (!*held)
		return -FI_ENOMEM;
	if (!auth_accept_find_key(own, *held, &conn->hello)) {
		auth_end(held);
		return auth_accept_refuse(own, conn, "it does not prove a key of this endpoint");
	}
	if (!conn->inside)
		connect_remote(conn->sock, &(*held)->from);
	return hello_send(own->station, conn->sock, conn->inside,
			  &(struct hello_fields){.kind = HELLO_CHALLENGE, .auth = *held});
}

static int accept_hello(struct auth_own *own, struct auth **held, struct accepted *conn)
{
	bool greets = conn->hello.kind == HELLO_GREETING;
	bool encrypts = own->encrypts && !conn->inside;

	if (!own->keyed && greets)
		return auth_accept_refuse(own, conn, "it has a key, this endpoint has none");
	if (!own->keyed)
		return 1;
	if (encrypts != !!(conn->hello.flags & WIRE_HELLO_ENCRYPTS) && (greets || *held))
		return auth_accept_refuse(
			own, conn,
			encrypts ? "it does not encrypt, as FI_WEFT_AUTH asks here"
				 : "it encrypts, this endpoint does not: FI_WEFT_AUTH");
	if (!*held && greets)
		return auth_accept_challenge(own, held, conn);
	if (!*held)
		return auth_accept_refuse(own, conn, "it has no key, this endpoint asks for one");
	if (!auth_asks(&conn->hello) || !auth_check(*held, &conn->hello))
		return auth_accept_refuse(own, conn, "it does not prove this endpoint's key");
	conn->auth = **held;
	return 1;
}

int auth_accept(struct auth_own *own, struct auth **held, struct accepted *conn, int ret)
{
	conn->auth = (struct auth){.from = {.kind = ADDR_NONE}};
	if (ret > 0)
		return own ? accept_hello(own, held, conn) : 1;
	if (!*held)
		return ret;
	conn->auth.from = (*held)->from; /* the socket has forgotten it */
	auth_refuse(own, conn, "it left when it was asked to prove this endpoint's key");
	return ret;
}

bool auth_comes_from(const struct accepted *conn, const struct addr *name)
{
	struct addr from, named = addr_unmapped(name);

	if (conn->inside)
		return true; /* the kernel says that it is this user's process */
	if (!connect_remote(conn->sock, &from))
		return false;
	from = addr_unmapped(&from);
	from.port = named.port; /* that of the listener */
	if (addr_is_link_local(&from))
		from.scope = named.scope;
	return addr_equal(&from, &named) || (addr_is_local(&from) && addr_is_local(&named));
}

/* Is the name in the address vector, under the key in `slot` if that has keys? */
static bool auth_accept_is_known(struct station *station, const struct addr *name,
				 unsigned int slot)
{
	return contact_entry(station, name, NULL, slot) != FI_ADDR_NOTAVAIL;
}

bool auth_admits(struct auth_own *own, const struct accepted *conn, const struct addr *name)
{
	char text[ADDR_STR_MAX + 32], why[sizeof(text) + 96];
	bool placed, known;

	if (!own->closed)
		return true;
	placed = auth_comes_from(conn, name);
	known = !own->station || auth_accept_is_known(own->station, name, conn->auth.slot);
	if (placed && known)
		return true;
	addr_print(name, text, sizeof(text));
	snprintf(why, sizeof(why), "FI_WEFT_CLOSED: it calls itself %s, %s", text,
		 placed ? "which is not in the address vector" : "an address of another host");
	auth_refuse(own, conn, why);
	return false;
}

bool auth_fits(const struct auth_own *own, const struct accepted *conn)
{
	bool fits = job_key_equal(&own->key, &conn->auth.key);

	if (!fits)
		LOG_WARN(
			LOG_EP_CTRL,
			"accept: the endpoint's key is not that of the passive endpoint: give both the same ep_attr->auth_key");
	return fits;
}
