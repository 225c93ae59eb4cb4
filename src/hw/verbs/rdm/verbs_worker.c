/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport's table. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "info/providers.h"
#include "hw/verbs/rdm/verbs.h"
#include "hw/transports.h"
#include "core/domain.h"
#include "link/link.h"

/*
 * Opening a device takes time, mostly to load libraries. If the provider needs a device, opens it here, so that the
 * first message need not wait. An error is reported when the first link opens the device again.
 */
static void open_watched(struct verbs *v)
{
	const struct provider *provider = provider_of(v->opener->dom->info);

	if (provider && provider_needs_rdma(provider) &&
	    verbs_dev_open(v->opener->name, &v->watched))
		v->watched.dev = NULL;
}

void verbs_state_init(struct verbs *v, struct opener *opener, const struct addr *at)
{
	v->opener = opener;
	v->at = at;
	pool_init(&v->links, sizeof(struct verbs_link));
	verbs_rdma_pool(&v->rdma_posted);
	list_init(&v->all);
	list_init(&v->attend);
	list_init(&v->asked_regions);
}

void verbs_state_fini(struct verbs *v)
{
	if (v->up)
		verbs_down(v);
	pool_fini(&v->links);
	pool_fini(&v->rdma_posted);
}

static int verbs_open(struct opener *opener, void **state)
{
	struct rdma_port found;
	struct verbs *v;

	*state = NULL;
	if (!rdma_ports_find(opener->name, &found) || !verbs_lib())
		return 0;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -FI_ENOMEM;
	v->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (v->epfd < 0) {
		int err = -errno;

		free(v);
		return err;
	}
	verbs_state_init(v, opener, opener->name);
	open_watched(v);
	*state = v;
	return 0;
}

/* The engine has closed all links before. */
static void verbs_close(void *state)
{
	struct verbs *v = state;

	if (v->multi)
		verbs_rails_ops->close(v);
	verbs_state_fini(v);
	verbs_let_go(v);
	close(v->epfd);
	free(v);
}

static int verbs_fd(void *state)
{
	return ((struct verbs *)state)->epfd;
}

static void verbs_describe(const struct link *link, struct link_state *state)
{
	const struct verbs_link *l = (const struct verbs_link *)link;

	if (verbs_rails_ops && verbs_rails_ops->has(link))
		l = verbs_rails_ops->carrier(link);
	state->credits = l->credits;
}

static bool verbs_answers(struct link *link)
{
	return verbs_rails_ops && verbs_rails_ops->has(link) && verbs_rails_ops->ping(link);
}

/* The one line that names the folder rails/. */
const struct verbs_rails_ops *const verbs_rails_ops = &verbs_rails_here;

const struct transport verbs_transport = {
	.name = "verbs",
	.bit = PROVIDER_VERBS,
	.kind = LINK_DEVICE,
	.open = verbs_open,
	.close = verbs_close,
	.progress = verbs_progress,
	.idle = verbs_idle,
	.arm = verbs_arm,
	.fd = verbs_fd,
	.prepare = verbs_prepare,
	.abandon = verbs_abandon,
	.connect = verbs_connect,
	.ping = verbs_answers,
	.describe = verbs_describe,
	.drain = verbs_drain,
};
