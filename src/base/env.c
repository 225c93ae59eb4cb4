/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/env.h"
#include "base/log.h"

#define TYPE_OF(member)                                                                            \
	_Generic(((struct env_settings *)NULL)->member,    \
		const char *: FI_PARAM_STRING,             \
		int: FI_PARAM_INT,                         \
		bool: FI_PARAM_BOOL,                       \
		size_t: FI_PARAM_SIZE_T)

#define ENV_ROW(type, member, name, fallback, help)                                                \
	{name, TYPE_OF(member), fallback, help, offsetof(struct env_settings, member)},
static const struct env_row rows[] = {ENV_ROWS(ENV_ROW)};
#undef ENV_ROW

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static struct env_settings settings; /* owns the strings, never freed */
static pthread_once_t once = PTHREAD_ONCE_INIT;

const struct env_row *env_rows(size_t *count)
{
	*count = ROW_COUNT;
	return rows;
}

static int parse_bool(const char *text, bool *value)
{
	static const char *const words[] = {"0", "1", "no", "yes", "false", "true", "off", "on"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*value = i & 1;
			return 0;
		}
	}
	return -FI_EINVAL;
}

/* Is the rest of the string at `end`, where the number at `text` ended, only spaces? */
static bool number_ends(const char *text, const char *end)
{
	if (end == text)
		return false;
	while (isspace((unsigned char)*end))
		end++;
	return !*end;
}

static int parse_int(const char *text, int *value)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 0);
	if (!number_ends(text, end) || errno || n < INT_MIN || n > INT_MAX)
		return -FI_EINVAL;
	*value = (int)n;
	return 0;
}

static int parse_size(const char *text, size_t *value)
{
	const char *digits = text + strspn(text, " \t");
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(digits, &end, 0);
	if (!number_ends(digits, end) || errno || n > SIZE_MAX)
		return -FI_EINVAL;
	if (*digits == '-' && n != ULLONG_MAX) /* strtoull wraps */
		return -FI_EINVAL;
	*value = n;
	return 0;
}

int env_parse(enum fi_param_type type, const char *text, void *value)
{
	switch (type) {
	case FI_PARAM_STRING:
		*(const char **)value = text;
		return 0;
	case FI_PARAM_INT:
		return parse_int(text, value);
	case FI_PARAM_BOOL:
		return parse_bool(text, value);
	case FI_PARAM_SIZE_T:
		return parse_size(text, value);
	}
	return -FI_EINVAL;
}

/* Copies a string, because a later setenv may change the environment's memory. */
static void copy_string(const struct env_row *row)
{
	const char **member = (const char **)((char *)&settings + row->offset);

	if (row->type == FI_PARAM_STRING && *member)
		*member = strdup(*member);
}

/* Sets the member of a row. Returns false if the variable has an invalid value. */
static bool load_row(const struct env_row *row)
{
	void *member = (char *)&settings + row->offset;
	const char *text = getenv(row->name);
	bool good = !text || env_parse(row->type, text, member) == 0;

	if (row->fallback && (!text || !good))
		env_parse(row->type, row->fallback, member);
	copy_string(row);
	return good;
}

static void env_load(void)
{
	bool good[ROW_COUNT];

	for (size_t i = 0; i < ROW_COUNT; i++)
		good[i] = load_row(&rows[i]);
	/* From here on logging works without calling env_get again. */
	log_setup(settings.log_level, settings.log_prov, settings.log_subsys);
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (!good[i])
			LOG_WARN(LOG_CORE,
				 "%s=%s is not a valid value, using %s: fi_info -e tells its type",
				 rows[i].name, getenv(rows[i].name), rows[i].fallback);
}

const struct env_settings *env_get(void)
{
	pthread_once(&once, env_load);
	return &settings;
}
