/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of endpoints that talked to each other is nowhere in the memory of their process when all is closed, and never on the
 * stack when a call has returned: given by a file or by the application, to endpoints, listeners or address vectors, for proofs or
 * for encryption.
 */
#include <fcntl.h>

#include "key_pair.h"

#define TAIL 16u /* bytes that are looked for: free(3) writes to the first ones of a block */

static bool is_tail(const unsigned char *at)
{
	size_t i = 0;

	while (i < TAIL && at[i] == byte_of(LEN - TAIL + i))
		i++;
	return i == TAIL;
}

/* Reads the process's map. Allocates nothing: that would overwrite what is looked for. */
static char *read_map(void)
{
	static char text[1 << 17];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got;

	if (fd < 0)
		fail("no /proc/self/maps");
	while ((got = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	text[len] = 0;
	return text;
}

/* Counts the copies in memory that the process can write, or on the stack. */
static unsigned int copies(bool stack_alone)
{
	const unsigned char first = byte_of(LEN - TAIL);
	unsigned long from, to;
	unsigned int found = 0;
	char *rest, mode[8];

	for (char *line = strtok_r(read_map(), "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || strncmp(mode, "rw", 2) ||
		    strstr(line, "[v") || (stack_alone && !strstr(line, "[stack]")))
			continue;
		for (const unsigned char *at = (const unsigned char *)from;
		     at + TAIL <= (const unsigned char *)to; at++)
			found += *at == first && is_tail(at);
	}
	return found;
}

/* No call leaves the key on the stack. */
static void check_stack(const char *after)
{
	if (copies(true))
		fail("the key is on the stack after %s", after);
}

static void check_search(void)
{
	unsigned char key[LEN];

	make_key(key);
	if (!copies(true))
		fail("the search does not find a key on the stack");
	explicit_bzero(key, LEN);
}

static void check_all(void)
{
	unsigned int count = copies(false);

	if (count)
		fail("%u copies of the key are left", count);
}

static uint8_t *new_key(void)
{
	uint8_t *key = malloc(LEN);

	make_key(key);
	return key;
}

/* How an endpoint gets the key; the last two as FI_WEFT_AUTH. */
enum way { OWN, VECTOR, PROVE, ENCRYPT };

static const char *const names[] = {"a key of its own", "a key of its address vector", "prove",
				    "encrypt"};

static void give_vector_key(struct node *n, fi_addr_t *handle)
{
	uint8_t *key = new_key();

	must(fi_av_insert_auth_key(n->av, key, LEN, handle, 0), "fi_av_insert_auth_key");
	explicit_bzero(key, LEN);
	free(key);
}

static void look(void *arg)
{
	enum way way = *(enum way *)arg;
	fi_addr_t handle = 0;
	struct node n[2];
	uint8_t *key;

	check_search();
	if (way >= PROVE) {
		key = new_key();
		use_key(names[way], key, LEN);
		explicit_bzero(key, LEN);
		free(key);
	}
	pair_vectors = way == VECTOR ? FI_AV_AUTH_KEY : 0;
	for (int i = 0; i < 2; i++) {
		node_create(&n[i], NULL);
		if (way == OWN)
			give_key(&n[i]);
		if (way == VECTOR)
			give_vector_key(&n[i], &handle);
		check_stack("fi_endpoint");
		node_bind(&n[i]);
		check_stack("fi_enable");
	}
	talk(n, handle);
	check_stack("a message");
	if (!copies(false))
		fail("the search finds no key while there are some");
	for (int i = 0; i < 2; i++)
		node_close(&n[i]);
	check_all();
}

/* ---- A listener and a connected endpoint ---- */

static struct fi_info *connected_info(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int ret;

	hints->fabric_attr->prov_name = strdup(provider());
	hints->ep_attr->type = FI_EP_MSG;
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	must(ret, "fi_getinfo");
	info->ep_attr->auth_key = new_key();
	info->ep_attr->auth_key_size = LEN;
	return info;
}

struct side {
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static void open_side(struct side *s, struct fid_fabric *fabric, struct fid_eq *eq,
		      struct fi_info *info)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT};

	must(fi_domain(fabric, info, &s->domain, NULL), "fi_domain");
	must(fi_cq_open(s->domain, &cq, &s->cq, NULL), "fi_cq_open");
	must(fi_endpoint(s->domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(s->ep, &eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(s->ep), "fi_enable");
}

static void close_side(struct side *s)
{
	must(fi_close(&s->ep->fid), "fi_close");
	must(fi_close(&s->cq->fid), "fi_close");
	must(fi_close(&s->domain->fid), "fi_close");
}

/* Waits for an event. Returns the information that it brings, or NULL. */
static struct fi_info *await_event(struct fid_eq *eq, uint32_t wanted)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct fi_eq_cm_entry e = {.info = NULL};
	uint32_t event = 0;
	ssize_t ret;

	while ((ret = fi_eq_read(eq, &event, &e, sizeof(e), 0)) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("event %u does not come", wanted);
	must(ret, "fi_eq_read");
	if (event != wanted)
		fail("event %u, not %u", event, wanted);
	return e.info;
}

static void look_connected(void *arg)
{
	struct fi_info *info = connected_info(), *request;
	struct name name = {.len = sizeof(name.bytes)};
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct side from, to;
	struct fid_fabric *fabric;
	struct fid_pep *pep;
	struct fid_eq *eq;

	(void)arg;
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
	must(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	check_stack("fi_passive_ep");
	must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	check_stack("fi_listen");
	must(fi_getname(&pep->fid, name.bytes, &name.len), "fi_getname");
	open_side(&from, fabric, eq, info);
	must(fi_connect(from.ep, name.bytes, NULL, 0), "fi_connect");
	request = await_event(eq, FI_CONNREQ);
	check_stack("a request");
	open_side(&to, fabric, eq, request);
	must(fi_accept(to.ep, NULL, 0), "fi_accept");
	await_event(eq, FI_CONNECTED);
	await_event(eq, FI_CONNECTED);
	check_stack("a connection");
	if (!copies(false))
		fail("the search finds no key while there are some");
	close_side(&from);
	close_side(&to);
	must(fi_close(&pep->fid), "fi_close");
	must(fi_close(&eq->fid), "fi_close");
	must(fi_close(&fabric->fid), "fi_close");
	fi_freeinfo(request);
	fi_freeinfo(info);
	check_all();
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	if (!has_library("prove")) {
		puts("no library for keys here");
		return 77;
	}
	for (enum way way = OWN; way <= ENCRYPT; way++)
		if (way < ENCRYPT || (has_library("encrypt") && strcmp(provider(), "shm")))
			finish(start(names[way], look, &way), names[way]);
	finish(start("connected", look_connected, NULL), "connected");
	return EXIT_SUCCESS;
}
