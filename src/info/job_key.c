/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/job_key.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/hmac.h"
#include "base/log.h"
#include "base/tls.h"
#include "info/providers.h"

/* Transports whose connections begin with a hello. */
#define ENGINE_TRANSPORTS (PROVIDER_SHM | PROVIDER_TCP | PROVIDER_VERBS)

/* A key as an application or a file gives it. */
struct given {
	const uint8_t *bytes;
	size_t len;
	const char *from;
};

void job_key_of(const struct fi_info *info, struct job_key *key)
{
	const struct fi_ep_attr *ep = info->ep_attr;

	key->len = 0;
	if (!ep || !ep->auth_key || ep->auth_key_size > sizeof(key->bytes))
		return;
	memcpy(key->bytes, ep->auth_key, ep->auth_key_size);
	key->len = ep->auth_key_size;
}

bool job_key_equal(const struct job_key *a, const struct job_key *b)
{
	return a->len == b->len && (a->len == 0 || hmac_equal(a->bytes, b->bytes, a->len));
}

bool job_key_encrypts(void)
{
	return !strcmp(env_get()->auth, "encrypt");
}

static bool has_hellos(const struct fi_info *info)
{
	const struct provider *v = provider_of(info);

	if (info->ep_attr && info->ep_attr->type == FI_EP_DGRAM)
		return false;
	return !v || v->transports & ENGINE_TRANSPORTS;
}

/* Can an endpoint of this entry use the key? 0 or an error, logged. */
static int job_key_check(const struct given *key, const struct fi_info *info)
{
	if (!has_hellos(info))
		return LOG_REFUSE(
			-FI_EOPNOTSUPP, LOG_EP_CTRL,
			"%s gives a key of %zu bytes, but datagrams and bare queue pairs carry no "
			"proof of it: only connections of shm, tcp, weft and verbs;ofi_rxm do",
			key->from, key->len);
	if (!key->bytes || key->len < JOB_KEY_MIN || key->len > JOB_KEY_MAX)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "%s: %s of %zu bytes; a key has %u to %u", key->from,
				  key->bytes ? "a key" : "no key", key->len, JOB_KEY_MIN,
				  JOB_KEY_MAX);
	return hmac_load() ? 0 : -FI_ENOSYS;
}

static struct given of_ep(const struct fi_info *info)
{
	const struct fi_ep_attr *ep = info->ep_attr;

	return (struct given){ep ? ep->auth_key : NULL, ep ? ep->auth_key_size : 0,
			      "ep_attr->auth_key_size"};
}

static struct given of_domain(const struct fi_info *info)
{
	const struct fi_domain_attr *dom = info ? info->domain_attr : NULL;

	return (struct given){dom ? dom->auth_key : NULL, dom ? dom->auth_key_size : 0,
			      "domain_attr->auth_key_size"};
}

/* Its owner alone may read the file: who else can knows the key. 0 or an error, logged. */
static int check_file(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	return LOG_REFUSE(
		-FI_EACCES, LOG_EP_CTRL,
		"FI_WEFT_AUTH_KEY_FILE=%s: refused: mode %#o, user %u; it has to be a file of user "
		"%u with mode 0600",
		path, (unsigned int)st.st_mode & 07777, (unsigned int)st.st_uid,
		(unsigned int)geteuid());
}

/* Reads the file into `bytes`; one byte more than a key and its newline shows that it is too long. */
static ssize_t job_key_read_file(const char *path, uint8_t *bytes, size_t room)
{
	int err, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t len = -1;

	if (fd < 0) {
		err = -errno;
		return LOG_REFUSE(err, LOG_EP_CTRL, "FI_WEFT_AUTH_KEY_FILE=%s: %s", path,
				  fi_strerror(-err));
	}
	err = check_file(fd, path);
	if (!err && (len = read(fd, bytes, room)) < 0)
		err = -errno;
	close(fd);
	return err ? err : len;
}

static int job_key_put(struct fi_ep_attr *ep, const struct given *key)
{
	/* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): check lets no empty key pass */
	uint8_t *copy = malloc(key->len);

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, key->bytes, key->len);
	job_key_free(ep->auth_key);
	ep->auth_key = copy;
	ep->auth_key_size = key->len;
	return 0;
}

static int put_file(struct fi_info *info, const char *path)
{
	uint8_t bytes[JOB_KEY_MAX + 2];
	ssize_t len = job_key_read_file(path, bytes, sizeof(bytes));
	struct given key = {bytes, (size_t)len, "FI_WEFT_AUTH_KEY_FILE"};
	int err = len < 0 ? (int)len : 0;

	if (!err && key.len && bytes[key.len - 1] == '\n')
		key.len--;
	if (!err)
		err = job_key_check(&key, info);
	if (!err)
		err = job_key_put(info->ep_attr, &key);
	explicit_bzero(bytes, sizeof(bytes));
	return err;
}

static bool in_vectors(const struct given *key, uint32_t api)
{
	return key->len == FI_AV_AUTH_KEY && FI_VERSION_GE(api, FI_VERSION(1, 20));
}

/* FI_AV_AUTH_KEY: can endpoints of this entry have keys in an address vector? 0 or an error, logged. */
static int check_vectors(const struct fi_info *info)
{
	if (!has_hellos(info) || (info->ep_attr && info->ep_attr->type == FI_EP_MSG))
		return LOG_REFUSE(-FI_EOPNOTSUPP, LOG_EP_CTRL,
				  "FI_AV_AUTH_KEY: only FI_EP_RDM endpoints of shm, tcp, weft and "
				  "verbs;ofi_rxm have keys in their address vector");
	if (info->ep_attr && (info->ep_attr->auth_key_size || info->ep_attr->auth_key))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "FI_AV_AUTH_KEY: an endpoint has no auth_key of its own");
	return hmac_load() ? 0 : -FI_ENOSYS;
}

static int check_vectors_of(const struct fi_domain_attr *dom)
{
	if (!dom->auth_key && dom->max_ep_auth_key <= JOB_KEYS_MAX)
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN,
			  "FI_AV_AUTH_KEY: auth_key has to be NULL, max_ep_auth_key at most %u",
			  JOB_KEYS_MAX);
}

/* Can an endpoint of this entry do what FI_WEFT_AUTH asks? Nothing leaves the host in the clear. 0 or an error, logged. */
static int check_encryption(const struct fi_info *info, bool keyed)
{
	const struct provider *v = provider_of(info);
	const char *auth = env_get()->auth;

	if (!job_key_encrypts() && strcmp(auth, "prove") != 0)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "FI_WEFT_AUTH=%s: it is prove or encrypt", auth);
	if (!job_key_encrypts() || (v && provider_stays_inside(v)))
		return 0;
	if (!has_hellos(info) || (v && !(v->transports & PROVIDER_TCP)))
		return LOG_REFUSE(
			-FI_EOPNOTSUPP, LOG_EP_CTRL,
			"FI_WEFT_AUTH=encrypt: %s cannot encrypt: only connections of tcp and weft do",
			v ? v->name : "this endpoint");
	if (!keyed)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "FI_WEFT_AUTH=encrypt needs a key: set FI_WEFT_AUTH_KEY_FILE, "
				  "or give ep_attr->auth_key");
	return tls_try() ? 0 : -FI_ENOSYS;
}

static int job_key_resolve_info(struct fi_info *info, const struct fi_info *domain, uint32_t api)
{
	const char *path = env_get()->auth_key_file;
	struct given key = of_domain(domain ? domain : info);
	int err;

	if (in_vectors(&key, api))
		return check_vectors(info);
	key = of_ep(info);
	if (!key.len)
		key = of_domain(info);
	if (!key.len)
		key = of_domain(domain);
	if (key.len && FI_VERSION_GE(api, FI_VERSION(1, 5))) {
		err = job_key_check(&key, info);
		return err || key.bytes == info->ep_attr->auth_key
			       ? err
			       : job_key_put(info->ep_attr, &key);
	}
	job_key_free(info->ep_attr->auth_key);
	info->ep_attr->auth_key = NULL;
	info->ep_attr->auth_key_size = 0;
	return path && *path ? put_file(info, path) : 0;
}

int job_key_resolve(struct fi_info *info, const struct fi_info *domain, uint32_t api)
{
	struct given vectors = of_domain(domain ? domain : info);
	int err = job_key_resolve_info(info, domain, api);

	return err ? err
		   : check_encryption(info,
				      info->ep_attr->auth_key_size || in_vectors(&vectors, api));
}

unsigned int job_key_vector_max(const struct fi_info *info, uint32_t api)
{
	struct given key = of_domain(info);
	size_t max = info->domain_attr->max_ep_auth_key;

	if (!in_vectors(&key, api))
		return 0;
	return max ? (unsigned int)max : JOB_KEYS_MAX;
}

int job_key_check_domain(const struct fi_info *info, uint32_t api)
{
	struct given key = of_domain(info);
	int err;

	if (in_vectors(&key, api)) {
		err = check_vectors(info);
		return err ? err : check_vectors_of(info->domain_attr);
	}
	return key.len && FI_VERSION_GE(api, FI_VERSION(1, 5)) ? job_key_check(&key, info) : 0;
}

void job_key_free(uint8_t *key)
{
	if (key)
		explicit_bzero(key, malloc_usable_size(key));
	free(key);
}

static bool job_key_copy_bytes(uint8_t **to, const uint8_t *from, size_t len)
{
	if (!len)
		return true;
	*to = malloc(len);
	if (*to)
		memcpy(*to, from, len);
	return *to;
}

int job_key_copy(struct fi_info *info, const struct fi_info *hints)
{
	struct fi_ep_attr *ep = info->ep_attr;
	struct fi_domain_attr *dom = info->domain_attr;

	if (ep->auth_key_size &&
	    !job_key_copy_bytes(&ep->auth_key, hints->ep_attr->auth_key, ep->auth_key_size))
		return -FI_ENOMEM;
	if (dom->auth_key_size && dom->auth_key_size != FI_AV_AUTH_KEY &&
	    !job_key_copy_bytes(&dom->auth_key, hints->domain_attr->auth_key, dom->auth_key_size))
		return -FI_ENOMEM;
	return 0;
}
