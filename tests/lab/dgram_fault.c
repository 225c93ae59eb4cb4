/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two datagram endpoints of the provider "verbs" in one process, which keep sending to each other
 * while a script changes the devices:
 *
 *	dgram_fault WISH ADDRESS ADDRESS
 *
 * Prints "going" when enough has arrived both ways. WISH is the expected outcome:
 *
 *	go-on  after a signal USR1, as much arrives again, both ways
 *	gone   receives of the first end fail, its calls are refused, and the second end works on
 *	sleep  the same, with the first end asleep meanwhile
 */
#define LIMIT 100
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "../fault/must.h"

#define ENOUGH   40
#define RECEIVES 8
#define LEN      256
#define SLEEP    30000 /* ms */
#define NAME     32

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	char in[RECEIVES][LEN], out[LEN];
	unsigned int came, failed;
	int err;
};

static struct end a, b;

static void receive(struct end *e, char *buf)
{
	must(fi_recv(e->ep, buf, LEN, NULL, FI_ADDR_UNSPEC, buf), "fi_recv");
}

static void open_end(struct end *e, const char *address)
{
	struct fi_av_attr av_attr = {.type = FI_AV_MAP};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_DGRAM;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->caps = FI_MSG;
	must(fi_getinfo(FI_VERSION(1, 17), address, NULL, FI_SOURCE, hints, &e->info),
	     "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), "fi_fabric");
	must(fi_domain(e->fabric, e->info, &e->domain, NULL), "fi_domain");
	must(fi_av_open(e->domain, &av_attr, &e->av, NULL), "fi_av_open");
	must(fi_cq_open(e->domain, &cq_attr, &e->cq, NULL), "fi_cq_open");
	must(fi_endpoint(e->domain, e->info, &e->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(e->ep, &e->av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(e->ep), "fi_enable");
}

static void close_end(struct end *e)
{
	must(fi_close(&e->ep->fid), "fi_close");
	must(fi_close(&e->cq->fid), "fi_close");
	must(fi_close(&e->av->fid), "fi_close");
	must(fi_close(&e->domain->fid), "fi_close");
	must(fi_close(&e->fabric->fid), "fi_close");
	fi_freeinfo(e->info);
}

static void name_to(struct end *from, struct end *to)
{
	unsigned char name[NAME];
	size_t len = sizeof(name);

	must(fi_getname(&from->ep->fid, name, &len), "fi_getname");
	if (fi_av_insert(to->av, name, 1, &to->peer, 0, NULL) != 1)
		fail("fi_av_insert refuses an address");
}

static void begin(struct end *e)
{
	for (int i = 0; i < RECEIVES; i++)
		receive(e, e->in[i]);
}

/*
 * Takes one completion, waiting up to `ms`. Returns false if there is none. Counts receives only.
 */
static bool look(struct end *e, int ms)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_msg_entry entry;
	ssize_t n = ms ? fi_cq_sread(e->cq, &entry, 1, NULL, ms) : fi_cq_read(e->cq, &entry, 1);

	if (n == -FI_EAGAIN)
		return false;
	if (n == -FI_EAVAIL) {
		must(fi_cq_readerr(e->cq, &err, 0), "fi_cq_readerr");
		e->err = err.err;
		e->failed += (err.flags & FI_RECV) != 0;
		return true;
	}
	must(n, "reading completions");
	if (entry.flags & FI_RECV) {
		e->came++;
		receive(e, entry.op_context);
	}
	return true;
}

/* Sends once. Loss is accepted, and also that a link that is down has no route: another follows. */
static void say(struct end *e)
{
	ssize_t ret = fi_send(e->ep, e->out, LEN, NULL, e->peer, NULL);

	if (ret && ret != -FI_EAGAIN && ret != -FI_EHOSTUNREACH && ret != -FI_ENODEV)
		must(ret, "fi_send");
}

static void step(struct end *e)
{
	say(e);
	usleep(2000);
	while (look(e, 0) && !e->err)
		;
}

static void talk(unsigned int count)
{
	unsigned int from_a = a.came, from_b = b.came;

	while ((a.came < from_a + count || b.came < from_b + count) && !a.err && !b.err) {
		step(&a);
		step(&b);
	}
}

static void go_on(void)
{
	while (!nudged && !a.err && !b.err)
		talk(1);
	talk(ENOUGH);
	if (a.err || b.err)
		fail("told: %s", fi_strerror(a.err ? a.err : b.err));
	puts("goes on");
}

static void end(void)
{
	ssize_t ret;

	while (a.failed < RECEIVES)
		look(&a, SLEEP);
	printf("was told: %s\n", fi_strerror(a.err));
	ret = fi_send(a.ep, a.out, LEN, NULL, a.peer, NULL);
	if (ret >= 0 || ret == -FI_EAGAIN)
		fail("a send after the end: %s", fi_strerror((int)-ret));
	printf("is refused: %s\n", fi_strerror((int)-ret));
	receive(&a, a.in[0]);
	if (!look(&a, SLEEP) || a.failed != RECEIVES + 1)
		fail("a receive after the end");
	name_to(&b, &b);
	for (unsigned int count = b.came + ENOUGH; b.came < count && !b.err;)
		step(&b);
	if (b.err)
		fail("the other end was told: %s", fi_strerror(b.err));
	puts("the other goes on");
}

static void gone(void)
{
	while (!a.failed)
		talk(1);
	end();
}

int main(int argc, char **argv)
{
	int fds;

	if (argc != 4)
		fail("a wish and two addresses, please");
	alarm(LIMIT);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGUSR1, nudge);
	open_end(&a, argv[2]); /* opens what stays open for the process */
	close_end(&a);
	fds = count_fds(getpid());
	open_end(&a, argv[2]);
	open_end(&b, argv[3]);
	name_to(&a, &b);
	name_to(&b, &a);
	begin(&a);
	begin(&b);
	talk(ENOUGH);
	puts("going");
	if (!strcmp(argv[1], "go-on"))
		go_on();
	else if (!strcmp(argv[1], "gone"))
		gone();
	else
		end();
	close_end(&a);
	close_end(&b);
	if (count_fds(getpid()) != fds)
		fail("%d descriptors, %d before", count_fds(getpid()), fds);
	puts("closed");
	return EXIT_SUCCESS;
}
