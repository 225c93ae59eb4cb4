/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes with connected endpoints of the provider "verbs", which keep sending while a script
 * changes the devices:
 *
 *	msg_fault TRAFFIC WISH ADDRESS ADDRESS
 *
 * TRAFFIC is "busy" (messages and writes, blocking reads of completions), "shared" (the same,
 * received through a shared context), "idle" (receives only, blocked on a completion) or "still"
 * (receives only, blocked on an event). Each side prints "going" when enough has arrived. WISH is
 * the expected outcome:
 *
 *	end    all pending operations fail, the connection ends with an event, calls are refused
 *	go-on  the sides pause; after a signal USR1 to each as much arrives again without errors
 *
 * A process that is not killed closes everything, and has no more descriptors than before.
 */
#define LIMIT 100
#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "../fault/must.h"

#define ENOUGH  40 /* messages */
#define SLOTS   4  /* of each kind */
#define LEN     4096
#define SLEEP   30000 /* ms */
#define LATE_MS 20000 /* limit for all operations to end */
#define NAME    32

struct place {
	uint64_t addr, key;
};

static int number, line; /* of this side; socket to the other */
static const char *address[2];
static bool shared, idle, still;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_pep *pep;
static struct fid_ep *ep, *srx;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_mr *mr;
static struct place theirs;
static unsigned char *memory;     /* of receives, sends, the peer's writes */
static bool under_way[2 * SLOTS]; /* receives, then sends */
static unsigned int came;
static int first_err;
static bool quiet; /* stops sending on its own */
static char first_text[64];

/* ---- Opening --------------------------------------------------------------------------------- */

static void look_up(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct sockaddr_in *own = calloc(1, sizeof(*own));

	own->sin_family = AF_INET;
	inet_pton(AF_INET, address[number], &own->sin_addr);
	hints->src_addr = own;
	hints->src_addrlen = sizeof(*own);
	hints->addr_format = FI_SOCKADDR_IN;
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
}

static void open_domain(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};

	look_up();
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_eq_open(fabric, &eq_attr, &eq, NULL), "fi_eq_open");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	memory = aligned_alloc(4096, (size_t)3 * SLOTS * LEN);
	must(fi_mr_reg(domain, memory, (size_t)3 * SLOTS * LEN,
		       FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
	     "fi_mr_reg");
	if (shared)
		must(fi_srx_context(domain, info->rx_attr, &srx, NULL), "fi_srx_context");
}

static void open_end(struct fi_info *from)
{
	must(fi_endpoint(domain, from, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	if (srx)
		must(fi_ep_bind(ep, &srx->fid, 0), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
}

/* Waits for the next event, which must be `want`. Returns its info. */
static struct fi_info *event(uint32_t want)
{
	struct fi_eq_cm_entry entry = {.fid = NULL};
	struct fi_eq_err_entry err = {.err = 0};
	uint32_t got = 0;
	ssize_t n = fi_eq_sread(eq, &got, &entry, sizeof(entry), SLEEP, 0);

	if (n == -FI_EAVAIL && fi_eq_readerr(eq, &err, 0) > 0)
		fail("event %u instead of %u: %s", got, want, fi_strerror(err.err));
	must(n, "fi_eq_sread");
	if (got != want)
		fail("event %u instead of %u", got, want);
	return entry.info;
}

static void listen_here(void)
{
	struct fi_info *request;
	unsigned char name[NAME] = {0};
	size_t len = sizeof(name);

	must(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	must(fi_getname(&pep->fid, name, &len), "fi_getname");
	tell(line, name, sizeof(name));
	request = event(FI_CONNREQ);
	open_end(request);
	must(fi_accept(ep, NULL, 0), "fi_accept");
	fi_freeinfo(request);
}

static void connect_there(void)
{
	unsigned char name[NAME];

	hear(line, name, sizeof(name));
	open_end(info);
	must(fi_connect(ep, name, NULL, 0), "fi_connect");
}

static void meet(void)
{
	char c = 0;

	tell(line, &c, 1);
	hear(line, &c, 1);
}

static void open_all(void)
{
	struct place own;

	open_domain();
	if (number)
		connect_there();
	else
		listen_here();
	event(FI_CONNECTED);
	own = (struct place){(uintptr_t)memory + (size_t)2 * SLOTS * LEN, fi_mr_key(mr)};
	tell(line, &own, sizeof(own));
	hear(line, &theirs, sizeof(theirs));
}

static void close_all(void)
{
	if (pep)
		must(fi_close(&pep->fid), "fi_close");
	if (ep)
		must(fi_close(&ep->fid), "fi_close");
	if (srx)
		must(fi_close(&srx->fid), "fi_close");
	must(fi_close(&mr->fid), "fi_close");
	must(fi_close(&cq->fid), "fi_close");
	must(fi_close(&eq->fid), "fi_close");
	must(fi_close(&domain->fid), "fi_close");
	must(fi_close(&fabric->fid), "fi_close");
	fi_freeinfo(info);
	free(memory);
	pep = NULL;
	ep = srx = NULL;
}

/* ---- Traffic --------------------------------------------------------------------------------- */

static ssize_t post(unsigned int i)
{
	unsigned char *at = memory + (size_t)i * LEN;
	void *desc = fi_mr_desc(mr), *context = (void *)(uintptr_t)i;

	if (i < SLOTS)
		return fi_recv(srx ? srx : ep, at, LEN, desc, FI_ADDR_UNSPEC, context);
	if (i % 2)
		return fi_write(ep, at, LEN, desc, 0, theirs.addr + (size_t)(i - SLOTS) * LEN,
				theirs.key, context);
	return fi_send(ep, at, LEN, desc, 0, context);
}

/* Posts on all free slots. Returns false if a call is refused as the connection has ended. */
static bool post_all(unsigned int slots)
{
	bool refused = false;

	for (unsigned int i = 0; i < slots; i++) {
		ssize_t ret = under_way[i] ? -FI_EAGAIN : post(i);

		if (ret == -FI_ENOTCONN || ret == -FI_ENODEV)
			refused = true;
		else if (ret != -FI_EAGAIN)
			must(ret, "posting");
		under_way[i] |= !ret;
	}
	return !refused;
}

static void failed(struct fi_cq_err_entry *err)
{
	char text[64];
	const char *said = fi_cq_strerror(cq, err->prov_errno, err->err_data, text, sizeof(text));

	if (!first_err) {
		first_err = err->err;
		snprintf(first_text, sizeof(first_text), "%s", said);
	}
}

static bool complete_one(int ms)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_data_entry entry;
	ssize_t n = fi_cq_sread(cq, &entry, 1, NULL, ms);
	uintptr_t i;

	if (n == -FI_EAGAIN || n == -FI_EINTR)
		return false;
	if (n != -FI_EAVAIL)
		must(n, "fi_cq_sread");
	else
		must(fi_cq_readerr(cq, &err, 0), "fi_cq_readerr");
	i = (uintptr_t)(n == 1 ? entry.op_context : err.op_context);
	if (i >= (uintptr_t)2 * SLOTS || !under_way[i])
		fail("a completion of nothing that was posted");
	under_way[i] = false;
	if (n != 1)
		failed(&err);
	else if (i < SLOTS && ++came == ENOUGH && !quiet)
		puts("going");
	return true;
}

static bool any_under_way(unsigned int from)
{
	for (unsigned int i = from; i < 2 * SLOTS; i++)
		if (under_way[i])
			return true;
	return false;
}

/* ---- What is to follow ----------------------------------------------------------------------- */

static void collect_from(unsigned int slot)
{
	uint64_t until = now_ms() + LATE_MS;

	while (any_under_way(slot)) {
		complete_one(100);
		if (now_ms() > until)
			fail("not everything has ended");
	}
}

static void wait_for_the_end(void)
{
	if (still)
		return;
	while (!first_err && !idle && post_all(2 * SLOTS))
		complete_one(100);
	if (idle && (!complete_one(SLEEP) || !first_err))
		fail("asleep, and not woken by an error");
}

static void refused(ssize_t ret, const char *what)
{
	if (ret >= 0 || ret == -FI_EAGAIN)
		fail("%s after the end: %s", what, fi_strerror((int)-ret));
	printf("%s: %s is refused: %s\n", who, what, fi_strerror((int)-ret));
}

/*
 * The fates of all sends have been reported; a shared context need not return receives. Who has not run for a while may
 * find that all had gone well before the end.
 */
static void print_reported(void)
{
	if (!first_err && (idle || still))
		fail("it has ended, and nothing that was under way was told so");
	if (!first_err)
		printf("%s had nothing under way\n", who);
	else
		printf("%s was told: %s (%s)\n", who, fi_strerror(first_err), first_text);
}

static void end(void)
{
	if (idle || still) {
		post_all(SLOTS);
		meet();
		puts("going");
	}
	wait_for_the_end();
	event(FI_SHUTDOWN);
	collect_from(shared ? SLOTS : 0);
	print_reported();
	refused(post(SLOTS), "a send");
	refused(post(SLOTS + 1), "a write");
}

/* Exchanges messages until both sides have `count`, and all messages sent have arrived. */
static void exchange(unsigned int count)
{
	bool met = false;
	char c = 0;

	while (!met || recv(line, &c, 1, MSG_DONTWAIT) < 0) {
		post_all(2 * SLOTS);
		complete_one(10);
		if (first_err)
			fail("told: %s (%s)", fi_strerror(first_err), first_text);
		if (!met && came >= count) {
			tell(line, &c, 1);
			met = true;
		}
	}
	while (any_under_way(SLOTS)) { /* keep receiving until the other side's sends are done */
		post_all(SLOTS);
		complete_one(10);
	}
	post_all(SLOTS);
	meet();
}

static void go_on(void)
{
	quiet = true;
	exchange(ENOUGH);
	puts("going");
	while (!nudged && !first_err)
		complete_one(10);
	exchange(came + ENOUGH);
	printf("%s: goes on\n", who);
}

static void (*wish)(void);

static void run(void *arg)
{
	int fds;

	line = *(int *)arg;
	signal(SIGUSR1, nudge);
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_all(); /* opens what stays open for the process: librdmacm keeps devices open */
	meet();
	close_all();
	meet();
	fds = count_fds(getpid());
	open_all();
	wish();
	close_all();
	if (count_fds(getpid()) != fds)
		fail("%d descriptors, %d before", count_fds(getpid()), fds);
	printf("%s: closed\n", who);
}

int main(int argc, char **argv)
{
	int ends[2], status, bad = 0;

	if (argc != 5)
		fail("traffic, a wish and two addresses, please");
	shared = !strcmp(argv[1], "shared");
	idle = !strcmp(argv[1], "idle");
	still = !strcmp(argv[1], "still");
	wish = strcmp(argv[2], "end") ? go_on : end;
	wire(ends);
	for (number = 0; number < 2; number++) {
		address[number] = argv[3 + number];
		start(number ? "side 1" : "side 0", run, &ends[number]);
	}
	while (wait(&status) > 0)
		bad += !WIFSIGNALED(status) && WEXITSTATUS(status);
	return bad;
}
