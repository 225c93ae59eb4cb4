/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/tls.h"

#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"

/* Newer than some systems' headers. */
#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef TLS_RX_EXPECT_NO_PAD
#define TLS_RX_EXPECT_NO_PAD 4
#endif

static bool available;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int ktls_attach(int sock)
{
	return setsockopt(sock, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) ? errno : 0;
}

/* A kernel that has it refuses a socket only for not being connected. */
static void ktls_look(void)
{
	int sock = env_get()->kernel_tls ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

	if (sock < 0)
		return;
	available = ktls_attach(sock) == ENOTCONN;
	close(sock);
	LOG_INFO(LOG_CORE, "the kernel %s TLS", available ? "has" : "has no");
}

bool ktls_available(void)
{
	pthread_once(&once, ktls_look);
	return available;
}

/* 0 or an error of errno. */
static int ktls_install(int sock, int option, const struct tls_way *way)
{
	struct tls12_crypto_info_aes_gcm_128 info = {
		.info = {.version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128}};
	int err;

	memcpy(info.key, way->key, sizeof(info.key));
	memcpy(info.salt, way->iv, sizeof(info.salt));
	memcpy(info.iv, way->iv + sizeof(info.salt), sizeof(info.iv));
	err = setsockopt(sock, SOL_TLS, option, &info, sizeof(info)) ? errno : 0;
	explicit_bzero(&info, sizeof(info));
	return err;
}

int ktls_start(int sock, const struct tls_way *out, const struct tls_way *in)
{
	int err = ktls_attach(sock), yes = 1;

	if (!err)
		err = ktls_install(sock, TLS_TX, out);
	if (err) {
		LOG_INFO(LOG_EP_CTRL, "TLS of the kernel cannot be used: %s", fi_strerror(err));
		return 1;
	}
	err = ktls_install(sock, TLS_RX, in);
	if (err)
		LOG_PEER(LOG_EP_CTRL, "TLS of the kernel sends, but does not receive: %s",
			 fi_strerror(err));
	/* Our records have no padding: they can be decrypted straight to where they go. */
	else if (setsockopt(sock, SOL_TLS, TLS_RX_EXPECT_NO_PAD, &yes, sizeof(yes)))
		LOG_DEBUG(LOG_EP_CTRL, "TLS of the kernel copies what it receives");
	return -err;
}
