/* SPDX-License-Identifier: BSD-2-Clause */
/* The log as it lies in the file: a head, then records one after the other. Writers and reader agree on
 * nothing else. */
#ifndef LOG_FILE_H
#define LOG_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LOG_SIZE (4u << 20) /* of the file */
#define LOG_KEY  11u        /* of the memory region */

/* Both are offsets in the file, multiples of eight, and only ever grow. */
struct log_head {
	uint64_t reserved; /* where the next record will go */
	uint64_t tail;     /* all before this is written and may be read */
	uint64_t unused[6];
};

/* The payload follows, padded with zeroes to a multiple of eight bytes. */
struct log_record {
	uint64_t sum; /* of what follows it */
	uint32_t len; /* of the payload, in bytes */
	uint32_t writer;
	uint64_t number; /* of this writer's records, from 0 */
};

#define LOG_PAYLOAD_MAX 12000u
#define LOG_RECORD_MAX  (sizeof(struct log_record) + LOG_PAYLOAD_MAX)

/* Bytes in the file of a record with so much payload. */
static inline uint64_t log_room(uint32_t len)
{
	return sizeof(struct log_record) + (len + 7u) / 8 * 8;
}

static inline uint64_t log_sum(const struct log_record *record)
{
	const unsigned char *at = (const unsigned char *)record + sizeof record->sum;
	uint64_t sum = 14695981039346656037u;

	for (size_t i = log_room(record->len) - sizeof record->sum; i > 0; i--)
		sum = (sum ^ *at++) * 1099511628211u;
	return sum;
}

/* What the example's writers write: a length and a text that follow from writer and number. */
static inline void log_compose(struct log_record *record, uint32_t writer, uint64_t number)
{
	unsigned char *payload = (unsigned char *)(record + 1);

	record->writer = writer;
	record->number = number;
	record->len = number % 10 == 9 ? LOG_PAYLOAD_MAX - writer : (uint32_t)number * 7 % 300;
	memset(payload, 0, log_room(record->len) - sizeof *record);
	for (uint32_t i = 0; i < record->len; i++)
		payload[i] = (unsigned char)(writer * 31 + number * 7 + i);
	record->sum = log_sum(record);
}

#endif /* LOG_FILE_H */
