/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of fi_cq_strerror for a prov_errno: the number of an error, or REASON_DEVICE plus a
 * device's own number. See fi_cq(3).
 */
#ifndef WEFT_BASE_REASON_H
#define WEFT_BASE_REASON_H

#define REASON_DEVICE 0x10000

/* Sets the function that explains a device's numbers, for the process's life. From any thread. */
void reason_given_by(const char *(*text)(int number));
/* Returns a static text, never NULL. */
const char *reason_text(int prov_errno);

#endif
