/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A provider as others build theirs: a library of its own, from the headers of the release that the
 * test compiles it with. Its endpoints (FI_EP_RDM, FI_MSG) send datagrams over sockets of this host.
 * The test builds it several times: CLAIM, VERSION, FI_API and INIT say what it claims to be, NO_INIT
 * leaves its entry point out, OVER is a provider that it layers over, BARE makes an entry that lacks
 * a part, MISSING needs a call that no library has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#ifndef NAME
#define NAME "loop"
#endif
#ifndef CLAIM
#define CLAIM NAME
#endif
#ifndef VERSION
#define VERSION FI_VERSION(7, 3)
#endif
#ifndef FI_API
#define FI_API FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)
#endif
#ifndef INIT
#define INIT (&provider)
#endif

#define DEPTH     64 /* posted receives, and completions not read */
#define MSG_MAX   4096
#define PEERS_MAX 16

extern struct fi_provider provider;

struct completions {
	struct fid_cq fid;
	struct endpoint *ep; /* the one bound to it */
	struct fi_cq_msg_entry entry[DEPTH];
	unsigned int first, end;
};

struct addresses {
	struct fid_av fid;
	uint64_t peer[PEERS_MAX];
	size_t count;
};

struct endpoint {
	struct fid_ep fid;
	struct completions *cq;
	struct addresses *av;
	int sock;
	uint64_t name;
	struct {
		struct iovec iov;
		void *context;
	} posted[DEPTH];
	unsigned int first, end;
};

static int parameter; /* FI_LOOP_MARK */

/* ---- what every object has ---- */

static int no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid, (void)bfid, (void)flags;
	return -FI_ENOSYS;
}

static int no_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS;
}

static int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

static int plain_close(struct fid *fid)
{
	free(fid);
	return 0;
}

static int plain_tostr(const struct fid *fid, char *buf, size_t len)
{
	return snprintf(buf, len, "an object of %s, class %zu", NAME, fid->fclass) < 0;
}

#define FID_OPS(close_it, bind_it, control_it)                                                     \
	{                                                                                          \
		.size = sizeof(struct fi_ops), .close = close_it, .bind = bind_it,                 \
		.control = control_it, .ops_open = no_ops_open, .tostr = plain_tostr,              \
	}

static struct fi_ops plain_ops = FID_OPS(plain_close, no_bind, no_control);

/* ---- completion queue ---- */

static void complete(struct completions *cq, void *context, uint64_t flags, size_t len)
{
	cq->entry[cq->end++ % DEPTH] =
		(struct fi_cq_msg_entry){.op_context = context, .flags = flags, .len = len};
}

static void progress(struct endpoint *ep)
{
	while (ep && ep->first != ep->end && ep->cq->end - ep->cq->first < DEPTH) {
		unsigned int slot = ep->first % DEPTH;
		struct msghdr msg = {.msg_iov = &ep->posted[slot].iov, .msg_iovlen = 1};
		ssize_t len = recvmsg(ep->sock, &msg, MSG_DONTWAIT);

		if (len < 0)
			return;
		ep->first++;
		complete(ep->cq, ep->posted[slot].context, FI_MSG | FI_RECV, (size_t)len);
	}
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct completions *cq = (struct completions *)fid;
	struct fi_cq_msg_entry *to = buf;
	size_t done = 0;

	progress(cq->ep);
	for (; done < count && cq->first != cq->end; done++)
		to[done] = cq->entry[cq->first++ % DEPTH];
	return done ? (ssize_t)done : -FI_EAGAIN;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	(void)fid, (void)buf, (void)count, (void)src;
	return -FI_ENOSYS;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	(void)fid, (void)buf, (void)flags;
	return -FI_EAGAIN;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	(void)fid, (void)buf, (void)count, (void)cond, (void)timeout;
	return -FI_ENOSYS;
}

static int cq_signal(struct fid_cq *fid)
{
	(void)fid;
	return -FI_ENOSYS;
}

static const char *cq_strerror(struct fid_cq *fid, int error, const void *data, char *buf,
			       size_t len)
{
	(void)fid, (void)error, (void)data, (void)buf, (void)len;
	return "an error of " NAME;
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static int cq_open(struct fid_domain *dom, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context)
{
	struct completions *made;

	(void)dom;
	if (attr->format != FI_CQ_FORMAT_MSG)
		return -FI_ENOSYS;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -FI_ENOMEM;
	made->fid = (struct fid_cq){
		.fid = {.fclass = FI_CLASS_CQ, .context = context, .ops = &plain_ops},
		.ops = &cq_ops};
	*cq = &made->fid;
	return 0;
}

/* ---- address vector ---- */

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	struct addresses *av = (struct addresses *)fid;
	const uint64_t *name = addr;
	size_t i;

	(void)flags, (void)context;
	for (i = 0; i < count && av->count < PEERS_MAX; i++) {
		if (fi_addr)
			fi_addr[i] = av->count;
		av->peer[av->count++] = name[i];
	}
	return (int)i;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	(void)fid, (void)fi_addr, (void)count, (void)flags;
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	(void)fid;
	*len = (size_t)snprintf(buf, *len, "loop://%llx", *(const unsigned long long *)addr) + 1;
	return buf;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.remove = av_remove,
	.straddr = av_straddr,
};

static int av_open(struct fid_domain *dom, struct fi_av_attr *attr, struct fid_av **av,
		   void *context)
{
	struct addresses *made = calloc(1, sizeof(*made));

	(void)dom, (void)attr;
	if (!made)
		return -FI_ENOMEM;
	made->fid = (struct fid_av){
		.fid = {.fclass = FI_CLASS_AV, .context = context, .ops = &plain_ops},
		.ops = &av_ops};
	*av = &made->fid;
	return 0;
}

/* ---- endpoint ---- */

static socklen_t socket_name(uint64_t name, struct sockaddr_un *addr)
{
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* The byte before is 0: a name that no file system has. */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1,
					    "provider-loop-%llx", (unsigned long long)name));
}

static ssize_t send_to(struct endpoint *ep, const struct iovec *iov, size_t count, fi_addr_t peer)
{
	struct sockaddr_un addr;
	struct msghdr msg = {
		.msg_name = &addr, .msg_iov = (struct iovec *)iov, .msg_iovlen = count};

	if (peer >= ep->av->count)
		return -FI_EINVAL;
	msg.msg_namelen = socket_name(ep->av->peer[peer], &addr);
	if (sendmsg(ep->sock, &msg, MSG_DONTWAIT) >= 0)
		return 0;
	return errno == EAGAIN ? -FI_EAGAIN : -errno;
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t peer, void *context)
{
	struct endpoint *ep = (struct endpoint *)fid;
	ssize_t ret;

	(void)desc;
	if (ep->cq->end - ep->cq->first == DEPTH)
		return -FI_EAGAIN;
	ret = send_to(ep, iov, count, peer);
	if (!ret)
		complete(ep->cq, context, FI_MSG | FI_SEND, 0);
	return ret;
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t peer,
			void *context)
{
	struct iovec iov = {(void *)buf, len};

	return msg_sendv(fid, &iov, &desc, 1, peer, context);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	(void)flags;
	return msg_sendv(fid, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, msg->context);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t peer)
{
	struct iovec iov = {(void *)buf, len};

	return send_to((struct endpoint *)fid, &iov, 1, peer);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t peer, void *context)
{
	(void)fid, (void)buf, (void)len, (void)desc, (void)data, (void)peer, (void)context;
	return -FI_ENOSYS;
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t peer)
{
	(void)fid, (void)buf, (void)len, (void)data, (void)peer;
	return -FI_ENOSYS;
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t peer,
			void *context)
{
	struct endpoint *ep = (struct endpoint *)fid;
	unsigned int slot = ep->end % DEPTH;

	(void)desc, (void)peer;
	if (ep->end - ep->first == DEPTH)
		return -FI_EAGAIN;
	ep->posted[slot].iov = (struct iovec){buf, len};
	ep->posted[slot].context = context;
	ep->end++;
	return 0;
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t peer, void *context)
{
	(void)desc;
	if (count != 1)
		return -FI_ENOSYS;
	return msg_recv(fid, iov->iov_base, iov->iov_len, NULL, peer, context);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	(void)flags;
	return msg_recvv(fid, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, msg->context);
}

static struct fi_ops_msg msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

static int cm_getname(struct fid *fid, void *addr, size_t *len)
{
	const struct endpoint *ep = (struct endpoint *)fid;
	size_t room = *len;

	*len = sizeof(ep->name);
	memcpy(addr, &ep->name, room < *len ? room : *len);
	return room < *len ? -FI_ETOOSMALL : 0;
}

/* Members of later releases stay NULL, and so do those that connect. */
static struct fi_ops_cm cm_ops = {.size = sizeof(struct fi_ops_cm), .getname = cm_getname};

static int ep_close(struct fid *fid)
{
	struct endpoint *ep = (struct endpoint *)fid;

	if (ep->cq)
		ep->cq->ep = NULL;
	close(ep->sock);
	free(ep);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct endpoint *ep = (struct endpoint *)fid;

	(void)flags;
	if (bfid->fclass == FI_CLASS_AV) {
		ep->av = (struct addresses *)bfid;
	} else if (bfid->fclass == FI_CLASS_CQ) {
		ep->cq = (struct completions *)bfid;
		ep->cq->ep = ep;
	} else {
		return -FI_EINVAL;
	}
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	const struct endpoint *ep = (struct endpoint *)fid;

	(void)arg;
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	return ep->av && ep->cq ? 0 : -FI_EOPBADSTATE;
}

static struct fi_ops ep_fid_ops = FID_OPS(ep_close, ep_bind, ep_control);
static struct fi_ops_ep ep_ops = {.size = sizeof(struct fi_ops_ep)};

static int ep_open(struct fid_domain *dom, struct fi_info *info, struct fid_ep **ep, void *context)
{
	struct endpoint *made = calloc(1, sizeof(*made));
	struct sockaddr_un addr;
	socklen_t len;

	(void)dom, (void)info;
	if (!made)
		return -FI_ENOMEM;
	made->fid = (struct fid_ep){
		.fid = {.fclass = FI_CLASS_EP, .context = context, .ops = &ep_fid_ops},
		.ops = &ep_ops,
		.cm = &cm_ops,
		.msg = &msg_ops,
	};
	made->name = (uint64_t)getpid() << 32 | ((uintptr_t)made >> 4 & 0xffffffff);
	made->sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	len = socket_name(made->name, &addr);
	if (made->sock < 0 || bind(made->sock, (struct sockaddr *)&addr, len) < 0) {
		FI_WARN(&provider, FI_LOG_EP_CTRL, "no socket: %s\n", strerror(errno));
		ep_close(&made->fid.fid);
		return -FI_EOTHER;
	}
	*ep = &made->fid;
	return 0;
}

/* ---- domain, fabric, provider ---- */

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = av_open,
	.cq_open = cq_open,
	.endpoint = ep_open,
};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom,
		       void *context)
{
	struct fid_domain *made = calloc(1, sizeof(*made));

	(void)fabric, (void)info;
	if (!made)
		return -FI_ENOMEM;
	*made = (struct fid_domain){
		.fid = {.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &plain_ops},
		.ops = &domain_ops,
	};
	*dom = made;
	return 0;
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = domain_open,
};

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fid_fabric *made;

	if (strcmp(attr->name, NAME "-fabric") != 0)
		return -FI_ENODATA;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -FI_ENOMEM;
	*made = (struct fid_fabric){
		.fid = {.fclass = FI_CLASS_FABRIC, .context = context, .ops = &plain_ops},
		.ops = &fabric_ops,
		.api_version = attr->api_version,
	};
	*fabric = made;
	return 0;
}

/* The provider below, as those that layer over others find it; NULL: none. */
static char *name_below(uint32_t version)
{
	char *name = NULL;
#ifdef OVER
	struct fi_info *below;

	if (fi_getinfo(version, NULL, NULL, 0, NULL, &below))
		return NULL;
	for (struct fi_info *info = below; info; info = info->next)
		if (!name && !strcmp(info->fabric_attr->prov_name, OVER))
			name = strdup(OVER);
	fi_freeinfo(below);
#else
	(void)version;
#endif
	return name;
}

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info *made;

	(void)service, (void)flags;
	FI_INFO(&provider, FI_LOG_CORE, "%s is asked\n", NAME);
	if (node || (hints && (hints->caps & ~(FI_MSG | FI_SEND | FI_RECV))))
		return -FI_ENODATA;
	if (hints && hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC &&
	    hints->ep_attr->type != FI_EP_RDM)
		return -FI_ENODATA;
	made = fi_allocinfo();
	if (!made)
		return -FI_ENOMEM;
	made->caps = FI_MSG | FI_SEND | FI_RECV;
	made->ep_attr->type = FI_EP_RDM;
	made->ep_attr->max_msg_size = MSG_MAX;
	made->tx_attr->inject_size = MSG_MAX;
	made->tx_attr->iov_limit = 4;
	made->rx_attr->iov_limit = 1;
	made->domain_attr->name = strdup(NAME "-domain");
	made->fabric_attr->name = strdup(NAME "-fabric");
	made->fabric_attr->prov_name = name_below(version);
#ifdef BARE
	free(made->domain_attr->name);
	free(made->domain_attr);
	made->domain_attr = NULL;
#endif
	*info = made;
	return 0;
}

static void cleanup(void)
{
	FI_INFO(&provider, FI_LOG_CORE, "%s ends\n", NAME);
}

struct fi_provider provider = {
	.version = VERSION,
	.fi_version = FI_API,
	.name = CLAIM,
	.getinfo = getinfo,
	.fabric = fabric_open,
	.cleanup = cleanup,
};

#ifdef MISSING
int ofi_nobody(void);
int (*missing)(void) = ofi_nobody;
#endif

#ifndef NO_INIT
FI_EXT_INI
{
	fi_param_define(&provider, "mark", FI_PARAM_INT, "A number for %s", NAME);
	fi_param_get_int(&provider, "mark", &parameter);
	FI_INFO(&provider, FI_LOG_CORE, "%s starts, mark %d\n", NAME, parameter);
	free(name_below(FI_API));
	return INIT;
}
#endif
