/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process opens, and closes. Needs proc.h. */
#ifndef GENERATED_OPEN_H
#define GENERATED_OPEN_H

static const enum fi_threading open_levels[] = {FI_THREAD_DOMAIN, FI_THREAD_SAFE, FI_THREAD_FID,
						FI_THREAD_ENDPOINT, FI_THREAD_COMPLETION};
static const enum fi_wait_obj open_waits[] = {FI_WAIT_UNSPEC, FI_WAIT_SET, FI_WAIT_FD};

static inline bool open_triggers(const struct program *p)
{
	for (unsigned int i = 0; i < p->count; i++)
		if (p->lines[i].start != START_NOW)
			return true;
	return false;
}

static inline void open_info(struct self *s)
{
	const struct program *p = &s->w->program;
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV;
	if (p->kind == KIND_RDM)
		hints->caps |= FI_SOURCE | FI_DIRECTED_RECV;
	if (open_triggers(p))
		hints->caps |= FI_TRIGGER;
	hints->ep_attr->type = p->kind == KIND_MSG ? FI_EP_MSG : FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order =
		FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW;
	hints->tx_attr->size = p->tx_size;
	hints->domain_attr->threading = p->helper ? FI_THREAD_SAFE : open_levels[p->threading];
	hints->domain_attr->data_progress = hints->domain_attr->control_progress =
		p->progress ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = p->av ? FI_AV_TABLE : FI_AV_MAP;
	hints->domain_attr->mr_mode =
		p->keys ? 0 : FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(api_provider());
	PROC_OK(s, fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	s->mine->tx_size = s->info->tx_attr->size;
}

static inline struct fid_cq *open_queue(struct self *s)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED,
				  .size = s->w->program.cq_size,
				  .wait_obj = open_waits[s->w->program.waits],
				  .wait_set = s->set};
	struct fid_cq **to = &s->queues[s->queue_count++];

	PROC_OK(s, fi_cq_open(s->domain, &attr, to, to));
	return *to;
}

static inline void open_count(struct self *s, struct end *e)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};

	for (unsigned int i = 0; i < PROC_COUNTERS; i++) {
		PROC_OK(s, fi_cntr_open(s->domain, &attr, &e->counters[i], NULL));
	}
}

/* Who comes again has the addresses of before. */
static inline void open_address(struct self *s, unsigned int i)
{
	if (!proc_again(s))
		return;
	free(s->info->src_addr);
	s->info->src_addrlen = s->mine->name_len[i];
	s->info->src_addr = malloc(s->info->src_addrlen);
	memcpy(s->info->src_addr, s->mine->names[i], s->info->src_addrlen);
}

/* What calls without flags mean. */
static inline void open_op_flags(const struct program *p, struct fi_info *info)
{
	info->tx_attr->op_flags = p->selective == SELECTIVE_PLAIN ? FI_COMPLETION : 0;
	info->rx_attr->op_flags = p->selective ? FI_COMPLETION : 0;
}

/* Opens the endpoint `link` of a place. */
static inline void open_link(struct self *s, struct end *e, struct fi_info *info, struct link *link)
{
	const struct program *p = &s->w->program;
	uint64_t selective = p->selective ? FI_SELECTIVE_COMPLETION : 0;
	size_t multi = PROGRAM_MULTI;

	open_op_flags(p, info);
	PROC_OK(s, fi_endpoint(s->domain, info, &link->ep, link));
	PROC_OK(s, fi_ep_bind(link->ep, p->kind == KIND_MSG ? &s->eq->fid : &s->av->fid, 0));
	PROC_OK(s, fi_ep_bind(link->ep, &e->tx->fid, FI_TRANSMIT | selective));
	PROC_OK(s, fi_ep_bind(link->ep, &e->rx->fid, FI_RECV | selective));
	for (unsigned int i = 0; i < PROC_COUNTERS && p->counters; i++)
		PROC_OK(s, fi_ep_bind(link->ep, &e->counters[i]->fid, proc_counts[i]));
	PROC_OK(s, fi_setopt(&link->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &multi,
			     sizeof(multi)));
	PROC_OK(s, fi_enable(link->ep));
	if (!open_triggers(p))
		return;
	PROC_OK(s, fi_ep_alias(link->ep, &link->alias[0],
			       FI_TRANSMIT | FI_TRIGGER | info->tx_attr->op_flags));
	PROC_OK(s, fi_ep_alias(link->ep, &link->alias[1],
			       FI_RECV | FI_TRIGGER | info->rx_attr->op_flags));
}

/* The queues and counters of a place. */
static inline void open_end(struct self *s, unsigned int i)
{
	const struct program *p = &s->w->program;
	struct end *e = &s->ends[i];

	e->tx = p->queues == QUEUES_ALL && i ? s->ends[0].tx : open_queue(s);
	e->rx = p->queues == QUEUES_OWN ? open_queue(s) : e->tx;
	if (p->counters)
		open_count(s, e);
	if (!open_triggers(p))
		return;
	PROC_OK(s, fi_cntr_open(s->domain, NULL, &e->start, NULL));
	PROC_OK(s, fi_cntr_open(s->domain, NULL, &e->done, NULL));
}

/* Notes the name of an endpoint, or of the passive one, for the others. */
static inline void open_name(struct self *s, struct fid *fid, unsigned int i)
{
	size_t len = WORLD_NAME;
	char name[WORLD_NAME];

	PROC_OK(s, fi_getname(fid, name, &len));
	if (proc_again(s) && (len != s->mine->name_len[i] || memcmp(name, s->mine->names[i], len)))
		PROC_FAIL(s, "call: p%u.e%u has another address than it asked for", s->me, i);
	memcpy(s->mine->names[i], name, len);
	s->mine->name_len[i] = len;
}

/* Calls `change`, fi_poll_add or fi_poll_del, for each queue and counter. */
static inline void open_polled(struct self *s,
			       int (*change)(struct fid_poll *, struct fid *, uint64_t))
{
	for (unsigned int i = 0; i < s->queue_count; i++)
		PROC_OK(s, change(s->poll, &s->queues[i]->fid, 0));
	for (unsigned int i = 0; i < s->w->program.eps && s->w->program.counters; i++)
		for (unsigned int j = 0; j < PROC_COUNTERS; j++)
			PROC_OK(s, change(s->poll, &s->ends[i].counters[j]->fid, 0));
}

/* The set that names queues with entries, and counters that have changed. */
static inline void open_poll(struct self *s)
{
	struct fi_poll_attr attr = {0};

	PROC_OK(s, fi_poll_open(s->domain, &attr, &s->poll));
	open_polled(s, fi_poll_add);
}

/* The memory for others. What they read is there; what they write comes. */
static inline void open_memory(struct self *s)
{
	const uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct proc *p = s->mine;

	s->memory = malloc(p->memory);
	memset(s->memory, WORLD_EMPTY, p->memory);
	memset(s->memory, 0, 16 * WORLD_WORDS);
	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct line *l = world_line(s->w, &s->w->ops[i]);

		if (l->verb == VERB_READ && !l->over && l->with.proc == s->me)
			world_fill(s->memory + s->w->ops[i].at, l->len, i);
	}
	PROC_OK(s, fi_mr_reg(s->domain, s->memory, p->memory, access, 0, 77, 0, &s->mr, NULL));
	p->key = fi_mr_key(s->mr);
	p->base = s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)s->memory : 0;
}

/* Who comes again waits for nobody. */
static inline void open_meet(struct self *s)
{
	if (!proc_again(s))
		proc_meet(s);
}

/* Inserts the addresses of all. */
static inline void open_insert(struct self *s)
{
	for (unsigned int i = 0; i < s->w->program.procs; i++) {
		s->known[i] = life_of(s->w, i);
		for (unsigned int j = 0; j < s->w->program.eps; j++)
			if (fi_av_insert(s->av, s->w->procs[i].names[j], 1, &s->addr[i][j], 0,
					 NULL) != 1)
				PROC_FAIL(s, "call: fi_av_insert");
	}
}

static inline void open_objects(struct self *s)
{
	const struct program *p = &s->w->program;
	struct fi_av_attr av = {.type = p->av ? FI_AV_TABLE : FI_AV_MAP};
	struct fi_wait_attr wait = {.wait_obj = FI_WAIT_UNSPEC};

	open_info(s);
	PROC_OK(s, fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	if (p->waits == WAITS_SET)
		PROC_OK(s, fi_wait_open(s->fabric, &wait, &s->set));
	PROC_OK(s, fi_domain(s->fabric, s->info, &s->domain, NULL));
	if (p->kind == KIND_RDM)
		PROC_OK(s, fi_av_open(s->domain, &av, &s->av, NULL));
	for (unsigned int i = 0; i < p->eps; i++)
		open_end(s, i);
	if (p->looks)
		open_poll(s);
	open_memory(s);
}

/* Reliable datagrams: each place has one endpoint for all. */
static inline void open_datagrams(struct self *s)
{
	struct link *link;

	for (unsigned int i = 0; i < s->w->program.eps; i++) {
		link = &s->links[i];
		open_address(s, i);
		open_link(s, &s->ends[i], s->info, link);
		open_name(s, &link->ep->fid, i);
	}
	open_meet(s);
	open_insert(s);
	open_meet(s);
}

static inline void open_close_end(struct self *s, struct end *e)
{
	for (unsigned int i = 0; i < PROC_COUNTERS; i++)
		if (e->counters[i])
			PROC_OK(s, fi_close(&e->counters[i]->fid));
	if (e->start)
		PROC_OK(s, fi_close(&e->start->fid));
	if (e->done)
		PROC_OK(s, fi_close(&e->done->fid));
}

static inline void open_close_link(struct self *s, struct link *link)
{
	for (unsigned int i = 0; i < 2; i++)
		if (link->alias[i])
			PROC_OK(s, fi_close(&link->alias[i]->fid));
	if (link->ep)
		PROC_OK(s, fi_close(&link->ep->fid));
}

static inline void open_close(struct self *s)
{
	struct fid *const last[] = {&s->mr->fid,
				    s->pep ? &s->pep->fid : NULL,
				    s->eq ? &s->eq->fid : NULL,
				    s->av ? &s->av->fid : NULL,
				    &s->domain->fid,
				    &s->fabric->fid};

	if (s->poll) {
		open_polled(s, fi_poll_del);
		PROC_OK(s, fi_close(&s->poll->fid));
	}
	for (unsigned int i = 0; i < PROC_LINKS; i++)
		open_close_link(s, &s->links[i]);
	for (unsigned int i = 0; i < s->w->program.eps; i++)
		open_close_end(s, &s->ends[i]);
	for (unsigned int i = 0; i < s->queue_count; i++)
		PROC_OK(s, fi_close(&s->queues[i]->fid));
	if (s->set)
		PROC_OK(s, fi_close(&s->set->fid));
	for (unsigned int i = 0; i < API_COUNT(last); i++)
		if (last[i])
			PROC_OK(s, fi_close(last[i]));
	free(s->memory);
	fi_freeinfo(s->info);
}

#endif
