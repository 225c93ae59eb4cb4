/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that closing a region or an endpoint waits for a peer's access, of which only the access
 * guard exists here, and that the wait ends whatever the peer does.
 */
#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "core/ep.h"
#include "hw/shm/shm.h"
#include "hw/shm/shm_guard.h"
#include "xfer/worker.h"
#include "suite.h"

#define LIMIT      20     /* seconds */
#define A_WHILE    100000 /* us; a close that does not wait is over by then */
#define OWNER      "fi_shm://settle-owner"
#define OTHER_PEER 0x100007u

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_mr *mr;
static char memory[4096];

static void open_side(const char *name)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_info *hints = fi_allocinfo();

	alarm(LIMIT);
	hints->fabric_attr->prov_name = strdup("shm");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED;
	hints->addr_format = FI_ADDR_STR;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 17), name, NULL, FI_SOURCE, hints, &info), 0);
	fi_freeinfo(hints);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_int_eq(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	ck_assert_int_eq(fi_av_open(domain, &av_attr, &av, NULL), 0);
	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_int_eq(
		fi_mr_reg(domain, memory, sizeof(memory), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), 0);
}

static void shut_side(void)
{
	if (mr)
		ck_assert_int_eq(fi_close(&mr->fid), 0);
	if (ep)
		ck_assert_int_eq(fi_close(&ep->fid), 0);
	ck_assert_int_eq(fi_close(&av->fid), 0);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

static struct ring *own_ring(void)
{
	return &((struct shm *)ep_of(ep)->worker->conn.via[LINK_HOST].state)->ring;
}

/* A close in another thread. */
static struct closing {
	pthread_t thread;
	struct fid *fid;
	int ret;
	bool over;
} closing;

static void *close_it(void *arg)
{
	struct closing *c = arg;

	c->ret = fi_close(c->fid);
	__atomic_store_n(&c->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static void begin_close(struct fid *fid)
{
	closing = (struct closing){.fid = fid};
	ck_assert_int_eq(pthread_create(&closing.thread, NULL, close_it, &closing), 0);
}

static bool is_over(void)
{
	return __atomic_load_n(&closing.over, __ATOMIC_ACQUIRE);
}

static void end_close(void)
{
	ck_assert_int_eq(pthread_join(closing.thread, NULL), 0);
	ck_assert_int_eq(closing.ret, 0);
}

/* The first warning about waiting; written before times_said is raised. */
static char said[256];
static int times_said;

static bool warnings(const char *prov, int level, int subsys)
{
	(void)prov;
	return level == FI_LOG_WARN && subsys == LOG_MR;
}

static void hear(const struct log_place *place, const char *msg)
{
	(void)place;
	if (!__atomic_load_n(&times_said, __ATOMIC_RELAXED))
		snprintf(said, sizeof(said), "%s", msg);
	__atomic_add_fetch(&times_said, 1, __ATOMIC_RELEASE);
}

static const struct log_sink sink = {.enabled = warnings, .write = hear};

static void hear_last(const struct log_place *place, const char *msg)
{
	(void)place;
	snprintf(said, sizeof(said), "%s", msg);
}

/* Keeps the last warning. */
static const struct log_sink last_sink = {.enabled = warnings, .write = hear_last};

/* A child that connects its endpoint to the owner, takes a guard and stays. */
static void peer_main(int sock)
{
	struct shm_guard guard;
	struct shm_link *link;
	struct peer *peer;
	fi_addr_t addr;
	char byte = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_side("fi_shm://settle-peer");
	if (read(sock, &byte, 1) != 1 || fi_av_insert(av, OWNER, 1, &addr, 0, NULL) != 1)
		_exit(1);
	while (fi_tinject(ep, &byte, 1, addr, 1) == -FI_EAGAIN)
		fi_cq_read(cq, NULL, 0);
	peer = peer_get(ep_of(ep)->worker, addr);
	while (peer->conn.state != PEER_CONNECTED)
		fi_cq_read(cq, NULL, 0);
	fi_cq_read(cq, NULL, 0);
	link = (struct shm_link *)peer->conn.real;
	if (!shm_guard_enter(&link->ring, link->src, &guard) || write(sock, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static pid_t peer_with_guard(int *sock)
{
	int pair[2];
	pid_t pid;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		peer_main(pair[1]);
	close(pair[1]);
	*sock = pair[0];
	return pid;
}

/* Reads the peer's message, so that the two are connected, and waits for its guard. */
static void await_peer(int sock)
{
	struct fi_cq_tagged_entry entry;
	char byte = 1;

	ck_assert_int_eq(write(sock, &byte, 1), 1); /* tells the child that the owner is open */
	ck_assert_int_eq(fi_trecv(ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	while (fi_cq_read(cq, &entry, 1) != 1)
		sched_yield();
	ck_assert_int_eq(read(sock, &byte, 1), 1);
}

/* Returns the word of the guard that is held. */
static uint64_t *held(void)
{
	for (unsigned int i = 0; i < RING_GUARDS; i++)
		if ((uint32_t)own_ring()->page->guards[i].word)
			return &own_ring()->page->guards[i].word;
	ck_abort_msg("no guard is held");
}

/* Returns the number of the peer that holds a guard. */
static uint32_t holder(void)
{
	return (uint32_t)*held();
}

/* Opens the owner, with a peer that holds a guard and is stopped, perhaps in an access. */
static pid_t stopped_peer(int *sock)
{
	pid_t pid = peer_with_guard(sock);
	int status;

	open_side(OWNER);
	await_peer(*sock);
	kill(pid, SIGSTOP);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	return pid;
}

/* Clears the guard with one store: the close may free the ring as soon as it sees it. */
static void clear_guard(void)
{
	__atomic_fetch_and(held(), ~(uint64_t)UINT32_MAX, __ATOMIC_ACQ_REL);
}

static void dismiss(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void closed(bool endpoint)
{
	if (endpoint)
		ep = NULL;
	else
		mr = NULL;
}

START_TEST(waits)
{
	struct shm_guard more;
	int sock;
	pid_t pid = stopped_peer(&sock);

	begin_close(_i ? &ep->fid : &mr->fid);
	usleep(A_WHILE);
	ck_assert(!is_over());
	if (_i) /* no new guard is given */
		ck_assert(!shm_guard_enter(own_ring(), OTHER_PEER, &more));
	clear_guard();
	end_close();
	closed(_i);
	dismiss(pid);
	shut_side();
}
END_TEST

/* The wait is logged once a second; the guard may be left and taken again. */
START_TEST(region_says_so)
{
	struct shm_guard guard;
	uint32_t id;
	int times, sock;
	pid_t pid = stopped_peer(&sock);

	log_redirect(&sink);
	id = holder();
	begin_close(&mr->fid);
	usleep(2500000);
	ck_assert(!is_over());
	times = __atomic_load_n(&times_said, __ATOMIC_ACQUIRE);
	ck_assert_int_ge(times, 1);
	ck_assert_int_le(times, 2);
	ck_assert_ptr_nonnull(strstr(said, "waiting for"));
	shm_guard_clear(own_ring(), id);
	ck_assert(shm_guard_enter(own_ring(), id, &guard));
	end_close();
	shm_guard_leave(&guard);
	closed(false);
	dismiss(pid);
	shut_side();
	log_redirect(NULL);
}
END_TEST

/* A guard with a number that no connected peer has is waited for by nobody. */
START_TEST(guard_of_nobody)
{
	struct shm_guard guard;

	open_side(OWNER);
	log_redirect(&sink);
	ck_assert(shm_guard_enter(own_ring(), OTHER_PEER, &guard));
	ck_assert_int_eq(fi_close(_i ? &ep->fid : &mr->fid), 0);
	ck_assert_ptr_nonnull(strstr(said, "0x100007"));
	closed(_i);
	shut_side();
	log_redirect(NULL);
}
END_TEST

/* A peer that does something else while it holds a guard is disconnected. */
START_TEST(guard_of_an_idle_peer)
{
	char text[32];
	int sock;
	pid_t pid = peer_with_guard(&sock);

	open_side(OWNER);
	await_peer(sock);
	log_redirect(&last_sink);
	ck_assert_int_eq(fi_close(_i ? &ep->fid : &mr->fid), 0);
	snprintf(text, sizeof(text), "(process %d)", (int)pid);
	ck_assert_ptr_nonnull(strstr(said, text));
	ck_assert_ptr_nonnull(strstr(said, "disconnected"));
	closed(_i);
	dismiss(pid);
	shut_side();
	log_redirect(NULL);
}
END_TEST

/* Of a stopped peer nothing is known: the close fails, and succeeds when the peer goes on. */
START_TEST(guard_of_a_stopped_peer)
{
	struct fid *fid;
	int sock;
	pid_t pid;

	setenv("FI_WEFT_ACCESS_TIMEOUT", "1500", 1);
	pid = stopped_peer(&sock);
	fid = _i ? &ep->fid : &mr->fid;
	ck_assert_int_eq(fi_close(fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(fid), -FI_EBUSY);
	kill(pid, SIGCONT);
	ck_assert_int_eq(fi_close(fid), 0);
	closed(_i);
	dismiss(pid);
	shut_side();
}
END_TEST

/* A peer killed in the middle of an access is not waited for; the log had named the peer. */
START_TEST(peer_is_killed)
{
	int sock;
	pid_t pid = peer_with_guard(&sock);

	open_side(OWNER);
	log_redirect(&sink);
	await_peer(sock);
	begin_close(_i ? &ep->fid : &mr->fid);
	usleep(A_WHILE);
	ck_assert(!is_over());
	while (!__atomic_load_n(&times_said, __ATOMIC_ACQUIRE))
		usleep(1000);
	ck_assert_ptr_nonnull(strstr(said, "settle-peer"));
	kill(pid, SIGKILL);
	end_close();
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	if (_i)
		ep = NULL;
	else
		mr = NULL;
	shut_side();
	log_redirect(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_quiesce");
	TCase *tcase = tcase_create("settle");

	tcase_set_timeout(tcase, LIMIT + 5);
	tcase_add_loop_test(tcase, waits, 0, 2);
	tcase_add_test(tcase, region_says_so);
	tcase_add_loop_test(tcase, guard_of_nobody, 0, 2);
	tcase_add_loop_test(tcase, guard_of_an_idle_peer, 0, 2);
	tcase_add_loop_test(tcase, guard_of_a_stopped_peer, 0, 2);
	tcase_add_loop_test(tcase, peer_is_killed, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
