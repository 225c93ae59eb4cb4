/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_pingpong prints: a line for each size, as a table, CSV or JSON. */
#ifndef PINGPONG_REPORT_H
#define PINGPONG_REPORT_H

#include <stdio.h>
#include <stdlib.h>

#include "pingpong_control.h"
#include "pingpong_options.h"

/* Seconds of each round trip of one size, if want.latency. */
static double *round_times;

static void report_open(void)
{
	if (want.latency && !round_times)
		round_times = calloc((size_t)want.iterations, sizeof *round_times);
	if (want.latency && !round_times)
		die("no memory for the times of %ld messages", want.iterations);
	if (want.form == FORM_TABLE)
		printf("%-8s%-8s%-9s%-9s%9s%10s%11s%11s%s\n", "bytes", "#sent", "#ack", "total",
		       "time", "MB/sec", "usec/xfer", "Mxfers/sec",
		       want.latency ? "   p50 usec   p99 usec   max usec" : "");
	if (want.form == FORM_JSON)
		puts("[");
}

static void report_close(void)
{
	if (want.form == FORM_JSON)
		puts("\n]");
	free(round_times);
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Returns the time (us) of a message one way that `percent` of all do not exceed: half of a round trip's. */
static double quantile(long percent)
{
	long rank = (want.iterations * percent + 99) / 100;

	return round_times[rank - 1] * 1e6 / 2;
}

/* Formats a value with a unit: 1536 with base 1024 becomes 1.5k. */
static const char *scaled(char text[16], double value, double base)
{
	const char *unit = " kmgt";

	for (; value >= base && unit[1]; unit++)
		value /= base;
	snprintf(text, 16, "%.*f%.1s", value == (double)(long)value ? 0 : 1, value,
		 *unit == ' ' ? "" : unit);
	return text;
}

static void report_table(size_t len, double time, double bytes, double usec)
{
	char size[16], sent[16], ack[16], total[16];

	printf("%-8s%-8s=%-8s%-9s%8.2fs%10.2f%11.2f%11.2f", scaled(size, (double)len, 1024),
	       scaled(sent, (double)want.iterations, 1000),
	       scaled(ack, (double)want.iterations, 1000), scaled(total, bytes, 1024), time,
	       bytes / (time * 1e6), usec, 1 / usec);
	if (want.latency)
		printf("%11.2f%11.2f%11.2f", quantile(50), quantile(99), quantile(100));
	putchar('\n');
}

/* The same as CSV, whose first line has the names, or JSON, whose every value has its name. */
static void report_values(size_t len, double time, double bytes, double usec)
{
	const struct {
		const char *name;
		double value;
		int digits;
	} values[] = {
		{"bytes", (double)len, 0},
		{"sent", (double)want.iterations, 0},
		{"acked", (double)want.iterations, 0},
		{"total_bytes", bytes, 0},
		{"seconds", time, 9},
		{"mb_per_s", bytes / (time * 1e6), 3},
		{"usec_per_xfer", usec, 3},
		{"mxfers_per_s", 1 / usec, 6},
		{"p50_usec", quantile(50), 3},
		{"p99_usec", quantile(99), 3},
		{"max_usec", quantile(100), 3},
	};
	const size_t count = sizeof values / sizeof values[0];
	static bool further; /* an earlier size was reported */

	if (want.form == FORM_CSV && !further)
		for (size_t i = 0; i < count; i++)
			printf("%s%c", values[i].name, i + 1 < count ? ',' : '\n');
	if (want.form == FORM_JSON)
		printf("%s  {", further ? ",\n" : "");
	for (size_t i = 0; i < count; i++) {
		if (want.form == FORM_JSON)
			printf("\"%s\": ", values[i].name);
		printf("%.*f%s", values[i].digits, values[i].value,
		       i + 1 == count           ? ""
		       : want.form == FORM_JSON ? ", "
						: ",");
	}
	fputs(want.form == FORM_JSON ? "}" : "\n", stdout);
	further = true;
}

/* Reports `want.iterations` messages of `len` bytes each way within `time` seconds. */
static void report(size_t len, double time)
{
	double bytes = 2.0 * (double)len * (double)want.iterations;
	double usec = time * 1e6 / (double)want.iterations / 2;

	if (want.latency)
		qsort(round_times, (size_t)want.iterations, sizeof *round_times, by_time);
	if (want.form == FORM_TABLE)
		report_table(len, time, bytes, usec);
	else
		report_values(len, time, bytes, usec);
	fflush(stdout);
}

#endif /* PINGPONG_REPORT_H */
