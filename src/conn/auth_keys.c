/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of an endpoint whose address vector holds them. */
#include "core/av_keys.h"
#include "conn/auth.h"

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
