/* SPDX-License-Identifier: BSD-2-Clause */
/* How a process begins, ends before the others, and comes again. Needs wait.h. */
#ifndef GENERATED_FATE_H
#define GENERATED_FATE_H

#define FATE_LEAVES 20000 /* us, many times what a packet of a stream may wait for others */

static inline void *fate_helper(void *self)
{
	struct self *s = self;

	while (!__atomic_load_n(&s->helper_ends, __ATOMIC_ACQUIRE)) {
		for (unsigned int i = 0; i < s->queue_count; i++)
			fi_cq_read(s->queues[i], NULL, 0);
		usleep(50);
	}
	return NULL;
}

static inline void fate_open(struct self *s)
{
	s->mine->doing = "opens";
	open_objects(s);
	if (s->w->program.kind == KIND_MSG)
		connect_all(s);
	else
		open_datagrams(s);
	if (s->w->program.helper)
		pthread_create(&s->helper, NULL, fate_helper, s);
}

static inline void fate_close(struct self *s)
{
	s->mine->doing = "closes";
	__atomic_store_n(&s->helper_ends, true, __ATOMIC_RELEASE);
	if (s->w->program.helper)
		pthread_join(s->helper, NULL);
	open_close(s);
}

/* Waits for nobody, and nobody for it. */
static inline void fate_absent(struct self *s, bool absent)
{
	__atomic_store_n(&s->mine->idle, absent, __ATOMIC_RELEASE);
	__atomic_store_n(&s->mine->finished, absent, __ATOMIC_RELEASE);
}

/* What others owe to this life, and what it has begun, does not count any more. */
static inline void fate_over(struct self *s, const struct line *l)
{
	s->mine->again = l->again;
	__atomic_store_n(&s->mine->going, true, __ATOMIC_RELEASE);
	life_next(s->mine);
	fate_absent(s, !l->again);
}

/* The next life, at the same addresses. */
static inline void fate_again(struct self *s)
{
	*s = (struct self){.w = s->w, .me = s->me, .mine = s->mine, .rounds = 1};
	memset(s->mine->begun, 0, sizeof(s->mine->begun));
	s->mine->refused = false;
	__atomic_store_n(&s->mine->state, PROC_CALLS, __ATOMIC_RELEASE);
	fate_absent(s, false);
	fate_open(s);
	life_next(s->mine);
}

static inline void fate_leave(struct self *s, const struct line *l)
{
	fate_over(s, l);
	block_begin(s);
	fate_close(s);
	__atomic_store_n(&s->mine->going, false, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < s->w->count; i++)
		proc_buffer_free(s, &s->w->ops[i]);
	s->over = !l->again;
	if (l->again)
		fate_again(s);
}

static inline void *fate_kill(void *line)
{
	const struct line *l = line;

	usleep((useconds_t)l->us);
	kill(getpid(), SIGKILL);
	return NULL;
}

/* Is killed, now that all it has sent has left its hands, or after `us`, while it goes on. */
static inline void fate_die(struct self *s, const struct line *l)
{
	pthread_t killer;

	fate_over(s, l);
	if (!l->us) {
		block_begin(s);
		usleep(FATE_LEAVES);
		kill(getpid(), SIGKILL);
	}
	__atomic_store_n(&s->mine->torn, true, __ATOMIC_RELEASE);
	pthread_create(&killer, NULL, fate_kill, (void *)(uintptr_t)l);
}

#endif
