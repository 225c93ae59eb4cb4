/* SPDX-License-Identifier: BSD-2-Clause */
/* The cost of peers, in time and in memory of the process (kernel memory is not counted):
 *
 *     connect PROVIDER mesh ENDPOINTS DEGREE   half of the endpoints in each of two processes,
 *                                              which have one thread, domain, queue and vector
 *                                              each. Each endpoint sends a message to DEGREE
 *                                              others, none of which sends one back
 *     connect PROVIDER addresses COUNT         inserts COUNT addresses and never uses them
 *
 * Prints lines "WHAT NUMBER VALUE" with the number of endpoints or addresses. WHAT is
 *     opening, connecting   milliseconds for all
 *     endpoint              bytes per endpoint that has sent one message and received one
 *     connection            bytes per further connected peer; printed instead of the others, and
 *                           only with many peers: an endpoint may have space for the first few
 *     inserting             microseconds per address
 *     address               bytes per address
 * Status 77: the provider is not available, or there are too few descriptors. The same file runs on
 * any libfabric.so.1 in LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <rdma/fi_eq.h>
#include "addresses.h"
#include "fabric.h"
#include "memory.h"

#define HALF_MAX   256
#define DEGREE_MAX 80
#define MANY       64   /* minimum further peers to measure a connection */
#define BATCH      1000 /* addresses per call */

struct name {
	char bytes[NAME_ROOM];
};

static char *provider;
static size_t number; /* of endpoints or addresses */
static size_t degree;

static size_t half; /* endpoints per side */
static struct fid_ep *eps[HALF_MAX];
static struct name names[2][HALF_MAX];
static fi_addr_t addrs[2 * HALF_MAX]; /* of all endpoints, those of side 0 first */
static char message[8] = "message", room[HALF_MAX][DEGREE_MAX][sizeof message];
static struct fi_context2 contexts[HALF_MAX][2 * DEGREE_MAX];
static size_t sent, received;

static void find(void)
{
	struct fi_info *hints = fabric_hints(provider, FI_MSG, false);

	hints->addr_format = FI_SOCKADDR_IN;
	fabric_offered(fabric_find(hints), "fi_getinfo");
}

static void progress(void)
{
	struct fi_cq_tagged_entry entry[64];
	ssize_t count = fabric_read(entry, 64);

	for (ssize_t i = 0; i < count; i++)
		(entry[i].flags & FI_RECV) ? received++ : sent++;
}

/* fabric_open has opened the first one. */
static void open_endpoints(void)
{
	eps[0] = ep;
	for (size_t i = 1; i < half; i++)
		eps[i] = fabric_endpoint(NULL);
}

static void meet(void)
{
	for (size_t i = 0; i < half; i++)
		fabric_name(eps[i], names[side][i].bytes);
	pair_swap(names[side], names[!side], half * sizeof names[0][0]);
	for (size_t i = 0; i < 2 * half; i++)
		addrs[i] = fabric_insert(names[i / half][i % half].bytes);
}

static void receive_all(void)
{
	for (size_t i = 0; i < half; i++)
		for (size_t k = 0; k < degree; k++)
			must(fi_recv(eps[i], room[i][k], sizeof message, NULL, FI_ADDR_UNSPEC,
				     &contexts[i][k]),
			     "fi_recv");
}

static void send_to(size_t from, size_t k)
{
	size_t to = ((size_t)side * half + from + k + 1) % number;
	ssize_t ret;

	while ((ret = fi_send(eps[from], message, sizeof message, NULL, addrs[to],
			      &contexts[from][degree + k])) == -FI_EAGAIN)
		progress();
	must(ret, "fi_send");
}

static void finish(size_t messages)
{
	while (sent < messages || received < messages)
		progress();
	fabric_sync(progress);
}

/* Returns microseconds. */
static double exchange(size_t from, size_t to)
{
	double start = microseconds();

	for (size_t k = from; k < to; k++)
		for (size_t i = 0; i < half; i++)
			send_to(i, k);
	finish(half * to);
	return microseconds() - start;
}

static void verify(void)
{
	for (size_t i = 0; i < half; i++)
		for (size_t k = 0; k < degree; k++)
			if (memcmp(room[i][k], message, sizeof message))
				pair_fail("wrong data received");
}

/* Returns microseconds. */
static double open_all(void)
{
	double start = microseconds();

	fabric_open();
	open_endpoints();
	return microseconds() - start;
}

static void say(const char *what, double value)
{
	if (side == 0)
		printf("%s %zu %.3f\n", what, number, value);
}

/* Memory that an endpoint allocates for its first message does not count for connections. */
static void mesh(void)
{
	size_t further = 2 * (degree - 1); /* further peers of each endpoint */
	double opening, connecting, endpoint;
	struct use before, first;

	memset(room, 1, sizeof room);
	memset(contexts, 1, sizeof contexts);
	memset(names, 1, sizeof names);
	fabric_descriptors(half * (2 * degree + 8)); /* a connection needs one, an endpoint a few */
	find();
	before = memory_use();
	opening = open_all();
	meet();
	receive_all();
	pair_sync();
	connecting = exchange(0, 1);
	first = memory_use();
	endpoint = memory_since(before) / (double)half;
	pair_sync();
	connecting += exchange(1, degree);
	if (further >= MANY) {
		say("connection", memory_since(first) / (double)(half * further));
	} else {
		say("opening", opening / 1000);
		say("connecting", connecting / 1000);
		say("endpoint", endpoint);
	}
	verify();
	pair_sync();
}

static void addresses(void)
{
	struct sockaddr_in *batch = calloc(BATCH, sizeof *batch);
	fi_addr_t *where = malloc(number * sizeof *where);
	struct use before;
	double start, time;

	if (!batch || !where)
		pair_fail("no memory");
	memset(batch, 1, BATCH * sizeof *batch);
	memset(where, 1, number * sizeof *where);
	find();
	fabric_open();
	before = memory_use();
	start = microseconds();
	for (size_t done = 0; done < number; done += BATCH) {
		addresses_make(batch, done, BATCH);
		if (fi_av_insert(av, batch, BATCH, where + done, 0, NULL) != BATCH)
			pair_fail("fi_av_insert refused an address");
	}
	time = microseconds() - start;
	say("inserting", time / (double)number);
	say("address", memory_since(before) / (double)number);
	pair_sync();
}

int main(int argc, char **argv)
{
	bool meshed = argc == 5 && !strcmp(argv[2], "mesh");

	pair_network = true;
	if (argc > 3) {
		provider = argv[1];
		number = strtoul(argv[3], NULL, 0);
		half = number / 2;
	}
	if (meshed)
		degree = strtoul(argv[4], NULL, 0);
	if (meshed && half <= HALF_MAX && degree && degree <= DEGREE_MAX && degree < half)
		return pair_run(mesh);
	if (argc == 4 && !strcmp(argv[2], "addresses") && number && number % BATCH == 0)
		return pair_run(addresses);
	fputs("Usage: connect PROVIDER mesh ENDPOINTS DEGREE\n"
	      "       connect PROVIDER addresses COUNT\n",
	      stderr);
	return EXIT_FAILURE;
}
