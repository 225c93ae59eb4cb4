/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What endpoints with a key tell does not hold the key, nor four bytes of it in a row, as they are or in hexadecimal digits: the
 * log at its most talkative, the trace of calls, reports, and fi_tostr. So it is with a key of the application and one in a
 * file, for proofs and for encryption, and where the other end has another key.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "key_pair.h"

#define PART 4u /* bytes of the key in a row */

static char folder[] = "/tmp/fault_key_told_XXXXXX";

/* ---- The search ---- */

/* Does `at` show the bytes of the key from `from` on, with digits of this kind and `apart` characters between two bytes? */
static bool shows(const char *at, const char *end, size_t from, const char *digits, size_t apart)
{
	for (size_t i = 0; i < PART; i++) {
		unsigned char byte = byte_of(from + i);

		if (end - at < 2 || at[0] != digits[byte >> 4] || at[1] != digits[byte & 15])
			return false;
		at += 2 + apart;
	}
	return true;
}

static bool holds_at(const char *at, const char *end, size_t from)
{
	unsigned char bytes[PART];

	for (size_t i = 0; i < PART; i++)
		bytes[i] = byte_of(from + i);
	if (end - at >= (long)PART && !memcmp(at, bytes, PART))
		return true;
	for (size_t apart = 0; apart < 4; apart++)
		if (shows(at, end, from, "0123456789abcdef", apart) ||
		    shows(at, end, from, "0123456789ABCDEF", apart))
			return true;
	return false;
}

static void search(const char *what, const char *text, size_t len)
{
	for (const char *at = text; at < text + len; at++)
		for (size_t from = 0; from + PART <= LEN; from++)
			if (holds_at(at, text + len, from))
				fail("%s tells the key: %.60s", what, at);
}

static void search_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat is = {.st_size = 0};
	char *text;

	if (fd < 0 || fstat(fd, &is) || is.st_size < 100)
		fail("%s: nothing was told, but %d bytes", path, (int)is.st_size);
	text = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	search(path, text, (size_t)is.st_size);
	munmap(text, (size_t)is.st_size);
	close(fd);
}

/* ---- Those who tell ---- */

static void in_folder(char path[128], const char *name)
{
	snprintf(path, 128, "%s/%s", folder, name);
}

static void tell_all(void)
{
	char path[128];

	in_folder(path, "log");
	if (!freopen(path, "w", stderr))
		fail("no log");
	in_folder(path, "stats");
	setenv("FI_WEFT_STATS", path, 1);
	in_folder(path, "trace");
	setenv("FI_WEFT_TRACE_FILE", path, 1);
	setenv("FI_HOOK", "trace", 1);
	setenv("FI_LOG_LEVEL", "debug", 1);
	setenv("FI_LOG_INTERVAL", "0", 1);
}

static void search_strings(const struct fi_info *info)
{
	static char text[65536];

	fi_tostr_r(text, sizeof(text), info, FI_TYPE_INFO);
	search("fi_tostr of an entry", text, strlen(text));
	fi_tostr_r(text, sizeof(text), info->ep_attr, FI_TYPE_EP_ATTR);
	search("fi_tostr of an endpoint's attributes", text, strlen(text));
	fi_tostr_r(text, sizeof(text), info->domain_attr, FI_TYPE_DOMAIN_ATTR);
	search("fi_tostr of a domain's attributes", text, strlen(text));
}

static void with_keys(void *arg)
{
	struct node n[2];

	tell_all();
	pair_open(n, arg);
	talk(n, 0);
	search_strings(n[0].info);
	for (int i = 0; i < 2; i++)
		node_close(&n[i]);
}

/* One end has another key: the connection is refused. */
static void with_another(void *arg)
{
	struct node n[2];
	struct event e;
	struct name name;
	fi_addr_t to;
	ssize_t ret;

	(void)arg;
	tell_all();
	pair_open(n, NULL);
	node_close(&n[1]);
	node_create(&n[1], NULL);
	must(fi_close(&n[1].ep->fid), "fi_close");
	n[1].info->ep_attr->auth_key = malloc(LEN);
	n[1].info->ep_attr->auth_key_size = LEN;
	memset(n[1].info->ep_attr->auth_key, 'o', LEN);
	must(fi_endpoint(n[1].domain, n[1].info, &n[1].ep, NULL), "fi_endpoint");
	node_bind(&n[1]);
	name = node_name(&n[1]);
	to = node_insert(&n[0], &name);
	while ((ret = fi_send(n[0].ep, "x", 1, NULL, to, NULL)) == -FI_EAGAIN) {
		node_poll(&n[0], &e);
		node_poll(&n[1], &e);
	}
	if (ret != -FI_EACCES)
		fail("a send to an endpoint with another key returns %zd", ret);
	for (int i = 0; i < 2; i++)
		node_close(&n[i]);
}

static void one(const char *name, void (*run)(void *arg), const char *auth)
{
	char path[128], trace[32];
	pid_t pid = start(name, run, (void *)(uintptr_t)auth);

	finish(pid, name);
	snprintf(trace, sizeof(trace), "trace.%d.json", (int)pid);
	for (int i = 0; i < 3; i++) {
		in_folder(path, (const char *[]){"log", "stats", trace}[i]);
		search_file(path);
		unlink(path);
	}
}

int main(void)
{
	char seen[2 * LEN + 1];

	alarm(LIMIT);
	need_provider();
	if (!has_library("prove")) {
		puts("no library for keys here");
		return 77;
	}
	for (size_t i = 0; i < LEN; i++)
		snprintf(seen + 2 * i, 3, "%02X", byte_of(i));
	if (!holds_at(seen + 6, seen + sizeof(seen), 3))
		fail("the search finds no key where there is one");
	if (!mkdtemp(folder))
		fail("mkdtemp: %s", strerror(errno));
	one("with a key of its own", with_keys, NULL);
	one("prove", with_keys, "prove");
	if (has_library("encrypt") && strcmp(provider(), "shm"))
		one("encrypt", with_keys, "encrypt");
	one("with another key", with_another, NULL);
	rmdir(folder);
	return EXIT_SUCCESS;
}
