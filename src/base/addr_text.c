/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses for applications that use strings for all of them; fi_shm:// names. */
#include <rdma/fabric.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"

static bool as_text(const struct addr *a, uint32_t format)
{
	return format == ADDR_IP_STR && (a->kind == ADDR_IN || a->kind == ADDR_IN6);
}

size_t addr_format_len(const struct addr *a, uint32_t format)
{
	char text[ADDR_STR_MAX];

	if (!as_text(a, format))
		return addr_user_len(a);
	addr_print(a, text, sizeof(text));
	return strlen(text) + 1;
}

int addr_to_format(const struct addr *a, uint32_t format, void *buf, size_t *len)
{
	char text[ADDR_STR_MAX];
	struct addr shown = {.kind = ADDR_STR, .str = text};

	if (!as_text(a, format))
		return addr_to_user(a, buf, len);
	addr_print(a, text, sizeof(text));
	return addr_to_user(&shown, buf, len);
}

int addr_of_process(struct addr *a)
{
	char text[ADDR_STR_MAX];

	snprintf(text, sizeof(text), "fi_shm://%d", (int)getpid());
	return addr_from_user(a, FI_ADDR_STR, text, 0);
}
