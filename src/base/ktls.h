/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS 1.3 by the kernel (its module `tls`): a socket encrypts what is sent and decrypts what is received. */
#ifndef WEFT_BASE_KTLS_H
#define WEFT_BASE_KTLS_H

#include <stdbool.h>

#include "base/tls.h"

/* Has the kernel it, and is it wanted (FI_WEFT_KERNEL_TLS)? Always the same answer. From any thread. */
bool ktls_available(void);
/*
 * The kernel encrypts all that a connected TCP socket sends from now on, and decrypts all that it has not handed out.
 * 0: it does; 1: it cannot, and the socket is as it was; else a negative error: nothing can be done with the socket.
 */
int ktls_start(int sock, const struct tls_way *out, const struct tls_way *in);

#endif
