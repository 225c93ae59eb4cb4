/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fi_cq_strerror says of a prov_errno: errors have their number, and what a device says of its own has that
 * of the device above REASON_DEVICE. fi_cq(3).
 */
#ifndef WEFT_BASE_REASON_H
#define WEFT_BASE_REASON_H

#define REASON_DEVICE 0x10000

/* Who knows what a device's number means; kept for the life of the process. From any thread. */
void reason_given_by(const char *(*text)(int number));
/* Never NULL; static. */
const char *reason_text(int prov_errno);

#endif
