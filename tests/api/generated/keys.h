/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of a structure as text, NAME=VALUE. Needs api.h. */
#ifndef GENERATED_KEYS_H
#define GENERATED_KEYS_H

#include <stddef.h>

/* What names a value, in a line or in the header: as a number, or as a word of `words`. */
struct key {
	const char *name;
	size_t at;
	uint64_t usual; /* is not printed */
	const char *const *words;
};

static inline uint64_t *key_value(const struct key *k, void *of)
{
	return (uint64_t *)(void *)((char *)of + k->at);
}

static inline void keys_usual(const struct key *keys, size_t count, void *of)
{
	for (size_t i = 0; i < count; i++)
		*key_value(&keys[i], of) = keys[i].usual;
}

/* Appends to `text` what is not as usual. */
static inline void keys_print(const struct key *keys, size_t count, const void *of, FILE *to)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = *key_value(&keys[i], (void *)(uintptr_t)of);

		if (value == keys[i].usual)
			continue;
		if (keys[i].words)
			fprintf(to, " %s=%s", keys[i].name, keys[i].words[value]);
		else
			fprintf(to, " %s=%" PRIu64, keys[i].name, value);
	}
}

/* Takes NAME=VALUE. Returns whether a key has that name and the value is one. */
static inline bool keys_take(const struct key *keys, size_t count, void *of, char *word)
{
	char *value = strchr(word, '='), *end;

	if (!value)
		return false;
	*value++ = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t *to = key_value(&keys[i], of);

		if (strcmp(keys[i].name, word) != 0)
			continue;
		if (!keys[i].words) {
			*to = strtoull(value, &end, 0);
			return !*end;
		}
		for (*to = 0; keys[i].words[*to]; ++*to)
			if (!strcmp(keys[i].words[*to], value))
				return true;
	}
	return false;
}

#endif
