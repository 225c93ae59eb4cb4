/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/opened.h"

#include <pthread.h>
#include <string.h>

/* Guards both lists and nothing behind them: to close an object that others look for is the application's mistake. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list fabrics = {&fabrics, &fabrics}; /* struct fabric.in_opened */
static struct list domains = {&domains, &domains}; /* struct domain.in_opened */

static void add(struct list *all, struct list *node)
{
	pthread_mutex_lock(&lock);
	list_push(all, node);
	pthread_mutex_unlock(&lock);
}

static void take(struct list *node)
{
	pthread_mutex_lock(&lock);
	list_remove(node);
	pthread_mutex_unlock(&lock);
}

void opened_add_fabric(struct fabric *fabric)
{
	add(&fabrics, &fabric->in_opened);
}

void opened_remove_fabric(struct fabric *fabric)
{
	take(&fabric->in_opened);
}

void opened_add_domain(struct domain *dom)
{
	add(&domains, &dom->in_opened);
}

void opened_remove_domain(struct domain *dom)
{
	take(&dom->in_opened);
}

struct fabric *opened_fabric_of(const struct fid_fabric *hint)
{
	struct fabric *found = NULL;

	pthread_mutex_lock(&lock);
	LIST_EACH (node, &fabrics)
		if (&LIST_ENTRY(node, struct fabric, in_opened)->fid == hint)
			found = LIST_ENTRY(node, struct fabric, in_opened);
	pthread_mutex_unlock(&lock);
	return found;
}

struct domain *opened_domain_of(const struct fid_domain *hint)
{
	struct domain *found = NULL;

	pthread_mutex_lock(&lock);
	LIST_EACH (node, &domains)
		if (&LIST_ENTRY(node, struct domain, in_opened)->fid == hint)
			found = LIST_ENTRY(node, struct domain, in_opened);
	pthread_mutex_unlock(&lock);
	return found;
}

struct fabric *opened_fabric(const struct provider *v)
{
	struct fabric *found = NULL;

	pthread_mutex_lock(&lock);
	LIST_EACH (node, &fabrics) {
		struct fabric *fabric = LIST_ENTRY(node, struct fabric, in_opened);

		if (!found && strcmp(fabric->name, v->fabric) == 0 &&
		    strcmp(fabric->prov_name, v->name) == 0)
			found = fabric;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

bool opened_suits(const struct domain *dom, const struct provider *v)
{
	return (dom->device_ops != NULL) == (v->transports == PROVIDER_RC);
}

static bool is_wanted(const struct domain *dom, const struct fabric *fabric, const char *name,
		      const struct provider *v)
{
	const char *own = dom->info->domain_attr->name;

	return dom->fabric == fabric && !domain_foreign(dom) && own && strcmp(own, name) == 0 &&
	       opened_suits(dom, v);
}

struct domain *opened_domain(const struct fabric *fabric, const char *name,
			     const struct provider *v)
{
	struct domain *found = NULL;

	pthread_mutex_lock(&lock);
	LIST_EACH (node, &domains) {
		struct domain *dom = LIST_ENTRY(node, struct domain, in_opened);

		if (!found && is_wanted(dom, fabric, name, v))
			found = dom;
	}
	pthread_mutex_unlock(&lock);
	return found;
}
