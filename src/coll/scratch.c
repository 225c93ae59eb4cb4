/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/scratch.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

int scratch_take(struct scratch *s, struct scratch *spare, size_t len)
{
	if (spare->len >= len) {
		*s = *spare;
		*spare = (struct scratch){NULL, 0};
		return 0;
	}
	s->memory = malloc(len);
	s->len = s->memory ? len : 0;
	return s->memory ? 0 : -FI_ENOMEM;
}

void scratch_give(struct scratch *s, struct scratch *spare)
{
	if (s->len > spare->len && s->len <= SCRATCH_KEPT_MAX) {
		free(spare->memory);
		*spare = *s;
	} else {
		free(s->memory);
	}
	*s = (struct scratch){NULL, 0};
}
