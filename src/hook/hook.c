/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/hook.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "hook/call.h"
#include "hook/layers.h"

/* ---- Layers ----------------------------------------------------------------------------------- */

struct layer {
	const char *name;
	void (*start)(void);                   /* the layer has been chosen; or NULL */
	void (*call)(const struct call *call); /* a call has been made; from any thread */
	void (*fabric_closed)(void);           /* or NULL */
};

static const struct layer layers[] = {
	{"trace", NULL, trace_call, NULL},
	{"perf", perf_start, perf_call, perf_report},
	{"profile", NULL, profile_call, profile_report},
	{"monitor", monitor_start, monitor_call, NULL},
};
#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))

static const struct layer *chosen[LAYER_COUNT];
static size_t chosen_count;

/* Finds a name of `len` characters: name, hook_name or ofi_hook_name. */
static const struct layer *find_layer(const char *name, size_t len)
{
	static const char *const prefixes[] = {"ofi_hook_", "hook_"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (len > n && strncmp(name, prefixes[i], n) == 0) {
			name += n;
			len -= n;
			break;
		}
	}
	for (size_t i = 0; i < LAYER_COUNT; i++)
		if (strlen(layers[i].name) == len && strncmp(name, layers[i].name, len) == 0)
			return &layers[i];
	return NULL;
}

/* Adds a layer of the list, once. */
static void hook_choose(const char *name, size_t len)
{
	const struct layer *layer = find_layer(name, len);

	if (!layer) {
		LOG_WARN(LOG_CORE, "FI_HOOK: there is no hook \"%.*s\"", (int)len, name);
		return;
	}
	for (size_t i = 0; i < chosen_count; i++)
		if (chosen[i] == layer)
			return;
	chosen[chosen_count++] = layer;
	if (layer->start)
		layer->start();
}

static void choose_all(void)
{
	const char *list = env_get()->hook;

	while (list && *list) {
		size_t len = strcspn(list, ";");

		if (len)
			hook_choose(list, len);
		list += len + (list[len] != '\0');
	}
}

struct instant hook_begin(void)
{
	return (struct instant){clock_ns(), perf_events()};
}

void hook_end(enum call_id id, struct instant began, size_t bytes, const struct shape *shapes,
	      const uint64_t *values, size_t count)
{
	struct call call = {id, began, hook_begin(), bytes, count, shapes, values};
	int before;

	/* Layers write files under locks: a thread that was cancelled there would keep them. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	for (size_t i = 0; i < chosen_count; i++)
		chosen[i]->call(&call);
	pthread_setcancelstate(before, NULL);
}

static void end_fabric(void)
{
	for (size_t i = 0; i < chosen_count; i++)
		if (chosen[i]->fabric_closed)
			chosen[i]->fabric_closed();
}

/* ---- Objects ---------------------------------------------------------------------------------- */

/* clang-format off */
/* cppcheck-suppress unknownMacro ; it does not expand what is pasted of a list */
FID_CALLS(CALL_SHAPES)
FID_CALLS(CALL_FUNCTION)
static const struct fi_ops calls_fid = {.size = sizeof(calls_fid), FID_CALLS(CALL_MEMBER)};
/* clang-format on */

#define TABLES_MAX 8

/*
 * The tables of an object of a class, in the order of its pointers. The first is struct fid.ops; the others follow it.
 */
static const void *const classes[][TABLES_MAX] = {
	[FI_CLASS_FABRIC] = {&calls_fid, &calls_fabric},
	[FI_CLASS_DOMAIN] = {&calls_fid, &calls_domain, &calls_mr},
	[FI_CLASS_EP] = {&calls_fid, &calls_ep, &calls_cm, &calls_msg, &calls_rma, &calls_tagged,
			 &calls_atomic, &calls_collective},
	[FI_CLASS_PEP] = {&calls_fid, &calls_ep, &calls_cm},
	[FI_CLASS_STX_CTX] = {&calls_fid, &calls_ep},
	[FI_CLASS_AV] = {&calls_fid, &calls_av},
	[FI_CLASS_AV_SET] = {&calls_fid, &calls_av_set},
	[FI_CLASS_MR] = {&calls_fid},
	[FI_CLASS_CQ] = {&calls_fid, &calls_cq},
	[FI_CLASS_EQ] = {&calls_fid, &calls_eq},
	[FI_CLASS_CNTR] = {&calls_fid, &calls_cntr},
	[FI_CLASS_WAIT] = {&calls_fid, &calls_wait},
	[FI_CLASS_POLL] = {&calls_fid, &calls_poll},
};

_Static_assert(offsetof(struct fid_ep, ops) == offsetof(struct fid, ops) + sizeof(void *) &&
		       sizeof(struct fid_ep) ==
			       offsetof(struct fid, ops) + TABLES_MAX * sizeof(void *),
	       "the pointers of an object to its tables are in a row");

/*
 * The tables of a wrapped object: the first is found by its fid.ops. They do not change, whereas the
 * object's pointers do when it is closed.
 */
struct hooked {
	const struct fid *fid;
	enum fi_cq_format format;   /* of a completion queue */
	struct call_table tables[]; /* inner is NULL where the object has no table */
};

/* Returns how many members, the size included, both tables have. */
static size_t common_members(const uintptr_t *theirs, const uintptr_t *ours)
{
	return (theirs[0] < ours[0] ? theirs[0] : ours[0]) / sizeof(uintptr_t);
}

/* Is the table one of this room, of this object or of another? */
static bool is_outer(const uintptr_t *table, const uintptr_t *ours)
{
	size_t members = common_members(table, ours);

	for (size_t i = 1; i < members; i++)
		if (table[i] && table[i] == ours[i])
			return true;
	return false;
}

/* Returns our tables for objects of a class, or NULL. */
static const void *const *class_tables(size_t fclass)
{
	switch (fclass) {
	case FI_CLASS_SEP:
	case FI_CLASS_TX_CTX:
	case FI_CLASS_RX_CTX:
	case FI_CLASS_SRX_CTX:
		fclass = FI_CLASS_EP;
		break;
	}
	if (fclass >= sizeof(classes) / sizeof(classes[0]) || !classes[fclass][0])
		return NULL;
	return classes[fclass];
}

static size_t count_tables(size_t fclass)
{
	const void *const *ours = class_tables(fclass);
	size_t count = 0;

	while (count < TABLES_MAX && ours[count])
		count++;
	return count;
}

static const void **pointers_of(struct fid *fid)
{
	return (const void **)&fid->ops;
}

/* Fills `t`: what the object's table has and ours has too is ours, the rest the object's. */
static void wrap_table(struct call_table *t, const uintptr_t *inner, const uintptr_t *ours)
{
	size_t members = common_members(inner, ours);

	t->inner = inner;
	t->outer[0] = members * sizeof(uintptr_t);
	for (size_t i = 1; i < members; i++)
		t->outer[i] = inner[i] && ours[i] ? ours[i] : inner[i];
}

static void wrap_tables(struct fid *fid, struct hooked *hooked)
{
	const void *const *ours = class_tables(fid->fclass);
	const void **pointers = pointers_of(fid);

	for (size_t i = 0; i < count_tables(fid->fclass); i++)
		if (pointers[i])
			wrap_table(&hooked->tables[i], pointers[i], ours[i]);
}

/* Other threads may be in a call of the object: CALL_INNER reads either pointer. */
static void hook_point_to(const void **pointer, const void *table)
{
	__atomic_store_n(pointer, table, __ATOMIC_RELEASE); /* pairs with CALL_INNER, hooked_of */
}

static void hook_wrap(struct fid *fid, struct hooked *hooked)
{
	const void **pointers = pointers_of(fid);

	for (size_t i = 0; i < count_tables(fid->fclass); i++)
		if (hooked->tables[i].inner)
			hook_point_to(&pointers[i], hooked->tables[i].outer);
}

static void hook_unwrap(struct fid *fid)
{
	const void *const *ours = class_tables(fid->fclass);
	const void **pointers = pointers_of(fid);

	for (size_t i = 0; i < count_tables(fid->fclass); i++)
		if (pointers[i] && is_outer(pointers[i], ours[i]))
			hook_point_to(&pointers[i],
				      LIST_ENTRY(pointers[i], struct call_table, outer)->inner);
}

/* Returns the tables of the object, or NULL: it is not wrapped, or is a copy of one that is. */
static struct hooked *hooked_of(const struct fid *fid)
{
	const struct fi_ops *ops = __atomic_load_n(&fid->ops, __ATOMIC_ACQUIRE); /* point_to */
	struct call_table *first = LIST_ENTRY(ops, struct call_table, outer);
	struct hooked *hooked = LIST_ENTRY(first, struct hooked, tables);

	if (!is_outer((const uintptr_t *)ops, (const uintptr_t *)&calls_fid))
		return NULL;
	return hooked->fid == fid ? hooked : NULL;
}

void hook_object(struct fid *fid)
{
	struct hooked *hooked;

	if (!fid || !class_tables(fid->fclass) || hooked_of(fid))
		return;
	hook_unwrap(fid); /* an alias begins as a copy of its endpoint, which is wrapped */
	hooked = calloc(1, sizeof(*hooked) + count_tables(fid->fclass) * sizeof(struct call_table));
	if (!hooked) {
		LOG_WARN(LOG_CORE, "out of memory: calls of an object of class %zu are not hooked",
			 fid->fclass);
		return;
	}
	hooked->fid = fid;
	wrap_tables(fid, hooked);
	hook_wrap(fid, hooked);
} /* NOLINT(clang-analyzer-unix.Malloc): the object's pointers lead to it */

struct fid_cq *hook_queue(struct fid_cq *cq, const struct fi_cq_attr *attr)
{
	struct hooked *hooked;

	hook_object(&cq->fid);
	hooked = hooked_of(&cq->fid);
	if (attr && hooked)
		hooked->format = attr->format;
	return cq;
}

struct value_entries hook_entries(const struct fid_cq *cq, const void *buf, ssize_t count)
{
	const struct hooked *hooked = hooked_of(&cq->fid);

	if (!hooked)
		return (struct value_entries){NULL, 0, FI_CQ_FORMAT_UNSPEC};
	return (struct value_entries){buf, count, hooked->format};
}

/*
 * The object ends as it was when it was opened. If it stays, it is wrapped again. If two threads
 * close it, the second finds it without tables of ours.
 */
static int hooked_fi_close(struct fid *fid)
{
	struct hooked *hooked = hooked_of(fid);
	uint64_t values[2] = {(uintptr_t)fid};
	struct instant began = hook_begin();
	size_t fclass = fid->fclass;
	int ret;

	hook_unwrap(fid);
	ret = fid->ops->close(fid);
	if (!ret)
		free(hooked);
	else if (hooked)
		hook_wrap(fid, hooked);
	values[1] = (uint64_t)ret;
	hook_end(CALL_fi_close, began, 0, shapes_fi_close, values, 2);
	if (!ret && fclass == FI_CLASS_FABRIC)
		end_fabric();
	return ret;
}

void hook_fabric(struct fid_fabric *fabric)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose_all);
	if (chosen_count)
		hook_object(&fabric->fid);
}
