/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error numbers, fi_errno(3).  A call that fails returns one of these negated; an entry read from
 * an error queue holds it positive.  Numbers below FI_ERRNO_OFFSET are those of the C library.
 */
#ifndef RDMA_FI_ERRNO_H
#define RDMA_FI_ERRNO_H

#include <errno.h>

/* Exports a symbol of the shared library, also under -fvisibility=hidden. */
#ifndef EXTERNALLY_VISIBLE
#if defined(__clang__)
#define EXTERNALLY_VISIBLE __attribute__((visibility("default")))
#elif defined(__GNUC__)
#define EXTERNALLY_VISIBLE __attribute__((visibility("default"), externally_visible))
#else
#define EXTERNALLY_VISIBLE
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FI_SUCCESS 0

#define FI_EPERM EPERM
#define FI_ENOENT ENOENT
#define FI_EINTR EINTR
#define FI_EIO EIO
#define FI_E2BIG E2BIG
#define FI_EBADF EBADF
#define FI_EAGAIN EAGAIN /* no space or no entry now: make progress, then try again */
#define FI_EWOULDBLOCK EWOULDBLOCK
#define FI_ENOMEM ENOMEM
#define FI_EACCES EACCES
#define FI_EFAULT EFAULT
#define FI_EBUSY EBUSY
#define FI_ENODEV ENODEV
#define FI_EINVAL EINVAL
#define FI_EMFILE EMFILE
#define FI_ENOSPC ENOSPC
#define FI_ENOSYS ENOSYS /* this object does not have the call */
#define FI_ENOMSG ENOMSG
#define FI_ENODATA ENODATA
#define FI_EPROTO EPROTO
#define FI_EOVERFLOW EOVERFLOW
#define FI_EMSGSIZE EMSGSIZE
#define FI_ENOPROTOOPT ENOPROTOOPT
#define FI_EOPNOTSUPP EOPNOTSUPP
#define FI_EADDRINUSE EADDRINUSE
#define FI_EADDRNOTAVAIL EADDRNOTAVAIL
#define FI_ENETDOWN ENETDOWN
#define FI_ENETUNREACH ENETUNREACH
#define FI_ECONNABORTED ECONNABORTED
#define FI_ECONNRESET ECONNRESET
#define FI_ENOBUFS ENOBUFS
#define FI_EISCONN EISCONN
#define FI_ENOTCONN ENOTCONN
#define FI_ESHUTDOWN ESHUTDOWN
#define FI_ETIMEDOUT ETIMEDOUT
#define FI_ECONNREFUSED ECONNREFUSED
#define FI_EHOSTDOWN EHOSTDOWN
#define FI_EHOSTUNREACH EHOSTUNREACH
#define FI_EALREADY EALREADY
#define FI_EINPROGRESS EINPROGRESS
#define FI_EREMOTEIO EREMOTEIO
#define FI_ECANCELED ECANCELED /* ended by fi_cancel or by closing the object */
#define FI_EKEYREJECTED EKEYREJECTED

/* Numbers of our own, above everything the C library uses. */
#define FI_ERRNO_OFFSET 256

enum {
	FI_EOTHER = FI_ERRNO_OFFSET, /* failed for a reason without a number */
	FI_ETOOSMALL,                /* the buffer given cannot hold the answer */
	FI_EOPBADSTATE,              /* not allowed in the state the object is in */
	FI_EAVAIL,                   /* an error entry waits: take it with the readerr call */
	FI_EBADFLAGS,                /* a flag is unknown or contradicts another */
	FI_ENOEQ,                    /* an event queue must be bound first */
	FI_EDOMAIN,                  /* objects of different domains were mixed */
	FI_ENOCQ,                    /* a completion queue must be bound first */
	FI_ECRC,                     /* checksum mismatch */
	FI_ETRUNC,                   /* message longer than the receive buffer; the rest is lost */
	FI_ENOKEY,                   /* the key is missing or unknown */
	FI_ENOAV,                    /* an address vector must be bound first */
	FI_EOVERRUN,                 /* a queue was full, entries were lost */
	FI_ENORX,                    /* the peer had no receive buffer */
	FI_ENOMR,                    /* no more registrations are possible */
	FI_EFIREWALLADDR,            /* a firewall hides the peer; only it can connect to us */
	FI_ERRNO_MAX                 /* not an error: one above the last */
};

/*
 * The text for an error number, either sign, never NULL.  The string belongs to the library, is
 * never freed, and may be overwritten by the next call for numbers of the C library.  fi_errno(3)
 */
EXTERNALLY_VISIBLE const char *fi_strerror(int errnum);

#ifdef __cplusplus
}
#endif

#endif /* RDMA_FI_ERRNO_H */
