/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fabric.h>

#include "base/log.h"
#include "info/tostr.h"

#define TOSTR_BYTES 8192

static void tostr_write_text(struct text *t, const void *data, enum fi_type type)
{
	switch ((int)type) {
	case FI_TYPE_VERSION:
		text_add(t, "%d.%d.%d", FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_REVISION_VERSION);
		break;
	case FI_TYPE_FID:
		tostr_fid(t, data);
		break;
	case FI_TYPE_LOG_LEVEL:
		text_add(t, "%s", log_level_name(*(const int *)data));
		break;
	case FI_TYPE_LOG_SUBSYS:
		text_add(t, "%s", log_subsys_name(*(const int *)data));
		break;
	default:
		if (type <= FI_TYPE_WAIT_OBJ && tostr_names(type))
			tostr_value(t, type, data);
		else if (type > FI_TYPE_WAIT_OBJ || !tostr_struct(t, type, data))
			text_add(t, "Unknown type");
	}
}

char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	struct text t;

	if (!data || !buf || !len)
		return NULL;
	buf[0] = '\0';
	if (len < 2)
		return buf;
	text_init(&t, buf, len - 1); /* n bytes hold n - 2 characters, as in every release */
	tostr_write_text(&t, data, datatype);
	return buf;
}

char *fi_tostr(const void *data, enum fi_type datatype)
{
	static __thread char buf[TOSTR_BYTES];

	return fi_tostr_r(buf, sizeof(buf), data, datatype);
}
