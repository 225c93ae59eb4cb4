/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A partner for connected endpoints that uses librdmacm and libibverbs alone. It connects or
 * accepts, exchanges private data, makes the steps of rdma_peer.h in both roles, and disconnects.
 * Each step prints a line. The first deviation or timeout ends the program with status 1.
 *
 *	rdma_peer listen 10.77.0.1 7471		serves one connection
 *	rdma_peer connect 10.77.0.1 7471
 *
 *	-b ADDRESS  connect from this address
 *	-d TEXT     private data to send: with the request, the acceptance or the rejection
 *	-w TEXT     the other side's private data must begin with this
 *	-r          listen: reject the request; connect: be rejected, or fail
 *	-s BYTES    of a message and of the window (4096)
 *	-k STEPS    which steps to make, as a list: send,write,read,add,swap are all (the default); none
 *	-e          end the connection after the steps; one side does, the other waits for it
 *	-t SECONDS  limit for any wait (10)
 */
#include <rdma/rdma_cma.h>
#include <netdb.h>
#include <errno.h>
#include "rdma_peer.h"

#define DEPTH 4 /* reads and atomics in flight, each way */

static const char *const step_names[] = {"send", "write", "read", "add", "swap"};

struct options {
	const char *address, *port, *from, *say, *want;
	bool listen, reject, leave;
	bool steps[PEER_STEPS];
	uint32_t size;
	double patience;
};

struct side {
	struct options o;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct ibv_pd *pd;
	struct peer p;
};

/* ---- Connecting ------------------------------------------------------------------------------ */

/* Waits for the next event, which must be `want`. The caller acknowledges it. */
static struct rdma_cm_event *next_event(struct side *s, enum rdma_cm_event_type want)
{
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	int n = poll(&fd, 1, (int)(s->o.patience * 1000));

	if (n < 1)
		peer_fail("no event, while waiting for %s", rdma_event_str(want));
	if (rdma_get_cm_event(s->channel, &event))
		peer_fail("rdma_get_cm_event: %m");
	if (event->event != want)
		peer_fail("event %s (status %d) instead of %s", rdma_event_str(event->event),
			  event->status, rdma_event_str(want));
	return event;
}

static void expect(struct side *s, enum rdma_cm_event_type want)
{
	rdma_ack_cm_event(next_event(s, want));
}

/* Prints and checks private data, which arrives padded with zeros, up to the first zero. */
static void hear_private(const struct options *o, const struct rdma_cm_event *event)
{
	const char *data = event->param.conn.private_data;
	size_t len = data ? event->param.conn.private_data_len : 0, want = strlen(o->want);

	printf("%s: private data, %zu bytes: \"%.*s\"\n", rdma_event_str(event->event), len,
	       (int)strnlen(data ? data : "", len), data ? data : "");
	if (len < want || (want && memcmp(data, o->want, want) != 0))
		peer_fail("the private data does not begin with \"%s\"", o->want);
}

static struct rdma_conn_param our_param(const struct options *o)
{
	return (struct rdma_conn_param){.private_data = o->say,
					.private_data_len = (uint8_t)strlen(o->say),
					.responder_resources = DEPTH,
					.initiator_depth = DEPTH,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

/* Makes queue pair, memory and receives before the connection is up. */
static void open_qp(struct side *s)
{
	struct peer *p = &s->p;
	size_t len = (size_t)PEER_BLOCKS * s->o.size;
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {PEER_CQ_SIZE / 2, PEER_RECVS, 1, 1, 0}};

	p->size = s->o.size;
	p->patience = s->o.patience;
	p->events = s->channel->fd;
	p->memory = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	s->pd = ibv_alloc_pd(s->id->verbs);
	p->cq = ibv_create_cq(s->id->verbs, PEER_CQ_SIZE, NULL, NULL, 0);
	if (!p->memory || !s->pd || !p->cq)
		peer_fail("no memory, protection domain or completion queue: %m");
	memset(p->memory, 0, len);
	p->mr = ibv_reg_mr(s->pd, p->memory, len, access);
	if (!p->mr)
		peer_fail("ibv_reg_mr: %m");
	attr.send_cq = attr.recv_cq = p->cq;
	if (rdma_create_qp(s->id, s->pd, &attr))
		peer_fail("rdma_create_qp: %m");
	p->qp = s->id->qp;
	for (unsigned int i = 0; i < PEER_RECVS; i++)
		peer_post_recv(p, i);
	printf("device %s, queue pair %u\n", ibv_get_device_name(s->id->verbs->device),
	       p->qp->qp_num);
}

static struct addrinfo *look_up(const char *address, const char *port)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;
	int ret = getaddrinfo(address, port, &hints, &found);

	if (ret)
		peer_fail("%s: %s", address, gai_strerror(ret));
	return found;
}

static void new_id(struct side *s, struct rdma_cm_id **id)
{
	s->channel = rdma_create_event_channel();
	if (!s->channel || rdma_create_id(s->channel, id, s, RDMA_PS_TCP))
		peer_fail("rdma_create_id: %m");
}

static void reject(struct side *s)
{
	if (rdma_reject(s->id, s->o.say, (uint8_t)strlen(s->o.say)))
		peer_fail("rdma_reject: %m");
	printf("rejected\n");
}

/* Accepts a connection. Returns false if the request was rejected, as asked for. */
static bool be_called(struct side *s)
{
	struct addrinfo *own = look_up(s->o.address, s->o.port);
	struct rdma_conn_param param = our_param(&s->o);
	struct rdma_cm_event *event;

	new_id(s, &s->listener);
	if (rdma_bind_addr(s->listener, own->ai_addr) || rdma_listen(s->listener, 4))
		peer_fail("%s port %s: %m", s->o.address, s->o.port);
	freeaddrinfo(own);
	printf("listening at %s port %s\n", s->o.address, s->o.port);
	event = next_event(s, RDMA_CM_EVENT_CONNECT_REQUEST);
	s->id = event->id;
	hear_private(&s->o, event);
	rdma_ack_cm_event(event);
	if (s->o.reject) {
		reject(s);
		return false;
	}
	open_qp(s);
	if (rdma_accept(s->id, &param))
		peer_fail("rdma_accept: %m");
	expect(s, RDMA_CM_EVENT_ESTABLISHED);
	return true;
}

static bool call(struct side *s)
{
	struct addrinfo *to = look_up(s->o.address, s->o.port);
	struct addrinfo *from = s->o.from ? look_up(s->o.from, NULL) : NULL;
	struct rdma_conn_param param = our_param(&s->o);
	struct rdma_cm_event *event;
	int wait = (int)(s->o.patience * 1000);

	new_id(s, &s->id);
	if (rdma_resolve_addr(s->id, from ? from->ai_addr : NULL, to->ai_addr, wait))
		peer_fail("rdma_resolve_addr %s: %m", s->o.address);
	expect(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(s->id, wait))
		peer_fail("rdma_resolve_route: %m");
	expect(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	freeaddrinfo(to);
	if (from)
		freeaddrinfo(from);
	open_qp(s);
	if (rdma_connect(s->id, &param))
		peer_fail("rdma_connect: %m");
	event = next_event(s, s->o.reject ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_ESTABLISHED);
	hear_private(&s->o, event);
	rdma_ack_cm_event(event);
	return !s->o.reject;
}

/* ---- The steps ------------------------------------------------------------------------------- */

static uint64_t cell(const struct peer *p, unsigned int block)
{
	uint64_t value;

	memcpy(&value, peer_block(p, block), sizeof(value));
	return value;
}

static void check_cell(const struct peer *p, unsigned int block, uint64_t want, const char *what)
{
	if (cell(p, block) != want)
		peer_fail("%s: %#llx, not %#llx", what, (unsigned long long)cell(p, block),
			  (unsigned long long)want);
}

static void swap(struct peer *p, uint64_t compare, uint64_t swap, uint64_t want)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP};

	wr.wr.atomic.compare_add = compare;
	wr.wr.atomic.swap = swap;
	peer_do(p, &wr, PEER_IN, sizeof(uint64_t), "swap");
	check_cell(p, PEER_IN, want, "swap: what it found");
}

static void initiate(struct peer *p, enum peer_step step, unsigned int seed)
{
	struct ibv_send_wr wr = {0};

	switch (step) {
	case PEER_SEND:
		peer_fill(peer_block(p, PEER_OUT), p->size, seed);
		peer_send(p, p->size, "send");
		break;
	case PEER_WRITE:
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htonl(PEER_IMMEDIATE);
		peer_fill(peer_block(p, PEER_OUT), p->size, seed);
		peer_do(p, &wr, PEER_OUT, p->size, "write");
		break;
	case PEER_READ:
		wr.opcode = IBV_WR_RDMA_READ;
		memset(peer_block(p, PEER_IN), 0, p->size);
		peer_do(p, &wr, PEER_IN, p->size, "read");
		peer_compare(peer_block(p, PEER_IN), p->size, seed, "what was read");
		break;
	case PEER_ADD:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.compare_add = PEER_ADDEND;
		peer_do(p, &wr, PEER_IN, sizeof(uint64_t), "add");
		check_cell(p, PEER_IN, PEER_FIRST, "add: what it found");
		break;
	default:
		swap(p, PEER_FIRST + 1, PEER_SECOND + 1, PEER_FIRST);
		swap(p, PEER_FIRST, PEER_SECOND, PEER_FIRST);
		break;
	}
}

/* Sets the content of the window before the step. */
static void prepare(struct peer *p, enum peer_step step, unsigned int seed)
{
	uint64_t first = PEER_FIRST;

	memset(peer_block(p, PEER_WINDOW), 0, p->size);
	if (step == PEER_READ)
		peer_fill(peer_block(p, PEER_WINDOW), p->size, seed);
	else if (step == PEER_ADD || step == PEER_SWAP)
		memcpy(peer_block(p, PEER_WINDOW), &first, sizeof(first));
}

/* Checks the arrival of a send or a write; other operations are invisible here. */
static void attend(struct peer *p, enum peer_step step, unsigned int seed)
{
	struct peer_rxreq a;

	if (step != PEER_SEND && step != PEER_WRITE)
		return;
	a = peer_hear(p, step == PEER_WRITE, step_names[step]);
	if (a.wc.byte_len != p->size)
		peer_fail("%s: %u bytes came in", step_names[step], a.wc.byte_len);
	if (step == PEER_SEND)
		peer_compare(a.data, p->size, seed, "the message");
	else if (ntohl(a.wc.imm_data) != PEER_IMMEDIATE)
		peer_fail("immediate data %#x", ntohl(a.wc.imm_data));
	else
		peer_compare(peer_block(p, PEER_WINDOW), p->size, seed, "what was written");
	peer_release(p, &a);
}

static void serve(struct peer *p, enum peer_step step, unsigned int seed)
{
	prepare(p, step, seed);
	peer_tell_sync(p, step, PEER_READY);
	attend(p, step, seed);
	peer_hear_sync(p, step, PEER_DONE);
	if (step == PEER_ADD)
		check_cell(p, PEER_WINDOW, PEER_FIRST + PEER_ADDEND, "add: what it left");
	if (step == PEER_SWAP)
		check_cell(p, PEER_WINDOW, PEER_SECOND, "swap: what it left");
}

static void make_step(struct side *s, enum peer_step step)
{
	struct peer *p = &s->p;

	for (unsigned int half = 0; half < 2; half++) {
		unsigned int seed = step * 2 + half;

		if (s->o.listen == (half == 0)) {
			serve(p, step, seed);
			printf("%s: served\n", step_names[step]);
			continue;
		}
		peer_hear_sync(p, step, PEER_READY);
		initiate(p, step, seed);
		peer_tell_sync(p, step, PEER_DONE);
		printf("%s: initiated\n", step_names[step]);
	}
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void part(struct side *s)
{
	if (!s->o.leave)
		peer_allow_end(&s->p);
	else
		peer_hear_sync(&s->p, PEER_STEPS, PEER_DONE);
	if (s->o.leave && rdma_disconnect(s->id))
		peer_fail("rdma_disconnect: %m");
	expect(s, RDMA_CM_EVENT_DISCONNECTED);
	if (!s->o.leave)
		rdma_disconnect(s->id); /* answers the other side's disconnect */
	printf("disconnected%s\n", s->o.leave ? "" : " by the other side");
}

static void close_all(struct side *s)
{
	if (s->id && s->id->qp)
		rdma_destroy_qp(s->id);
	if ((s->p.mr && ibv_dereg_mr(s->p.mr)) || (s->p.cq && ibv_destroy_cq(s->p.cq)) ||
	    (s->pd && ibv_dealloc_pd(s->pd)))
		peer_fail("something is still in use: %m");
	if ((s->id && rdma_destroy_id(s->id)) || (s->listener && rdma_destroy_id(s->listener)))
		peer_fail("rdma_destroy_id: %m");
	rdma_destroy_event_channel(s->channel);
	free(s->p.memory);
}

static void choose_steps(struct options *o, char *list)
{
	memset(o->steps, 0, sizeof(o->steps));
	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		int step = 0;

		while (step < PEER_STEPS && strcmp(word, step_names[step]) != 0)
			step++;
		if (step < PEER_STEPS)
			o->steps[step] = true;
		else if (strcmp(word, "none") != 0)
			peer_fail("there is no step %s", word);
	}
}

static __attribute__((noreturn)) void usage(void)
{
	fprintf(stderr,
		"usage: rdma_peer listen|connect ADDRESS PORT [-b ADDRESS] [-d TEXT] [-w TEXT] "
		"[-s BYTES] [-k STEPS] [-t SECONDS] [-er]\n");
	exit(2);
}

static void read_options(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "b:d:w:s:k:t:er")) != -1) {
		switch (c) {
		case 'b':
			o->from = optarg;
			break;
		case 'd':
			o->say = optarg;
			break;
		case 'w':
			o->want = optarg;
			break;
		case 's':
			o->size = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'k':
			choose_steps(o, optarg);
			break;
		case 't':
			o->patience = atof(optarg);
			break;
		case 'e':
			o->leave = true;
			break;
		case 'r':
			o->reject = true;
			break;
		default:
			usage();
		}
	}
	if (argc - optind != 3 || strlen(o->say) > UINT8_MAX)
		usage();
	if (o->size < sizeof(struct peer_place) || o->size > PEER_MOST || o->size % 8)
		peer_fail("messages of %u bytes: not from 16 to %d by 8", o->size, PEER_MOST);
	o->listen = !strcmp(argv[optind], "listen");
	if (!o->listen && strcmp(argv[optind], "connect") != 0)
		usage();
	o->address = argv[optind + 1];
	o->port = argv[optind + 2];
}

int main(int argc, char **argv)
{
	struct side s = {.o = {.say = "", .want = "", .size = 4096, .patience = 10}};

	setvbuf(stdout, NULL, _IOLBF, 0);
	memset(s.o.steps, 1, sizeof(s.o.steps));
	read_options(&s.o, argc, argv);
	if (s.o.listen ? be_called(&s) : call(&s)) {
		printf("connected\n");
		peer_exchange_places(&s.p);
		for (int step = 0; step < PEER_STEPS; step++)
			if (s.o.steps[step])
				make_step(&s, (enum peer_step)step);
		part(&s);
	}
	close_all(&s);
	printf("all as it should be\n");
	return 0;
}
