/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of fi_cq_strerror and fi_eq_strerror for a prov_errno: the number of an error, an enum
 * reason, or REASON_DEVICE plus a device's own number. See fi_cq(3).
 */
#ifndef WEFT_BASE_REASON_H
#define WEFT_BASE_REASON_H

/* Why a peer was lost, where the error alone does not say what to do. */
enum reason {
	REASON_BUDGET = 0x8000, /* it exceeded a limit of ours */
	REASON_MEMORY,          /* we had no memory for what it sent */
	REASON_OVERDUE,         /* it did not send what it announced */
	REASON_CLOSED,          /* it closed its endpoint */
	REASON_SILENT,          /* no sign of life */
	REASON_NOBODY,          /* nobody is at the address */
	REASON_REFUSED,         /* one side does not let the other one in */
	REASON_ENDED,           /* its process ended, or the network cut the connection */
	REASON_STUCK,           /* an operation with it stood still */
	REASON_AWAITED,         /* it alone could connect, and has not */
	REASON_END
};

#define REASON_DEVICE 0x10000

/* Sets the function that explains a device's numbers, for the process's life. From any thread. */
void reason_given_by(const char *(*text)(int number));
/* Returns a static text, never NULL. */
const char *reason_text(int prov_errno);

#endif
