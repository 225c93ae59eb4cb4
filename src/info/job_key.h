/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of a job, which its endpoints share and prove to each other: fi_ep_attr.auth_key, else
 * fi_domain_attr.auth_key, else the file that FI_WEFT_AUTH_KEY_FILE names. fi_endpoint(3), fi_domain(3).
 * With fi_domain_attr.auth_key_size FI_AV_AUTH_KEY the keys are in address vectors instead: core/av_keys.h.
 */
#ifndef WEFT_INFO_JOB_KEY_H
#define WEFT_INFO_JOB_KEY_H

#include <rdma/fabric.h>
#include <stdbool.h>

#define JOB_KEY_MIN 16u /* bytes */
#define JOB_KEY_MAX 64u
/* keys of an endpoint, where they are in its address vector */
#define JOB_KEYS_MAX 16u

/* len 0: no key. */
struct job_key {
	uint8_t bytes[JOB_KEY_MAX];
	size_t len;
};

/* Copies the key of info->ep_attr, where job_key_resolve has put it, to its place: no further copy stays on the stack. */
void job_key_of(const struct fi_info *info, struct job_key *key);
/* Does FI_WEFT_AUTH ask for encryption of what goes across the network? */
bool job_key_encrypts(void);
bool job_key_equal(const struct job_key *a, const struct job_key *b);

/*
 * Puts the key of an endpoint that is to be opened into info->ep_attr; `domain`: the info of its domain, or NULL;
 * `api`: version of the interface that the fabric was opened with. 0; errors are logged: -FI_EINVAL: no good length;
 * -FI_EOPNOTSUPP: such an endpoint has no keys, or cannot encrypt as FI_WEFT_AUTH asks; -FI_ENOSYS: no cryptographic library; -FI_ENOMEM; of the file:
 * -FI_EACCES or what open(2) says.
 */
int job_key_resolve(struct fi_info *info, const struct fi_info *domain, uint32_t api);
/* Checks the key of a domain that is to be opened. 0 or an error, as above. */
int job_key_check_domain(const struct fi_info *info, uint32_t api);
/* With FI_AV_AUTH_KEY the keys that an address vector of the domain may have; else 0. */
unsigned int job_key_vector_max(const struct fi_info *info, uint32_t api);
/* Wipes and frees a key of malloc. Accepts NULL. */
void job_key_free(uint8_t *key);
/* Copies the keys whose sizes are granted from hints into an entry of fi_getinfo. 0 or -FI_ENOMEM. */
int job_key_copy(struct fi_info *info, const struct fi_info *hints);

#endif
