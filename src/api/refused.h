/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that an object's kind does not have: refused_listen for fi_listen and so on, each -FI_ENOSYS. The calls and their
 * parameters are those of the rows that hooks are made of.
 */
#ifndef WEFT_API_REFUSED_H
#define WEFT_API_REFUSED_H

#include "hook/rows.h"

#define REFUSED(kind, type, name, table, member, arguments, ...)                                   \
	type refused_##member ROW_PARAMETERS(arguments);
EP_CALLS(REFUSED)
CM_CALLS(REFUSED)
#undef REFUSED

#endif
