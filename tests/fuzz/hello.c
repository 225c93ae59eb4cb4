/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes connection setup: clients connect to an endpoint's listeners, or accept its connects, and
 * send hellos of any content, over Unix sockets (with descriptors of any kind) and TCP. Afterwards
 * no connection, descriptor or handshake is left, and every send has ended.
 */
#include "clients.h"

#define STEPS 60

/* The last hello that the endpoint sent, and the descriptors that came with it. */
static struct wire_hello heard;
static int heard_fds[WIRE_FDS] = {-1, -1};

static fi_addr_t addrs[WAYS];

static void completed(const struct fi_cq_msg_entry *e, int err, fi_addr_t src)
{
	(void)e, (void)err, (void)src;
	done++;
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
static int some_file(struct input *in, int seals)
{
	unsigned char bytes[512];
	size_t len = take(in, bytes, take8(in));

	return file_fd(bytes, len, seals);
}

static int some_fd(struct input *in)
{
	uint8_t what = take8(in);

	switch (what % 4) {
	case 0:
		return some_file(in, RING_SEALS);
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
		return some_file(in, what / 4);
	default:
		return fcntl(heard_fds[what / 4 % WIRE_FDS], F_DUPFD_CLOEXEC, 0);
	}
}

static size_t some_fds(struct input *in, int fds[FDS_MAX])
{
	size_t count = 0;

	for (unsigned int want = take8(in) % (FDS_MAX + 1); want; want--) {
		fds[count] = some_fd(in);
		count += fds[count] >= 0;
	}
	return count;
}

static void say_some(struct input *in, unsigned int i, const void *bytes, size_t len)
{
	int fds[FDS_MAX];

	if (slots[i].sock >= 0)
		say(i, bytes, len, fds, slots[i].way == INSIDE ? some_fds(in, fds) : 0);
}

/*
 * Adds what endpoints of several interfaces say, and those that all addresses of their host reach: addresses of this
 * host, and of nobody, in a network for documentation.
 */
static void add_lists(struct input *in, struct wire_hello *hello)
{
	struct wire_rails rails = {.count = take8(in) % (WIRE_RAILS_MAX + 2), .number = take8(in)};
	struct wire_addresses all = {.count = take8(in) % (WIRE_ADDRESSES_MAX + 2)};
	uint16_t port = names[take8(in) % WAYS].port;

	for (uint8_t i = 0; i < WIRE_RAILS_MAX; i++)
		rails.rail[i] =
			(struct wire_rail){.ip = {127, 0, 0, i}, .port = port, .prefix = take8(in)};
	for (uint8_t i = 0; i < WIRE_ADDRESSES_MAX; i++)
		all.at[i] = (struct wire_address){.ip = {i % 2 ? 127 : 192, 0, i % 2 ? 0 : 2, i},
						  .port = port};
	hello->flags = take8(in);
	if (hello->flags & WIRE_HELLO_RAILS)
		hello->data_len = sizeof(rails);
	memcpy(hello->data, &rails, sizeof(rails));
	memcpy(hello->data + sizeof(rails), &all, sizeof(all));
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
	hello.cma_addr = heard.cma_addr;
	hello.cma_value = heard.cma_value;
	MUST(!addr_to_user(&names[take8(in) % WAYS], hello.name, &len));
	hello.name_len = (uint32_t)len;
	patches = take8(in);
	if (patches & 32)
		add_lists(in, &hello);
	memcpy(bytes, &hello, sizeof(hello));
	for (unsigned int n = patches % 16; n; n--)
		bytes[take16(in) % whole] = take8(in);
	/* In one piece; or in two, with extra bytes at the end. */
	len = patches & 64 ? take16(in) % whole : sizeof(hello);
	say_some(in, i, bytes, len);
	if (patches & 128) {
		make_progress();
		say_some(in, i, bytes + len, whole - len);
	}
}

static void say_bytes(struct input *in, unsigned int i)
{
	unsigned char bytes[sizeof(struct wire_hello) + 64];
	size_t len = take(in, bytes, take16(in) % sizeof(bytes));

	say_some(in, i, bytes, len);
}

static void progress(void)
{
	make_progress();
}

static void step(struct input *in)
{
	uint8_t what = take8(in);
	unsigned int i = what >> 4 & 3;
	int way = what >> 6 & 1;

	switch (what % 8) {
	case 0:
		come(i, way, &worker->conn.name);
		break;
	case 1:
		call(addrs[way], NULL);
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

static void open_all(void)
{
	static bool before;

	endpoint_open(FI_MSG, 0);
	endpoint_enable();
	if (!before) {
		peers_listen();
		ring_check();
		atexit(endpoint_close);
	}
	before = true;
	for (int way = 0; way < WAYS; way++)
		addrs[way] = entry(way, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned int fds;

	if (!ep)
		open_all();
	fds = lowest_fd(); /* libFuzzer opens descriptors itself */
	for (int i = 0; i < STEPS && in.left; i++)
		step(&in);
	heard_close();
	memset(&heard, 0, sizeof(heard));
	quiesce(fds);
	if (ends_all(size))
		endpoint_close();
	return 0;
}
