/* SPDX-License-Identifier: BSD-2-Clause */
/* Layout of the log file: a head, then records one after the other. Writers and reader share
 * only this layout. */
#ifndef LOG_FILE_H
#define LOG_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LOG_SIZE (4u << 20) /* bytes of the file */
#define LOG_KEY  11u        /* key of the memory region */

/* Offsets in the file, multiples of eight, which only grow. */
struct log_head {
	uint64_t reserved; /* offset of the next record */
	uint64_t tail;     /* all bytes before this offset are written and may be read */
	uint64_t unused[6];
};

/* The payload follows, padded with zeroes to a multiple of eight bytes. */
struct log_record {
	uint64_t sum; /* checksum of the bytes that follow it in the record */
	uint32_t len; /* bytes of payload */
	uint32_t writer;
	uint64_t number; /* number of the record within its writer, from 0 */
};

#define LOG_PAYLOAD_MAX 12000u
#define LOG_RECORD_MAX  (sizeof(struct log_record) + LOG_PAYLOAD_MAX)

/* Returns the bytes in the file of a record with `len` bytes of payload. */
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

/* Fills in an example record: length and text follow from writer and number. */
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
