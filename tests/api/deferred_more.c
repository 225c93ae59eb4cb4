/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uses of deferred work: collectives of several processes, sleeping and racing processes and
 * threads, all kinds of contexts. fi_trigger(3).
 */
#include <poll.h>
#include <pthread.h>

#include "obj.h"
#include "lib/rig.h"
#include "lib/job.h"

/* Prepares a tagged message of one word; receives accept any source. */
static void message(struct rig *r, struct job *job, uint64_t *word, fi_addr_t to, uint64_t tag)
{
	memset(job, 0x5a, sizeof(*job));
	job->iov = (struct iovec){word, sizeof(*word)};
	job->op.tagged = (struct fi_op_tagged){.ep = r->o.ep,
					       .msg = {.msg_iov = &job->iov,
						       .iov_count = 1,
						       .addr = to,
						       .tag = tag,
						       .context = job}};
	job->work.op.tagged = &job->op.tagged;
}

static void queue_message(struct rig *r, struct job *job, struct fid_cntr *start,
			  uint64_t threshold, struct fid_cntr *done, enum fi_op_type type)
{
	job->work.threshold = threshold;
	job->work.triggering_cntr = start;
	job->work.completion_cntr = done;
	job->work.op_type = type;
	OK(job_queue(r, job));
}

static void everybody(struct api *a, struct rig *r, fi_addr_t *addrs)
{
	struct obj_name mine = obj_name(&r->o.ep->fid), all[API_RANKS];

	api_swap(a, &mine, all, sizeof(mine));
	for (int i = 0; i < a->ranks; i++)
		addrs[i] = obj_insert(r->o.av, &all[i]);
}

/* ---- A barrier that also broadcasts a word --------------------------------------------------- */

#define ROUNDS 60
#define UP     (UINT64_C(1) << 32)
#define DOWN   (UINT64_C(1) << 33)

struct tree {
	struct rig r;
	struct fid_cntr *go;   /* never counts: a threshold of 0 on it starts work at once */
	struct fid_cntr *up;   /* arrivals: this process, and each child's whole subtree */
	struct fid_cntr *down; /* number of barriers completed */
	uint64_t words[ROUNDS], nothing;
	struct job jobs[ROUNDS][8];
};

/* Queues one round: each process notifies its parent, the root turns, parents notify children. */
static void tree_round(struct api *a, struct tree *t, const fi_addr_t *addrs, uint64_t round)
{
	struct job *job = t->jobs[round];
	uint64_t children = 0;

	for (int child = 2 * a->rank + 1; child < 2 * a->rank + 3 && child < a->ranks; child++) {
		children++;
		message(&t->r, job, &t->nothing, FI_ADDR_UNSPEC, UP | round);
		queue_message(&t->r, job++, t->go, 0, t->up, FI_OP_TRECV);
		message(&t->r, job, &t->words[round], addrs[child], DOWN | round);
		queue_message(&t->r, job++, t->down, round + 1, NULL, FI_OP_TSEND);
	}
	if (a->rank == 0) {
		job_counter(job, FI_OP_CNTR_ADD, t->up, (children + 1) * (round + 1), t->down, 1);
		OK(job_queue(&t->r, job));
		return;
	}
	message(&t->r, job, &t->nothing, addrs[(a->rank - 1) / 2], UP | round);
	queue_message(&t->r, job++, t->up, (children + 1) * (round + 1), NULL, FI_OP_TSEND);
	message(&t->r, job, &t->words[round], FI_ADDR_UNSPEC, DOWN | round);
	queue_message(&t->r, job++, t->go, 0, t->down, FI_OP_TRECV);
}

/* No process leaves the barrier before all have entered it; the root's word arrives with it. */
static void barriers(struct api *a, const struct rig_opts *opts, bool reads)
{
	struct tree *t = calloc(1, sizeof(*t));
	int *arrived = a->shared;
	fi_addr_t addrs[API_RANKS];

	rig_open(&t->r, opts);
	everybody(a, &t->r, addrs);
	t->go = obj_cntr(&t->r.o, FI_WAIT_NONE);
	t->up = obj_cntr(&t->r.o, FI_WAIT_NONE);
	t->down = obj_cntr(&t->r.o, FI_WAIT_UNSPEC);
	for (uint64_t round = 0; round < ROUNDS; round++)
		tree_round(a, t, addrs, round);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		if ((uint64_t)a->rank == round % 8)
			obj_sleep_us(2000); /* the others wait, asleep where possible */
		if (a->rank == 0)
			t->words[round] = round * 3 + 1;
		__atomic_fetch_add(&arrived[round], 1, __ATOMIC_SEQ_CST);
		OK(fi_cntr_add(t->up, 1));
		if (reads)
			OBJ_UNTIL(fi_cntr_read(t->down) >= round + 1, sched_yield());
		else
			OK(fi_cntr_wait(t->down, round + 1, OBJ_PATIENCE_MS));
		CHECK_EQ(__atomic_load_n(&arrived[round], __ATOMIC_SEQ_CST), a->ranks);
		CHECK_EQ(t->words[round], round * 3 + 1);
	}
	obj_progress(a, t->r.o.cq);
	api_meet(a);
	a->progress = NULL;
	rig_counts(t->r.sent, 0, 0);
	rig_counts(t->r.received, 0, 0);
	CLOSE(t->go);
	CLOSE(t->up);
	CLOSE(t->down);
	rig_close(&t->r);
	free(t);
}

static void barriers_read(struct api *a)
{
	barriers(a, &(struct rig_opts){.progress = FI_PROGRESS_MANUAL}, true);
}

static void barriers_wait(struct api *a)
{
	barriers(a, &(struct rig_opts){.progress = FI_PROGRESS_MANUAL}, false);
}

static void barriers_auto(struct api *a)
{
	barriers(a, &(struct rig_opts){.progress = FI_PROGRESS_AUTO}, false);
}

static void barriers_alone(struct api *a)
{
	barriers(a,
		 &(struct rig_opts){.progress = FI_PROGRESS_MANUAL, .threading = FI_THREAD_DOMAIN},
		 true);
}

/* ---- Sleepers -------------------------------------------------------------------------------- */

#define TOKENS 40

/*
 * A token goes round. Rank 0 sends it and waits for its return; the others have queued their part
 * and sleep outside the library.
 */
static void ring_of_sleepers(struct api *a)
{
	static struct job jobs[TOKENS][2];
	static uint64_t words[TOKENS];
	struct fid_cntr *go, *got;
	fi_addr_t addrs[API_RANKS];
	struct rig r;

	rig_open(&r, &(struct rig_opts){.progress = FI_PROGRESS_AUTO});
	everybody(a, &r, addrs);
	go = obj_cntr(&r.o, FI_WAIT_NONE);
	got = obj_cntr(&r.o, FI_WAIT_NONE);
	for (uint64_t n = 0; n < TOKENS; n++) {
		message(&r, &jobs[n][0], &words[n], FI_ADDR_UNSPEC, n);
		queue_message(&r, &jobs[n][0], go, 0, got, FI_OP_TRECV);
		message(&r, &jobs[n][1], &words[n], addrs[(a->rank + 1) % a->ranks], n);
		if (a->rank)
			queue_message(&r, &jobs[n][1], got, n + 1, NULL, FI_OP_TSEND);
	}
	api_meet(a);
	for (uint64_t n = 0; n < TOKENS && a->rank == 0; n++) {
		uint64_t token = n + 7;

		POST(r.o.cq, fi_tinject(r.o.ep, &token, sizeof(token), addrs[1], n));
		OBJ_UNTIL(fi_cntr_read(got) == n + 1, sched_yield());
		CHECK_EQ(words[n], n + 7);
		if (n % 10 == 9)
			obj_sleep_us(30000);
	}
	api_meet(a); /* the others wait in this barrier */
	CLOSE(go);
	CLOSE(got);
	rig_close(&r);
}

/* Sends a message once the other process has allowed it, which it does before it sleeps. */
static void late_word(struct api *a, struct rig *r, fi_addr_t peer, uint64_t word, uint64_t tag)
{
	char byte;

	api_hear(a, 0, &byte, 1);
	obj_sleep_us(30000);
	POST(r->o.cq, fi_tinject(r->o.ep, &word, sizeof(word), peer, tag));
}

/* Sleeps in poll until the counter changes. Checks that most of the time is spent in poll. */
static void asleep_in_poll(struct rig *r, struct fid_cntr *cntr)
{
	struct pollfd p = {.events = POLLIN};
	struct fid *fid = &cntr->fid;
	unsigned int tries = 0;

	OK(fi_control(fid, FI_GETWAIT, &p.fd));
	while (fi_cntr_read(cntr) == 0) {
		int ret = fi_trywait(r->o.fabric, &fid, 1);

		if (ret == 0)
			CHECK(poll(&p, 1, OBJ_PATIENCE_MS) >= 0);
		else
			CHECK_EQ(ret, -FI_EAGAIN);
		CHECK(tries++ < 1000);
	}
}

/* Sleeps on a counter that is bound to no endpoint, in each blocking call. */
static void asleep_on_counter(struct api *a)
{
	static const enum fi_wait_obj kinds[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_FD,
						 FI_WAIT_MUTEX_COND, FI_WAIT_YIELD};
	uint64_t words[API_COUNT(kinds)];
	struct job jobs[API_COUNT(kinds)][2];
	struct fid_cntr *go, *done, *last;
	fi_addr_t peer;
	struct rig r;

	rig_open(&r, &(struct rig_opts){.progress = FI_PROGRESS_MANUAL});
	peer = obj_swap(a, r.o.ep, r.o.av);
	go = obj_cntr(&r.o, FI_WAIT_NONE);
	if (a->rank == 1)
		obj_progress(a, r.o.cq);
	for (unsigned int n = 0; n < API_COUNT(kinds); n++) {
		uint64_t start;

		if (a->rank == 1) {
			late_word(a, &r, peer, n + 50, n);
			continue;
		}
		done = obj_cntr(&r.o, FI_WAIT_NONE);
		last = obj_cntr(&r.o, kinds[n]);
		message(&r, &jobs[n][0], &words[n], FI_ADDR_UNSPEC, n);
		queue_message(&r, &jobs[n][0], go, 0, done, FI_OP_TRECV);
		job_counter(&jobs[n][1], FI_OP_CNTR_ADD, done, 1, last, 1);
		OK(job_queue(&r, &jobs[n][1]));
		api_tell(a, 1, "x", 1);
		start = obj_cpu_us();
		if (n == 1)
			asleep_in_poll(&r, last);
		else
			OK(fi_cntr_wait(last, 1, OBJ_PATIENCE_MS));
		if (kinds[n] != FI_WAIT_YIELD && !getenv("SLOWER"))
			CHECK(obj_cpu_us() - start < 20000);
		CHECK_EQ(fi_cntr_read(last), 1);
		CHECK_EQ(words[n], n + 50);
		CLOSE(done);
		CLOSE(last);
	}
	api_meet(a);
	a->progress = NULL;
	CLOSE(go);
	rig_close(&r);
}

/*
 * Sleeps on the queue of one endpoint for a receive that starts when a message to another endpoint
 * of the domain arrives. That arrival must end the sleep.
 */
static void asleep_on_queue(struct api *a)
{
	struct fi_cq_tagged_entry e;
	struct fid_cntr *go, *got;
	uint64_t word, answer = 9;
	struct rig r, other;
	struct job jobs[2];
	fi_addr_t to, self;
	char byte;

	rig_open(&r, &(struct rig_opts){.progress = FI_PROGRESS_MANUAL, .wait = FI_WAIT_FD});
	other = r;
	other.o.cq = obj_cq(&r.o, FI_WAIT_NONE);
	other.o.ep = obj_ready_ep(&r.o, other.o.cq);
	to = obj_swap(a, other.o.ep, r.o.av);
	self = obj_insert_ep(r.o.av, r.o.ep);
	go = obj_cntr(&r.o, FI_WAIT_NONE);
	got = obj_cntr(&r.o, FI_WAIT_NONE);
	if (a->rank == 0) {
		message(&other, &jobs[0], &word, FI_ADDR_UNSPEC, 1);
		queue_message(&other, &jobs[0], go, 0, got, FI_OP_TRECV);
		message(&other, &jobs[1], &answer, self, 2);
		queue_message(&other, &jobs[1], got, 1, NULL, FI_OP_TSEND);
		OK(fi_trecv(r.o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, 2, 0, &word));
		api_tell(a, 1, "x", 1);
		CHECK_EQ(fi_cq_sread(r.o.cq, &e, 1, NULL, OBJ_PATIENCE_MS), 1);
		CHECK(e.op_context == &word);
		CHECK_EQ(word, 9);
	} else {
		api_hear(a, 0, &byte, 1);
		obj_sleep_us(30000);
		POST(r.o.cq, fi_tinject(r.o.ep, &answer, sizeof(answer), to, 1));
	}
	obj_progress(a, r.o.cq);
	api_meet(a);
	CLOSE(go);
	CLOSE(got);
	CLOSE(other.o.ep);
	CLOSE(other.o.cq);
	rig_close(&r);
}

/* Reading an unrelated counter makes progress on deferred work. */
static void driven_by_any_read(struct api *a)
{
	struct fid_cntr *go, *done, *unrelated;
	uint64_t word = 0, answer = 0;
	struct job jobs[2];
	fi_addr_t peer;
	struct rig r;

	rig_open(&r, &(struct rig_opts){.progress = FI_PROGRESS_MANUAL});
	peer = obj_swap(a, r.o.ep, r.o.av);
	go = obj_cntr(&r.o, FI_WAIT_NONE);
	done = obj_cntr(&r.o, FI_WAIT_NONE);
	unrelated = obj_cntr(&r.o, FI_WAIT_NONE);
	if (a->rank == 0) {
		message(&r, &jobs[0], &word, FI_ADDR_UNSPEC, 1);
		queue_message(&r, &jobs[0], go, 0, done, FI_OP_TRECV);
		message(&r, &jobs[1], &word, peer, 2);
		queue_message(&r, &jobs[1], done, 1, NULL, FI_OP_TSEND);
		while (!api_heard(a, 1))
			CHECK_EQ(fi_cntr_read(unrelated), 0);
		CHECK_EQ(word, 77);
	} else {
		word = 77;
		OK(fi_trecv(r.o.ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, 2, 0, NULL));
		POST(r.o.cq, fi_tinject(r.o.ep, &word, sizeof(word), peer, 1));
		OBJ_UNTIL(((volatile uint64_t *)&answer)[0] == 77, rig_progress(&r));
	}
	api_meet(a);
	CLOSE(go);
	CLOSE(done);
	CLOSE(unrelated);
	rig_close(&r);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define RACED  2000
#define ADDERS 2

static void *adder(void *cntr)
{
	for (int n = 0; n < RACED / ADDERS; n++) {
		OK(fi_cntr_add(cntr, 1));
		if (n % 16 == 0)
			sched_yield();
	}
	return NULL;
}

struct queuer {
	struct rig *r;
	struct job *jobs;
	unsigned int taken_back;
};

/* Cancels the items of the second half that have not started. */
static void *canceller(void *arg)
{
	struct queuer *q = arg;

	for (int n = RACED; n-- > RACED / 2;) {
		int ret = fi_control(&q->r->o.domain->fid, FI_CANCEL_WORK, &q->jobs[n].work);

		CHECK(ret == 0 || ret == -FI_ENOENT);
		q->taken_back += ret == 0;
	}
	return NULL;
}

/*
 * Two threads add to the counter while one queues work and another cancels. Each item runs once or
 * is cancelled.
 */
static void race_with(struct api *a, enum fi_progress progress)
{
	struct job *jobs = calloc(RACED, sizeof(*jobs));
	struct fid_cntr *start, *done, *sum;
	struct queuer q = {.jobs = jobs};
	pthread_t threads[ADDERS + 1];
	struct rig_op op;
	struct rig r;
	uint64_t atomics = 0;

	(void)a;
	rig_open(&r, &(struct rig_opts){.progress = progress, .threading = FI_THREAD_SAFE});
	q.r = &r;
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	done = obj_cntr(&r.o, FI_WAIT_NONE);
	sum = obj_cntr(&r.o, FI_WAIT_NONE);
	rig_op(&r, &op, RIG_ATOMIC, 0);
	op.local = 1;
	*op.word = 0;
	for (int n = 0; n < ADDERS; n++)
		OK(pthread_create(&threads[n], NULL, adder, start));
	for (unsigned int n = 0; n < RACED; n++) {
		uint64_t threshold = n * 7 % RACED + 1;

		if (n % 4)
			job_of(&r, &jobs[n], &op, start, threshold, done);
		else
			job_counter(&jobs[n], FI_OP_CNTR_ADD, start, threshold, sum, 1);
		OK(job_queue(&r, &jobs[n]));
	}
	OK(pthread_create(&threads[ADDERS], NULL, canceller, &q));
	for (int n = 0; n < ADDERS + 1; n++)
		pthread_join(threads[n], NULL);
	OBJ_UNTIL(fi_cntr_read(done) + fi_cntr_read(sum) >= RACED - q.taken_back, );
	rig_progress_calls(&r);
	atomics = fi_cntr_read(done);
	CHECK_EQ(atomics + fi_cntr_read(sum), RACED - q.taken_back);
	CHECK_EQ(fi_cntr_readerr(done), 0);
	CHECK_EQ(__atomic_load_n(op.word, __ATOMIC_SEQ_CST), atomics);
	CLOSE(start);
	CLOSE(done);
	CLOSE(sum);
	rig_close(&r);
	free(jobs);
}

static void race(struct api *a)
{
	race_with(a, FI_PROGRESS_MANUAL);
}

static void race_auto(struct api *a)
{
	race_with(a, FI_PROGRESS_AUTO);
}

static void *read_until_done(void *cntr)
{
	OBJ_UNTIL(fi_cntr_read(cntr) >= 1, sched_yield());
	return NULL;
}

/*
 * Another thread adds to the counter. A process that reads the final count may close the counters
 * and reuse the memory.
 */
static void last_one_closes(struct api *a)
{
	struct rig r;

	(void)a;
	rig_open(&r,
		 &(struct rig_opts){.progress = FI_PROGRESS_MANUAL, .threading = FI_THREAD_SAFE});
	for (unsigned int n = 0; n < 300; n++) {
		struct job *job = malloc(sizeof(*job));
		struct fid_cntr *start, *done;
		pthread_t thread;
		struct rig_op op;

		start = obj_cntr(&r.o, FI_WAIT_NONE);
		done = obj_cntr(&r.o, FI_WAIT_NONE);
		rig_op(&r, &op, RIG_WRITE, 0);
		if (n % 2)
			job_of(&r, job, &op, start, 1, done);
		else
			job_counter(job, FI_OP_CNTR_ADD, start, 1, done, 1);
		OK(job_queue(&r, job));
		OK(pthread_create(&thread, NULL, read_until_done, done));
		OK(fi_cntr_add(start, 1));
		OBJ_UNTIL(fi_cntr_read(done) == 1, );
		memset(job, 0xee, sizeof(*job));
		free(job);
		pthread_join(thread, NULL);
		CLOSE(done);
		CLOSE(start);
	}
	rig_close(&r);
}

/* ---- Contexts -------------------------------------------------------------------------------- */

struct contexts {
	struct rig r;
	struct fid_ep *sep, *tx, *rx; /* scalable endpoint and its contexts */
	struct fid_ep *ep, *srx;      /* endpoint and its shared receive context */
};

static void open_contexts(struct contexts *c)
{
	struct rig *r = &c->r;

	rig_open(r, &(struct rig_opts){.progress = FI_PROGRESS_MANUAL});
	OK(fi_scalable_ep(r->o.domain, r->o.info, &c->sep, NULL));
	OK(fi_scalable_ep_bind(c->sep, &r->o.av->fid, 0));
	OK(fi_enable(c->sep));
	OK(fi_tx_context(c->sep, 0, NULL, &c->tx, NULL));
	OK(fi_rx_context(c->sep, 0, NULL, &c->rx, NULL));
	OK(fi_ep_bind(c->tx, &r->o.cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(c->rx, &r->o.cq->fid, FI_RECV));
	OK(fi_enable(c->tx));
	OK(fi_enable(c->rx));
	OK(fi_srx_context(r->o.domain, NULL, &c->srx, NULL));
	c->ep = obj_ep(&r->o);
	OK(fi_ep_bind(c->ep, &c->srx->fid, 0));
	OK(fi_ep_bind(c->ep, &r->o.av->fid, 0));
	OK(fi_ep_bind(c->ep, &r->o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(c->ep));
}

/* Like `message`, on endpoint `ep`. */
static void message_of(struct contexts *c, struct fid_ep *ep, struct job *job, uint64_t *word,
		       fi_addr_t to)
{
	message(&c->r, job, word, to, 1);
	job->op.tagged.ep = ep;
}

/* Work on the contexts of a scalable endpoint, and on a shared receive context. */
static void contexts(struct api *a)
{
	uint64_t words[2] = {0}, word = 5;
	struct fid_cntr *start, *done;
	struct job jobs[5];
	struct contexts c;

	(void)a;
	open_contexts(&c);
	start = obj_cntr(&c.r.o, FI_WAIT_NONE);
	done = obj_cntr(&c.r.o, FI_WAIT_NONE);
	message_of(&c, c.rx, &jobs[0], &words[0], FI_ADDR_UNSPEC);
	message_of(&c, c.srx, &jobs[1], &words[1], FI_ADDR_UNSPEC);
	message_of(&c, c.tx, &jobs[2], &word, obj_insert_ep(c.r.o.av, c.sep));
	message_of(&c, c.tx, &jobs[3], &word, obj_insert_ep(c.r.o.av, c.ep));
	for (int n = 0; n < 4; n++)
		queue_message(&c.r, &jobs[n], start, n < 2 ? 1 : 2, done,
			      n < 2 ? FI_OP_TRECV : FI_OP_TSEND);
	/*
	 * Receives of an endpoint with a shared context, and operations of a scalable endpoint
	 * itself, are refused.
	 */
	jobs[4] = jobs[0];
	jobs[4].work.op.tagged = &jobs[4].op.tagged;
	jobs[4].op.tagged.ep = c.ep;
	CHECK_EQ(job_queue(&c.r, &jobs[4]), -FI_ENOSYS);
	jobs[4].op.tagged.ep = c.sep;
	CHECK_EQ(job_queue(&c.r, &jobs[4]), -FI_EINVAL);
	OK(fi_cntr_add(start, 2));
	rig_counts(done, 4, 0);
	CHECK(words[0] == 5 && words[1] == 5);
	obj_quiet(c.r.o.cq, 2);
	/* Work that waits, and work in flight, when its context is closed. */
	message_of(&c, c.tx, &jobs[0], &word, c.r.self);
	queue_message(&c.r, &jobs[0], start, 9, done, FI_OP_TSEND);
	message_of(&c, c.srx, &jobs[1], &words[1], FI_ADDR_UNSPEC);
	queue_message(&c.r, &jobs[1], start, 9, done, FI_OP_TRECV);
	message_of(&c, c.rx, &jobs[2], &words[0], FI_ADDR_UNSPEC);
	queue_message(&c.r, &jobs[2], start, 1, done, FI_OP_TRECV);
	message_of(&c, c.srx, &jobs[3], &words[0], FI_ADDR_UNSPEC);
	queue_message(&c.r, &jobs[3], start, 1, done, FI_OP_TRECV);
	CLOSE(c.ep);
	CLOSE(c.tx);
	rig_counts(done, 4, 1);
	CLOSE(c.rx);
	rig_counts(done, 4, 2);
	CLOSE(c.srx);
	rig_counts(done, 4, 4);
	CLOSE(c.sep);
	CLOSE(start);
	CLOSE(done);
	rig_close(&c.r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"barriers_read", barriers_read, 4, {0}},
		{"barriers_wait", barriers_wait, 4, {0}},
		{"barriers_auto", barriers_auto, 4, {0}},
		{"barriers_alone", barriers_alone, 4, {0}},
		{"ring_of_sleepers", ring_of_sleepers, 4, {0}},
		{"asleep_on_counter", asleep_on_counter, 2, {0}},
		{"asleep_on_queue", asleep_on_queue, 2, {0}},
		{"driven_by_any_read", driven_by_any_read, 2, {0}},
		{"race", race, 1, {0}},
		{"race_auto", race_auto, 1, {0}},
		{"last_one_closes", last_one_closes, 1, {0}},
		{"contexts", contexts, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
