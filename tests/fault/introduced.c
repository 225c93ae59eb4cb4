/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A third endpoint brings two together. The "hidden" one is behind a firewall that drops who comes, and does not know the
 * "open" one, which sends to it. The "third" one, which both are connected with, or which FI_WEFT_RELAY names, tells the
 * hidden one to connect. Without it, or if the hidden one has not said that it is behind a firewall, the send fails in time.
 */
#define NAP_MS    10 /* a sleep while there is no connection */
#define NODE_WAIT FI_WAIT_UNSPEC
#include "hello.h"
#include "key_file.h"
#include "lab.h"
#include "talk.h"

#define RELAY      "fi_sockaddr_in://10.99.0.3:4711"
#define NOBODY     "fi_sockaddr_in://10.99.0.9:4711" /* on the wire, but none has the address */
#define RELAY_PORT 4711
#define TIMEOUT_MS 3000
#define SLACK_MS   2000
#define SOON_MS    2500 /* a question may have to be repeated after a second */
#define LATE_MS    9000 /* the relay is looked for each three seconds */
#define ROUNDS     2

enum role { OPEN, HIDDEN, THIRD, ROLES };

static const char *const names[ROLES] = {"open", "hidden", "third"};
static const char key[] = "a key of the job, which is random elsewhere";

static const struct way {
	const char *name;
	const char *relay;   /* FI_WEFT_RELAY of the two, or NULL */
	const char *timeout; /* FI_WEFT_PEER_TIMEOUT (ms) */
	bool knows;       /* the two have the third one in their vectors, and have talked to it */
	bool hides;       /* the hidden one says that it is behind a firewall */
	bool sleeps;      /* the two sleep while they wait for the message */
	bool late;        /* the third one is opened when the hidden one has looked for it */
	const char *auth; /* FI_WEFT_AUTH, with a key; or NULL */
	unsigned int bound_ms;
	int err; /* of the send, or 0 */
} ways[] = {
	{"both know the third one", NULL, "20000", true, true, false, false, NULL, SOON_MS, 0},
	{"both know it, and a key", NULL, "20000", true, true, false, false, "prove", SOON_MS, 0},
	{"there is a relay", RELAY, "20000", false, true, false, false, NULL, LATE_MS, 0},
	{"there is a relay, and the two sleep", RELAY, "20000", false, true, true, false, NULL,
	 LATE_MS, 0},
	{"the relay comes late", RELAY, "20000", false, true, false, true, NULL, LATE_MS, 0},
	{"the relay comes late, and the two sleep", RELAY, "20000", false, true, true, true, NULL,
	 LATE_MS, 0},
	{"the relay does not exist", NOBODY, "3000", false, true, false, false, NULL,
	 TIMEOUT_MS + SLACK_MS, FI_EFIREWALLADDR},
	{"nobody knows anybody", NULL, "3000", false, true, false, false, NULL,
	 TIMEOUT_MS + SLACK_MS, FI_EFIREWALLADDR},
	{"the hidden one has not said so", NULL, "3000", true, false, false, false, NULL,
	 TIMEOUT_MS + SLACK_MS, FI_EFIREWALLADDR},
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static const struct way *way;
static struct node n;
static struct name third; /* of the third endpoint */

struct place {
	enum role role;
	int end[ROLES]; /* control sockets to the others */
	pid_t pid[ROLES];
};

static struct place place;

/* ---- The network: a bridge at the third one ---- */

static void make_bridge(void)
{
	if (run("ip link add eth0 type bridge"))
		fail("no bridge");
	for (enum role r = OPEN; r < THIRD; r++) {
		hear(place.end[r], &(char){0}, 1);
		if (run("ip link add port%d type veth peer name eth0 netns %d && "
			"ip link set port%d master eth0 up",
			r, (int)place.pid[r], r))
			fail("no wire to the bridge");
	}
	lab_address(&(struct lab){.which = THIRD});
	for (enum role r = OPEN; r < THIRD; r++)
		tell(place.end[r], "", 1);
}

static void enter(void)
{
	if (unshare(CLONE_NEWNET))
		fail("unshare: %s", strerror(errno));
	if (place.role == THIRD) {
		make_bridge();
	} else {
		tell(place.end[THIRD], "", 1);
		hear(place.end[THIRD], &(char){0}, 1);
		lab_address(&(struct lab){.which = (int)place.role});
	}
	lab_wait_for_wire("eth0");
	if (place.role == HIDDEN &&
	    run("nft 'add table inet wall; add chain inet wall in { type filter hook input priority 0; }; "
		"add rule inet wall in tcp flags & (syn|ack) == syn iif eth0 drop'"))
		fail("no firewall");
}

/* ---- The endpoints ---- */

static void open_node(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct name name = {.len = sizeof(in)};
	bool yes = true;

	if (way->relay && place.role != THIRD)
		setenv("FI_WEFT_RELAY", way->relay, 1);
	if (way->auth)
		use_key(way->auth, key, sizeof(key));
	in.sin_addr.s_addr = htonl(0x0a630001 + (uint32_t)place.role);
	in.sin_port = htons(place.role == THIRD ? RELAY_PORT : 0);
	memcpy(name.bytes, &in, sizeof(in));
	node_create(&n, &name);
	if (place.role == HIDDEN && way->hides)
		must(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &yes,
			       sizeof(yes)),
		     "fi_setopt");
	node_bind(&n);
}

static fi_addr_t insert(const struct name *name, uint64_t flags)
{
	fi_addr_t addr;

	if (fi_av_insert(n.av, name->bytes, 1, &addr, flags, NULL) != 1)
		fail("fi_av_insert refuses an address");
	return addr;
}

/* The completion that the message to the hidden one ends with. */
static struct event await_message(void)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	if (!way->sleeps)
		return node_wait(&n, way->bound_ms, way->name);
	ret = fi_cq_sread(n.cq, &entry, 1, NULL, (int)way->bound_ms);
	if (ret != 1)
		fail("%s: fi_cq_sread returns %zd", way->name, ret);
	return (struct event){.context = entry.op_context};
}

/* Makes progress until another process has said a word. */
static void progress_until(int end)
{
	struct event e;
	char word;

	while (recv(end, &word, 1, MSG_DONTWAIT) != 1) {
		if (node_poll(&n, &e) && e.err)
			fail("%s: %s", way->name, fi_strerror(e.err));
		usleep(100);
	}
}

/* Makes progress for so long, while nothing is to complete. */
static void progress_for(unsigned int ms)
{
	struct event e;

	for (uint64_t end = now_ms() + ms; now_ms() < end; usleep(100))
		if (node_poll(&n, &e))
			fail("%s: something came", way->name);
}

/* A message to the third one, which does not answer. */
static void connect_third(void)
{
	struct event e;

	if (!way->knows)
		return;
	MUST(n.cq, fi_send(n.ep, "hello", 5, NULL, insert(&third, 0), NULL));
	e = node_wait(&n, TALK_MS, "a message to the third one");
	if (e.err)
		fail("the third one: %s", fi_strerror(e.err));
}

static void live_third(void)
{
	static char in[2][8];
	struct name mine;

	if (way->late) {
		hear(place.end[HIDDEN], &(char){0}, 1);
		usleep(500000); /* the hidden one, which is refused, looks for the relay meanwhile */
	}
	open_node();
	mine = node_name(&n);
	for (enum role r = OPEN; r < THIRD; r++)
		must(fi_recv(n.ep, in[r], sizeof(in[r]), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (enum role r = OPEN; r < THIRD; r++)
		tell(place.end[r], &mine, sizeof(mine));
	progress_until(place.end[OPEN]);
	progress_until(place.end[HIDDEN]);
}

/* The log of this process goes to a file from now on. Returns its descriptor. */
static int catch_log(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		fail("no file for the log: %s", strerror(errno));
	return fd;
}

static void must_tell(int log, const char *what)
{
	char text[8192] = "";

	if (pread(log, text, sizeof(text) - 1, 0) < 0 || !strstr(text, what))
		fail("%s: the log tells \"%s\"", way->name, text);
}

static void live_hidden(void)
{
	static char in[8];
	struct name mine, theirs;
	struct event e;
	bool ignores = way->knows && !way->hides;
	int log = ignores ? catch_log() : -1;

	if (!way->late)
		hear(place.end[THIRD], &third, sizeof(third));
	open_node();
	mine = node_name(&n);
	if (way->late) {
		tell(place.end[THIRD], "", 1);
		progress_for(400);
		hear(place.end[THIRD], &third, sizeof(third));
	}
	connect_third();
	must(fi_recv(n.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), "fi_recv");
	tell(place.end[OPEN], &mine, sizeof(mine));
	if (way->err) {
		progress_until(place.end[OPEN]);
		if (ignores)
			must_tell(log, "introduction of fi_sockaddr_in://10.99.0.1:");
	} else {
		e = await_message();
		if (e.err || memcmp(in, "for you", sizeof(in)) != 0)
			fail("%s: %s", way->name, e.err ? fi_strerror(e.err) : "another message");
		hear(place.end[OPEN], &theirs, sizeof(theirs));
		for (unsigned int i = 0, peer = insert(&theirs, 0); i < ROUNDS; i++)
			talk(&n, peer, i, HIDDEN);
		progress_until(place.end[OPEN]);
	}
}

static void live_open(void)
{
	static char out[8] = "for you";
	struct fi_cq_tagged_entry none;
	struct name mine, hidden;
	uint64_t begin;
	struct event e;
	fi_addr_t peer;
	ssize_t ret;

	hear(place.end[THIRD], &third, sizeof(third));
	open_node();
	mine = node_name(&n);
	connect_third();
	hear(place.end[HIDDEN], &hidden, sizeof(hidden));
	peer = insert(&hidden, FI_FIREWALL_ADDR);
	begin = now_ms();
	while ((ret = fi_send(n.ep, out, sizeof(out), NULL, peer, out)) == -FI_EAGAIN) {
		if (way->sleeps)
			fi_cq_sread(n.cq, &none, 1, NULL, NAP_MS);
		if (now_ms() - begin > way->bound_ms)
			fail("%s: no connection within %u ms", way->name, way->bound_ms);
	}
	e = ret ? (struct event){.err = (int)-ret} : await_message();
	if (e.err != way->err)
		fail("%s: ended with %s", way->name, fi_strerror(e.err));
	printf("%s: %s after %llu ms\n", way->name, e.err ? "error" : "arrived",
	       (unsigned long long)(now_ms() - begin));
	if (e.err && now_ms() - begin < TIMEOUT_MS / 2)
		fail("%s: nobody was waited for", way->name);
	if (!e.err) {
		tell(place.end[HIDDEN], &mine, sizeof(mine));
		for (unsigned int i = 0; i < ROUNDS; i++)
			talk(&n, peer, i, OPEN);
	}
	tell(place.end[HIDDEN], "", 1);
}

static void live(void *arg)
{
	static void (*const lives[ROLES])(void) = {live_open, live_hidden, live_third};

	place = *(struct place *)arg;
	setenv("FI_WEFT_PEER_TIMEOUT", way->timeout, 1);
	setenv("FI_LOG_LEVEL", "warn", 1);
	enter();
	lives[place.role]();
	if (place.role != THIRD)
		tell(place.end[THIRD], "", 1);
	node_close(&n);
}

/* Starts the three of a way; the third one last, which makes the network of all. */
static void begin(pid_t pids[ROLES])
{
	struct place of[ROLES];

	for (enum role a = OPEN; a < ROLES; a++)
		for (enum role b = OPEN; b < a; b++) {
			int ends[2];

			wire(ends);
			of[a].end[b] = ends[0];
			of[b].end[a] = ends[1];
		}
	for (enum role r = OPEN; r < ROLES; r++) {
		of[r].role = r;
		memcpy(of[r].pid, pids, sizeof(of[r].pid));
		pids[r] = start(names[r], live, &of[r]);
	}
	for (enum role a = OPEN; a < ROLES; a++)
		for (enum role b = OPEN; b < ROLES; b++)
			if (a != b)
				close(of[a].end[b]);
}

/* No endpoint is opened with a setting that is no address. */
static void set_wrongly(void *text)
{
	int ret;

	setenv("FI_WEFT_RELAY", text, 1);
	node_create(&n, NULL);
	must(fi_ep_bind(n.ep, &n.av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(n.ep, &n.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	ret = fi_enable(n.ep);
	if (ret != -FI_EINVAL)
		fail("FI_WEFT_RELAY=%s: fi_enable returns %d", (char *)text, ret);
	node_close(&n);
}

/* Runs all cases at once: they mostly wait. */
int main(void)
{
	static pid_t pids[WAYS][ROLES];
	char *const wrong[] = {"10.0.0.7:4711", "fi_sockaddr_in://10.0.0.7",
			       "fi_sockaddr_in://relay:4711", ""};

	alarm(LIMIT);
	need_lab();
	need_network();
	if (system("nft --version >/dev/null 2>&1")) { /* NOLINT(cert-env33-c) */
		printf("needs nft\n");
		return 77;
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		finish(start("wrong", set_wrongly, wrong[i]), wrong[i]);
	for (size_t i = 0; i < WAYS; i++) {
		way = &ways[i];
		if (has_library(way->auth))
			begin(pids[i]);
	}
	for (size_t i = 0; i < WAYS; i++)
		for (enum role r = OPEN; r < ROLES && pids[i][r]; r++)
			finish(pids[i][r], ways[i].name);
	return EXIT_SUCCESS;
}
