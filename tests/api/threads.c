/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_THREAD_SAFE: four threads post, two others read the queues; each operation completes once. */
#include <pthread.h>

#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

#define POSTERS 4
#define READERS 2
#define EACH    1500 /* maximum messages per poster and direction */
#define SHORT   64
#define LONG    20000

struct load {
	struct side *s;
	unsigned int id;
	unsigned char *out,
		*in; /* EACH slots of LONG / 10 bytes, and space for a long message at the end */
};

/* Number of completions of each operation; [0] sends, [1] receives. */
static unsigned char done[2][POSTERS][EACH];
static unsigned int done_count[2];
static bool stop;
static unsigned int each; /* messages per poster and direction */

static size_t length(unsigned int i)
{
	return i % 100 == 99 ? LONG : SHORT;
}

/* Returns the offset of message `i`. */
static size_t offset(unsigned int i)
{
	return (size_t)(i / 100) * (99 * SHORT + LONG) + (size_t)(i % 100) * SHORT;
}

static unsigned int seed_of(unsigned int id, unsigned int i)
{
	return id * 1000 + i;
}

static void *context_of(unsigned int id, unsigned int i)
{
	return (void *)(uintptr_t)(id * EACH + i);
}

static void post_until(struct load *l, unsigned int i, bool sends)
{
	struct side *s = l->s;
	fi_addr_t peer = s->addr[!s->a->rank];
	ssize_t ret;

	for (;;) {
		ret = sends ? fi_tsend(s->ep, l->out + offset(i), length(i), NULL, peer, l->id,
				       context_of(l->id, i))
			    : fi_trecv(s->ep, l->in + offset(i), length(i), NULL, FI_ADDR_UNSPEC,
				       l->id, 0, context_of(l->id, i));
		if (ret != -FI_EAGAIN)
			break;
		sched_yield();
	}
	CHECK_EQ(ret, 0);
}

static void *poster(void *arg)
{
	struct load *l = arg;

	for (unsigned int i = 0; i < each; i++)
		data_fill(l->out + offset(i), length(i), seed_of(l->id, i));
	for (unsigned int i = 0; i < each; i++) {
		post_until(l, i, i & 1);
		post_until(l, i, !(i & 1));
	}
	return NULL;
}

static void count(const struct fi_cq_tagged_entry *e)
{
	uintptr_t at = (uintptr_t)e->op_context;
	int way = e->flags & FI_RECV ? 1 : 0;
	unsigned char *slot;

	CHECK(at < POSTERS * EACH);
	slot = &done[way][at / EACH][at % EACH];
	CHECK_EQ(__atomic_fetch_add(slot, 1, __ATOMIC_RELAXED), 0);
	if (way)
		CHECK_EQ(e->tag, at / EACH);
	__atomic_fetch_add(&done_count[way], 1, __ATOMIC_RELAXED);
}

static void *reader(void *arg)
{
	struct side *s = arg;
	struct fi_cq_tagged_entry e[8];

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct fid_cq *queues[] = {s->tx, s->rx};

		for (int q = 0; q < 2; q++) {
			ssize_t n = fi_cq_read(queues[q], e, API_COUNT(e));

			CHECK(n > 0 || n == -FI_EAGAIN);
			for (ssize_t i = 0; i < n; i++)
				count(&e[i]);
		}
		sched_yield();
	}
	return NULL;
}

static void wait_for_all(void)
{
	unsigned int all = POSTERS * each;

	api_at(__FILE__, __LINE__);
	while (__atomic_load_n(&done_count[0], __ATOMIC_RELAXED) < all ||
	       __atomic_load_n(&done_count[1], __ATOMIC_RELAXED) < all)
		usleep(1000);
	usleep(20000); /* time for completions too many */
}

static void run(struct api *a, const struct side_opts *o)
{
	size_t total = offset(EACH) + LONG;
	pthread_t threads[POSTERS + READERS];
	struct load loads[POSTERS];
	struct side s;

	each = api_times(EACH);
	side_open(&s, a, o);
	for (int i = 0; i < READERS; i++)
		OK(pthread_create(&threads[POSTERS + i], NULL, reader, &s));
	for (unsigned int i = 0; i < POSTERS; i++) {
		loads[i] = (struct load){&s, i, malloc(total), malloc(total)};
		CHECK(loads[i].out && loads[i].in);
		OK(pthread_create(&threads[i], NULL, poster, &loads[i]));
	}
	for (int i = 0; i < POSTERS; i++)
		OK(pthread_join(threads[i], NULL));
	wait_for_all();
	a->progress = NULL; /* the readers make progress */
	api_meet(a);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++)
		OK(pthread_join(threads[POSTERS + i], NULL));
	CHECK_EQ(done_count[0], POSTERS * each);
	CHECK_EQ(done_count[1], POSTERS * each);
	for (unsigned int id = 0; id < POSTERS; id++)
		for (unsigned int i = 0; i < each; i++)
			data_check(loads[id].in + offset(i), length(i), seed_of(id, i));
	for (int i = 0; i < POSTERS; i++) {
		free(loads[i].out);
		free(loads[i].in);
	}
	side_close(&s);
}

static void two_queues(struct api *a)
{
	run(a, &(struct side_opts){.threading = FI_THREAD_SAFE});
}

static void one_queue(struct api *a)
{
	run(a, &(struct side_opts){.threading = FI_THREAD_SAFE, .one_cq = true});
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"two-queues", two_queues, 2, {0}},
		{"one-queue", one_queue, 2, {0}},
		{"two-queues-no-cma", two_queues, 2, {"FI_SHM_DISABLE_CMA=yes"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
