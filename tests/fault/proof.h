/* SPDX-License-Identifier: BSD-2-Clause */
/* The proof of a key, as one who speaks the protocol himself makes it: src/conn/auth.h. */
#ifndef FAULT_PROOF_H
#define FAULT_PROOF_H

#include <dlfcn.h>

#include "hello.h"

#define PROOF_LEN 32

enum proof_role { PROOF_TARGET, PROOF_INITIATOR };

/* What has been said so far, under a key. */
struct proof {
	char key[PROOF_LEN];
	uint8_t chain[PROOF_LEN];
};

static unsigned char *(*proof_hmac)(const void *md, const void *key, int key_len,
				    const unsigned char *bytes, size_t len, unsigned char *code,
				    unsigned int *code_len);
static const void *(*proof_sha256)(void);

/* Ends the test where keys cannot be used. */
static inline void proof_need_library(void)
{
	void *lib = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		printf("no libcrypto.so.3 here\n");
		exit(77);
	}
	*(void **)&proof_hmac = dlsym(lib, "HMAC");
	*(void **)&proof_sha256 = dlsym(lib, "EVP_sha256");
}

static inline struct proof proof_begin(char key)
{
	struct proof p = {{0}, {0}};

	memset(p.key, key, sizeof(p.key));
	return p;
}

/* The code of the next hello, which becomes part of what has been said. */
static inline void proof_code(struct proof *p, enum proof_role role, const struct hello *h,
			      uint8_t code[PROOF_LEN])
{
	struct {
		char role[16];
		uint8_t before[PROOF_LEN];
		struct hello hello;
	} covered = {.hello = *h};

	strcpy(covered.role, role ? "weft initiator" : "weft target");
	memcpy(covered.before, p->chain, sizeof(covered.before));
	memset(covered.hello.mac, 0, sizeof(covered.hello.mac));
	if (!proof_hmac(proof_sha256(), p->key, sizeof(p->key), (unsigned char *)&covered,
			sizeof(covered), code, NULL))
		fail("HMAC");
	memcpy(p->chain, code, PROOF_LEN);
}

/* The hello carries its code. */
static inline void proof_seal(struct proof *p, enum proof_role role, struct hello *h)
{
	uint8_t code[PROOF_LEN];

	proof_code(p, role, h, code);
	memcpy(h->mac, code, sizeof(code));
}

static inline bool proof_good(struct proof *p, enum proof_role role, const struct hello *h)
{
	uint8_t code[PROOF_LEN];

	proof_code(p, role, h, code);
	return !memcmp(code, h->mac, sizeof(code));
}

#endif
