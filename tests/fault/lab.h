/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes, each in a network namespace of its own, connected by a veth pair. The test can
 * make the pair lose all packets without an error to either side.
 */
#ifndef FAULT_LAB_H
#define FAULT_LAB_H

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "node.h"

struct lab {
	int end;    /* control socket to the other process */
	int which;  /* this process: 0 or 1 */
	pid_t peer; /* process 1; set in process 0 */
};

static inline int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int run(const char *format, ...)
{
	char command[512];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command); /* NOLINT(cert-env33-c): ip has no other interface for scripts */
}

static inline void lab_address(const struct lab *lab)
{
	if (run("ip link set lo up && ip addr add 10.99.0.%d/24 dev eth0 && ip link set eth0 up",
		lab->which + 1))
		fail("no address in a network of our own");
}

/*
 * The kernel passes packets some time after the wire is up, a second or more where many wires are made; earlier ones
 * are lost.
 */
static inline void lab_wait_for_wire(const char *name)
{
	struct ifreq req = {0};
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	while (sock >= 0 && !ioctl(sock, SIOCGIFFLAGS, &req) && !(req.ifr_flags & IFF_RUNNING))
		usleep(1000);
	close(sock);
}

/* Enters a network namespace. Process 0 makes the veth pair, process 1 waits for it. */
static inline void lab_enter(const struct lab *lab)
{
	char word = 0;

	if (unshare(CLONE_NEWNET))
		fail("unshare: %s", strerror(errno));
	if (lab->which == 1) {
		tell(lab->end, &word, 1);
		hear(lab->end, &word, 1);
		lab_address(lab);
		tell(lab->end, &word, 1);
		lab_wait_for_wire("eth0");
		return;
	}
	hear(lab->end, &word, 1);
	if (run("ip link add eth0 type veth peer name eth0 netns %d", (int)lab->peer))
		fail("no wire between two networks");
	lab_address(lab);
	tell(lab->end, &word, 1);
	hear(lab->end, &word, 1);
	lab_wait_for_wire("eth0");
}

/* From now on this process sends to a MAC address that nobody has: its packets are lost. */
static inline void lab_dark(const struct lab *lab)
{
	if (run("ip neigh replace 10.99.0.%d lladdr 02:00:00:00:00:99 dev eth0 nud permanent",
		2 - lab->which))
		fail("the wire does not go dark");
}

static inline void lab_light(const struct lab *lab)
{
	if (run("ip neigh del 10.99.0.%d dev eth0", 2 - lab->which))
		fail("the wire stays dark");
}

/* Runs `live` of a struct lab as two hosts. */
static inline void two_hosts(void (*live)(void *lab))
{
	struct lab one = {.which = 1}, zero = {.which = 0};
	pid_t first, second;
	int ends[2];

	wire(ends);
	one.end = ends[1];
	second = start("second", live, &one);
	zero.end = ends[0];
	zero.peer = second;
	first = start("first", live, &zero);
	close(ends[0]);
	close(ends[1]);
	finish(first, "first");
	finish(second, "second");
}

/* Does `try`, which ends its process, succeed in one of its own? */
static inline bool lab_can(void (*try)(void *))
{
	int status;

	return waitpid(start("try", try, NULL), &status, 0) > 0 && status == 0;
}

static inline void lab_try(void *arg)
{
	(void)arg;
	exit(unshare(CLONE_NEWNET) || run("ip link add one type veth peer name two 2>/dev/null")
		     ? EXIT_FAILURE
		     : EXIT_SUCCESS);
}

/* Skips the test where network namespaces or veth pairs cannot be made. */
static inline void need_lab(void)
{
	if (geteuid() != 0) {
		printf("needs root\n");
		exit(77);
	}
	if (lab_can(lab_try))
		return;
	printf("no networks of our own here, or no ip to make them with\n");
	exit(77);
}

static inline void lab_try_ipv6(void *arg)
{
	(void)arg;
	exit(unshare(CLONE_NEWNET) ||
			     run("ip link set lo up && ip addr add fe80::1/64 dev lo 2>/dev/null")
		     ? EXIT_FAILURE
		     : EXIT_SUCCESS);
}

/* Skips the test where kernel or ip know no IPv6. Needs the lab. */
static inline void need_ipv6(void)
{
	if (lab_can(lab_try_ipv6))
		return;
	printf("no IPv6 here\n");
	exit(77);
}

#endif
