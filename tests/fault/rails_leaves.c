/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call has accepted for a link over two slow wires arrives though its process, which lives, never calls the library
 * again; and so it does if all is encrypted.
 */
#define LIMIT 55

#include "rails_lengths.h"

#define MOST 2000u

static unsigned char got[LEN_MAX];

/* Sends until a call finds no space. */
static void leave(struct node *n, fi_addr_t peer)
{
	unsigned int sent = 0;

	begin(n, peer, len_now);
	while (sent < MOST && !fi_send(n->ep, bytes, len_now, NULL, peer, NULL))
		sent++;
	tell(lab.end, &sent, sizeof(sent));
	hear(lab.end, &(char){0}, 1); /* beside the library */
}

static void receive(struct node *n)
{
	memset(got, 0, len_now);
	must(fi_recv(n->ep, got, len_now, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	await(n, "a message whose sender does not call");
	if (memcmp(got, bytes, len_now))
		fail("other bytes than those of the message");
}

static void take(struct node *n)
{
	unsigned int sent;

	receive(n);
	while (recv(lab.end, &sent, sizeof(sent), MSG_DONTWAIT) != sizeof(sent))
		fi_cq_read(n->cq, NULL, 0);
	while (sent--)
		receive(n);
	tell(lab.end, "", 1);
}

static void live(void *arg)
{
	struct node n;
	fi_addr_t peer;

	enter(arg);
	for (size_t i = 0; i < LEN_MAX; i++)
		bytes[i] = (unsigned char)(i * 13 + i / 257);
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which)
		take(&n);
	else
		leave(&n, peer);
	node_close(&n);
}

int main(void)
{
	alarm(LIMIT);
	need_lab();
	need_network();
	each_length(live);
	return EXIT_SUCCESS;
}
