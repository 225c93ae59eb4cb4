/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_pingpong: sends messages back and forth between two processes, checks and times them. A
 * control socket (TCP) tells the client the server's provider and address, and synchronizes both
 * before each size. All measured data goes through the endpoint. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "pingpong_control.h"
#include "pingpong_options.h"
#include "pingpong_report.h"

#define API       FI_VERSION(1, 17)
#define NAME_ROOM 256 /* bytes of an endpoint's or a provider's name */
#define TAG       0x70696e67ULL

static const size_t default_sizes[] = {64, 256, 1024, 4096, 65536, 1048576};
#define SIZES (sizeof default_sizes / sizeof default_sizes[0])

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_cq *tx_cq;
	struct fid_cq *rx_cq;
	struct fid_av *av;
	struct fid_mr *mr;
	struct fid_ep *ep;
	fi_addr_t peer; /* unused by a connected endpoint */
	size_t room;    /* bytes of each of the two buffers */
	char *tx_buf;
	char *rx_buf;
	void *desc;
	struct fi_context2 tx_context;
	struct fi_context2 rx_context;
} pp = {.peer = FI_ADDR_UNSPEC};

static void say(const char *what)
{
	if (want.verbose)
		fprintf(stderr, "fi_pingpong: %s\n", what);
}

/* ---- meeting ---- */

/* Sends our provider and address; the client makes them its hints. */
static void control_put_name(struct fid *fid)
{
	char name[NAME_ROOM];
	size_t len = sizeof name;
	uint32_t format = htonl(pp.info->addr_format);

	must(fi_getname(fid, name, &len), "fi_getname");
	control_put(pp.info->fabric_attr->prov_name, strlen(pp.info->fabric_attr->prov_name));
	control_put(&format, sizeof format);
	control_put(name, len);
}

static void control_get_name(struct fi_info *hints)
{
	char provider[NAME_ROOM] = "", name[NAME_ROOM];
	uint32_t format;

	control_get(provider, sizeof provider - 1);
	control_get(&format, sizeof format);
	free(hints->dest_addr);
	hints->dest_addrlen = control_get(name, sizeof name);
	hints->dest_addr = memcpy(malloc(sizeof name), name, sizeof name);
	hints->addr_format = ntohl(format);
	if (!hints->fabric_attr->prov_name)
		hints->fabric_attr->prov_name = strdup(provider);
}

/* ---- the endpoint ---- */

static void open_fabric(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};

	must(fi_getinfo(API, want.source, NULL, want.source ? FI_SOURCE : 0, want.hints, &pp.info),
	     "fi_getinfo");
	if (want.verbose)
		fprintf(stderr, "%s\n", fi_tostr(pp.info, FI_TYPE_INFO));
	must(fi_fabric(pp.info->fabric_attr, &pp.fabric, NULL), "fi_fabric");
	must(fi_eq_open(pp.fabric, &attr, &pp.eq, NULL), "fi_eq_open");
}

static void open_buffers(void)
{
	uint64_t access = FI_SEND | FI_RECV;
	size_t max = pp.info->ep_attr->max_msg_size;

	pp.room = want.size ? want.size : default_sizes[SIZES - 1];
	if (want.size && want.size > max)
		die("a message of this endpoint has at most %zu bytes", max);
	pp.room = pp.room > max ? max : pp.room;
	pp.tx_buf = calloc(2, pp.room);
	if (!pp.tx_buf)
		die("no memory for messages of %zu bytes", pp.room);
	pp.rx_buf = pp.tx_buf + pp.room;
	if (!(pp.info->domain_attr->mr_mode & FI_MR_LOCAL))
		return;
	must(fi_mr_reg(pp.domain, pp.tx_buf, 2 * pp.room, access, 0, TAG, 0, &pp.mr, NULL),
	     "fi_mr_reg");
	pp.desc = fi_mr_desc(pp.mr);
}

/* Opens the endpoint that pp.info describes, with its queues. */
static void open_endpoint(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = pp.info->domain_attr->av_type, .count = 1};

	must(fi_domain(pp.fabric, pp.info, &pp.domain, NULL), "fi_domain");
	must(fi_cq_open(pp.domain, &cq_attr, &pp.tx_cq, NULL), "fi_cq_open");
	must(fi_cq_open(pp.domain, &cq_attr, &pp.rx_cq, NULL), "fi_cq_open");
	must(fi_endpoint(pp.domain, pp.info, &pp.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(pp.ep, &pp.tx_cq->fid, FI_TRANSMIT), "fi_ep_bind to a completion queue");
	must(fi_ep_bind(pp.ep, &pp.rx_cq->fid, FI_RECV), "fi_ep_bind to a completion queue");
	if (pp.info->ep_attr->type == FI_EP_MSG) {
		must(fi_ep_bind(pp.ep, &pp.eq->fid, 0), "fi_ep_bind to the event queue");
	} else {
		must(fi_av_open(pp.domain, &av_attr, &pp.av, NULL), "fi_av_open");
		must(fi_ep_bind(pp.ep, &pp.av->fid, 0), "fi_ep_bind to the address vector");
	}
	must(fi_enable(pp.ep), "fi_enable");
	open_buffers();
}

/* Waits for a connection event; stores the fi_info of an FI_CONNREQ in pp.info. */
static void wait_event(uint32_t expected, const char *what)
{
	struct fi_eq_cm_entry entry = {0};
	struct fi_eq_err_entry error = {0};
	uint32_t event = 0;
	ssize_t ret = fi_eq_sread(pp.eq, &event, &entry, sizeof entry, (int)(PATIENCE * 1000), 0);

	if (ret == -FI_EAVAIL && fi_eq_readerr(pp.eq, &error, 0) > 0)
		die("%s: %s", what, fi_strerror(error.err));
	must(ret, what);
	if (event != expected)
		die("%s: another event came: %u", what, event);
	if (entry.info) {
		fi_freeinfo(pp.info);
		pp.info = entry.info;
	}
}

static void connect_server(void)
{
	open_fabric();
	must(fi_passive_ep(pp.fabric, pp.info, &pp.pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pp.pep, &pp.eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pp.pep), "fi_listen");
	control_put_name(&pp.pep->fid);
	wait_event(FI_CONNREQ, "waiting for a connection request");
	open_endpoint();
	must(fi_accept(pp.ep, NULL, 0), "fi_accept");
	wait_event(FI_CONNECTED, "accepting the connection");
}

static void connect_client(void)
{
	control_get_name(want.hints);
	open_fabric();
	open_endpoint();
	must(fi_connect(pp.ep, pp.info->dest_addr, NULL, 0), "fi_connect");
	wait_event(FI_CONNECTED, "connecting");
}

/* Connectionless endpoints exchange addresses, the server's first. */
static void meet(void)
{
	struct fi_info *peer = want.hints;

	if (want.server)
		control_get_name(peer);
	open_fabric();
	open_endpoint();
	control_put_name(&pp.ep->fid);
	if (!want.server)
		control_get_name(peer);
	if (fi_av_insert(pp.av, peer->dest_addr, 1, &pp.peer, 0, NULL) != 1)
		die("fi_av_insert: the address of the other side was refused");
}

/* ---- messages ---- */

static void wait_completion(struct fid_cq *cq, const char *what)
{
	struct fi_cq_entry entry;
	struct fi_cq_err_entry error = {0};
	double deadline = 0;
	ssize_t ret;

	for (unsigned spins = 1; (ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN; spins++) {
		if (spins & 0xffff)
			continue;
		if (!deadline)
			deadline = seconds() + PATIENCE;
		if (seconds() > deadline)
			die("%s: nothing for %.0f seconds", what, PATIENCE);
	}
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
		die("%s: %s", what, fi_strerror(error.err));
	must(ret, what);
}

static void post_recv(size_t len)
{
	ssize_t ret;

	do
		ret = want.hints->caps & FI_TAGGED
			      ? fi_trecv(pp.ep, pp.rx_buf, len, pp.desc, FI_ADDR_UNSPEC, TAG, 0,
					 &pp.rx_context)
			      : fi_recv(pp.ep, pp.rx_buf, len, pp.desc, FI_ADDR_UNSPEC,
					&pp.rx_context);
	while (ret == -FI_EAGAIN && fi_cq_read(pp.rx_cq, NULL, 0) <= 0);
	must(ret, "posting a receive");
}

static void send_one(size_t len)
{
	ssize_t ret;

	do
		ret = want.hints->caps & FI_TAGGED
			      ? fi_tsend(pp.ep, pp.tx_buf, len, pp.desc, pp.peer, TAG,
					 &pp.tx_context)
			      : fi_send(pp.ep, pp.tx_buf, len, pp.desc, pp.peer, &pp.tx_context);
	while (ret == -FI_EAGAIN && fi_cq_read(pp.tx_cq, NULL, 0) <= 0);
	must(ret, "sending");
	wait_completion(pp.tx_cq, "sending");
}

/* Returns the letter at a position, different in each message and direction. */
static char letter(size_t at, long round, bool from_server)
{
	return (char)((from_server ? 'a' : 'A') + (at + (size_t)round) % 26);
}

static void ping(size_t len, long round)
{
	for (size_t i = 0; want.check && i < len; i++)
		pp.tx_buf[i] = letter(i, round, !want.server);
	send_one(len);
}

static void pong(size_t len, long round)
{
	wait_completion(pp.rx_cq, "receiving");
	for (size_t i = 0; want.check && i < len; i++)
		if (pp.rx_buf[i] != letter(i, round, want.server))
			die("message %ld of %zu bytes: byte %zu is wrong", round, len, i);
	/* Posts the next receive before the other side can send again. */
	if (round + 1 < want.iterations)
		post_recv(len);
}

static void run(size_t len)
{
	double start, last;

	post_recv(len);
	control_sync();
	start = last = seconds();
	for (long round = 0; round < want.iterations; round++) {
		if (want.server)
			ping(len, round);
		pong(len, round);
		if (!want.server)
			ping(len, round);
		if (want.latency) {
			double now = seconds();

			round_times[round] = now - last;
			last = now;
		}
	}
	report(len, seconds() - start);
}

static void run_all(void)
{
	report_open();
	if (want.size)
		run(want.size);
	for (size_t i = 0; !want.size && i < SIZES && default_sizes[i] <= pp.room; i++)
		run(default_sizes[i]);
	report_close();
	control_sync();
}

static void close_all(void)
{
	struct fid *fids[] = {
		&pp.ep->fid,
		pp.pep ? &pp.pep->fid : NULL,
		pp.mr ? &pp.mr->fid : NULL,
		&pp.tx_cq->fid,
		&pp.rx_cq->fid,
		pp.av ? &pp.av->fid : NULL,
		&pp.domain->fid,
		&pp.eq->fid,
		&pp.fabric->fid,
	};

	if (pp.info->ep_attr->type == FI_EP_MSG)
		fi_shutdown(pp.ep, 0);
	for (size_t i = 0; i < sizeof fids / sizeof fids[0]; i++)
		if (fids[i])
			must(fi_close(fids[i]), "fi_close");
	free(pp.tx_buf);
	fi_freeinfo(pp.info);
	fi_freeinfo(want.hints);
	close(control);
}

int main(int argc, char **argv)
{
	struct fi_info *hints = want.hints = fi_allocinfo();

	if (!hints)
		die("no memory");
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	parse(argc, argv);

	say(want.server ? "connecting the control socket" : "waiting for a client");
	want.server ? control_connect() : control_accept();
	if (hints->ep_attr->type != FI_EP_MSG)
		meet();
	else
		want.server ? connect_client() : connect_server();
	say("ready");
	run_all();
	close_all();
	return EXIT_SUCCESS;
}
