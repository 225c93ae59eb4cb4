/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/layers.h"

#include <string.h>

#include "base/log.h"
#include "core/cq.h"

#define PROV "ofi_hook_profile"

/* Lengths (bytes): each up to the least of the next. */
static const struct bucket {
	const char *name;
	size_t least;
} buckets[] = {
	{"0-64", 0},         {"64-512", 64},     {"512-1K", 512},
	{"1K-4K", 1024},     {"4K-64K", 4096},   {"64K-256K", 65536},
	{"256K-1M", 262144}, {"1M-4M", 1048576}, {"4M-UP", 4194304},
};
#define BUCKETS (sizeof(buckets) / sizeof(buckets[0]))

/* Of the calls of a group shares are reported. A call belongs to the first that its name fits. */
static const struct {
	const char *part; /* of the call's name */
	const char *group;
} groups[] = {
	{"write", "rma write"},   {"fi_read", "rma read"},    {"recv", "message receive"},
	{"send", "message send"}, {"inject", "message send"},
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

/* The calls that move data. */
#define FIRST CALL_fi_recv
#define LAST  CALL_fi_inject_writedata
#define CALLS (LAST - FIRST + 1)

/* Successful calls, and the bytes that they move. */
struct share {
	uint64_t count, bytes; /* atomic */
};

static struct share shares[CALLS][BUCKETS];
static struct share received[FI_CQ_FORMAT_TAGGED + 1]; /* completions that were read, by format */

static void profile_add(struct share *to, uint64_t count, uint64_t bytes)
{
	__atomic_fetch_add(&to->count, count, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->bytes, bytes, __ATOMIC_RELAXED);
}

/* ---- Counting --------------------------------------------------------------------------------- */

static size_t profile_bucket_of(size_t bytes)
{
	size_t i = BUCKETS - 1;

	while (bytes < buckets[i].least)
		i--;
	return i;
}

/* Entries of the formats that tell lengths begin alike. */
static void profile_add_entries(const struct value_entries *entries)
{
	const char *entry = entries->buf;
	uint64_t bytes = 0;

	for (ssize_t i = 0; i < entries->count; i++, entry += cq_entry_size(entries->format)) {
		struct fi_cq_msg_entry e;

		if (entries->format < FI_CQ_FORMAT_MSG)
			break;
		memcpy(&e, entry, sizeof(e));
		if (e.flags & FI_RECV)
			bytes += e.len;
	}
	if (entries->count > 0)
		profile_add(&received[entries->format], (uint64_t)entries->count, bytes);
}

void profile_call(const struct call *call)
{
	if (call_failed(call))
		return;
	if (call->id >= FIRST && call->id <= LAST)
		profile_add(&shares[call->id - FIRST][profile_bucket_of(call->bytes)], 1,
			    call->bytes);
	for (size_t i = 0; i < call->count; i++)
		if (call->shapes[i].show == SHOW_ENTRIES)
			profile_add_entries(
				(const struct value_entries *)(uintptr_t)call->values[i]);
}

/* ---- The report ------------------------------------------------------------------------------- */

static struct share profile_take(struct share *from)
{
	return (struct share){__atomic_exchange_n(&from->count, 0, __ATOMIC_RELAXED),
			      __atomic_exchange_n(&from->bytes, 0, __ATOMIC_RELAXED)};
}

/* Returns the name of a call's group. */
static const char *group_of(size_t call)
{
	const char *name = calls_name(FIRST + (enum call_id)call);
	size_t i = 0;

	while (i < GROUPS - 1 && !strstr(name, groups[i].part))
		i++;
	return groups[i].group;
}

/* Returns the sum of a group. */
static struct share sum_of(const char *group, struct share taken[CALLS][BUCKETS])
{
	struct share sum = {0, 0};

	for (size_t call = 0; call < CALLS; call++) {
		if (strcmp(group_of(call), group) != 0)
			continue;
		for (size_t i = 0; i < BUCKETS; i++) {
			sum.count += taken[call][i].count;
			sum.bytes += taken[call][i].bytes;
		}
	}
	return sum;
}

static double profile_percent(uint64_t part, uint64_t all)
{
	return all ? (double)part * 100 / (double)all : 0;
}

static void profile_report_call(const struct log_place *place, size_t call,
				struct share taken[CALLS][BUCKETS])
{
	const char *group = group_of(call);
	const struct share all = sum_of(group, taken);

	for (size_t i = 0; i < BUCKETS; i++) {
		const struct share *s = &taken[call][i];

		if (s->count)
			log_write(place, "%-15s  %-19s  %-9s %12llu %16llu %5.1f%% %5.1f%%", group,
				  calls_name(FIRST + (enum call_id)call), buckets[i].name,
				  (unsigned long long)s->count, (unsigned long long)s->bytes,
				  profile_percent(s->count, all.count),
				  profile_percent(s->bytes, all.bytes));
	}
}

static void report_received(const struct log_place *place)
{
	for (enum fi_cq_format format = 0; format <= FI_CQ_FORMAT_TAGGED; format++) {
		const struct share s = profile_take(&received[format]);
		char name[40];

		if (s.count)
			log_write(place, "completions      %-30s %12llu %16llu",
				  fi_tostr_r(name, sizeof(name), &format, FI_TYPE_CQ_FORMAT),
				  (unsigned long long)s.count, (unsigned long long)s.bytes);
	}
}

void profile_report(void)
{
	const struct log_place place = {PROV, FI_LOG_TRACE, LOG_FABRIC, __func__, __LINE__};
	struct share taken[CALLS][BUCKETS];

	if (!log_allowed(PROV, FI_LOG_TRACE, LOG_FABRIC))
		return;
	for (size_t call = 0; call < CALLS; call++)
		for (size_t i = 0; i < BUCKETS; i++)
			taken[call][i] = profile_take(&shares[call][i]);
	log_write(&place, "%-15s  %-19s  %-9s %12s %16s %6s %6s", "Group", "API", "Size", "Count",
		  "Amount", "%Count", "%Amount");
	for (size_t call = 0; call < CALLS; call++)
		profile_report_call(&place, call, taken);
	report_received(&place);
}
