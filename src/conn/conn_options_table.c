/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/conn_options.h"

const struct conn_option *const conn_options[] = {
	&conn_retire_option,    /* idle connections make room */
	&conn_relay_option,     /* FI_WEFT_RELAY */
	&conn_introduce_option, /* others tell who can connect; after the relay, which it asks first */
	&conn_rails_option,     /* FI_WEFT_RAILS over tcp */
	NULL,
};
