/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of workers that the user asks for: FI_WEFT_STATS (a file, when a worker closes or the
 * process exits) and FI_WEFT_STATS_SIGNAL (when the signal has come). See worker_report. Reports go
 * to regular files or, like the log, to standard error, with the locks held that the calls name.
 */
#ifndef WEFT_XFER_STATS_H
#define WEFT_XFER_STATS_H

struct worker;

/* Domain locked. */
void stats_opened(struct worker *worker);
/* Writes the last report of the worker, which still has its peers. Domain locked. */
void stats_closing(struct worker *worker);
/* Writes a report if the signal has come since the last call. The worker's shard is locked. */
void stats_poll(struct worker *worker);

#endif
