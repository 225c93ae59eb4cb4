/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes (USDT) of provider "weft", which weft-probes(7) documents. A probe is one nop, and a
 * note in the library that says where the nop and the arguments are: a tracer puts its breakpoint
 * there. configure looks for sys/sdt.h and sets WEFT_PROBES; without it nothing is left of a probe.
 */
#ifndef WEFT_BASE_PROBE_H
#define WEFT_BASE_PROBE_H

#ifdef WEFT_PROBES
#include <sys/sdt.h>
#define PROBE2(name, a, b)       DTRACE_PROBE2(weft, name, a, b)
#define PROBE3(name, a, b, c)    DTRACE_PROBE3(weft, name, a, b, c)
#define PROBE4(name, a, b, c, d) DTRACE_PROBE4(weft, name, a, b, c, d)
#else
#define PROBE2(name, a, b)       ((void)(a), (void)(b))
#define PROBE3(name, a, b, c)    ((void)(a), (void)(b), (void)(c))
#define PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

#endif
