/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/hints.h"

#define MESSAGES (FI_MSG | FI_TAGGED)
#define REMOTE   (FI_RMA | FI_ATOMIC)

#define MESSAGE_WAYS (FI_SEND | FI_RECV)
#define REMOTE_WAYS  (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Secondary capabilities that cost nothing: granted even if not asked for. */
#define FREE (FI_MULTI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV)

#define SINCE_1_5  (FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV | FI_SOURCE_ERR)
#define SINCE_1_9  FI_COLLECTIVE
#define SINCE_1_16 FI_AV_USER_ID
#define SINCE_2_0  (FI_EXACT_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV | FI_TAGGED_MULTI_RECV)

#define OF_BOTH                                                                                    \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_HMEM | FI_TRIGGER |          \
	 FI_RMA_PMEM)

#define OF_TX (OF_BOTH | FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_MULTICAST | FI_NAMED_RX_CTX)

#define OF_RX                                                                                      \
	(OF_BOTH | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV |                 \
	 FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV | FI_MULTI_RECV | FI_TAGGED_MULTI_RECV | \
	 FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT)

uint64_t caps_offered(const struct provider *v, uint32_t api)
{
	uint64_t caps = v->caps;

	if (FI_VERSION_LT(api, FI_VERSION(1, 5)))
		caps &= ~SINCE_1_5;
	if (FI_VERSION_LT(api, FI_VERSION(1, 9)))
		caps &= ~SINCE_1_9;
	if (FI_VERSION_LT(api, FI_VERSION(1, 16)))
		caps &= ~SINCE_1_16;
	if (FI_VERSION_LT(api, FI_VERSION(2, 0)))
		caps &= ~SINCE_2_0;
	return caps;
}

uint64_t caps_complete(uint64_t caps)
{
	if ((caps & MESSAGES) && !(caps & MESSAGE_WAYS))
		caps |= MESSAGE_WAYS;
	if ((caps & REMOTE) && !(caps & REMOTE_WAYS))
		caps |= REMOTE_WAYS;
	return caps;
}

uint64_t caps_grant(uint64_t offered, uint64_t asked)
{
	uint64_t caps = asked;

	if (!asked)
		return offered;
	if (asked & FI_MULTICAST) /* a way to send messages */
		caps |= offered & FI_MSG;
	return (caps_complete(caps) | FREE) & offered;
}

uint64_t caps_tx(uint64_t caps, uint64_t asked)
{
	return caps_grant(caps, asked) & OF_TX;
}

uint64_t caps_rx(uint64_t caps, uint64_t asked)
{
	return caps_grant(caps, asked) & OF_RX;
}
