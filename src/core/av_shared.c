/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/forked.h"
#include "base/log.h"
#include "core/av_shared.h"

/*
 * ---- Names: processes of one user find a memfd ----
 *
 * A process publishes a descriptor by binding a socket to the name "weft-av/UID/HASH/PID/FD" in the abstract namespace.
 * Nothing is ever sent over the socket: other processes read the name in the kernel's list of sockets and open
 * /proc/PID/fd/FD. So no process has to answer, nothing outlives the process and nothing is left in a file system. The
 * reach is that of the network namespace and of /proc.
 */

#define PREFIX_MAX 64   /* bytes of "@weft-av/UID/HASH" */
#define NAME_US    1000 /* between two tries */
#define FIND_TRIES 20   /* a process that is ending may still be in the list */
#define DOOR_TRIES 1000 /* another process is between av_name_enter and forked_close */

/* Writes "@weft-av/UID/HASH"; '@' is how the kernel's list shows the leading zero byte. Returns the length. */
static int av_name_prefix_of(const char *name, char *buf)
{
	uint64_t hash =
		UINT64_C(0xcbf29ce484222325); /* FNV-1a; collisions are detected by `take` */

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return snprintf(buf, PREFIX_MAX, "@weft-av/%u/%016llx", (unsigned int)geteuid(),
			(unsigned long long)hash);
}

/* Binds a new socket to the prefix of `name` followed by `more`. 0 or a negative error. */
static int av_name_bind_name(const char *name, const char *more, int *sock)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char prefix[PREFIX_MAX];
	int err, len, s;

	av_name_prefix_of(name, prefix);
	len = snprintf(un.sun_path, sizeof(un.sun_path), "%s%s", prefix, more);
	un.sun_path[0] = '\0';
	/* The socket never listens, so nothing can be queued on it. */
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return -errno;
	err = forked_guard(s);
	if (!err && bind(s, (struct sockaddr *)&un,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)))
		err = -errno;
	if (err)
		forked_close(s);
	else
		*sock = s;
	return err;
}

int av_name_enter(const char *name, int *door)
{
	int err = av_name_bind_name(name, "", door);

	for (int i = 1; err == -FI_EADDRINUSE && i < DOOR_TRIES; i++) {
		usleep(NAME_US);
		err = av_name_bind_name(name, "", door);
	}
	return err;
}

int av_name_publish(const char *name, int fd, int *place)
{
	char pid[16], at[32];
	/* The pid as other users of this /proc see it; getpid(2) may return that of an inner pid namespace. */
	ssize_t len = readlink("/proc/self", pid, sizeof(pid) - 1);

	if (len < 0)
		return -errno;
	pid[len] = '\0';
	snprintf(at, sizeof(at), "/%s/%d", pid, fd);
	return av_name_bind_name(name, at, place);
}

/* Opens only regular files of this user. O_PATH first, so that a wrong file is not touched. */
static int open_place(int pid, int fd, int flags)
{
	char path[64];
	struct stat st;
	int opened = -1, at;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	if (!fstat(at, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		opened = open(path, flags | O_CLOEXEC);
	close(at);
	return opened;
}

static int find_once(const char *prefix, int flags, int (*take)(void *arg, int fd), void *arg)
{
	FILE *list = fopen("/proc/self/net/unix", "re");
	int err = -FI_ENOENT, pid, fd;
	char *line = NULL, *at;
	size_t room = 0;

	if (!list)
		return -FI_ENOSYS;
	while ((err == -FI_ENOENT || err == -FI_ENOSYS) && getline(&line, &room, list) > 0) {
		at = strstr(line, prefix);
		if (!at || sscanf(at + strlen(prefix), "/%d/%d", &pid, &fd) != 2)
			continue;
		fd = open_place(pid, fd, flags);
		err = fd < 0 ? -FI_ENOSYS : take(arg, fd);
	}
	free(line);
	fclose(list);
	return err;
}

/*
 * Opens the published descriptors of the name with `flags` of open(2) and passes each to `take`, which owns the descriptor
 * and returns -FI_ENOSYS if it is not the right one. Returns the first other result of `take`; -FI_ENOENT: the name is not
 * published; -FI_ENOSYS: no descriptor could be opened or was right.
 */
static int av_name_find(const char *name, int flags, int (*take)(void *arg, int fd), void *arg)
{
	char prefix[PREFIX_MAX];
	int err;

	av_name_prefix_of(name, prefix);
	err = find_once(prefix, flags, take, arg);
	for (int i = 1; err == -FI_ENOSYS && i < FIND_TRIES; i++) {
		usleep(NAME_US);
		err = find_once(prefix, flags, take, arg);
	}
	return err;
}

/* ---- Tables ---- */

#define MAGIC    UINT64_C(0x3176612d74666577) /* change with the layout */
#define HEAD_LEN 4096
#define TRY_US   100
#define SEALS    (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The ids follow at HEAD_LEN, then the slots. */
struct av_shared_head {
	uint64_t magic;
	uint32_t format;
	uint32_t type;
	uint64_t capacity;
	uint64_t count;    /* atomic; never falls */
	uint64_t removals; /* atomic; never falls */
	char name[AV_SHARED_KEY_MAX];
};

_Static_assert(sizeof(struct av_shared_head) <= HEAD_LEN, "the head has its page");

int av_shared_key(struct av_shared_key *key, const char *domain, const char *name)
{
	int len = snprintf(key->name, sizeof(key->name), "%s\n%s", domain ? domain : "", name);

	if (len < (int)sizeof(key->name))
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_AV,
			  "names of address vector and domain: %d bytes, %d at most", len,
			  AV_SHARED_KEY_MAX - 1);
}

static size_t slot_len(uint32_t format)
{
	return format == FI_ADDR_STR ? sizeof(struct av_shared_entry) : sizeof(struct addr);
}

static size_t table_len(uint64_t capacity, uint32_t format)
{
	return HEAD_LEN + capacity * (sizeof(fi_addr_t) + slot_len(format));
}

static int av_shared_map(struct av_shared *t, int fd, uint64_t capacity,
			 const struct av_shared_key *key)
{
	size_t len = table_len(capacity, key->format);
	int prot = t->fd >= 0 ? PROT_READ | PROT_WRITE : PROT_READ;
	char *at = mmap(NULL, len, prot, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	madvise(at, len, MADV_DONTDUMP);
	t->head = (struct av_shared_head *)at;
	t->len = len;
	t->ids = (fi_addr_t *)(at + HEAD_LEN);
	t->slots = at + HEAD_LEN + capacity * sizeof(fi_addr_t);
	t->slot_len = slot_len(key->format);
	t->capacity = capacity;
	return 0;
}

static int av_shared_create(struct av_shared *t, const struct av_shared_key *key, size_t count)
{
	size_t capacity = count > AV_SHARED_ENTRIES ? count : AV_SHARED_ENTRIES;
	int err;

	if (capacity > AV_SHARED_ENTRIES_MAX)
		capacity = AV_SHARED_ENTRIES_MAX;
	t->fd = memfd_create("weft-av", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (t->fd < 0)
		return -errno;
	err = forked_guard(t->fd);
	if (err)
		return err;
	if (fchmod(t->fd, S_IRUSR | S_IWUSR) ||
	    file_resize(t->fd, (off_t)table_len(capacity, key->format)) ||
	    fcntl(t->fd, F_ADD_SEALS, SEALS))
		return -errno;
	err = av_shared_map(t, t->fd, capacity, key);
	if (err)
		return err;
	t->head->magic = MAGIC;
	t->head->format = key->format;
	t->head->type = key->type == FI_AV_UNSPEC ? FI_AV_TABLE : key->type;
	t->head->capacity = capacity;
	memcpy(t->head->name, key->name, sizeof(key->name));
	return av_name_publish(key->name, t->fd, &t->place);
}

/* Reads and checks the head of a table. 0; -FI_ENOSYS: not the table of `key`; -FI_EINVAL: another type or format. */
static int av_shared_check(int fd, const struct av_shared_key *key, struct av_shared_head *head)
{
	struct stat st;

	if (pread(fd, head, sizeof(*head), 0) != (ssize_t)sizeof(*head) || fstat(fd, &st) ||
	    (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
		return -FI_ENOSYS;
	if (head->magic != MAGIC || memcmp(head->name, key->name, strlen(key->name) + 1) != 0 ||
	    head->capacity > AV_SHARED_ENTRIES_MAX ||
	    (size_t)st.st_size != table_len(head->capacity, head->format))
		return -FI_ENOSYS;
	if (head->format == key->format &&
	    (key->type == FI_AV_UNSPEC || head->type == (uint32_t)key->type))
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_AV,
			  "address vector \"%s\" has type %u and format %u, not %d and %u",
			  strchr(key->name, '\n') + 1, head->type, head->format, key->type,
			  key->format);
}

/* Arguments of `join` for each published descriptor. */
struct opening {
	struct av_shared *t;
	const struct av_shared_key *key;
	bool write;
};

static int av_shared_join(void *arg, int fd)
{
	struct opening *o = arg;
	struct av_shared *t = o->t;
	struct av_shared_head head;
	int err = av_shared_check(fd, o->key, &head);

	if (err || !o->write) {
		err = err ? err : av_shared_map(t, fd, head.capacity, o->key);
		close(fd);
		return err;
	}
	t->fd = fd;
	err = forked_guard(fd);
	if (!err)
		err = av_shared_map(t, fd, head.capacity, o->key);
	return err ? err : av_name_publish(o->key->name, fd, &t->place);
}

static void av_shared_explain(const struct av_shared_key *key, int err)
{
	const char *name = strchr(key->name, '\n') + 1;

	if (err == -FI_ENOENT)
		LOG_INFO(LOG_AV, "no process has address vector \"%s\" open for writing", name);
	else if (err == -FI_ENOSYS)
		LOG_WARN(LOG_AV,
			 "address vector \"%s\" is out of reach: /proc does not lead to the memory "
			 "of the process that has it (is its pid namespace another one?)",
			 name);
	else if (err != -FI_EINVAL)
		LOG_WARN(LOG_AV, "address vector \"%s\": %s", name, fi_strerror(-err));
}

int av_shared_open(struct av_shared *t, const struct av_shared_key *key, size_t count, bool write)
{
	struct opening o = {.t = t, .key = key, .write = write};
	int door = -1, err = 0;

	*t = (struct av_shared){.fd = -1, .place = -1};
	if (write)
		err = av_name_enter(key->name, &door);
	if (!err)
		err = av_name_find(key->name, write ? O_RDWR : O_RDONLY, av_shared_join, &o);
	if (err == -FI_ENOENT && write)
		err = av_shared_create(t, key, count);
	if (err) {
		av_shared_explain(key, err);
		av_shared_close(t);
	}
	if (door >= 0)
		forked_close(door);
	return err == -FI_ENOENT ? -FI_EINVAL : err;
}

void av_shared_close(struct av_shared *t)
{
	if (t->place >= 0)
		forked_close(t->place);
	if (t->fd >= 0)
		forked_close(t->fd);
	if (t->head)
		munmap(t->head, t->len);
}

static struct addr *av_shared_slot(const struct av_shared *t, size_t index)
{
	return (struct addr *)(t->slots + index * t->slot_len);
}

enum fi_av_type av_shared_type(const struct av_shared *t)
{
	return (enum fi_av_type)t->head->type;
}

size_t av_shared_count(const struct av_shared *t)
{
	/* Pairs with the release in av_shared_add. */
	uint64_t count = __atomic_load_n(&t->head->count, __ATOMIC_ACQUIRE);

	return count < t->capacity ? count : t->capacity;
}

uint64_t av_shared_removals(const struct av_shared *t)
{
	/* Pairs with the release in av_shared_remove. */
	return __atomic_load_n(&t->head->removals, __ATOMIC_ACQUIRE);
}

void av_shared_get(const struct av_shared *t, size_t index, struct av_shared_entry *entry)
{
	bool strings = t->slot_len == sizeof(*entry);
	struct addr *a = &entry->addr;

	memcpy(entry, av_shared_slot(t, index), t->slot_len);
	if (!strings && (a->kind == ADDR_IN || a->kind == ADDR_IN6 || a->kind == ADDR_IB))
		return;
	if (!strings || a->kind != ADDR_STR)
		a->kind = ADDR_NONE;
	entry->str[ADDR_STR_MAX - 1] = '\0';
	a->str = entry->str;
}

/* Not by a call that sleeps until the lock is free: who holds it may be stopped, or mean to keep it. */
int av_shared_begin(struct av_shared *t)
{
	const int most = env_get()->access_timeout;
	uint64_t end = clock_coarse_ms() + (uint64_t)most;

	while (flock(t->fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_coarse_ms() > end)
			return LOG_REFUSE(
				-FI_EBUSY, LOG_AV,
				"another process has held the lock of the shared address vector for %d ms "
				"(FI_WEFT_ACCESS_TIMEOUT): nothing is inserted or removed",
				most);
		usleep(TRY_US);
	}
	return 0;
}

void av_shared_end(struct av_shared *t)
{
	flock(t->fd, LOCK_UN);
}

int av_shared_add(struct av_shared *t, const struct addr *a, uint32_t *index)
{
	size_t i = av_shared_count(t);
	struct av_shared_entry entry = {.addr = *a};

	if (i == t->capacity)
		return LOG_REFUSE(-FI_ENOMEM, LOG_AV,
				  "the shared address vector is full with %zu addresses; a larger "
				  "attr->count when it is made gives room for more (%u at most)",
				  i, AV_SHARED_ENTRIES_MAX);
	if (a->kind == ADDR_STR) {
		snprintf(entry.str, sizeof(entry.str), "%s", a->str);
		entry.addr.str = NULL;
	}
	entry.addr.uses = 0;
	memcpy(av_shared_slot(t, i), &entry, t->slot_len);
	t->ids[i] = i;
	/* Pairs with the acquire in av_shared_count. */
	__atomic_store_n(&t->head->count, i + 1, __ATOMIC_RELEASE);
	*index = (uint32_t)i;
	return 0;
}

void av_shared_remove(struct av_shared *t, size_t index)
{
	t->ids[index] = FI_ADDR_NOTAVAIL;
	__atomic_store_n(&av_shared_slot(t, index)->kind, ADDR_NONE, __ATOMIC_RELAXED);
	/* Pairs with the acquire in av_shared_removals. */
	__atomic_add_fetch(&t->head->removals, 1, __ATOMIC_RELEASE);
}

uint8_t *av_shared_uses(struct av_shared *t, size_t index)
{
	return &av_shared_slot(t, index)->uses;
}
