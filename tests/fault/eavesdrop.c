/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Somebody on the path between two endpoints with a key reads and changes what passes. With FI_WEFT_AUTH=encrypt he
 * sees no byte of a message, and what he changes is never delivered. HW=tcp
 * The same without encryption shows that he sees and changes what he likes there.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>

#include "hello.h"
#include "node.h"
#include "rng.h"

#define MARK     "sixteen letters!"
#define MARK_LEN (sizeof(MARK) - 1)
#define LEN      (3u << 20)
#define CHUNK    65536
#define FLIPS    60
#define SEED     21
#define WAIT_MS  20000
#define HELLOS   (2 * sizeof(struct hello)) /* bytes that the initiator sends before its link */
#define PAST     200000                     /* bytes behind these in which one is changed */

/* The one on the path. Forwards one connection. */
struct eavesdropper {
	struct name target, name; /* of the endpoint; his own, as its peers know it */
	int listener;
	size_t flip;        /* number of the byte from the initiator to change; SIZE_MAX: none */
	unsigned int marks; /* times that MARK was seen */
	bool ended;         /* one side has closed the connection */
	bool stop;
	pthread_t thread;
};

struct way {
	int from, to;
	size_t bytes;
	char seen[MARK_LEN - 1 + CHUNK]; /* what came, behind the end of what came before */
	size_t carried;
};

static struct node a, b;
static char out[LEN], in[LEN];
static const size_t sizes[] = {MARK_LEN, 5000, 100000, LEN};

/* ---- On the path ---- */

static void look(struct eavesdropper *e, struct way *w, size_t len)
{
	const char *at = w->seen, *end = w->seen + w->carried + len;

	while ((at = memmem(at, (size_t)(end - at), MARK, MARK_LEN))) {
		__atomic_add_fetch(&e->marks, 1, __ATOMIC_RELAXED);
		at++;
	}
	w->carried = w->carried + len < MARK_LEN - 1 ? w->carried + len : MARK_LEN - 1;
	memmove(w->seen, end - w->carried, w->carried);
}

/* False: that way has ended. */
static bool forward(struct eavesdropper *e, struct way *w, size_t flip)
{
	char *new = w->seen + w->carried;
	ssize_t len = recv(w->from, new, CHUNK, 0), sent = 0, n;

	if (len <= 0)
		return false;
	if (flip >= w->bytes && flip < w->bytes + (size_t)len)
		new[flip - w->bytes] ^= 1;
	w->bytes += (size_t)len;
	for (; sent < len; sent += n)
		if ((n = send(w->to, new + sent, (size_t)(len - sent), MSG_NOSIGNAL)) < 0)
			return false;
	look(e, w, (size_t)len);
	return true;
}

static bool readable(struct eavesdropper *e, struct pollfd *p, unsigned int count)
{
	while (!__atomic_load_n(&e->stop, __ATOMIC_ACQUIRE))
		if (poll(p, count, 10) > 0)
			return true;
	return false;
}

static void *listen_in(void *arg)
{
	struct eavesdropper *e = arg;
	struct pollfd p[2] = {{.fd = e->listener, .events = POLLIN}};
	static struct way ways[2];
	bool open = true;
	int from, to;

	if (!readable(e, p, 1))
		return NULL;
	from = accept(e->listener, NULL, NULL);
	to = socket(((struct sockaddr *)e->target.bytes)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (from < 0 || to < 0 ||
	    connect(to, (struct sockaddr *)e->target.bytes, (socklen_t)e->target.len))
		fail("on the path: %s", strerror(errno));
	ways[0] = (struct way){.from = from, .to = to};
	ways[1] = (struct way){.from = to, .to = from};
	p[0] = (struct pollfd){.fd = from, .events = POLLIN};
	p[1] = (struct pollfd){.fd = to, .events = POLLIN};
	while (open && readable(e, p, 2))
		for (int i = 0; i < 2 && open; i++)
			open = !p[i].revents || forward(e, &ways[i], i ? SIZE_MAX : e->flip);
	close(from);
	close(to);
	__atomic_store_n(&e->ended, !open, __ATOMIC_RELEASE);
	return NULL;
}

static void eavesdropper_start(struct eavesdropper *e, size_t flip)
{
	struct sockaddr_in6 at = {0}; /* sin_port is where sin6_port is */
	socklen_t len = sizeof(at);

	*e = (struct eavesdropper){.target = node_name(&a), .flip = flip};
	memcpy(&at, e->target.bytes, e->target.len < len ? e->target.len : len);
	at.sin6_port = 0;
	e->listener = socket(at.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (e->listener < 0 ||
	    bind(e->listener, (struct sockaddr *)&at, (socklen_t)e->target.len) ||
	    listen(e->listener, 1) || getsockname(e->listener, (struct sockaddr *)&at, &len))
		fail("on the path: %s", strerror(errno));
	e->name = e->target;
	memcpy(e->name.bytes, &at, e->name.len);
	if (pthread_create(&e->thread, NULL, listen_in, e))
		fail("no thread");
}

static void eavesdropper_stop(struct eavesdropper *e)
{
	__atomic_store_n(&e->stop, true, __ATOMIC_RELEASE);
	pthread_join(e->thread, NULL);
	close(e->listener);
}

/* ---- The endpoints, both of this process ---- */

static void with_key(const char *auth)
{
	const char *folder = getenv("TMPDIR");
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/weft_eavesdrop.%d", folder ? folder : "/tmp",
		 (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "a key of a good length", 22) != 22)
		fail("%s: %s", path, strerror(errno));
	close(fd);
	setenv("FI_WEFT_AUTH_KEY_FILE", path, 1);
	setenv("FI_WEFT_AUTH", auth, 1);
	node_open(&a, NULL);
	node_open(&b, NULL);
	unlink(path);
	for (size_t i = 0; i < LEN; i += MARK_LEN)
		memcpy(out + i, MARK, MARK_LEN);
}

/*
 * Sends a message from b to a, posted to a's first free receive. Returns its error; 0: delivered; -1: neither side has
 * said what became of it when the connection ended.
 */
static int send_one(struct eavesdropper *e, fi_addr_t to, size_t len)
{
	bool sent = false, posted = false, received = false;
	uint64_t end = now_ms() + WAIT_MS;
	struct event event;

	memset(in, 0, len);
	must(fi_recv(a.ep, in, len, NULL, FI_ADDR_UNSPEC, in), "fi_recv");
	while (!sent || !received) {
		if (!posted)
			posted = fi_send(b.ep, out, len, NULL, to, out) == 0;
		if (node_poll(&b, &event)) {
			sent = true;
			if (event.err)
				return event.err;
		}
		if (node_poll(&a, &event)) {
			received = true;
			if (event.err)
				return event.err;
		}
		if (__atomic_load_n(&e->ended, __ATOMIC_ACQUIRE) && now_ms() + WAIT_MS - 100 > end)
			return -1;
		if (now_ms() > end)
			fail("a message of %zu bytes did not end within %d ms", len, WAIT_MS);
	}
	return 0;
}

/* What the one on the path sees of messages in both directions. */
static unsigned int seen(const char *auth)
{
	struct eavesdropper e;
	fi_addr_t to;

	with_key(auth);
	eavesdropper_start(&e, SIZE_MAX);
	to = node_insert(&b, &e.name);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int err = send_one(&e, to, sizes[i]);

		if (err || memcmp(in, out, sizes[i]) != 0)
			fail("a message of %zu bytes: error %d, or other bytes", sizes[i], err);
	}
	eavesdropper_stop(&e);
	return e.marks;
}

static void sees_all_without_encryption(void *arg)
{
	unsigned int marks = seen("prove");

	(void)arg;
	if (marks < LEN / MARK_LEN)
		fail("%u marks seen: this test cannot see what is not encrypted", marks);
}

static void sees_nothing(void *arg)
{
	unsigned int marks = seen("encrypt");

	(void)arg;
	if (marks)
		fail("%u marks seen on the path", marks);
}

/* Changes one byte somewhere behind the hellos. True: a message with other bytes was delivered. */
static bool changed(const char *auth, size_t flip)
{
	struct eavesdropper e;
	fi_addr_t to;
	bool wrong;
	int err;

	with_key(auth);
	eavesdropper_start(&e, HELLOS + flip);
	to = node_insert(&b, &e.name);
	err = send_one(&e, to, LEN);
	wrong = !err && memcmp(in, out, LEN) != 0;
	eavesdropper_stop(&e);
	if (!strcmp(auth, "encrypt") && !err)
		fail("byte %zu was changed, but a message was delivered", flip);
	return wrong;
}

static void changes_without_encryption(void *arg)
{
	(void)arg;
	if (!changed("prove", PAST))
		fail("a changed byte was not delivered: this test cannot change what is not encrypted");
}

static void changes_nothing(void *arg)
{
	changed("encrypt", *(size_t *)arg);
}

static void run(const char *name, void (*phase)(void *), void *arg)
{
	int status;

	if (waitpid(start(name, phase, arg), &status, 0) < 0 || !WIFEXITED(status))
		fail("%s: ended by signal %d", name, WTERMSIG(status));
	if (WEXITSTATUS(status))
		exit(WEXITSTATUS(status));
}

int main(void)
{
	const char *fewer = getenv("FEWER");
	unsigned int flips = FLIPS / (fewer && atoi(fewer) > 0 ? (unsigned int)atoi(fewer) : 1);
	struct rng rng = {SEED};

	need_provider();
	run("seen without encryption", sees_all_without_encryption, NULL);
	run("seen", sees_nothing, NULL);
	run("changed without encryption", changes_without_encryption, NULL);
	for (unsigned int i = 0; i < flips; i++) {
		size_t flip = i < flips / 2 ? rng_below(&rng, 1000) : rng_below(&rng, PAST);

		run("changed", changes_nothing, &flip);
	}
	return 0;
}
