/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters: environment variables of the library (base/env.h), and those defined at run time by others. fi_param(3)
 */
#include <ctype.h>
#include <rdma/providers/fi_prov.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/forked.h"
#include "base/list.h"
#include "base/log.h"
#include "info/external.h"

struct param {
	struct list link;
	char *name; /* name of the environment variable */
	enum fi_param_type type;
	char *help;
};

/* Parameters defined at run time, oldest first; never removed. Guarded by FORKED_PARAMS. */
static struct list defined = {&defined, &defined};

/* Returns FI_<PROVIDER>_<NAME> or FI_<NAME> in capitals, from malloc; NULL: out of memory. */
static char *variable_of(const struct fi_provider *prov, const char *name)
{
	const char *prov_name = prov && prov->name ? prov->name : "";
	char *variable;

	if (asprintf(&variable, "FI_%s%s%s", prov_name, *prov_name ? "_" : "", name) < 0)
		return NULL;
	for (char *c = variable; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return variable;
}

/* With the lock held. */
static struct param *find_defined(const char *variable)
{
	LIST_EACH_OF (struct param, p, &defined, link) {
		if (strcmp(p->name, variable) == 0)
			return p;
	}
	return NULL;
}

/* Sets *type; 0 or -FI_ENOENT. */
static int find_type(const char *variable, enum fi_param_type *type)
{
	size_t count;
	const struct env_row *row = env_rows(&count);
	const struct param *p;

	for (; count; row++, count--) {
		if (strcmp(row->name, variable) == 0) {
			*type = row->type;
			return 0;
		}
	}
	forked_take(FORKED_PARAMS);
	p = find_defined(variable);
	if (p)
		*type = p->type;
	forked_give(FORKED_PARAMS);
	return p ? 0 : -FI_ENOENT;
}

/* Takes over name and help. A parameter defined before keeps its definition. */
static int param_define(char *name, enum fi_param_type type, char *help)
{
	struct param *p = malloc(sizeof(*p));
	bool known;

	if (!p) {
		free(name);
		free(help);
		return -FI_ENOMEM;
	}
	*p = (struct param){.name = name, .type = type, .help = help};
	forked_take(FORKED_PARAMS);
	known = find_defined(name);
	if (!known)
		list_insert_before(&defined, &p->link);
	forked_give(FORKED_PARAMS);
	if (known) {
		free(p->name);
		free(p->help);
		free(p);
	}
	return 0;
}

int fi_param_define(const struct fi_provider *provider, const char *param_name,
		    enum fi_param_type type, const char *help_string_fmt, ...)
{
	char *name, *help;
	va_list args;
	int len;

	if (!param_name || !*param_name || !help_string_fmt || !*help_string_fmt)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_CORE,
			"fi_param_define: a parameter needs a name and a help text (\"%s\")",
			param_name ? param_name : "");
	name = variable_of(provider, param_name);
	if (!name)
		return -FI_ENOMEM;
	va_start(args, help_string_fmt);
	len = vasprintf(&help, help_string_fmt, args);
	va_end(args);
	if (len < 0) {
		free(name);
		return -FI_ENOMEM;
	}
	return param_define(name, type, help);
}

/* Calls env_parse; a boolean becomes an int. */
static int param_parse(enum fi_param_type type, const char *text, void *value)
{
	bool truth;
	int ret;

	if (type != FI_PARAM_BOOL)
		return env_parse(type, text, value);
	ret = env_parse(type, text, &truth);
	if (!ret)
		*(int *)value = truth;
	return ret;
}

/*
 * Finds the value of a known parameter. Takes the result of variable_of; the caller frees it. 0,
 * -FI_ENOENT, -FI_ENODATA or -FI_ENOMEM.
 */
static int find_text(char *variable, enum fi_param_type *type, const char **text)
{
	int ret = variable ? find_type(variable, type) : -FI_ENOMEM;

	if (ret)
		return ret;
	*text = getenv(variable);
	return *text ? 0 : -FI_ENODATA;
}

int fi_param_get(struct fi_provider *provider, const char *param_name, void *value)
{
	enum fi_param_type type;
	const char *text;
	char *variable;
	int ret;

	if (!param_name || !value)
		return -FI_EINVAL;
	variable = variable_of(provider, param_name);
	ret = find_text(variable, &type, &text);
	if (!ret) {
		ret = param_parse(type, text, value);
		if (ret)
			LOG_WARN(LOG_CORE, "%s=%s is not a valid value: fi_info -e tells its type",
				 variable, text);
	}
	free(variable);
	return ret;
}

static int param_describe(struct fi_param *to, const char *name, enum fi_param_type type,
			  char *help)
{
	const char *value = getenv(name);

	to->name = strdup(name);
	to->type = type;
	to->help_string = help;
	to->value = value ? strdup(value) : NULL;
	return to->name && help && (to->value || !value) ? 0 : -FI_ENOMEM;
}

/* Returns a row's help text and default, from malloc; NULL: out of memory. */
static char *row_help(const struct env_row *row)
{
	char *help;

	if (asprintf(&help, "%s (default: %s)", row->help,
		     row->fallback ? row->fallback : "not set") < 0)
		return NULL;
	return help;
}

/* With the lock held. */
static size_t count_defined(void)
{
	size_t count = 0;

	LIST_EACH (node, &defined)
		count++;
	return count;
}

/* Lock held. `to` has space for all parameters and a last, empty entry. */
static int describe_all(struct fi_param *to, const struct env_row *row, size_t rows)
{
	int ret = 0;

	for (; rows && !ret; rows--, row++)
		ret = param_describe(to++, row->name, row->type, row_help(row));
	LIST_EACH_OF (const struct param, p, &defined, link) {
		if (ret)
			break;
		ret = param_describe(to++, p->name, p->type, strdup(p->help));
	}
	return ret;
}

int fi_getparams(struct fi_param **params, int *count)
{
	size_t rows, all;
	const struct env_row *row = env_rows(&rows);
	struct fi_param *list;
	int ret;

	if (!params || !count)
		return -FI_EINVAL;
	external_load();
	forked_take(FORKED_PARAMS);
	all = rows + count_defined();
	list = calloc(all + 1, sizeof(*list));
	ret = list ? describe_all(list, row, rows) : -FI_ENOMEM;
	forked_give(FORKED_PARAMS);
	if (ret) {
		fi_freeparams(list);
		return ret;
	}
	*params = list;
	*count = (int)all;
	return 0;
}

void fi_freeparams(struct fi_param *params)
{
	for (struct fi_param *p = params; p && p->name; p++) {
		free((char *)p->name);
		free((char *)p->help_string);
		free((char *)p->value);
	}
	free(params);
}
