/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports every call that the public headers define inline as a function too. C programs inline the
 * calls; other languages bind to these functions. The bodies are the headers' own, so the two forms
 * cannot differ. To export a new call, add its name to node WEFT_1.0 of libfabric.map.
 *
 * The library is compiled with hidden visibility, so WEFT_CALL makes the functions visible. It must
 * precede the first public header, which would otherwise choose `static inline`.
 */
#define WEFT_CALL __attribute__((visibility("default")))

/* Deprecated calls are exported too: their use in a body here is no reason to warn. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/* Inline functions of the headers have no separate prototypes. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_profile.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include <rdma/providers/fi_prov.h>
