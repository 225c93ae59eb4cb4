/* SPDX-License-Identifier: BSD-2-Clause */
/* Port numbers of datagram endpoints come from the user's range. HW=udp */
#include "obj.h"
#include "lib/dgram.h"

#define FIRST 21000

static bool is_free(unsigned int number)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
	int sock = socket(AF_INET, SOCK_DGRAM, 0);
	bool is = bind(sock, (struct sockaddr *)&in, sizeof(in)) == 0;

	close(sock);
	return is;
}

/* Limits the library to two neighbours that nobody uses, and returns the lower one. */
static unsigned int narrow(void)
{
	unsigned int low = FIRST + (unsigned int)getpid() % 10000;
	char text[16];

	for (; !is_free(low) || !is_free(low + 1); low++)
		CHECK(low < FIRST + 11000);
	snprintf(text, sizeof(text), "%u", low);
	CHECK(setenv("FI_TCP_PORT_LOW_RANGE", text, 1) == 0);
	snprintf(text, sizeof(text), "%u", low + 1);
	CHECK(setenv("FI_TCP_PORT_HIGH_RANGE", text, 1) == 0);
	return low;
}

static unsigned int port_of(struct fid_ep *ep)
{
	struct obj_name name = obj_name(&ep->fid);
	struct sockaddr_in in;

	memcpy(&in, name.bytes, sizeof(in));
	return ntohs(in.sin_port);
}

/* Two endpoints take the two numbers; a third one fits when one of them is closed. */
static void range_of_two(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG)};
	unsigned int low = narrow(), left;
	struct fid_ep *first, *third;

	(void)a;
	dgram_in(o.hints);
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	first = obj_ready_ep(&o, o.cq);
	o.ep = obj_ready_ep(&o, o.cq);
	left = port_of(first);
	CHECK(left == low || left == low + 1);
	CHECK_EQ(port_of(o.ep), 2 * low + 1 - left);
	third = obj_ep(&o);
	OK(fi_ep_bind(third, &o.av->fid, 0));
	OK(fi_ep_bind(third, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK_EQ(fi_enable(third), -FI_EADDRINUSE);
	CLOSE(first);
	OK(fi_enable(third));
	CHECK_EQ(port_of(third), left);
	CLOSE(third);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {{"range-of-two", range_of_two, 1, {0}}};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
