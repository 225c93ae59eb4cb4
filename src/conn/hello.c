/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/closer.h"
#include "base/log.h"
#include "conn/connect.h"

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(WIRE_FDS * sizeof(int))];
};

static const uint32_t name_formats[] = {
	[ADDR_IN] = FI_SOCKADDR_IN, [ADDR_IN6] = FI_SOCKADDR_IN6, [ADDR_STR] = FI_ADDR_STR};

/* Attaches the descriptors before the first -1 to the message. */
static void attach_fds(struct msghdr *msg, union control *control, const int fds[WIRE_FDS])
{
	struct cmsghdr *c;
	size_t count = 0;

	while (count < WIRE_FDS && fds[count] >= 0)
		count++;

	msg->msg_control = control->buf;
	msg->msg_controllen = CMSG_SPACE(count * sizeof(int));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
}

/* Fills in the fields that are the same in all hellos of a station, and the serial. 0 or a negative error. */
static int describe_sender(struct station *station, struct wire_hello *hello)
{
	size_t len = sizeof(hello->name);

	hello->flags = station->hello_flags;
	if (station->opener.all && !station->cm)
		hello->flags |= WIRE_HELLO_ALL;
	hello->incarnation = station->incarnation;
	hello->serial = ++station->hellos;
	hello->cma_addr = (uintptr_t)&station->cma_word;
	hello->cma_value = station->cma_word;
	hello->name_format = name_formats[station->name.kind];
	if (addr_to_user(&station->name, hello->name, &len))
		return -FI_EINVAL;
	hello->name_len = (uint32_t)len;
	return 0;
}

static bool brings_fds(enum hello_kind kind)
{
	return kind == HELLO_CONNECT || kind == HELLO_ACCEPT || kind == HELLO_REQUEST;
}

static void add_rails(struct wire_hello *hello, const struct wire_rails *rails)
{
	hello->flags |= WIRE_HELLO_RAILS;
	hello->data_len = sizeof(*rails);
	memcpy(hello->data, rails, sizeof(*rails));
}

bool hello_rails(const struct wire_hello *hello, struct wire_rails *rails)
{
	if (!(hello->flags & WIRE_HELLO_RAILS))
		return false;
	memcpy(rails, hello->data, sizeof(*rails));
	return true;
}

/* Is a list of interfaces as one must be, if there is one? */
static bool rails_good(const struct wire_hello *hello)
{
	struct wire_rails rails;

	return !hello_rails(hello, &rails) ||
	       (hello->data_len == sizeof(rails) && rails.count <= WIRE_RAILS_MAX);
}

int hello_send(struct station *station, int sock, bool inside, const struct hello_fields *fields)
{
	struct wire_hello hello = {
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.size = sizeof(hello),
		.kind = fields->kind,
		.your_id = fields->id,
		.error = (uint32_t)fields->error,
		.data_len = (uint32_t)fields->data_len,
		.nic = fields->nic,
	};
	struct iovec iov = {&hello, sizeof(hello)};
	union control control = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[WIRE_FDS], err = station ? describe_sender(station, &hello) : 0;

	if (err)
		return err;
	if (fields->data_len)
		memcpy(hello.data, fields->data, fields->data_len);
	if (fields->token)
		memcpy(hello.nonce, fields->token, sizeof(hello.nonce));
	if (fields->rails)
		add_rails(&hello, fields->rails);
	if (hello.flags & WIRE_HELLO_ALL && !inside)
		addresses_tell(station, sock, &hello);
	if (fields->auth && fields->auth->key.len && auth_seal(fields->auth, &hello))
		return -FI_EIO;
	if (station && inside && brings_fds(fields->kind)) {
		station->via[LINK_HOST].transport->hello_fds(station->via[LINK_HOST].state, fds);
		attach_fds(&msg, &control, fds);
	}
	/* The buffer of a new connection can hold a hello. */
	if (sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(hello))
		return -errno;
	return 0;
}

void hello_close_fds(int fds[WIRE_FDS])
{
	for (unsigned int i = 0; i < WIRE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Is it a memory file, as ours are? Nothing that is done with one can wait for others. */
static bool is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

/*
 * Takes the received descriptors. False: they are not what a hello brings, and are left to the closer; as all are if there was
 * room in our table for some alone.
 */
static bool received_fds(struct msghdr *msg, int fds[WIRE_FDS])
{
	int passed[CONNECT_PASSED_MAX];
	size_t count = connect_passed(msg, passed);
	bool whole = !(msg->msg_flags & MSG_CTRUNC), good = count <= WIRE_FDS;

	for (size_t i = 0; i < count && good; i++)
		good = is_memory(passed[i]);
	for (size_t i = 0; i < count; i++)
		if (good && whole)
			fds[i] = passed[i];
		else
			closer_close(passed[i]);
	return good;
}

int hello_own_fds(struct station *station, int fds[WIRE_FDS])
{
	int err;

	station->via[LINK_HOST].transport->hello_fds(station->via[LINK_HOST].state, fds);
	for (unsigned int i = 0; i < WIRE_FDS; i++) {
		if (fds[i] < 0 || (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0)) >= 0)
			continue;
		err = -errno;
		while (i < WIRE_FDS)
			fds[i++] = -1; /* not duplicated yet */
		hello_close_fds(fds);
		return err;
	}
	return 0;
}

/* What the user can do about a hello that is none of ours. */
static const char *hello_advice(const struct wire_hello *hello, ssize_t len)
{
	if (len >= (ssize_t)sizeof(hello->magic) && hello->magic == __builtin_bswap32(WIRE_MAGIC))
		return "the other host has another byte order, which is not supported";
	if (len >= (ssize_t)sizeof(hello->magic) && hello->magic == WIRE_MAGIC)
		return "use the same version of the library on both sides";
	return "something else than this library has connected to the port";
}

static int hello_check(const struct wire_hello *hello, ssize_t len)
{
	if (len != (ssize_t)sizeof(*hello) || hello->magic != WIRE_MAGIC ||
	    hello->version != WIRE_VERSION || hello->size != sizeof(*hello)) {
		LOG_PEER(
			LOG_EP_CTRL,
			"hello of %zd bytes refused: magic %#x, version %u, size %u; ours has magic %#x, "
			"version %u, size %zu: %s",
			len, len >= 4 ? hello->magic : 0, len >= 6 ? hello->version : 0,
			len >= 8 ? hello->size : 0, WIRE_MAGIC, WIRE_VERSION, sizeof(*hello),
			hello_advice(hello, len));
		return -FI_EPROTO;
	}
	/* Only HELLO_CONNECT, HELLO_ACCEPT and HELLO_REQUEST carry a name. */
	if ((hello->name_len == 0 && brings_fds(hello->kind)) ||
	    hello->name_len > sizeof(hello->name) || hello->data_len > sizeof(hello->data) ||
	    hello->kind < HELLO_CONNECT || hello->kind >= HELLO_KINDS || !rails_good(hello)) {
		LOG_PEER(LOG_EP_CTRL,
			 "hello of kind %u with a name of %u bytes, %u bytes of data and flags %#x "
			 "refused",
			 hello->kind, hello->name_len, hello->data_len, hello->flags);
		return -FI_EPROTO;
	}
	return 1;
}

static int recv_inside(int sock, struct wire_hello *hello, int fds[WIRE_FDS])
{
	/* cppcheck-suppress ctuuninitvar ; recvmsg writes it */
	struct iovec iov = {hello, sizeof(*hello)};
	union connect_passed passed;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = passed.buf,
			     .msg_controllen = sizeof(passed.buf)};
	ssize_t len = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	bool good, right;
	int ret;

	/* The peer has closed before it has read our bytes; its own bytes follow that error. */
	if (len < 0 && errno == ECONNRESET)
		len = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	/* Even an empty message may carry descriptors. */
	good = received_fds(&msg, fds); /* hello_recv has set all to -1 */
	ret = len ? hello_check(hello, len) : -FI_ECONNRESET;
	right = msg.msg_flags & MSG_CTRUNC || (fds[0] >= 0) == brings_fds(hello->kind);
	if (ret > 0 && !(good && right)) {
		LOG_PEER(LOG_EP_CTRL, "hello of kind %u %s refused", hello->kind,
			 !good        ? "with descriptors that are not ours"
			 : fds[0] < 0 ? "without a ring"
				      : "with a ring");
		ret = -FI_EPROTO;
	}
	if (ret < 0)
		hello_close_fds(fds);
	return ret;
}

/* Has the peer closed its side? */
static bool hello_ended(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLRDHUP};

	return poll(&p, 1, 0) == 1;
}

/*
 * Reads a hello off a stream. Takes no byte before all have come, so that later bytes stay for the next reader. Until
 * then the socket is not readable (connect_tune), unless the connection ends: an incomplete hello is then an error.
 */
static int recv_network(int sock, struct wire_hello *hello)
{
	ssize_t len = recv(sock, hello, sizeof(*hello), MSG_DONTWAIT | MSG_PEEK);

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (len == 0)
		return -FI_ECONNRESET;
	if (len < (ssize_t)sizeof(*hello))
		return hello_ended(sock) ? hello_check(hello, len) : 0;
	if (recv(sock, hello, sizeof(*hello), MSG_DONTWAIT) != (ssize_t)sizeof(*hello))
		return -FI_EPROTO;
	return hello_check(hello, len);
}

int hello_recv(int sock, bool inside, struct wire_hello *hello, int fds[WIRE_FDS])
{
	for (unsigned int i = 0; i < WIRE_FDS; i++)
		fds[i] = -1;
	return inside ? recv_inside(sock, hello, fds) : recv_network(sock, hello);
}

int hello_name(const struct wire_hello *hello, struct addr *name)
{
	int err = addr_from_user(name, hello->name_format, hello->name, hello->name_len);

	if (!err && addr_is_link_local(name))
		name->scope = 0; /* the sender's number of the link, which means nothing here */
	return err == -FI_EINVAL ? -FI_EPROTO : err;
}
