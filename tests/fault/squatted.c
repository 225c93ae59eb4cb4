/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that an endpoint whose name is taken says by whom: the kernel tells the user of each process of the host that has the
 * Unix socket of that name, whatever it does with it, and of one that listens the process, too.
 */
#include "echo.h"
#include "raw_client.h"

#define NOBODY 65534

/* How another process has the name. */
struct taken {
	bool listens;
	bool other; /* as another user */
	int end;
};

static void take(void *arg)
{
	const struct taken *t = arg;
	struct sockaddr_un un;
	socklen_t len = raw_address(&server_name, &un);
	int sock;

	if (t->other && (setgid(NOBODY) || setuid(NOBODY)))
		fail("cannot become user %d: %s", NOBODY, strerror(errno));
	sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (sock < 0 || bind(sock, (struct sockaddr *)&un, len) || (t->listens && listen(sock, 1)))
		fail("cannot take a name: %s", strerror(errno));
	tell(t->end, "", 1);
	pause();
}

/* A name that nobody has. */
static struct name some_name(void)
{
	struct name name = {.len = 0};
	struct sockaddr_in in;
	struct node n;

	if (!strcmp(provider(), "shm")) {
		name.len = (size_t)snprintf(name.bytes, sizeof(name.bytes), "squatted-%d",
					    (int)getpid()) +
			   1;
		return name;
	}
	node_open(&n, NULL);
	name = node_name(&n);
	node_close(&n);
	memcpy(&in, name.bytes, sizeof(in));
	in.sin_port = htons(32000); /* below those that the kernel chooses */
	memcpy(name.bytes, &in, sizeof(in));
	return name;
}

/* Opens an endpoint of the name, which fails. */
static void be_refused(void *arg)
{
	int ret;
	struct node n;

	(void)arg;
	dup2(log_fd, STDERR_FILENO);
	node_create(&n, &server_name);
	must(fi_ep_bind(n.ep, &n.av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(n.ep, &n.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	ret = fi_enable(n.ep);
	if (ret != -FI_EADDRINUSE)
		fail("an endpoint of a name that is taken: %s", fi_strerror(-ret));
}

static void refused_by(struct taken t)
{
	char word[64];
	int wires[2];
	pid_t pid;

	wire(wires);
	t.end = wires[1];
	pid = start("squatter", take, &t);
	hear(wires[0], &(char){0}, 1);
	if (ftruncate(log_fd, 0) || lseek(log_fd, 0, SEEK_SET))
		fail("the log cannot be emptied: %s", strerror(errno));
	finish(start("refused", be_refused, NULL), "an endpoint of a name that is taken");
	snprintf(word, sizeof(word), "user %u ", t.other ? NOBODY : (unsigned int)geteuid());
	if (!logged(word))
		fail("the log does not tell: %s", word);
	snprintf(word, sizeof(word), "process %d ", (int)pid);
	if (t.listens && !logged(word))
		fail("the log does not tell: %s", word);
	slay(pid);
	close(wires[0]);
	close(wires[1]);
}

int main(void)
{
	bool root = geteuid() == 0;

	alarm(LIMIT);
	setenv("FI_LOG_LEVEL", "warn", 1);
	need_provider();
	log_fd = memfd_create("log", MFD_CLOEXEC);
	on_exit(show_log, NULL);
	server_name = some_name();
	for (int other = 0; other <= root; other++) {
		refused_by((struct taken){true, other, -1});
		refused_by((struct taken){false, other, -1});
	}
	return EXIT_SUCCESS;
}
