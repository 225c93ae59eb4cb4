/* SPDX-License-Identifier: BSD-2-Clause */
/* Options and default flags of endpoints, and refusals of binding and enabling. fi_endpoint(3). */
#include <rdma/fi_atomic.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>

#include "obj.h"

static uint64_t get_flags(struct fid_ep *ep, uint64_t side)
{
	uint64_t flags = side;

	OK(fi_control(&ep->fid, FI_GETOPSFLAG, &flags));
	return flags;
}

/* Default flags come from the attributes; setting those of one direction keeps the other. */
static void op_flags(struct api *a)
{
	struct obj o = {0};
	uint64_t flags;

	(void)a;
	obj_domain(&o);
	o.info->tx_attr->op_flags = FI_INJECT_COMPLETE;
	o.info->rx_attr->op_flags = 0;
	obj_open(&o);
	CHECK_EQ(get_flags(o.ep, FI_TRANSMIT) & FI_INJECT_COMPLETE, FI_INJECT_COMPLETE);
	CHECK_EQ(get_flags(o.ep, FI_RECV) & (FI_INJECT_COMPLETE | FI_COMPLETION), 0);
	flags = FI_TRANSMIT | FI_TRANSMIT_COMPLETE;
	OK(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_RECV | FI_COMPLETION;
	OK(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags));
	CHECK_EQ(get_flags(o.ep, FI_TRANSMIT) & (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE),
		 FI_TRANSMIT_COMPLETE);
	CHECK_EQ(get_flags(o.ep, FI_RECV) & FI_COMPLETION, FI_COMPLETION);
	obj_close(&o);
}

/* Default flags before the endpoint is enabled. */
static void op_flags_early(struct api *a)
{
	struct obj o = {0};
	uint64_t flags = FI_TRANSMIT | FI_COMPLETION;
	int word = 4, got = 0;
	fi_addr_t self;

	(void)a;
	obj_domain(&o);
	o.info->tx_attr->op_flags = o.info->rx_attr->op_flags = 0;
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ep(&o);
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_RECV | FI_SELECTIVE_COMPLETION));
	OK(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags));
	OK(fi_enable(o.ep));
	CHECK_EQ(get_flags(o.ep, FI_TRANSMIT) & FI_COMPLETION, FI_COMPLETION);
	self = obj_insert_ep(o.av, o.ep);
	OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, NULL));
	POST(o.cq, fi_send(o.ep, &word, sizeof(word), NULL, self, &word));
	obj_done(o.cq, &word);
	OBJ_UNTIL(got == 4, fi_cq_read(o.cq, NULL, 0));
	obj_quiet(o.cq, 10);
	obj_close(&o);
}

/* Flags that cannot be defaults are refused, and nothing changes. */
static void op_flags_unknown(struct api *a)
{
	static const uint64_t sides[] = {FI_TRANSMIT, FI_RECV};
	static const uint64_t unknown[] = {FI_READ,   FI_REMOTE_WRITE,  FI_SELECTIVE_COMPLETION,
					   FI_ALIAS,  UINT64_C(1) << 8, UINT64_C(1) << 63,
					   FI_SOURCE, UINT64_C(1) << 50};
	struct obj o = {0};

	(void)a;
	if (api_other())
		api_skip("takes any flag, or has no such control");
	obj_open(&o);
	for (size_t side = 0; side < API_COUNT(sides); side++) {
		uint64_t before = get_flags(o.ep, sides[side]);

		for (size_t i = 0; i < API_COUNT(unknown); i++) {
			uint64_t flags = sides[side] | FI_COMPLETION | unknown[i];

			CHECK_EQ(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
			CHECK_EQ(get_flags(o.ep, sides[side]), before);
		}
	}
	obj_close(&o);
}

/* FI_INJECT as default flag: the buffer can be reused at once. */
static void inject_default(struct api *a)
{
	struct obj o = {0};
	uint64_t flags = FI_TRANSMIT | FI_INJECT;
	int got[50];
	fi_addr_t self;

	(void)a;
	obj_open(&o);
	self = obj_insert_ep(o.av, o.ep);
	OK(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags));
	for (int n = 0; n < 50; n++) {
		int word = n;

		POST(o.cq, fi_send(o.ep, &word, sizeof(word), NULL, self, NULL));
		word = -1;
	}
	for (int n = 0; n < 50; n++)
		OK(fi_recv(o.ep, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[n]));
	for (int n = 0; n < 100; n++)
		obj_next(o.cq, NULL);
	for (int n = 0; n < 50; n++)
		CHECK_EQ(got[n], n);
	obj_close(&o);
}

static void options(struct api *a)
{
	struct obj o = {0};
	size_t value = 100, len = sizeof(value);
	char small = 0;

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_MULTI_RECV);
	obj_open(&o);
	OK(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, len));
	value = 0;
	OK(fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	CHECK_EQ(value, 100);
	CHECK_EQ(len, sizeof(size_t));
	len = 1;
	if (!api_other())
		CHECK_EQ(
			fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &small, &len),
			-FI_ETOOSMALL);
	value = 3;
	len = sizeof(value);
	CHECK_EQ(fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, 999, &value, &len), -FI_ENOPROTOOPT);
	CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, 999, &value, len), -FI_ENOPROTOOPT);
	CHECK_EQ(fi_getopt(&o.ep->fid, 7, FI_OPT_MIN_MULTI_RECV, &value, &len), -FI_ENOPROTOOPT);
	CHECK_EQ(fi_setopt(&o.ep->fid, 7, FI_OPT_MIN_MULTI_RECV, &value, len), -FI_ENOPROTOOPT);
	CHECK_EQ(value, 3);
	/* Read-only options. */
	FAILS(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, len));
	obj_close(&o);
}

/* An unknown option gives its error whatever the length. */
static void unknown_options(struct api *a)
{
	static const int names[] = {999, -1, FI_OPT_EFA_RNR_RETRY};
	struct obj o = {0};
	char value[16] = {0};

	(void)a;
	obj_open(&o);
	for (size_t i = 0; i < API_COUNT(names); i++)
		for (size_t len = 0; len <= sizeof(value); len++) {
			size_t room = len;

			CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, names[i], value, len),
				 -FI_ENOPROTOOPT);
			CHECK_EQ(fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, names[i], value, &room),
				 -FI_ENOPROTOOPT);
		}
	obj_close(&o);
}

/* Known options; their length is checked. */
static void known_options(struct api *a)
{
	struct obj o = {0};
	int p2p = -1;
	bool yes = true;
	size_t len = sizeof(p2p);
	struct fid_ep *ep;

	(void)a;
	if (api_other())
		api_skip("later than this library");
	obj_open(&o);
	OK(fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, &len));
	CHECK_EQ(p2p, FI_HMEM_P2P_ENABLED);
	CHECK_EQ(len, sizeof(p2p));
	for (p2p = FI_HMEM_P2P_ENABLED; p2p <= FI_HMEM_P2P_DISABLED; p2p++)
		CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, len),
			 p2p == FI_HMEM_P2P_REQUIRED ? -FI_EOPNOTSUPP : 0);
	CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, len), -FI_EINVAL);
	len = sizeof(yes);
	OK(fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &yes, &len));
	CHECK(!yes);
	OK(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &yes, len));
	yes = true;
	CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &yes, len),
		 obj_connects() ? -FI_EOPBADSTATE : -FI_EOPNOTSUPP);
	ep = obj_ep(&o);
	CHECK_EQ(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &yes, len),
		 obj_connects() ? 0 : -FI_EOPNOTSUPP);
	OK(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &yes, &len));
	CHECK_EQ(yes, obj_connects());
	CLOSE(ep);
	CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, 1), -FI_EINVAL);
	CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &len, 4),
		 -FI_EINVAL);
	CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, 8),
		 -FI_EINVAL);
	obj_close(&o);
}

static size_t get_size(struct fid_ep *ep, int name)
{
	size_t value = 0, len = sizeof(value);

	OK(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, name, &value, &len));
	CHECK_EQ(len, sizeof(value));
	return value;
}

/* Limits (bytes) of injected messages, tagged messages, writes and atomics. */
enum { IN_MSG = 8, IN_TAGGED = 16, IN_RMA = 24, IN_ATOMIC = 40, IN_MOST = 64 };

/* Each kind of injected operation at its limit and one byte beyond, to itself. */
static void inject_each(struct obj *o, fi_addr_t self, size_t len)
{
	const uint64_t key = 7;
	char buf[IN_MOST] = {0};
	struct iovec iov = {buf, len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = self};

	if (len > IN_MSG) {
		CHECK_EQ(fi_inject(o->ep, buf, len, self), -FI_EMSGSIZE);
		CHECK_EQ(fi_sendmsg(o->ep, &msg, FI_INJECT), -FI_EMSGSIZE);
	} else {
		POST(o->cq, fi_inject(o->ep, buf, len, self));
		POST(o->cq, fi_sendmsg(o->ep, &msg, FI_INJECT));
	}
	if (len > IN_TAGGED)
		CHECK_EQ(fi_tinject(o->ep, buf, len, self, 1), -FI_EMSGSIZE);
	else
		POST(o->cq, fi_tinject(o->ep, buf, len, self, 1));
	if (len > IN_RMA)
		CHECK_EQ(fi_inject_write(o->ep, buf, len, self, 0, key), -FI_EMSGSIZE);
	else
		POST(o->cq, fi_inject_write(o->ep, buf, len, self, 0, key));
	if (len > IN_ATOMIC)
		CHECK_EQ(fi_inject_atomic(o->ep, buf, len, self, 0, key, FI_UINT8, FI_SUM),
			 -FI_EMSGSIZE);
	else
		POST(o->cq, fi_inject_atomic(o->ep, buf, len, self, 0, key, FI_UINT8, FI_SUM));
}

static void inject_sizes(struct api *a)
{
	static const struct {
		int name;
		size_t value;
	} limits[] = {{FI_OPT_INJECT_MSG_SIZE, IN_MSG},
		      {FI_OPT_INJECT_TAGGED_SIZE, IN_TAGGED},
		      {FI_OPT_INJECT_RMA_SIZE, IN_RMA},
		      {FI_OPT_INJECT_ATOMIC_SIZE, IN_ATOMIC}};
	struct obj o = {.hints = obj_hints(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)};
	char region[IN_MOST];
	struct fid_mr *mr;
	fi_addr_t self;
	size_t most;

	(void)a;
	if (api_other())
		api_skip("later than this library");
	obj_open(&o);
	self = obj_insert_ep(o.av, o.ep);
	OK(fi_mr_reg(o.domain, region, sizeof(region), FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	most = o.info->tx_attr->inject_size;
	CHECK(most > IN_MOST);
	for (size_t i = 0; i < API_COUNT(limits); i++)
		CHECK_EQ(get_size(o.ep, limits[i].name), most);
	for (size_t i = 0; i < API_COUNT(limits); i++)
		OK(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, limits[i].name, &limits[i].value,
			     sizeof(size_t)));
	most++;
	for (size_t i = 0; i < API_COUNT(limits); i++) {
		CHECK_EQ(get_size(o.ep, limits[i].name), limits[i].value);
		CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, limits[i].name, &most,
				   sizeof(size_t)),
			 -FI_EINVAL);
	}
	for (size_t i = 0; i < API_COUNT(limits); i++) {
		inject_each(&o, self, limits[i].value);
		inject_each(&o, self, limits[i].value + 1);
	}
	CLOSE(o.ep);
	o.ep = NULL;
	CLOSE(mr);
	obj_close(&o);
}

/* The longest operations of each kind; 0 without the capability. */
static void longest(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG | FI_ATOMIC)};
	size_t count = 0;

	(void)a;
	if (api_other())
		api_skip("later than this library");
	obj_open(&o);
	CHECK_EQ(get_size(o.ep, FI_OPT_MAX_MSG_SIZE), o.info->ep_attr->max_msg_size);
	CHECK_EQ(get_size(o.ep, FI_OPT_MAX_TAGGED_SIZE), 0);
	CHECK_EQ(get_size(o.ep, FI_OPT_INJECT_TAGGED_SIZE), 0);
	CHECK_EQ(get_size(o.ep, FI_OPT_MAX_RMA_SIZE), 0);
	OK(fi_atomicvalid(o.ep, FI_UINT8, FI_SUM, &count));
	CHECK_EQ(get_size(o.ep, FI_OPT_MAX_ATOMIC_SIZE), count);
	obj_close(&o);
	o.hints = obj_hints(FI_TAGGED | FI_RMA);
	obj_open(&o);
	CHECK_EQ(get_size(o.ep, FI_OPT_MAX_TAGGED_SIZE), o.info->ep_attr->max_msg_size);
	CHECK_EQ(get_size(o.ep, FI_OPT_MAX_RMA_SIZE), o.info->ep_attr->max_msg_size);
	CHECK_EQ(get_size(o.ep, FI_OPT_MAX_MSG_SIZE), 0);
	CHECK_EQ(get_size(o.ep, FI_OPT_MAX_ATOMIC_SIZE), 0);
	obj_close(&o);
}

static bool same_name(const struct obj_name *a, const struct obj_name *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

/* A name in use is refused at once; the endpoint can then get another name. */
static void names_in_use(struct api *a)
{
	struct obj o = {0};
	struct obj_name name, given;
	struct fid_ep *ep;

	(void)a;
	if (api_other() && !api_networked())
		api_skip("renames where strings are names");
	obj_open(&o);
	name = obj_name(&o.ep->fid);
	ep = obj_ep(&o);
	CHECK_EQ(fi_setname(&ep->fid, name.bytes, name.len), -FI_EADDRINUSE);
	if (api_other()) /* another library does not recover */
		return;
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	given = obj_name(&ep->fid);
	CHECK(!same_name(&given, &name));
	CHECK_EQ(fi_setname(&ep->fid, given.bytes, given.len), -FI_EOPBADSTATE);
	CLOSE(o.ep);
	o.ep = obj_ep(&o);
	CHECK_EQ(fi_setname(&o.ep->fid, given.bytes, given.len), -FI_EADDRINUSE);
	OK(fi_setname(&o.ep->fid, name.bytes, name.len));
	given = obj_name(&o.ep->fid);
	CHECK(same_name(&given, &name));
	CLOSE(ep);
	obj_close(&o);
}

static void sizes_left(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *ep;

	(void)a;
	obj_open(&o);
	CHECK(fi_tx_size_left(o.ep) > 0);
	CHECK(fi_rx_size_left(o.ep) > 0);
	ep = obj_ep(&o);
	CHECK_EQ(fi_tx_size_left(ep), -FI_EOPBADSTATE);
	CHECK_EQ(fi_rx_size_left(ep), -FI_EOPBADSTATE);
	CLOSE(ep);
	obj_close(&o);
}

static void dscp(struct api *a)
{
	(void)a;
	for (unsigned int value = 0; value < 64; value++)
		CHECK_EQ(fi_tc_dscp_get(fi_tc_dscp_set((uint8_t)value)), value);
	CHECK_EQ(fi_tc_dscp_get(FI_TC_BULK_DATA), 0);
}

/* fi_enable reports what is missing: a vector, or a queue for a direction. */
static void enable_refused(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *ep;

	(void)a;
	obj_open(&o);
	ep = obj_ep(&o);
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK_EQ(fi_enable(ep), -FI_ENOAV);
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	OK(fi_enable(ep));
	CLOSE(ep);

	ep = obj_ep(&o);
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT));
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &o.cq->fid, FI_RECV));
	OK(fi_enable(ep));
	CLOSE(ep);
	obj_close(&o);
}

/* An endpoint for one direction needs a queue for that direction only. */
static void one_direction(struct api *a)
{
	struct obj o = {0};
	int word = 1;

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_SEND);
	obj_domain(&o);
	CHECK_EQ(o.info->caps & FI_RECV, 0);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ep(&o);
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT));
	OK(fi_enable(o.ep));
	if (!api_other())
		FAILS(fi_recv(o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, NULL));
	obj_close(&o);
}

/* Operations fail before fi_enable; most bindings fail after it. */
static void order_of_calls(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *ep;
	int word = 1;

	(void)a;
	obj_open(&o);
	ep = obj_ep(&o);
	if (!api_other()) {
		CHECK_EQ(fi_send(ep, &word, sizeof(word), NULL, 0, NULL), -FI_EOPBADSTATE);
		CHECK_EQ(fi_recv(ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, NULL),
			 -FI_EOPBADSTATE);
		CHECK_EQ(fi_tinject(ep, &word, sizeof(word), 0, 0), -FI_EOPBADSTATE);
		FAILS(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT));
		FAILS(fi_ep_bind(o.ep, &o.av->fid, 0));
	}
	CLOSE(ep);
	obj_close(&o);
}

static void bind_refused(struct api *a)
{
	struct obj o = {0}, p = {0};
	struct fid_cntr *cntr;
	struct fid_ep *ep;

	(void)a;
	obj_open(&o);
	obj_open(&p);
	cntr = obj_cntr(&o, FI_WAIT_NONE);
	ep = obj_ep(&o);
	FAILS(fi_ep_bind(ep, &o.domain->fid, 0));
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &cntr->fid, FI_SEND));
	CHECK_EQ(fi_ep_bind(ep, &o.cq->fid, FI_RECV | FI_TAGGED), -FI_EBADFLAGS);
	if (!api_other()) {
		/* Only one vector, and one queue or counter per event. */
		CHECK_EQ(fi_ep_bind(ep, &o.av->fid, 0), -FI_EINVAL);
		CHECK_EQ(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT), -FI_EINVAL);
		CHECK_EQ(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_RECV), -FI_EINVAL);
		CHECK_EQ(fi_ep_bind(ep, &o.cq->fid, FI_SELECTIVE_COMPLETION), -FI_EINVAL);
		CHECK_EQ(fi_ep_bind(ep, &cntr->fid, FI_TAGGED), -FI_EBADFLAGS);
		/* An object of another domain. */
		CHECK_EQ(fi_ep_bind(ep, &p.cq->fid, FI_RECV), -FI_EDOMAIN);
	}
	CLOSE(ep);
	CLOSE(cntr);
	obj_close(&p);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"op_flags", op_flags, 1, {0}},
		{"op_flags_early", op_flags_early, 1, {0}},
		{"op_flags_unknown", op_flags_unknown, 1, {0}},
		{"inject_default", inject_default, 1, {0}},
		{"options", options, 1, {0}},
		{"unknown_options", unknown_options, 1, {0}},
		{"known_options", known_options, 1, {0}},
		{"inject_sizes", inject_sizes, 1, {0}},
		{"longest", longest, 1, {0}},
		{"names_in_use", names_in_use, 1, {0}},
		{"sizes_left", sizes_left, 1, {0}},
		{"dscp", dscp, 1, {0}},
		{"enable_refused", enable_refused, 1, {0}},
		{"one_direction", one_direction, 1, {0}},
		{"order_of_calls", order_of_calls, 1, {0}},
		{"bind_refused", bind_refused, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
