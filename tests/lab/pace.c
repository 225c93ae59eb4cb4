/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Speed of two processes over the provider "verbs", each on its own CPU, after connecting:
 *
 *	pace msg|rdm lat SIZE TIMES ADDRESS ADDRESS     ping-pong of injected messages; one-way
 *	                                                times in us: "MEDIAN MEAN LEAST"
 *	pace msg|rdm write SIZE TIMES ADDRESS ADDRESS   writes of one side to the other: "MiB/s"
 *
 * rdm: tagged messages. The addresses are those of the two sides' interfaces.
 */
#define LIMIT   100
#define NODE_MR (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#include "../fault/node.h"

#include <rdma/fi_rma.h>

#define RECEIVES 4 /* posted in advance */
#define WARM     100
#define DEPTH    16 /* writes in flight */
#define TAG      0x77

static struct node n;
static fi_addr_t peer;
static int number, end; /* of this side; socket to the other */
static bool msg;
static const char *address[2];
static size_t size, message; /* bytes: operand SIZE, and length of a message */
static unsigned int times;
static char *memory; /* send buffer, then one buffer per receive */
static struct fid_mr *mr;
static void *desc;
static uint64_t sent, received; /* completions */

/* ---- Opening ---- */

static struct fi_info *look_up(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup("verbs");
	hints->ep_attr->type = msg ? FI_EP_MSG : FI_EP_RDM;
	hints->caps = FI_MSG | FI_RMA | (msg ? 0 : FI_TAGGED);
	hints->mode = FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode = NODE_MR;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	must(fi_getinfo(FI_VERSION(1, 17), address[number], NULL, FI_SOURCE, hints, &info),
	     "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

static void open_domain(void)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024};

	n.info = look_up();
	must(fi_fabric(n.info->fabric_attr, &n.fabric, NULL), "fi_fabric");
	must(fi_domain(n.fabric, n.info, &n.domain, NULL), "fi_domain");
	must(fi_cq_open(n.domain, &cq, &n.cq, NULL), "fi_cq_open");
}

static void open_memory(void)
{
	size_t len = (1 + RECEIVES) * size;

	if (posix_memalign((void **)&memory, 4096, len))
		fail("no memory");
	memset(memory, 0, len);
	must(fi_mr_reg(n.domain, memory, len,
		       FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0,
		       &mr, NULL),
	     "fi_mr_reg");
	desc = fi_mr_desc(mr);
}

static struct fid_eq *open_eq(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_eq *eq;

	must(fi_eq_open(n.fabric, &attr, &eq, NULL), "fi_eq_open");
	return eq;
}

static struct fi_info *event(struct fid_eq *eq, uint32_t want)
{
	struct fi_eq_cm_entry entry;
	uint32_t got;
	ssize_t ret = fi_eq_sread(eq, &got, &entry, sizeof(entry), 30000, 0);

	must(ret, "fi_eq_sread");
	if (got != want)
		fail("event %u, not %u", got, want);
	return entry.info;
}

static void receive(uint64_t place)
{
	char *to = memory + (1 + place % RECEIVES) * size;
	ssize_t ret = msg ? fi_recv(n.ep, to, size, desc, 0, NULL)
			  : fi_trecv(n.ep, to, size, desc, peer, TAG, 0, NULL);

	must(ret, "receiving");
}

static void receive_ahead(void)
{
	for (uint64_t i = 0; i < RECEIVES; i++)
		receive(i);
}

static void open_end(struct fi_info *from, struct fid_eq *eq)
{
	must(fi_endpoint(n.domain, from, &n.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(n.ep, &n.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	if (eq)
		must(fi_ep_bind(n.ep, &eq->fid, 0), "fi_ep_bind");
	if (n.av)
		must(fi_ep_bind(n.ep, &n.av->fid, 0), "fi_ep_bind");
	must(fi_enable(n.ep), "fi_enable");
}

static void accept_one(struct fid_eq *eq)
{
	struct name name = {.len = sizeof(name.bytes)};
	struct fi_info *request;
	struct fid_pep *pep;

	must(fi_passive_ep(n.fabric, n.info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	must(fi_getname(&pep->fid, name.bytes, &name.len), "fi_getname");
	tell(end, &name, sizeof(name));
	request = event(eq, FI_CONNREQ);
	open_end(request, eq);
	receive_ahead();
	must(fi_accept(n.ep, NULL, 0), "fi_accept");
	fi_freeinfo(request);
	event(eq, FI_CONNECTED);
	must(fi_close(&pep->fid), "fi_close");
}

static void connect_one(struct fid_eq *eq)
{
	struct name name;

	open_end(n.info, eq);
	receive_ahead();
	hear(end, &name, sizeof(name));
	must(fi_connect(n.ep, name.bytes, NULL, 0), "fi_connect");
	event(eq, FI_CONNECTED);
}

static void insert_one(void)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct name mine, theirs;

	must(fi_av_open(n.domain, &av, &n.av, NULL), "fi_av_open");
	open_end(n.info, NULL);
	mine = node_name(&n);
	tell(end, &mine, sizeof(mine));
	hear(end, &theirs, sizeof(theirs));
	peer = node_insert(&n, &theirs);
	receive_ahead();
}

static bool progress(struct event *e)
{
	if (!node_poll(&n, e))
		return false;
	(e->flags & FI_RECV) ? received++ : sent++;
	return true;
}

/* A barrier with progress. The other side may have left it before this side returns. */
static void meet(void)
{
	struct event e;
	char c = 0;

	tell(end, &c, 1);
	while (recv(end, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		progress(&e);
}

static void look(void)
{
	struct event e;

	if (progress(&e) && e.err)
		fail("a completion says: %s", fi_strerror(e.err));
}

/* ---- What is measured ---- */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Injects a message: perftest too requests no completion per send. */
static void send_one(void)
{
	ssize_t ret;

	while ((ret = msg ? fi_inject(n.ep, memory, message, 0)
			  : fi_tinject(n.ep, memory, message, peer, TAG)) == -FI_EAGAIN)
		look();
	must(ret, "sending");
}

static void await_message(uint64_t count)
{
	while (received == count)
		look();
}

/* One round trip. A receive is posted again after the send, where it costs no latency. */
static void round_trip(uint64_t count)
{
	if (number == 0)
		await_message(count);
	send_one();
	if (count)
		receive(count - 1);
	if (number == 1)
		await_message(count);
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void latency(void)
{
	double *each = malloc(times * sizeof(*each)), last, sum = 0;

	if (!each)
		fail("no memory");
	for (uint64_t i = 0; i < WARM; i++)
		round_trip(i);
	last = now_us();
	for (unsigned int i = 0; i < times; i++) {
		double time;

		round_trip(WARM + i);
		time = now_us();
		each[i] = (time - last) / 2;
		sum += each[i];
		last = time;
	}
	qsort(each, times, sizeof(*each), order);
	if (number == 1)
		printf("%.2f %.2f %.2f\n", each[times / 2], sum / times, each[0]);
	free(each);
}

struct place {
	uint64_t addr, key;
};

static void write_one(const struct place *to)
{
	ssize_t ret;

	while ((ret = fi_write(n.ep, memory, size, desc, peer, to->addr, to->key, NULL)) ==
	       -FI_EAGAIN)
		look();
	must(ret, "fi_write");
}

static void writes(const struct place *to, uint64_t count)
{
	sent = 0;
	for (uint64_t i = 0; i < count; i++) {
		while (i - sent >= DEPTH)
			look();
		write_one(to);
	}
	while (sent < count)
		look();
}

static void bandwidth(void)
{
	struct place mine = {(uintptr_t)memory, fi_mr_key(mr)}, theirs;
	double begin;
	char over = 0;

	message = 1;
	round_trip(0); /* connects */
	tell(end, &mine, sizeof(mine));
	hear(end, &theirs, sizeof(theirs));
	if (number == 0) {
		hear(end, &over, 1); /* sleeps: the devices do all */
		return;
	}
	writes(&theirs, WARM / 10);
	begin = now_us();
	writes(&theirs, times);
	printf("%.2f\n", (double)times * (double)size / (now_us() - begin) / 1.048576);
	tell(end, &over, 1);
}

static void (*measured)(void);

static void pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("there are no two CPUs here");
}

static void run(void *arg)
{
	struct fid_eq *eq = NULL;

	(void)arg;
	pin(number);
	open_domain();
	open_memory();
	if (msg) {
		eq = open_eq();
		number ? connect_one(eq) : accept_one(eq);
	} else {
		insert_one();
	}
	meet();
	measured();
	meet();
	must(fi_close(&n.ep->fid), "fi_close");
	must(fi_close(&mr->fid), "fi_close");
	if (n.av)
		must(fi_close(&n.av->fid), "fi_close");
	if (eq)
		must(fi_close(&eq->fid), "fi_close");
	must(fi_close(&n.cq->fid), "fi_close");
	must(fi_close(&n.domain->fid), "fi_close");
	must(fi_close(&n.fabric->fid), "fi_close");
}

int main(int argc, char **argv)
{
	int ends[2], status, bad = 0;

	if (argc != 7)
		fail("pace msg|rdm lat|write SIZE TIMES ADDRESS ADDRESS");
	msg = !strcmp(argv[1], "msg");
	measured = !strcmp(argv[2], "write") ? bandwidth : latency;
	size = message = strtoul(argv[3], NULL, 0);
	times = (unsigned int)strtoul(argv[4], NULL, 0);
	address[0] = argv[5];
	address[1] = argv[6];
	wire(ends);
	for (number = 0; number < 2; number++) {
		end = ends[number];
		start(number ? "side 1" : "side 0", run, NULL);
	}
	while (wait(&status) > 0)
		bad += WIFSIGNALED(status) || WEXITSTATUS(status);
	return bad;
}
