/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes that send to each other over two devices each, while a script breaks the wires:
 *
 *	rdm_rails WISH IFACE IFACE SECOND SECOND
 *
 * Both send messages of several lengths, and write to each other's region. Each message says its
 * number, so what is lost, comes twice or out of order is found, and so is a write that comes too
 * late. Each side prints "going" when some have come. WISH is the expected outcome:
 *
 *	go-on  after a signal USR1 to each, all that was sent has come, without an error
 *	end    the operations end with an error
 *	anew   as go-on, but the regions are registered after the signal, and side 1 writes to side 0, which does not call
 *	       the library meanwhile: its device does it
 *
 * Side 1 runs as the user nobody, so that a script can tell the sides' packets apart, and sleeps when
 * it has nothing to do.
 */
#include <grp.h>
#include <rdma/fi_rma.h>

#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#define NODE_MR   (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define NODE_WAIT FI_WAIT_UNSPEC
#include "rdm_pair.h"

#define ENOUGH  40 /* messages */
#define SLOTS   8  /* messages under way in each direction */
#define LONGEST ((size_t)700000)
#define RECORD  ((size_t)300000) /* bytes of the longest write */
#define RECORDS 4
#define STEP    97 /* checks every STEPth byte */
#define NAP_MS  50
#define LATE_MS 40000 /* limit for all operations to end */
#define NOBODY  65534

static const size_t lengths[] = {8, 64, 3000, 40000, 9000, LONGEST, 8, 150000};
static const size_t writes_of[] = {12000, RECORD, 200};

struct place {
	uint64_t addr, key;
};

struct slot {
	unsigned char *buf;
	uint64_t number; /* of the message */
	bool busy;
};

static struct side me;
static bool ends, anew; /* the wish */
static struct slot in[SLOTS], out[SLOTS];
static unsigned char *region, *record[RECORDS]; /* the peer writes here; what we write */
static struct fid_mr *mr;
static struct place theirs;
static uint64_t posted, sent, came, writes, written; /* messages and writes, each counted from 0 */
static uint64_t last_ms, pause_ms;
static int first_err;

static size_t length_of(uint64_t number)
{
	return lengths[number % (sizeof(lengths) / sizeof(lengths[0]))];
}

static size_t write_of(uint64_t number)
{
	return writes_of[number % (sizeof(writes_of) / sizeof(writes_of[0]))];
}

static void fill(unsigned char *to, uint64_t number, size_t len)
{
	side_fill(to, (unsigned int)number, len);
	memcpy(to, &number, sizeof(number));
}

static void check(const unsigned char *buf, uint64_t number, size_t len, const char *what)
{
	uint64_t found;

	memcpy(&found, buf, sizeof(found));
	if (found != number)
		fail("%s %llu instead of %llu", what, (unsigned long long)found,
		     (unsigned long long)number);
	for (size_t i = sizeof(found); i < len; i += i + STEP < len ? STEP : 1)
		if (buf[i] != side_byte((unsigned int)number, i))
			fail("%s %llu: byte %zu of %zu is wrong", what, (unsigned long long)number,
			     i, len);
}

/* Registers a region, and exchanges its place with the other side. */
static void open_region(void)
{
	struct place own;

	must(fi_mr_reg(me.n.domain, region, RECORDS * RECORD, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
	     "fi_mr_reg");
	own = (struct place){(uintptr_t)region, fi_mr_key(mr)};
	tell(me.end, &own, sizeof(own));
	hear(me.end, &theirs, sizeof(theirs));
}

static void open_all(void)
{
	side_open(&me);
	region = side_memory(RECORDS * RECORD);
	if (!anew)
		open_region();
	for (unsigned int i = 0; i < SLOTS; i++) {
		in[i].buf = side_memory(LONGEST);
		out[i].buf = side_memory(LONGEST);
	}
	for (unsigned int i = 0; i < RECORDS; i++)
		record[i] = side_memory(RECORD);
}

static void close_all(void)
{
	must(fi_close(&mr->fid), "fi_close");
	node_close(&me.n);
	for (unsigned int i = 0; i < SLOTS; i++) {
		free(in[i].buf);
		free(out[i].buf);
	}
	for (unsigned int i = 0; i < RECORDS; i++)
		free(record[i]);
	free(region);
}

/* False: the call is to be made again. An error counts as one of a completion. */
static bool begun(ssize_t ret)
{
	if (ret && ret != -FI_EAGAIN && !first_err)
		first_err = (int)-ret;
	return !ret;
}

static void post_receives(void)
{
	struct slot *s = &in[posted % SLOTS];

	while (!s->busy) {
		if (!begun(fi_recv(me.n.ep, s->buf, LONGEST, NULL, me.peer, s)))
			return;
		s->busy = true;
		s->number = posted++;
		s = &in[posted % SLOTS];
	}
}

static void post_sends(void)
{
	struct slot *s = &out[sent % SLOTS];
	size_t len = length_of(sent);

	if (s->busy)
		return;
	fill(s->buf, sent, len);
	if (!begun(fi_send(me.n.ep, s->buf, len, NULL, me.peer, s)))
		return;
	s->busy = true;
	sent++;
}

/* One write at a time, so that the last one to a record is what is left there. */
static void post_write(void)
{
	size_t at = writes % RECORDS, len = write_of(writes);

	if (!mr || writes != written)
		return;
	fill(record[at], writes, len);
	if (begun(fi_write(me.n.ep, record[at], len, NULL, me.peer, theirs.addr + at * RECORD,
			   theirs.key, NULL)))
		writes++;
}

static void received(struct slot *s, size_t len)
{
	uint64_t now = now_ms();

	if (len != length_of(s->number))
		fail("message %llu has %zu bytes", (unsigned long long)s->number, len);
	check(s->buf, s->number, len, "message");
	if (came && now - last_ms > pause_ms)
		pause_ms = now - last_ms;
	last_ms = now;
	if (++came == ENOUGH)
		puts("going");
}

/* Reads a completion; side 1 waits for one if it cannot send. */
static bool next(struct event *e)
{
	struct fi_cq_tagged_entry entry;

	if (!side_number || !out[sent % SLOTS].busy ||
	    fi_cq_sread(me.n.cq, &entry, 1, NULL, NAP_MS) != 1)
		return node_poll(&me.n, e);
	*e = (struct event){.context = entry.op_context, .len = entry.len};
	return true;
}

static void complete(void)
{
	struct event e;
	struct slot *s;

	if (!next(&e))
		return;
	if (e.err && !first_err)
		first_err = e.err;
	s = e.context;
	if (!s)
		written++;
	else if (!s->busy)
		fail("a completion comes twice");
	else
		s->busy = false;
	if (s >= in && s < in + SLOTS && !e.err)
		received(s, e.len);
}

static bool any_sends(void)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (out[i].busy)
			return true;
	return writes != written;
}

static void until_nudged(void)
{
	while (!nudged && !first_err) {
		post_receives();
		post_sends();
		post_write();
		complete();
	}
}

/* Everything that was sent arrives: both sides tell how much that is. */
static void all_comes(void)
{
	uint64_t end = now_ms() + LATE_MS, ours[2] = {sent, writes}, count[2] = {UINT64_MAX, 0};
	bool said = false, heard = false;

	while (came < count[0] || any_sends()) {
		post_receives();
		complete();
		if (first_err)
			fail("told: %s", fi_strerror(first_err));
		if (now_ms() > end)
			fail("%llu of %lld messages have come", (unsigned long long)came,
			     (long long)count[0]);
		if (!said && !any_sends()) {
			tell(me.end, ours, sizeof(ours));
			said = true;
		}
		if (!heard)
			heard = recv(me.end, count, sizeof(count), MSG_DONTWAIT) > 0;
	}
	if (!said)
		tell(me.end, ours, sizeof(ours));
	for (uint64_t n = count[1] > RECORDS ? count[1] - RECORDS : 0; n < count[1]; n++)
		check(region + n % RECORDS * RECORD, n, write_of(n), "write");
	printf("%s: goes on: %llu messages, %llu writes, longest pause %llu ms\n", who,
	       (unsigned long long)came, (unsigned long long)count[1],
	       (unsigned long long)pause_ms);
}

/* Keeps the endpoint until the other side is through, too. */
static void meet(void)
{
	struct event e;
	char c = 0;

	tell(me.end, &c, 1);
	while (recv(me.end, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		node_poll(&me.n, &e);
}

static void write_anew(void)
{
	char c = 0;

	meet();
	open_region();
	if (!side_number) {
		hear(me.end, &c, 1);
		check(region, 0, write_of(0), "write");
		printf("%s: its new region is written to\n", who);
		return;
	}
	while (!written && !first_err) {
		post_write();
		complete();
	}
	if (first_err)
		fail("the write to a new region ends: %s", fi_strerror(first_err));
	tell(me.end, &c, 1);
}

static void run(void *arg)
{
	me = *(struct side *)arg;
	signal(SIGUSR1, nudge);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (side_number && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
			    setresuid(NOBODY, NOBODY, NOBODY)))
		fail("cannot become another user: %s", strerror(errno));
	open_all();
	until_nudged();
	if (ends && first_err)
		printf("%s was told: %s\n", who, fi_strerror(first_err));
	else if (first_err)
		fail("told: %s", fi_strerror(first_err));
	else
		all_comes();
	if (anew)
		write_anew();
	meet();
	close_all();
	printf("%s: closed\n", who);
}

int main(int argc, char **argv)
{
	struct side sides[2] = {{0}};
	char both[2][64];
	int wired[2], status, bad = 0;

	if (argc != 6 ||
	    (strcmp(argv[1], "go-on") && strcmp(argv[1], "end") && strcmp(argv[1], "anew")))
		fail("a wish and four names of interfaces, please");
	ends = !strcmp(argv[1], "end");
	anew = !strcmp(argv[1], "anew");
	wire(wired);
	for (int i = 0; i < 2; i++) {
		snprintf(both[i], sizeof(both[i]), "%s,%s", argv[2 + i], argv[4 + i]);
		setenv("FI_VERBS_IFACE", both[i], 1);
		sides[i] = (struct side){.iface = argv[2 + i], .end = wired[i]};
		side_number = i;
		start(i ? "side 1" : "side 0", run, &sides[i]);
	}
	while (wait(&status) > 0)
		bad += !WIFSIGNALED(status) && WEXITSTATUS(status);
	return bad;
}
