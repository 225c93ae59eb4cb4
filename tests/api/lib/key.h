/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of jobs in hints and in entries. Needs api.h. */
#ifndef API_KEY_H
#define API_KEY_H

#include <dlfcn.h>

#define KEY_LEN 32

/* Ends the program where keys cannot be used. */
static inline void key_need_library(void)
{
	if (dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL))
		return;
	printf("no libcrypto.so.3 here\n");
	exit(API_SKIP);
}

/* `len` bytes; another `number` is another key. */
static inline uint8_t *key_bytes(unsigned int number, size_t len)
{
	uint8_t *bytes = malloc(len ? len : 1);

	CHECK(bytes);
	memset(bytes, (int)(0xa0 + number), len);
	return bytes;
}

/* Of the endpoint. Number 0: none. */
static inline void key_set(struct fi_info *info, unsigned int number, size_t len)
{
	free(info->ep_attr->auth_key);
	info->ep_attr->auth_key = number ? key_bytes(number, len) : NULL;
	info->ep_attr->auth_key_size = number ? len : 0;
}

/* Of the domain. */
static inline void key_set_domain(struct fi_info *info, unsigned int number, size_t len)
{
	free(info->domain_attr->auth_key);
	info->domain_attr->auth_key = number ? key_bytes(number, len) : NULL;
	info->domain_attr->auth_key_size = number ? len : 0;
}

#endif
