/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of endpoints, connections of FI_EP_MSG endpoints, and multicast groups. fi_cm(3)
 *
 * All calls return 0 or a negative FI_E*. Connecting is asynchronous: a call starts it, and the
 * endpoint's event queue reports the outcome (FI_CONNREQ, FI_CONNECTED, FI_SHUTDOWN, or an error
 * entry). paramlen is the bytes of user data to carry, at most the endpoint option
 * FI_OPT_CM_DATA_SIZE; the data is copied before the call returns.
 */
#ifndef RDMA_FI_CM_H
#define RDMA_FI_CM_H

#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Membership in a multicast group or a collective group; leave with fi_close(&mc->fid). */
struct fid_mc {
	struct fid fid;
	fi_addr_t fi_addr; /* destination address of the group */
};

struct fi_ops_cm {
	size_t size; /* bytes of this table that its writer knows */
	int (*setname)(fid_t fid, void *addr, size_t addrlen);
	int (*getname)(fid_t fid, void *addr, size_t *addrlen);
	int (*getpeer)(struct fid_ep *ep, void *addr, size_t *addrlen);
	int (*connect)(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
	int (*listen)(struct fid_pep *pep);
	int (*accept)(struct fid_ep *ep, const void *param, size_t paramlen);
	int (*reject)(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
	int (*shutdown)(struct fid_ep *ep, uint64_t flags);
	int (*join)(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		    void *context);
};

/*
 * Sets the local address of an endpoint or passive endpoint, addrlen bytes in the address format of
 * its fi_info. Only before it is enabled, listens or connects, and before fi_getname: else
 * -FI_EOPBADSTATE. -FI_EADDRINUSE is returned at once, except for connected endpoints, which are
 * bound when they connect. fi_cm(3)
 */
WEFT_CALL int fi_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct fid_ep *ep = (struct fid_ep *) fid;

	return ep->cm->setname(fid, addr, addrlen);
}

/*
 * Copies the local address of an endpoint, passive or scalable endpoint to addr. *addrlen: space in
 * bytes on entry, full size on return, also with -FI_ETOOSMALL, when the address is truncated.
 * fi_cm(3)
 */
WEFT_CALL int fi_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct fid_ep *ep = (struct fid_ep *) fid;

	return ep->cm->getname(fid, addr, addrlen);
}

/* As fi_getname, for the peer of a connected endpoint; -FI_ENOTCONN without one. fi_cm(3) */
WEFT_CALL int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return ep->cm->getpeer(ep, addr, addrlen);
}

/* Starts to listen: connection requests arrive at the bound event queue as FI_CONNREQ. fi_cm(3) */
WEFT_CALL int fi_listen(struct fid_pep *pep)
{
	return pep->cm->listen(pep);
}

/*
 * Starts to connect ep to the passive endpoint at addr (in the address format of ep), and enables
 * ep if needed. FI_CONNECTED or an error entry, FI_ECONNREFUSED for a rejection, follows on the
 * event queue. fi_cm(3)
 */
WEFT_CALL int fi_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return ep->cm->connect(ep, addr, param, paramlen);
}

/*
 * Accepts a connection request: ep was opened with the fi_info of the FI_CONNREQ entry. Transfers
 * may start after FI_CONNECTED. fi_cm(3)
 */
WEFT_CALL int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return ep->cm->accept(ep, param, paramlen);
}

/* Rejects a connection request; handle is that member of the fi_info of FI_CONNREQ. fi_cm(3) */
WEFT_CALL int fi_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return pep->cm->reject(pep, handle, param, paramlen);
}

/*
 * Ends a connection in good order; the peer sees FI_SHUTDOWN, as it does if this process dies.
 * Incomplete operations end with an error. flags must be 0. fi_cm(3)
 */
WEFT_CALL int fi_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return ep->cm->shutdown(ep, flags);
}

/*
 * Joins a group and opens *mc. addr: a multicast address, or with FI_COLLECTIVE in flags a struct
 * fi_collective_addr. FI_JOIN_COMPLETE at the event queue says that sending may begin. -FI_ENOSYS:
 * groups are not supported. fi_cm(3)
 */
WEFT_CALL int fi_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		      void *context)
{
	if (!FI_CHECK_OP(ep->cm, struct fi_ops_cm, join))
		return -FI_ENOSYS;
	return ep->cm->join(ep, addr, flags, mc, context);
}

/* Returns the destination address of the group. fi_cm(3) */
WEFT_CALL fi_addr_t fi_mc_addr(struct fid_mc *mc)
{
	return mc->fi_addr;
}

#ifdef __cplusplus
}
#endif

#endif /* RDMA_FI_CM_H */
