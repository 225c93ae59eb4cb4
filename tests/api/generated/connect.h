/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected endpoints: one link for each pair of places. Of two places the later one connects, to the
 * passive endpoint of the other's process, and says which places it means. Needs open.h, lives.h.
 */
#ifndef GENERATED_CONNECT_H
#define GENERATED_CONNECT_H

#define CONNECT_LINK "the connection of p%u.e%u with p%u.e%u"
#define CONNECT_NAMES(l)                                                                           \
	(unsigned int)(l)->at.proc, (unsigned int)(l)->at.ep, (unsigned int)(l)->with.proc,        \
		(unsigned int)(l)->with.ep

/* What goes along with a request. */
struct greeting {
	struct place from, to;
};

struct connect_event {
	struct fi_eq_cm_entry entry;
	struct greeting greeting;
};

/* Returns whether the place `at` connects to `with`; else it is connected to. */
static inline bool connect_asks(struct place at, struct place with)
{
	return at.proc != with.proc ? at.proc > with.proc : at.ep > with.ep;
}

/* Opens the end of a link of this process. */
static inline struct link *connect_link(struct self *s, struct fi_info *info, struct greeting g)
{
	struct link *link = proc_link(s, g.from, g.to);

	link->at = g.from;
	link->with = g.to;
	open_link(s, &s->ends[g.from.ep], info, link);
	return link;
}

static inline void connect_ask(struct self *s, struct place from, struct place to)
{
	struct greeting g = {from, to};
	struct link *link = connect_link(s, s->info, g);

	PROC_OK(s, fi_connect(link->ep, s->w->procs[to.proc].names[0], &g, sizeof(g)));
}

/* Answers a request: what is `from` there is `to` here. */
static inline void connect_accept(struct self *s, struct connect_event *e)
{
	struct greeting g = {e->greeting.to, e->greeting.from};
	struct link *link = connect_link(s, e->entry.info, g);

	PROC_OK(s, fi_accept(link->ep, NULL, 0));
	fi_freeinfo(e->entry.info);
}

/* once: FI_CONNECTED and FI_SHUTDOWN; ends: not before a process has left */
static inline void connect_event(struct self *s, uint32_t event, struct connect_event *e)
{
	struct link *link = event == FI_CONNREQ ? NULL : e->entry.fid->context;

	if (!link)
		connect_accept(s, e);
	else if (event == FI_CONNECTED && !link->connected)
		link->connected = true;
	else if (event != FI_SHUTDOWN || link->ended)
		PROC_FAIL(s, "once: event %u of " CONNECT_LINK " comes again", event,
			  CONNECT_NAMES(link));
	else if (!world_left(s->w, link->with.proc))
		PROC_FAIL(s, "ends: " CONNECT_LINK " has ended, and nobody has left",
			  CONNECT_NAMES(link));
	else
		link->ended = true;
}

/* Handles what has happened to connections. Returns whether something has. */
static inline bool connect_events(struct self *s)
{
	struct connect_event e;
	bool came = false;
	uint32_t event;
	ssize_t ret = -FI_EAGAIN;

	while (s->eq && (ret = fi_eq_read(s->eq, &event, &e, sizeof(e), 0)) > 0) {
		connect_event(s, event, &e);
		came = true;
	}
	if (ret < 0 && ret != -FI_EAGAIN)
		PROC_FAIL(s, "call: fi_eq_read: %zd %s", ret, api_word(ret));
	return came;
}

/* Returns how many of the links of this process are connected. */
static inline unsigned int connect_count(const struct self *s)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < PROC_LINKS; i++)
		count += s->links[i].connected;
	return count;
}

/* Asks for the links that begin here. */
static inline void connect_asking(struct self *s)
{
	const struct program *p = &s->w->program;
	struct place from = {s->me, 0}, to;

	for (from.ep = 0; from.ep < p->eps; from.ep++)
		for (to.proc = 0; to.proc < p->procs; to.proc++)
			for (to.ep = 0; to.ep < p->eps; to.ep++)
				if (connect_asks(from, to))
					connect_ask(s, from, to);
}

/* Connects each place of this process with all others. */
static inline void connect_all(struct self *s)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	const struct program *p = &s->w->program;

	PROC_OK(s, fi_eq_open(s->fabric, &attr, &s->eq, NULL));
	PROC_OK(s, fi_passive_ep(s->fabric, s->info, &s->pep, NULL));
	PROC_OK(s, fi_pep_bind(s->pep, &s->eq->fid, 0));
	PROC_OK(s, fi_listen(s->pep));
	open_name(s, &s->pep->fid, 0);
	open_meet(s);
	connect_asking(s);
	s->mine->doing = "connects";
	while (connect_count(s) < p->eps * (p->procs * p->eps - 1))
		connect_events(s);
	open_meet(s);
}

#endif
