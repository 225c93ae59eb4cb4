/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counterpart of rdma_peer.c on an FI_EP_MSG endpoint of the provider "verbs", written with the
 * public interface alone. Both use the protocol of rdma_peer.h and the same arguments:
 *
 *	msg_peer listen 10.77.0.1 7471
 *	msg_peer connect 10.77.0.1 7471
 *
 *	-b ADDRESS  connect from this address
 *	-d TEXT     private data to send: with the request, the acceptance or the rejection
 *	-w TEXT     the other side's private data must begin with this
 *	-r          listen: reject the request; connect: be rejected
 *	-n          connect: nobody listens there
 *	-s BYTES    of a message and of the window (4096)
 *	-k STEPS    which steps to make, as in rdma_peer
 *	-e          end the connection after the steps; one side does, the other waits for it
 *	-t SECONDS  limit for any wait (10)
 *	-l          sleep while waiting instead of polling
 */
#include "msg_peer.h"

#define ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static const char *const step_names[] = {"send", "write", "read", "add", "swap"};

/* ---- Connecting ------------------------------------------------------------------------------ */

static struct fi_info *look_up(const struct options *o)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
	hints->mode = FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (o->from) {
		struct sockaddr_in *from = calloc(1, sizeof(*from));

		from->sin_family = AF_INET;
		inet_pton(AF_INET, o->from, &from->sin_addr);
		hints->addr_format = FI_SOCKADDR_IN;
		hints->src_addr = from;
		hints->src_addrlen = sizeof(*from);
	}
	must(fi_getinfo(FI_VERSION(1, 17), o->address, o->port, o->listen ? FI_SOURCE : 0, hints,
			&info),
	     "fi_getinfo");
	fi_freeinfo(hints);
	if (info->ep_attr->protocol != FI_PROTO_RDMA_CM_IB_RC)
		peer_fail("the entry is of protocol %#x", info->ep_attr->protocol);
	return info;
}

/* Opens all but the endpoint, for the entry `info`. */
static void open_domain(struct side *s, struct fi_info *info)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA,
				  .wait_obj = s->o.sleep ? FI_WAIT_FD : FI_WAIT_NONE};
	size_t len = (PEER_BLOCKS * s->o.size + 4095) / 4096 * 4096;

	must(fi_domain(s->fabric, info, &s->domain, NULL), "fi_domain");
	must(fi_cq_open(s->domain, &attr, &s->cq, NULL), "fi_cq_open");
	s->memory = aligned_alloc(4096, len);
	memset(s->memory, 0, len);
	must(fi_mr_reg(s->domain, s->memory, len, ACCESS, 0, 0, 0, &s->mr, NULL), "fi_mr_reg");
	s->desc = fi_mr_desc(s->mr);
}

static void post_recv(struct side *s, unsigned int n)
{
	char *at = block(s, PEER_RECV + n);

	must((int)fi_recv(s->ep, at, s->o.size, s->desc, 0, at), "fi_recv");
}

static void open_endpoint(struct side *s, struct fi_info *info)
{
	open_domain(s, info);
	must(fi_endpoint(s->domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(s->ep, &s->eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(s->ep), "fi_enable");
	for (unsigned int n = 0; n < PEER_RECVS; n++)
		post_recv(s, n);
}

/* Waits for the next event. Copies its user data, up to *len bytes, to `data`. */
static uint32_t next_event(struct side *s, struct fi_eq_cm_entry *entry, char *data, size_t *len)
{
	char buf[sizeof(*entry) + 1024];
	int ms = (int)(s->o.patience * 1000);
	uint32_t event = 0;
	ssize_t n = fi_eq_sread(s->eq, &event, buf, sizeof(buf), ms, 0);

	if (n == -FI_EAVAIL) {
		struct fi_eq_err_entry err = {.err_data = data, .err_data_size = *len};

		if (fi_eq_readerr(s->eq, &err, 0) < 0)
			peer_fail("fi_eq_readerr fails");
		*len = err.err_data_size;
		entry->fid = NULL;
		return (uint32_t)err.err;
	}
	if (n < (ssize_t)sizeof(*entry))
		peer_fail("no event: %s", fi_strerror((int)-n));
	memcpy(entry, buf, sizeof(*entry));
	*len = (size_t)n - sizeof(*entry);
	memcpy(data, buf + sizeof(*entry), *len);
	return event;
}

static void hear_private(const struct options *o, const char *what, const char *data, size_t len)
{
	size_t want = strlen(o->want);

	printf("%s: private data, %zu bytes: \"%.*s\"\n", what, len, (int)strnlen(data, len), data);
	if (len < want || memcmp(data, o->want, want) != 0)
		peer_fail("the private data does not begin with \"%s\"", o->want);
}

static void expect(struct side *s, uint32_t want, const char *what)
{
	struct fi_eq_cm_entry entry;
	size_t len = 512;
	char data[512];
	uint32_t event = next_event(s, &entry, data, &len);

	if (!entry.fid)
		peer_fail("%s: error %s", what, fi_strerror((int)event));
	if (event != want || entry.fid != &s->ep->fid)
		peer_fail("%s: event %u instead of %u", what, event, want);
	if (s->o.listen || want != FI_CONNECTED)
		return;
	hear_private(&s->o, what, data, len);
}

/* Accepts a connection. Returns false if the request was rejected, as asked for. */
static bool be_called(struct side *s)
{
	struct fi_eq_cm_entry entry;
	size_t len = 512;
	char data[512];

	must(fi_passive_ep(s->fabric, s->info, &s->pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(s->pep, &s->eq->fid, 0), "fi_pep_bind");
	must(fi_listen(s->pep), "fi_listen");
	printf("listening at %s port %s\n", s->o.address, s->o.port);
	if (next_event(s, &entry, data, &len) != FI_CONNREQ || entry.fid != &s->pep->fid)
		peer_fail("the event is no request");
	hear_private(&s->o, "a request", data, len);
	if (s->o.reject) {
		must(fi_reject(s->pep, entry.info->handle, s->o.say, strlen(s->o.say)),
		     "fi_reject");
		fi_freeinfo(entry.info);
		printf("rejected\n");
		return false;
	}
	open_endpoint(s, entry.info);
	must(fi_accept(s->ep, s->o.say, strlen(s->o.say)), "fi_accept");
	fi_freeinfo(entry.info);
	expect(s, FI_CONNECTED, "accepted");
	return true;
}

static bool call(struct side *s)
{
	struct fi_eq_cm_entry entry;
	size_t len = 512, most = sizeof(size_t), size;
	char data[512];

	open_endpoint(s, s->info);
	must(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &most),
	     "fi_getopt");
	if (strlen(s->o.say) > size)
		peer_fail("%zu bytes can be said, no more", size);
	must(fi_connect(s->ep, s->info->dest_addr, s->o.say, strlen(s->o.say)), "fi_connect");
	if (!s->o.reject && !s->o.nobody) {
		expect(s, FI_CONNECTED, "connected");
		return true;
	}
	if (next_event(s, &entry, data, &len) != FI_ECONNREFUSED || entry.fid)
		peer_fail("the event is no refusal");
	if (s->o.reject)
		hear_private(&s->o, "refused", data, len);
	else if (len)
		peer_fail("nobody says %zu bytes", len);
	return false;
}

/* ---- The steps ------------------------------------------------------------------------------- */

static void check_cell(const struct side *s, unsigned int n, uint64_t want, const char *what)
{
	uint64_t value;

	memcpy(&value, block(s, n), sizeof(value));
	if (value != want)
		peer_fail("%s: %#llx, not %#llx", what, (unsigned long long)value,
			  (unsigned long long)want);
}

static void swap(struct side *s, uint64_t compare, uint64_t swap_in, uint64_t want)
{
	wait_sent(s,
		  fi_compare_atomic(s->ep, &swap_in, 1, NULL, &compare, NULL, block(s, PEER_IN),
				    s->desc, 0, s->theirs.addr, s->theirs.rkey, FI_UINT64, FI_CSWAP,
				    s),
		  "fi_compare_atomic");
	check_cell(s, PEER_IN, want, "swap: what it found");
}

static void initiate(struct side *s, enum peer_step step, unsigned int seed)
{
	uint64_t addend = PEER_ADDEND;

	memset(block(s, PEER_IN), 0, s->o.size);
	peer_fill(block(s, PEER_OUT), s->o.size, seed);
	switch (step) {
	case PEER_SEND:
		wait_sent(s, fi_send(s->ep, block(s, PEER_OUT), s->o.size, s->desc, 0, s),
			  "fi_send");
		break;
	case PEER_WRITE:
		wait_sent(s,
			  fi_writedata(s->ep, block(s, PEER_OUT), s->o.size, s->desc,
				       PEER_IMMEDIATE, 0, s->theirs.addr, s->theirs.rkey, s),
			  "fi_writedata");
		break;
	case PEER_READ:
		wait_sent(s,
			  fi_read(s->ep, block(s, PEER_IN), s->o.size, s->desc, 0, s->theirs.addr,
				  s->theirs.rkey, s),
			  "fi_read");
		peer_compare(block(s, PEER_IN), s->o.size, seed, "what was read");
		break;
	case PEER_ADD:
		wait_sent(s,
			  fi_fetch_atomic(s->ep, &addend, 1, NULL, block(s, PEER_IN), s->desc, 0,
					  s->theirs.addr, s->theirs.rkey, FI_UINT64, FI_SUM, s),
			  "fi_fetch_atomic");
		check_cell(s, PEER_IN, PEER_FIRST, "add: what it found");
		break;
	default:
		swap(s, PEER_FIRST + 1, PEER_SECOND + 1, PEER_FIRST);
		swap(s, PEER_FIRST, PEER_SECOND, PEER_FIRST);
		break;
	}
}

static void prepare(struct side *s, enum peer_step step, unsigned int seed)
{
	uint64_t first = PEER_FIRST;

	memset(block(s, PEER_WINDOW), 0, s->o.size);
	if (step == PEER_READ)
		peer_fill(block(s, PEER_WINDOW), s->o.size, seed);
	else if (step == PEER_ADD || step == PEER_SWAP)
		memcpy(block(s, PEER_WINDOW), &first, sizeof(first));
}

static void attend(struct side *s, enum peer_step step, unsigned int seed)
{
	uint64_t message = FI_MSG | FI_RECV,
		 reported = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
	struct fi_cq_data_entry a;

	if (step != PEER_SEND && step != PEER_WRITE)
		return;
	a = hear(s, step == PEER_WRITE ? reported : message, step_names[step]);
	if (a.len != s->o.size)
		peer_fail("%s: %zu bytes came in", step_names[step], a.len);
	if (step == PEER_SEND)
		peer_compare(a.op_context, s->o.size, seed, "the message");
	else if (a.data != PEER_IMMEDIATE)
		peer_fail("immediate data %#llx", (unsigned long long)a.data);
	else
		peer_compare(block(s, PEER_WINDOW), s->o.size, seed, "what was written");
	release(s, &a);
}

static void serve(struct side *s, enum peer_step step, unsigned int seed)
{
	prepare(s, step, seed);
	tell_sync(s, step, PEER_READY);
	attend(s, step, seed);
	hear_sync(s, step, PEER_DONE);
	if (step == PEER_ADD)
		check_cell(s, PEER_WINDOW, PEER_FIRST + PEER_ADDEND, "add: what it left");
	if (step == PEER_SWAP)
		check_cell(s, PEER_WINDOW, PEER_SECOND, "swap: what it left");
}

static void make_step(struct side *s, enum peer_step step)
{
	for (unsigned int half = 0; half < 2; half++) {
		unsigned int seed = step * 2 + half;

		if (s->o.listen == (half == 0)) {
			serve(s, step, seed);
			printf("%s: served\n", step_names[step]);
			continue;
		}
		hear_sync(s, step, PEER_READY);
		initiate(s, step, seed);
		tell_sync(s, step, PEER_DONE);
		printf("%s: initiated\n", step_names[step]);
	}
}

/* ---- The whole ------------------------------------------------------------------------------- */

/*
 * Is it the message that allowed the end, once more? rxe of Linux 6.12 may deliver the last message again, into each receive
 * that is left, if its receiver ends the queue pair right after it has come: a program of verbs alone saw that in 3 of
 * 620 connections.
 */
static bool is_last_again(const struct fi_cq_data_entry *entry)
{
	const struct peer_sync last = {htonl(PEER_STEPS), htonl(PEER_DONE)};

	return entry->flags == (FI_MSG | FI_RECV) && entry->len == sizeof(last) &&
	       !memcmp(entry->op_context, &last, sizeof(last));
}

/*
 * The remaining receives are cancelled. The side that did not end the connection also has its last
 * message in flight, and gets the other side's if that one was killed instead.
 */
static void reap_left_over(struct side *s)
{
	double end = peer_now() + s->o.patience;
	unsigned int receives = s->arrivals; /* taken while a send was waited for */

	while (receives < PEER_RECVS && peer_now() < end) {
		struct fi_cq_data_entry entry;
		struct fi_cq_err_entry err = {0};
		ssize_t n = fi_cq_read(s->cq, &entry, 1);

		if (n == -FI_EAGAIN)
			continue;
		if (n == -FI_EAVAIL) {
			fi_cq_readerr(s->cq, &err, 0);
			if (err.err != FI_ECANCELED)
				peer_fail("an operation ends with %s", fi_strerror(err.err));
			entry.flags = err.flags;
		} else if (n != 1 || (s->o.leave && !is_last_again(&entry))) {
			peer_fail("after the end, fi_cq_read: %zd, flags %#llx, %zu bytes", n,
				  (unsigned long long)entry.flags, entry.len);
		}
		if (s->o.leave && !(entry.flags & FI_RECV))
			peer_fail("left over: flags %#llx", (unsigned long long)entry.flags);
		receives += (entry.flags & FI_RECV) != 0;
	}
	if (receives < PEER_RECVS)
		peer_fail("%u receives of %d were given back", receives, PEER_RECVS);
}

static void part(struct side *s)
{
	if (s->o.leave) {
		hear_sync(s, PEER_STEPS, PEER_DONE);
		must(fi_shutdown(s->ep, 0), "fi_shutdown");
	} else {
		struct peer_sync half = {htonl(PEER_STEPS), htonl(PEER_DONE)};

		memcpy(block(s, PEER_OUT), &half, sizeof(half));
		must((int)fi_send(s->ep, block(s, PEER_OUT), sizeof(half), s->desc, 0, s),
		     "fi_send");
	}
	expect(s, FI_SHUTDOWN, "parting");
	reap_left_over(s);
	if (fi_send(s->ep, block(s, PEER_OUT), 8, s->desc, 0, s) != -FI_ENOTCONN)
		peer_fail("a send after the end is taken");
	printf("disconnected%s\n", s->o.leave ? "" : " by the other side");
}

static void close_one(struct fid *fid, const char *what)
{
	if (fid)
		must(fi_close(fid), what);
}

static void close_all(struct side *s)
{
	close_one(s->ep ? &s->ep->fid : NULL, "closing the endpoint");
	close_one(s->pep ? &s->pep->fid : NULL, "closing the passive endpoint");
	close_one(s->mr ? &s->mr->fid : NULL, "closing the region");
	close_one(s->cq ? &s->cq->fid : NULL, "closing the completion queue");
	close_one(s->domain ? &s->domain->fid : NULL, "closing the domain");
	close_one(&s->eq->fid, "closing the event queue");
	close_one(&s->fabric->fid, "closing the fabric");
	fi_freeinfo(s->info);
	free(s->memory);
}

static void choose_steps(struct options *o, char *list)
{
	memset(o->steps, 0, sizeof(o->steps));
	for (char *word = strtok(list, ","); word; word = strtok(NULL, ","))
		for (int step = 0; step < PEER_STEPS; step++)
			o->steps[step] |= !strcmp(word, step_names[step]);
}

static void read_option(struct options *o, int c)
{
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
		o->size = strtoul(optarg, NULL, 0);
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
	case 'n':
		o->nobody = true;
		break;
	case 'l':
		o->sleep = true;
		break;
	default:
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct side s = {.o = {.say = "", .want = "", .size = 4096, .patience = 10}};
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	memset(s.o.steps, 1, sizeof(s.o.steps));
	while ((c = getopt(argc, argv, "b:d:w:s:k:t:ernl")) != -1)
		read_option(&s.o, c);
	if (argc - optind != 3)
		exit(2);
	s.o.listen = !strcmp(argv[optind], "listen");
	s.o.address = argv[optind + 1];
	s.o.port = argv[optind + 2];
	s.info = look_up(&s.o);
	must(fi_fabric(s.info->fabric_attr, &s.fabric, NULL), "fi_fabric");
	must(fi_eq_open(s.fabric, &attr, &s.eq, NULL), "fi_eq_open");
	if (s.o.listen ? be_called(&s) : call(&s)) {
		exchange_places(&s);
		for (int step = 0; step < PEER_STEPS; step++)
			if (s.o.steps[step])
				make_step(&s, (enum peer_step)step);
		part(&s);
	}
	close_all(&s);
	printf("all as it should be\n");
	return 0;
}
