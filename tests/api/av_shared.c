/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors with names, shared between processes. fi_av(3). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mount.h>

#include "obj.h"

#define MANY 1000

/* Returns one name for all processes of a case, which have the same parent. */
static const char *vector_name(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "api av shared %d", (int)getppid());
	return name;
}

static void open_domain(struct obj *o)
{
	o->hints = obj_hints(FI_MSG | FI_SOURCE | FI_SHARED_AV);
	if (!obj_find(o, FI_VERSION(1, 17)))
		api_fail("FI_SHARED_AV is not offered");
	CHECK(o->info->domain_attr->caps & FI_SHARED_AV);
	obj_domain(o);
}

static int try_open(struct obj *o, uint64_t flags, struct fid_av **av)
{
	struct fi_av_attr attr = {
		.type = FI_AV_TABLE, .name = vector_name(), .flags = flags, .count = MANY};
	int ret = fi_av_open(o->domain, &attr, av, NULL);

	if (!ret)
		CHECK(attr.map_addr != NULL);
	return ret;
}

static struct fid_av *open_named(struct obj *o, uint64_t flags)
{
	struct fid_av *av;

	OK(try_open(o, flags, &av));
	return av;
}

/* Returns an unused address in the format of the domain. */
static struct obj_name made_up(const struct obj *o, unsigned int number)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7)};
	struct obj_name name = {.len = sizeof(in)};

	in.sin_addr.s_addr = htonl(0x0a010000 + number);
	if (o->info->addr_format == FI_ADDR_STR)
		name.len = (size_t)snprintf(name.bytes, sizeof(name.bytes), "fi_shm://made/up/%u",
					    number) +
			   1;
	else
		memcpy(name.bytes, &in, sizeof(in));
	return name;
}

static void insert_many(struct obj *o, struct fid_av *av, unsigned int first)
{
	for (unsigned int i = first; i < first + MANY; i++) {
		struct obj_name name = made_up(o, i);

		obj_insert(av, &name);
	}
}

static void holds(struct fid_av *av, fi_addr_t addr, const struct obj_name *name)
{
	char bytes[256];
	size_t len = sizeof(bytes);

	OK(fi_av_lookup(av, addr, bytes, &len));
	CHECK_EQ(len, name->len);
	CHECK(memcmp(bytes, name->bytes, len) == 0);
}

static void holds_many(struct obj *o, struct fid_av *av, unsigned int first, fi_addr_t at)
{
	for (unsigned int i = 0; i < MANY; i++) {
		struct obj_name name = made_up(o, first + i);

		holds(av, at + i, &name);
	}
}

static void none_at(struct fid_av *av, fi_addr_t addr)
{
	char bytes[256];
	size_t len = sizeof(bytes);

	FAILS(fi_av_lookup(av, addr, bytes, &len));
}

static void exchange(struct obj *o, fi_addr_t peer, unsigned char mine)
{
	unsigned char in = 0, out = mine;
	fi_addr_t src = FI_ADDR_NOTAVAIL;

	POST(o->cq, fi_recv(o->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	POST(o->cq, fi_send(o->ep, &out, 1, NULL, peer, &out));
	for (int i = 0; i < 2; i++) {
		fi_addr_t from = FI_ADDR_NOTAVAIL;

		if (obj_next(o->cq, &from).op_context == &in)
			src = from;
	}
	CHECK_EQ(in, !mine);
	CHECK_EQ(src, peer);
}

/*
 * Rank 0 inserts all addresses, rank 1 only reads. Rank 1 can send to entries inserted before and
 * after it opened the vector, and recognizes the sources of messages.
 */
static void talk(struct api *a)
{
	struct obj o = {0};
	struct obj_name mine, all[2];

	open_domain(&o);
	if (a->rank == 0) {
		o.av = open_named(&o, 0);
		insert_many(&o, o.av, 0);
	}
	api_meet(a);
	if (a->rank == 1)
		o.av = open_named(&o, FI_READ);
	obj_open(&o);
	obj_progress(a, o.cq);
	mine = obj_name(&o.ep->fid);
	api_swap(a, &mine, all, sizeof(mine));
	holds_many(&o, o.av, 0, 0);
	if (a->rank == 0) {
		CHECK_EQ(obj_insert(o.av, &all[1]), MANY);
		insert_many(&o, o.av, MANY);
		CHECK_EQ(obj_insert(o.av, &all[0]), 2 * MANY + 1);
	}
	api_meet(a);
	holds_many(&o, o.av, MANY, MANY + 1);
	holds(o.av, MANY, &all[1]);
	none_at(o.av, 2 * MANY + 2);
	exchange(&o, a->rank ? 2 * MANY + 1 : MANY, (unsigned char)a->rank);
	api_meet(a);
	obj_close(&o);
}

static void refusals(struct api *a)
{
	struct obj o = {0};
	struct fi_av_attr map = {.type = FI_AV_MAP, .name = vector_name(), .flags = FI_READ};
	struct fid_av *av = NULL;
	struct obj_name name;
	fi_addr_t addr = 0;

	open_domain(&o);
	CHECK_EQ(try_open(&o, FI_READ, &av), -FI_EINVAL); /* the vector does not exist yet */
	api_meet(a);
	if (a->rank == 0) {
		o.av = open_named(&o, 0);
		insert_many(&o, o.av, 0);
	}
	api_meet(a);
	if (a->rank == 1) {
		o.av = open_named(&o, FI_READ);
		name = made_up(&o, 5);
		CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, &addr, 0, NULL), -FI_EACCES);
		CHECK_EQ(fi_av_insertsvc(o.av, "127.0.0.1", "5", &addr, 0, NULL), -FI_EACCES);
		CHECK_EQ(fi_av_remove(o.av, &addr, 1, 0), -FI_EACCES);
		FAILS(fi_av_open(o.domain, &map, &av, NULL)); /* another type */
		none_at(o.av, MANY);
	}
	api_meet(a);
	if (a->rank == 0)
		OK(fi_av_remove(o.av, &addr, 1, 0));
	api_meet(a);
	none_at(o.av, 0);
	CHECK(av == NULL);
	obj_close(&o);
}

/* All processes create the vector or open the existing one, and insert concurrently. */
static void writers(struct api *a)
{
	unsigned char *seen = a->shared; /* by index: rank + 1 of the process that inserted it */
	struct obj o = {0};

	open_domain(&o);
	api_meet(a);
	o.av = open_named(&o, 0);
	api_meet(a);
	for (unsigned int i = 0; i < MANY; i++) {
		struct obj_name name = made_up(&o, (unsigned int)a->rank * MANY + i);
		fi_addr_t addr = obj_insert(o.av, &name);

		CHECK(addr < (fi_addr_t)a->ranks * MANY);
		CHECK_EQ(seen[addr], 0);
		seen[addr] = (unsigned char)(a->rank + 1);
		holds(o.av, addr, &name);
	}
	api_meet(a);
	for (fi_addr_t i = 0, next[API_RANKS] = {0}; i < (fi_addr_t)a->ranks * MANY; i++) {
		unsigned int by = seen[i] - 1u;
		struct obj_name name = made_up(&o, by * MANY + (unsigned int)next[by]++);

		holds(o.av, i, &name);
	}
	none_at(o.av, (fi_addr_t)a->ranks * MANY);
	api_meet(a);
	obj_close(&o);
}

/* Forks a process in which the library was not used before. The process ends with its parent. */
static pid_t creator(void (*live)(int end), int *end)
{
	int ends[2];
	pid_t pid;

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		live(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	*end = ends[0];
	return pid;
}

static void wait_for(int end)
{
	char byte;

	CHECK_EQ(recv(end, &byte, 1, 0), 1);
}

static char family_name[64]; /* vector name for the children */

static struct fid_av *open_family(struct obj *o)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .name = family_name};
	struct fid_av *av;

	OK(fi_av_open(o->domain, &attr, &av, NULL));
	return av;
}

static void create_and_sleep(int end)
{
	struct obj o = {0};

	open_domain(&o);
	o.av = open_family(&o);
	insert_many(&o, o.av, 0);
	CHECK_EQ(send(end, "x", 1, MSG_NOSIGNAL), 1);
	for (;;)
		pause(); /* no library call from here on */
}

/* Readers of a killed creator keep their entries; the name is free at once. */
static void killed(struct api *a)
{
	struct obj o = {0};
	struct fid_av *old = NULL, *av;
	pid_t child = 0;
	int end = -1;

	snprintf(family_name, sizeof(family_name), "%s", vector_name());
	if (a->rank == 0) {
		child = creator(create_and_sleep, &end);
		wait_for(end);
	}
	api_meet(a);
	open_domain(&o);
	old = open_named(&o, FI_READ);
	holds_many(&o, old, 0, 0);
	api_meet(a);
	if (a->rank == 0) {
		OK(kill(child, SIGKILL));
		CHECK_EQ(waitpid(child, NULL, 0), child);
	}
	api_meet(a);
	holds_many(&o, old, 0, 0);
	CHECK_EQ(try_open(&o, FI_READ, &av), -FI_EINVAL);
	api_meet(a);
	if (a->rank == 0) {
		o.av = open_named(&o, 0);
		insert_many(&o, o.av, 5 * MANY);
	}
	api_meet(a);
	av = open_named(&o, FI_READ);
	holds_many(&o, av, 5 * MANY, 0);
	holds_many(&o, old, 0, 0);
	api_meet(a);
	CLOSE(av);
	CLOSE(old);
	obj_close(&o);
}

/* A stopped creator does not block others. */
static void stopped(struct api *a)
{
	struct obj o = {0};
	pid_t child;
	int end;

	(void)a;
	snprintf(family_name, sizeof(family_name), "%s", vector_name());
	child = creator(create_and_sleep, &end);
	wait_for(end);
	OK(kill(child, SIGSTOP));
	open_domain(&o);
	for (int i = 0; i < 200; i++) {
		o.av = open_named(&o, FI_READ);
		CLOSE(o.av);
	}
	o.av = open_named(&o, FI_READ);
	holds_many(&o, o.av, 0, 0);
	CLOSE(o.av);
	o.av = open_named(&o, 0); /* writes concurrently */
	insert_many(&o, o.av, MANY);
	holds_many(&o, o.av, MANY, MANY);
	OK(kill(child, SIGKILL));
	CHECK_EQ(waitpid(child, NULL, 0), child);
	holds_many(&o, o.av, MANY, MANY);
	obj_close(&o);
}

/* A forked child does not keep the name of its parent in use. */
static void forked(struct api *a)
{
	struct obj o = {0};
	pid_t child;

	(void)a;
	open_domain(&o);
	o.av = open_named(&o, 0);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	CLOSE(o.av);
	o.av = NULL;
	CHECK_EQ(try_open(&o, FI_READ, &o.av), -FI_EINVAL);
	OK(kill(child, SIGKILL));
	CHECK_EQ(waitpid(child, NULL, 0), child);
	obj_close(&o);
}

static void look_from_apart(int end)
{
	struct obj o = {0};
	int err = 0;

	open_domain(&o);
	for (int i = 0; i < 2; i++) {
		struct fi_av_attr attr = {
			.type = FI_AV_TABLE, .name = family_name, .flags = i ? FI_READ : 0};

		CHECK_EQ(fi_av_open(o.domain, &attr, &o.av, NULL), -FI_ENOSYS);
	}
	obj_close(&o);
	CHECK_EQ(send(end, &err, 1, MSG_NOSIGNAL), 1);
}

/* A pid namespace with its own /proc, where other processes are invisible. */
static void live_apart(int end)
{
	int status;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(API_SKIP);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mount("proc", "/proc", "proc", 0, NULL))
			_exit(API_SKIP);
		look_from_apart(end);
		_exit(0);
	}
	wait(&status);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* If /proc does not show the creator, opening fails with a specific error. */
static void apart(struct api *a)
{
	struct obj o = {0};
	int end, status;
	pid_t child;

	snprintf(family_name, sizeof(family_name), "%s", vector_name());
	if (a->rank == 1) {
		open_domain(&o);
		o.av = open_named(&o, 0);
	}
	api_meet(a);
	if (a->rank == 0) {
		child = creator(live_apart, &end);
		CHECK_EQ(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == API_SKIP)
			api_skip("no namespaces here");
		wait_for(end);
	}
	api_meet(a);
	obj_close(&o);
}

/* Vectors of different users with the same name are separate. */
static void users(struct api *a)
{
	struct obj o = {0};
	struct fid_av *av = NULL;

	if (a->rank == 1 && setuid(65534))
		api_skip("only root can be two users");
	open_domain(&o);
	if (a->rank == 0)
		o.av = open_named(&o, 0);
	api_meet(a);
	if (a->rank == 1) {
		CHECK_EQ(try_open(&o, FI_READ, &av), -FI_EINVAL);
		o.av = open_named(&o, 0);
		insert_many(&o, o.av, 0);
	}
	api_meet(a);
	if (a->rank == 0) {
		none_at(o.av, 0);
		av = open_named(&o, FI_READ);
		none_at(av, 0);
		CLOSE(av);
	}
	api_meet(a);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"talk", talk, 2, {0}},       {"refusals", refusals, 2, {0}},
		{"writers", writers, 4, {0}}, {"killed", killed, 3, {0}},
		{"stopped", stopped, 1, {0}}, {"forked", forked, 1, {0}},
		{"users", users, 2, {0}},     {"apart", apart, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
