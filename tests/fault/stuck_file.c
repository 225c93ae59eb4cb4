/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process of the same user passes a file of a file system of its own (FUSE) to an endpoint with its hello. Each close of it waits
 * until the process answers, which it never does: that holds up no ping and no newcomer.
 */
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "echo.h"
#include "raw_client.h"

static char place[] = "/tmp/fault_stuck_file_XXXXXX"; /* the file */
static int device;
static int waits[2];

/* ---- The file system, which is one file ---- */

static void answer(uint64_t unique, const void *bytes, size_t len)
{
	struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + len), .unique = unique};
	struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)bytes, len}};

	if (writev(device, iov, 2) < 0)
		fail("an answer of the file system: %s", strerror(errno));
}

static void serve_file(void *arg)
{
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = FUSE_KERNEL_MINOR_VERSION,
					   .max_write = 4096};
	const struct fuse_open_out open = {.fh = 1};
	const struct fuse_attr_out attr = {.attr = {.ino = 1, .mode = S_IFREG | 0600, .nlink = 1}};
	static char bytes[1 << 17];
	struct fuse_in_header request;

	(void)arg;
	while (read(device, bytes, sizeof(bytes)) > 0) {
		memcpy(&request, bytes, sizeof(request));
		if (request.opcode == FUSE_INIT)
			answer(request.unique, &init, sizeof(init));
		else if (request.opcode == FUSE_OPEN)
			answer(request.unique, &open, sizeof(open));
		else if (request.opcode == FUSE_GETATTR)
			answer(request.unique, &attr, sizeof(attr));
		else if (request.opcode == FUSE_FLUSH)
			tell(waits[1], "", 1); /* a close waits now */
	}
}

/* In a mount namespace of this process and its children alone. */
static void mount_file(void)
{
	char options[96];
	int fd = mkstemp(place);

	close(fd);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100600,user_id=%u,group_id=%u", device,
		 (unsigned int)geteuid(), (unsigned int)getegid());
	if (device < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("stuck", place, "fuse", 0, options)) {
		printf("no file system of an own here: %s\n", strerror(errno));
		unlink(place);
		exit(77);
	}
}

/* ---- Who passes it ---- */

static void pass(void *arg)
{
	struct hello h = good_hello(1);
	int file, sock;

	(void)arg;
	file = open(place, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		fail("%s: %s", place, strerror(errno));
	sock = raw_connect(&server_name);
	say(sock, &h, sizeof(h), &file, 1);
	hear(waits[0], &(char){0}, 1);
	tell(ends[1], "", 1);
	pause(); /* the close of its own copy would wait, too */
}

static void greet(struct node *n, fi_addr_t to)
{
	for (unsigned int i = 0; i < 20; i++)
		ping(n, to, i);
}

int main(void)
{
	pid_t pid, system_pid, passer;
	struct node n, late;
	fi_addr_t to;

	alarm(LIMIT);
	need_provider();
	if (!strcmp(provider(), "tcp")) {
		printf("endpoints of tcp have no socket inside the host\n");
		return 77;
	}
	mount_file();
	wire(waits);
	system_pid = start("file system", serve_file, NULL);
	close(device);
	pid = start_server(&n, &to);
	passer = start("passer", pass, NULL);
	hear(ends[0], &(char){0}, 1);
	greet(&n, to);
	node_open(&late, NULL);
	MUST(late.cq, fi_send(late.ep, "x", 1, NULL, node_insert(&late, &server_name), NULL));
	if (node_wait(&late, PING_MS, "a newcomer's message").err)
		fail("a newcomer's message fails");
	greet(&n, to);
	node_close(&late);
	node_close(&n);
	slay(system_pid); /* which ends what waits for it */
	slay(passer);
	slay(pid);
	umount2(place, MNT_DETACH);
	unlink(place);
	return EXIT_SUCCESS;
}
