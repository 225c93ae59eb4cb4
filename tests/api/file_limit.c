/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limit on file sizes (ulimit -f) does not kill the process. Calls that need a file return an
 * error, and the log writes what fits.
 */
#include <fcntl.h>

#include "obj.h"

#define LIMIT 60 /* bytes, less than a line of the log */

static void limit_to(rlim_t bytes)
{
	struct rlimit limit;

	OK(getrlimit(RLIMIT_FSIZE, &limit));
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	OK(setrlimit(RLIMIT_FSIZE, &limit));
	signal(SIGXFSZ, SIG_DFL);
}

/* Redirects standard error to a file, which the log fills to the limit. */
static int divert_log(void)
{
	int kept = dup(STDERR_FILENO), file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);

	CHECK(kept >= 0 && file >= 0);
	CHECK_EQ(dup2(file, STDERR_FILENO), STDERR_FILENO);
	close(file);
	return kept;
}

static void talk(struct obj *o)
{
	fi_addr_t self = obj_insert_ep(o->av, o->ep);
	uint64_t word = 5, heard = 0;

	OK(fi_recv(o->ep, &heard, sizeof(heard), NULL, FI_ADDR_UNSPEC, &heard));
	POST(o->cq, fi_send(o->ep, &word, sizeof(word), NULL, self, &word));
	obj_next(o->cq, NULL);
	obj_next(o->cq, NULL);
	CHECK_EQ(heard, 5);
}

/* Opens an endpoint and enables it. Returns the result of fi_enable. */
static int enable(struct obj *o)
{
	obj_domain(o);
	o->av = obj_av(o, FI_AV_UNSPEC, 0);
	o->cq = obj_cq(o, FI_WAIT_NONE);
	o->ep = obj_ep(o);
	OK(fi_ep_bind(o->ep, &o->av->fid, 0));
	OK(fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV));
	return fi_enable(o->ep);
}

static void opened(struct api *a)
{
	struct obj o = {0};
	int ret;

	(void)a;
	limit_to(LIMIT);
	ret = enable(&o);
	if (ret)
		CHECK_EQ(ret, -EFBIG);
	else
		talk(&o);
	obj_close(&o);
	limit_to(RLIM_INFINITY);
	obj_open(&o);
	talk(&o);
	obj_close(&o);
}

static void logged(struct api *a)
{
	int kept = divert_log();
	struct fi_info *info = NULL;
	off_t len;
	int ret;

	(void)a;
	limit_to(LIMIT);
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
	len = lseek(STDERR_FILENO, 0, SEEK_END);
	limit_to(RLIM_INFINITY);
	CHECK_EQ(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	OK(ret);
	CHECK_EQ(len, LIMIT);
	fi_freeinfo(info);
}

static void named_vector(struct api *a)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .name = "file_limit"};
	struct fid_av *av = NULL;
	struct obj o = {0};

	(void)a;
	obj_domain(&o);
	limit_to(LIMIT);
	CHECK_EQ(fi_av_open(o.domain, &attr, &av, NULL), -EFBIG);
	limit_to(RLIM_INFINITY);
	OK(fi_av_open(o.domain, &attr, &av, NULL));
	CLOSE(av);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"opened", opened, 1, {0}},
		{"logged", logged, 1, {"FI_LOG_LEVEL=debug"}},
		{"named-vector", named_vector, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
