/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes that keep sending to each other while a script changes the devices:
 *
 *	rdm_fault TRAFFIC WISH IFACE IFACE
 *
 * TRAFFIC is "short" or "long" (messages), or "write" (writes by the device beside short messages).
 * Each side prints "going" when enough has arrived. WISH is the expected outcome:
 *
 *	cut    all pending operations end, some with an error
 *	end    the same, and a later send fails
 *	again  the same, but later messages arrive by another path
 *	lost   the sides pause, and a pending receive ends with an error
 *	go-on  the sides pause; after a signal USR1 to each as much arrives again without errors
 *
 * Side 1 runs as the user nobody.
 *
 * A process that is not killed closes everything, and has no more descriptors than before.
 */
#include <grp.h>
#include <rdma/fi_rma.h>

#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#define NODE_MR   (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#include "rdm_pair.h"

#define ENOUGH  40 /* messages */
#define SLOTS   4  /* of each kind */
#define WAITING (2 * SLOTS)
#define SHORT   64
#define LONG    ((size_t)64 << 10)
#define STEP    997   /* checks every STEPth byte */
#define LATE_MS 20000 /* limit for all operations to end */
#define NOBODY  65534

struct place {
	uint64_t addr, key;
};

static struct side me;
static size_t len;
static bool writes;
static unsigned char *in[SLOTS], *out[SLOTS], *memory;
static struct fid_mr *mr;
static struct place theirs;
static bool busy[2 * SLOTS + 1]; /* receives, sends, one receive that never gets a message */
static unsigned int came;
static int first_err;
static char first_text[64];
static bool quiet; /* stops sending on its own */

/* ---- Opening --------------------------------------------------------------------------------- */

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		fail("cannot become another user: %s", strerror(errno));
}

static void open_all(void)
{
	struct place own;

	side_open(&me);
	memory = side_memory(SLOTS * len);
	must(fi_mr_reg(me.n.domain, memory, SLOTS * len, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
	     "fi_mr_reg");
	own = (struct place){(uintptr_t)memory, fi_mr_key(mr)};
	tell(me.end, &own, sizeof(own));
	hear(me.end, &theirs, sizeof(theirs));
	for (unsigned int i = 0; i < SLOTS; i++) {
		in[i] = side_memory(len);
		out[i] = side_memory(len);
		side_fill(out[i], 1, len);
	}
}

static void close_all(int fds)
{
	must(fi_close(&mr->fid), "fi_close");
	node_close(&me.n);
	for (unsigned int i = 0; i < SLOTS; i++) {
		free(in[i]);
		free(out[i]);
	}
	free(memory);
	if (count_fds(getpid()) != fds)
		fail("%d descriptors, %d before", count_fds(getpid()), fds);
}

/* ---- Traffic --------------------------------------------------------------------------------- */

static ssize_t post(unsigned int i)
{
	unsigned int n = i % SLOTS;
	void *context = (void *)(uintptr_t)i;

	if (i < SLOTS)
		return fi_recv(me.n.ep, in[n], len, NULL, me.peer, context);
	if (writes && n % 2)
		return fi_write(me.n.ep, out[n], len, NULL, me.peer, theirs.addr + n * len,
				theirs.key, context);
	return fi_send(me.n.ep, out[n], len, NULL, me.peer, context);
}

/* A call may be what tells of the end. */
static void post_all(unsigned int slots)
{
	for (unsigned int i = 0; i < slots; i++) {
		ssize_t ret = busy[i] ? -FI_EAGAIN : post(i);

		busy[i] |= !ret;
		if (ret && ret != -FI_EAGAIN && !first_err) {
			first_err = (int)-ret;
			snprintf(first_text, sizeof(first_text), "by a call");
		}
	}
}

static bool any_busy(unsigned int from)
{
	for (unsigned int i = from; i <= WAITING; i++)
		if (busy[i])
			return true;
	return false;
}

static const char *text_of_busy(void)
{
	static char text[WAITING + 2];

	for (unsigned int i = 0; i <= WAITING; i++)
		text[i] = !busy[i] ? '-' : i < SLOTS || i == WAITING ? 'R' : 'S';
	return text;
}

static void failed(const struct event *e)
{
	char text[sizeof(first_text)];

	if (first_err)
		return;
	first_err = e->err;
	snprintf(first_text, sizeof(first_text), "%s",
		 fi_cq_strerror(me.n.cq, e->prov_errno, NULL, text, sizeof(text)));
}

static bool complete_one(void)
{
	struct event e;
	uintptr_t i;

	if (!node_poll(&me.n, &e))
		return false;
	i = (uintptr_t)e.context;
	if (i > WAITING || !busy[i])
		fail("a completion of nothing that was posted");
	busy[i] = false;
	if (e.err)
		failed(&e);
	if (e.err || i >= SLOTS)
		return true;
	for (size_t at = 0; at < len; at += STEP)
		if (in[i][at] != side_byte(1, at))
			fail("byte %zu of %zu is wrong", at, len);
	if (++came == ENOUGH && !quiet) {
		puts("going");
	}
	return true;
}

/* ---- What is to follow ----------------------------------------------------------------------- */

/* A barrier with progress: a write to this side that does not go by the device may need it. */
static void meet(void)
{
	char c = 0;

	tell(me.end, &c, 1);
	while (recv(me.end, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		complete_one();
}

static void collect_from(unsigned int slot)
{
	uint64_t end = now_ms() + LATE_MS;

	while (any_busy(slot)) {
		if (!complete_one())
			sched_yield();
		if (now_ms() > end)
			fail("still under way: %s", text_of_busy());
	}
}

/* A receive posted for a peer that is gone waits for its return, so such receives are cancelled. */
static void collect(void)
{
	collect_from(SLOTS);
	for (unsigned int i = 0; i < SLOTS; i++)
		if (busy[i])
			fi_cancel(&me.n.ep->fid, (void *)(uintptr_t)i);
	collect_from(0);
}

/* Posts a receive that never gets a message, so that an operation is pending at the end. */
static void wait_for_nothing(void)
{
	static char nothing;

	must(fi_trecv(me.n.ep, &nothing, 1, NULL, me.peer, 1, 0, (void *)(uintptr_t)WAITING),
	     "fi_trecv");
	busy[WAITING] = true;
}

static void have_ended(void)
{
	printf("%s was told: %s (%s)\n", who, fi_strerror(first_err), first_text);
	collect();
}

static void reported(void)
{
	wait_for_nothing();
	while (!first_err) {
		post_all(2 * SLOTS);
		while (complete_one() && !first_err)
			;
	}
	have_ended();
}

static void end(void)
{
	ssize_t ret;

	reported();
	while ((ret = post(SLOTS)) == -FI_EAGAIN)
		complete_one();
	busy[SLOTS] = !ret;
	first_err = (int)-ret;
	collect();
	if (!first_err)
		fail("a send after the end succeeds");
	printf("%s is refused: %s\n", who, fi_strerror(first_err));
}

/* Exchanges messages until both sides have `count`, and all messages sent have arrived. */
static void exchange(unsigned int count)
{
	bool met = false;
	char c = 0;

	while (!met || recv(me.end, &c, 1, MSG_DONTWAIT) < 0) {
		post_all(2 * SLOTS);
		complete_one();
		if (first_err)
			fail("told: %s", fi_strerror(first_err));
		if (!met && came >= count) {
			tell(me.end, &c, 1);
			met = true;
		}
	}
	collect_from(SLOTS);
	meet();
}

static void again(void)
{
	reported();
	meet();
	first_err = 0;
	exchange(came + SLOTS);
	printf("%s: reached again\n", who);
}

static void become_quiet(void)
{
	quiet = true;
	exchange(ENOUGH);
	puts("going");
}

static void lost(void)
{
	become_quiet();
	wait_for_nothing();
	while (!first_err)
		complete_one();
	have_ended();
}

static void go_on(void)
{
	become_quiet();
	while (!nudged && !first_err) {
		complete_one();
		usleep(1000);
	}
	exchange(came + ENOUGH);
	printf("%s: goes on\n", who);
}

static const struct wish {
	const char *name;
	void (*run)(void);
} wishes[] = {{"cut", reported}, {"end", end}, {"again", again}, {"lost", lost}, {"go-on", go_on}},
  *wish;

static void run(void *arg)
{
	struct node n;
	int fds;

	me = *(struct side *)arg;
	signal(SIGUSR1, nudge);
	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("FI_TCP_IFACE", me.iface, 1);
	if (side_number)
		become_nobody();
	node_open(&n, NULL); /* opens what stays open for the process */
	node_close(&n);
	fds = count_fds(getpid());
	open_all();
	wish->run();
	close_all(fds);
	printf("%s: closed\n", who);
}

int main(int argc, char **argv)
{
	const struct wish *last = wishes + sizeof(wishes) / sizeof(wishes[0]);
	struct side sides[2] = {{0}};
	int ends[2], status, bad = 0;

	for (wish = wishes; argc == 5 && wish < last; wish++)
		if (!strcmp(wish->name, argv[2]))
			break;
	if (argc != 5 || wish == last)
		fail("traffic, a wish and two names of interfaces, please");
	len = strcmp(argv[1], "long") ? SHORT : LONG;
	writes = !strcmp(argv[1], "write");
	wire(ends);
	for (int i = 0; i < 2; i++) {
		sides[i] = (struct side){.iface = argv[3 + i], .end = ends[i]};
		side_number = i;
		start(i ? "side 1" : "side 0", run, &sides[i]);
	}
	while (wait(&status) > 0)
		bad += !WIFSIGNALED(status) && WEXITSTATUS(status);
	return bad;
}
