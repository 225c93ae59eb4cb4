/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_WEFT_AUTH=encrypt: endpoints of one key talk, those of which one does not encrypt do not, across a network; an
 * endpoint that could send in the clear is refused when it is opened. HW=tcp
 */
#include <sys/wait.h>

#include "api.h"
#include "lib/exchange.h"
#include "lib/key.h"

#define ENCRYPT "FI_WEFT_AUTH=encrypt"
#define ROUNDS  100

static void with_key(struct fi_info *hints)
{
	key_set(hints, 1, KEY_LEN);
}

static void open_keyed(struct side *s, struct api *a)
{
	side_open(s, a,
		  &(struct side_opts){.caps = FI_MSG | FI_TAGGED,
				      .tx_flags = FI_DELIVERY_COMPLETE,
				      .tune = with_key});
	s->yields = true;
}

static void both(struct api *a)
{
	static const size_t sizes[] = {0, 1, 16351, 16352, 16353, 65536, 1 << 20, 5000001};
	struct side s;

	open_keyed(&s, a);
	for (size_t i = 0; i < API_COUNT(sizes); i++)
		exchange(&s, sizes[i]);
	side_close(&s);
}

/* Both begin at once, again and again. */
static void crossing(struct api *a)
{
	struct side s;

	for (unsigned int i = api_times(ROUNDS); i; i--) {
		open_keyed(&s, a);
		exchange(&s, 8);
		side_close(&s);
	}
}

/* Each in turn sends to the other, in vain. */
static void one_encrypts(struct api *a, int which)
{
	static char in[8];
	struct side s;

	if (a->rank == which)
		setenv("FI_WEFT_AUTH", "encrypt", 1);
	open_keyed(&s, a);
	POST(&s, fi_trecv(s.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &s));
	for (int sender = 0; sender < 2; sender++) {
		for (int i = 0; a->rank == sender && i < 2; i++) {
			REFUSED(&s, FI_EACCES,
				fi_tsend(s.ep, "secret", 7, NULL, s.addr[!sender], 3, &s));
		}
		api_meet(a);
	}
	QUIET(&s, s.rx, 20);
	CHECK(!in[0]);
	side_close(&s);
}

static void first_encrypts(struct api *a)
{
	one_encrypts(a, 0);
}

static void second_encrypts(struct api *a)
{
	one_encrypts(a, 1);
}

/* Does fi_endpoint say this to an entry of the provider, with a key or without? */
static bool says(const char *provider, enum fi_ep_type type, bool key, int want)
{
	struct fi_info *hints = fi_allocinfo();
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *info;
	struct fid_ep *ep;
	int ret;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = type;
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (ret == -FI_ENODATA)
		return true;
	OK(ret);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	if (key)
		key_set(info, 1, KEY_LEN);
	ret = fi_endpoint(domain, info, &ep, NULL);
	if (!ret)
		OK(fi_close(&ep->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return ret == want;
}

/* Ends the program where nothing can be encrypted. A child asks: the environment is read once. */
static void need_encryption(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		putenv((char *)ENCRYPT);
		_exit(says("tcp", FI_EP_RDM, true, -FI_ENOSYS) ? API_SKIP : 0);
	}
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != API_SKIP)
		return;
	printf("no libssl.so.3 here, or built without it\n");
	exit(API_SKIP);
}

static void refusals(struct api *a)
{
	(void)a;
	CHECK(says("tcp", FI_EP_RDM, true, 0));
	CHECK(says("tcp", FI_EP_RDM, false, -FI_EINVAL));
	CHECK(says("tcp", FI_EP_MSG, false, -FI_EINVAL));
	CHECK(says("weft", FI_EP_RDM, false, -FI_EINVAL));
	CHECK(says("shm", FI_EP_RDM, false, 0));
	CHECK(says("udp", FI_EP_DGRAM, false, -FI_EOPNOTSUPP));
	CHECK(says("verbs;ofi_rxm", FI_EP_RDM, true, -FI_EOPNOTSUPP));
	CHECK(says("verbs", FI_EP_MSG, false, -FI_EOPNOTSUPP));
}

static void other_words(struct api *a)
{
	(void)a;
	CHECK(says("tcp", FI_EP_RDM, true, -FI_EINVAL));
	CHECK(says("shm", FI_EP_RDM, false, -FI_EINVAL));
}

static const struct api_case cases[] = {
	{"both", both, 2, {ENCRYPT}},
	{"crossing", crossing, 2, {ENCRYPT}},
	{"first", first_encrypts, 2, {0}},
	{"second", second_encrypts, 2, {0}},
	{"refusals", refusals, 1, {ENCRYPT}},
	{"other-words", other_words, 1, {"FI_WEFT_AUTH=secret"}},
};

int main(int argc, char **argv)
{
	need_encryption();
	return api_main(argc, argv, cases, API_COUNT(cases));
}
