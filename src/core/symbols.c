/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call that the public headers define inline, once more as a real function of the library.
 * C programs inline the calls and never come here; languages that cannot read C headers bind to
 * these.  The bodies are the headers' own, so the two forms cannot differ, and a call added to a
 * header is exported by adding its name to node WEFT_1.0 of libfabric.map.
 *
 * The library is compiled with hidden visibility, so the functions say that they are not; this
 * must come before the first public header, which would otherwise choose `static inline`.
 */
#define WEFT_CALL __attribute__((visibility("default")))

/* Old calls are exported like all others: a body here that uses one is not a use to warn about. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/* The headers have no separate prototypes for what they define inline. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_profile.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include <rdma/providers/fi_prov.h>
