/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether to try again a way that may be of no use: after each useless trial the next ones are left out, twice as many each
 * time, up to TRIAL_SKIP_MAX. A useful one makes every next one a trial.
 */
#ifndef WEFT_BASE_TRIAL_H
#define WEFT_BASE_TRIAL_H

#include <stdbool.h>

#define TRIAL_SKIP_MAX 63u

struct trial {
	unsigned int useless; /* trials to leave out after the last one */
	unsigned int skip; /* of these, how many are still to come; who counts them may raise it */
};

static inline void trial_judge(struct trial *t, bool useful)
{
	t->useless = useful ? 0 : t->useless * 2 + 1;
	if (t->useless > TRIAL_SKIP_MAX)
		t->useless = TRIAL_SKIP_MAX;
	t->skip = t->useless;
}

#endif
