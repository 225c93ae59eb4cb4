/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes connection setup: clients connect to an endpoint's listeners, or accept its connects, and
 * send hellos of any content, over Unix sockets (with descriptors of any kind) and TCP. Afterwards
 * no connection, descriptor or handshake is left, and every send has ended.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "core/ep.h"
#include "hw/shm/shm_ring.h"
#include "input.h"
#include "xfer/conn/conn.h"
#include "xfer/conn/connect.h"
#include "xfer/worker.h"

#define STEPS    60
#define PATIENCE 20000 /* naps of 100 us */
#define SLOTS    4
#define FDS_MAX  4
#define RING_LEN (4096 + 1024 * (8 + 64))

/* Ways to connect, and addresses for the endpoint to connect to: Unix socket, TCP. */
enum { INSIDE, NETWORK, WAYS };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_ep *ep;
static struct worker *worker;
static struct addr names[WAYS];
static fi_addr_t addrs[WAYS];
static int listeners[WAYS];
static uint64_t posted, done;

/* Connections to the endpoint, of all origins. */
static struct {
	int sock; /* -1: none */
	int way;
} slots[SLOTS];

/* The last hello that the endpoint sent, and the descriptors that came with it. */
static struct wire_hello heard;
static int heard_fds[WIRE_FDS] = {-1, -1};

/* ---- The endpoint ---- */

static bool log_all(const char *prov, int level, int subsys)
{
	(void)prov, (void)subsys;
	return level <= FI_LOG_INFO;
}

static void log_drop(const struct log_place *place, const char *msg)
{
	(void)place;
	MUST(strlen(msg) < 4096);
}

static const struct log_sink log_sink = {.enabled = log_all, .write = log_drop};

static void endpoint_open(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_info *hints = fi_allocinfo();

	log_redirect(&log_sink);
	hints->fabric_attr->prov_name = strdup("weft");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	MUST(!fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	MUST(!fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(!fi_domain(fabric, info, &domain, NULL));
	MUST(!fi_cq_open(domain, &cq_attr, &cq, NULL));
	MUST(!fi_av_open(domain, &av_attr, &av, NULL));
	MUST(!fi_endpoint(domain, info, &ep, NULL));
	MUST(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(!fi_ep_bind(ep, &av->fid, 0));
	MUST(!fi_enable(ep));
	worker = ep_of(ep)->worker;
}

static void peers_listen(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t len = sizeof(in);
	struct sockaddr_un un;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listeners[NETWORK] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	MUST(!bind(listeners[NETWORK], (struct sockaddr *)&in, len));
	MUST(!getsockname(listeners[NETWORK], (struct sockaddr *)&in, &len));
	MUST(!addr_from_user(&names[NETWORK], FI_SOCKADDR_IN, &in, len));
	MUST(fi_av_insert(av, &in, 1, &addrs[NETWORK], 0, NULL) == 1);
	/* Another loopback address with the same port. */
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	MUST(!addr_from_user(&names[INSIDE], FI_SOCKADDR_IN, &in, len));
	MUST(fi_av_insert(av, &in, 1, &addrs[INSIDE], 0, NULL) == 1);
	listeners[INSIDE] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	len = connect_unix_name(&un, &names[INSIDE]);
	MUST(!bind(listeners[INSIDE], (struct sockaddr *)&un, len));
	for (int i = 0; i < WAYS; i++)
		MUST(!listen(listeners[i], 64));
}

static void make_progress(void)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_entry e;
	ssize_t ret;

	worker->armed = true; /* makes this progress call poll the sockets too */
	worker_progress(worker);
	while ((ret = fi_cq_read(cq, &e, 1)) != -FI_EAGAIN) {
		if (ret == -FI_EAVAIL)
			MUST(fi_cq_readerr(cq, &error, 0) == 1);
		else
			MUST(ret == 1);
		done++;
	}
}

/* ---- The clients ---- */

static void slot_close(unsigned int i, bool hard)
{
	struct linger now = {1, 0};

	if (slots[i].sock < 0)
		return;
	if (hard)
		setsockopt(slots[i].sock, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(slots[i].sock);
	slots[i].sock = -1;
}

/*
 * Connects to the endpoint's listener, each time from another address, so that ports do not run
 * out.
 */
static void come(unsigned int i, int way)
{
	static uint32_t count;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(worker->name.port)};
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct sockaddr_un un;
	socklen_t len = connect_unix_name(&un, &worker->name);
	int sock = socket(
		way == INSIDE ? AF_UNIX : AF_INET,
		(way == INSIDE ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	slot_close(i, true);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	from.sin_addr.s_addr = htonl(0x7f010000 + count++ % 60000);
	if (way == NETWORK)
		MUST(!bind(sock, (struct sockaddr *)&from, sizeof(from)));
	if (way == INSIDE
		    ? connect(sock, (struct sockaddr *)&un, len)
		    : connect(sock, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS) {
		close(sock);
		return;
	}
	slots[i].sock = sock;
	slots[i].way = way;
}

/* Accepts a connect of the endpoint. */
static void answer(unsigned int i, int way)
{
	slot_close(i, true);
	slots[i].sock = accept4(listeners[way], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	slots[i].way = way;
}

static void call(int way)
{
	ssize_t ret = fi_send(ep, "x", 1, NULL, addrs[way], NULL);

	posted += ret == 0;
}

static void heard_close(void)
{
	for (int i = 0; i < WIRE_FDS; i++) {
		if (heard_fds[i] >= 0)
			close(heard_fds[i]);
		heard_fds[i] = -1;
	}
}

/* Checks that the endpoint's first message is a hello; later packets are not checked. */
static void hear(unsigned int i)
{
	char control[CMSG_SPACE(WIRE_FDS * sizeof(int))];
	struct wire_hello hello;
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c;

	if (slots[i].sock < 0 ||
	    recvmsg(slots[i].sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(hello))
		return;
	if (hello.magic == WIRE_MAGIC) {
		MUST(hello.version == WIRE_VERSION && hello.size == sizeof(hello));
		MUST(hello.kind >= HELLO_CONNECT && hello.kind < HELLO_KINDS);
		heard = hello;
	}
	c = CMSG_FIRSTHDR(&m);
	if (!c)
		return;
	heard_close();
	memcpy(heard_fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
}

/* Returns a file like a ring or table of regions, whose first bytes are the input's. */
static int file_fd(struct input *in, int seals)
{
	unsigned char bytes[512];
	size_t len = take(in, bytes, take8(in));
	struct ring_page page = {.magic = RING_MAGIC, .slots = 1024, .secret = 1};
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	page.head = page.hint = 1024;
	MUST(fd >= 0 && !ftruncate(fd, RING_LEN));
	MUST(pwrite(fd, &page, sizeof(page), 0) == (ssize_t)sizeof(page));
	MUST(pwrite(fd, bytes, len, 0) == (ssize_t)len);
	MUST(!fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static int some_fd(struct input *in)
{
	uint8_t what = take8(in);

	switch (what % 4) {
	case 0:
		return file_fd(in, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
		return file_fd(in, what / 4);
	default:
		return fcntl(heard_fds[what / 4 % WIRE_FDS], F_DUPFD_CLOEXEC, 0);
	}
}

static size_t attach(struct input *in, struct msghdr *m, int fds[FDS_MAX])
{
	struct cmsghdr *c;
	size_t count = 0;

	for (unsigned int want = take8(in) % (FDS_MAX + 1); want; want--) {
		fds[count] = some_fd(in);
		count += fds[count] >= 0;
	}
	if (!count)
		return 0;
	m->msg_controllen = CMSG_SPACE(count * sizeof(int));
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	return count;
}

static void say(struct input *in, unsigned int i, const void *bytes, size_t len)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf};
	size_t count = 0;
	int fds[FDS_MAX];

	if (slots[i].sock < 0)
		return;
	if (slots[i].way == INSIDE)
		count = attach(in, &m, fds);
	if (!count)
		m.msg_control = NULL;
	if (sendmsg(slots[i].sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		MUST(errno != EINVAL && errno != EBADF);
	while (count)
		close(fds[--count]);
}

/* Sends a good hello with some bytes changed. */
static void say_hello(struct input *in, unsigned int i)
{
	struct wire_hello hello = {.magic = WIRE_MAGIC,
				   .version = WIRE_VERSION,
				   .size = sizeof(hello),
				   .name_format = FI_SOCKADDR_IN};
	size_t len = sizeof(hello.name), whole = sizeof(hello) + 32;
	unsigned char bytes[sizeof(hello) + 32] = {0};
	unsigned int patches;

	hello.kind = take8(in);
	hello.your_id = heard.your_id;
	hello.incarnation = take8(in) % 2 ? 1 : UINT64_MAX;
	hello.probe_addr = heard.probe_addr;
	hello.probe_value = heard.probe_value;
	MUST(!addr_to_user(&names[take8(in) % WAYS], hello.name, &len));
	hello.name_len = (uint32_t)len;
	memcpy(bytes, &hello, sizeof(hello));
	patches = take8(in);
	for (unsigned int n = patches % 16; n; n--)
		bytes[take16(in) % whole] = take8(in);
	/* In one piece; or in two, with extra bytes at the end. */
	len = patches & 64 ? take16(in) % whole : sizeof(hello);
	say(in, i, bytes, len);
	if (patches & 128) {
		make_progress();
		say(in, i, bytes + len, whole - len);
	}
}

static void say_bytes(struct input *in, unsigned int i)
{
	unsigned char bytes[sizeof(struct wire_hello) + 64];
	size_t len = take(in, bytes, take16(in) % sizeof(bytes));

	say(in, i, bytes, len);
}

static void step(struct input *in)
{
	uint8_t what = take8(in);
	unsigned int i = what >> 4 & 3;
	int way = what >> 6 & 1;

	switch (what % 8) {
	case 0:
		come(i, way);
		break;
	case 1:
		call(way);
		break;
	case 2:
		answer(i, way);
		break;
	case 3:
	case 4:
		say_hello(in, i);
		break;
	case 5:
		say_bytes(in, i);
		break;
	case 6:
		hear(i);
		break;
	default:
		slot_close(i, what >> 7);
	}
	make_progress();
}

/* ---- Afterwards ---- */

static unsigned int lowest_fd(void)
{
	int fd = dup(STDERR_FILENO);

	MUST(fd >= 0);
	close(fd);
	return (unsigned int)fd;
}

/* Refuses connects of the endpoint that no client accepted. */
static void refuse_all(void)
{
	int sock;

	for (int way = 0; way < WAYS; way++)
		while ((sock = accept4(listeners[way], NULL, NULL, SOCK_NONBLOCK)) >= 0)
			close(sock);
}

static bool quiet(void)
{
	unsigned int peers = 0;

	LIST_EACH (node, &worker->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_worker);

		peers++;
		/* The peer waits for the other side's connect, which never comes. */
		if (peer->state == PEER_CROSSED)
			peer_failed(peer, FI_ETIMEDOUT);
		if (peer->state != PEER_IDLE)
			return false;
	}
	MUST(peers <= WAYS);
	return worker->acceptor.count == 0;
}

/* Closes all connections and waits until the endpoint noticed: TCP takes time. Checks for leaks. */
static void quiesce(unsigned int fds)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		slot_close(i, true);
	heard_close();
	for (int n = 0; n < PATIENCE; n++) {
		refuse_all();
		make_progress();
		if (quiet() && lowest_fd() == fds)
			break;
		if (n > 20)
			usleep(100);
	}
	make_progress();
	MUST(quiet());
	MUST(lowest_fd() == fds);
	MUST(worker->handshakes == 0);
	MUST(posted == done);
	memset(&heard, 0, sizeof(heard));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned int fds;

	if (!ep) {
		endpoint_open();
		peers_listen();
		for (unsigned int i = 0; i < SLOTS; i++)
			slots[i].sock = -1;
	}
	fds = lowest_fd(); /* libFuzzer opens descriptors itself */
	for (int i = 0; i < STEPS && in.left; i++)
		step(&in);
	quiesce(fds);
	return 0;
}
