/* SPDX-License-Identifier: BSD-2-Clause */
/* An application that finds an event at each read of its event queue hears who wants to connect. */
#include "obj.h"
#include "lib/cm.h"

#define STORE      4  /* events that are left unread */
#define MOST_STEPS 32 /* each a written and a read event */

struct greedy {
	struct cm c;
	struct cm_end client;
	struct fid_eq *eq;
};

static void write_event(struct greedy *g)
{
	struct fi_eq_entry e = {.fid = &g->c.pep->fid};

	CHECK_EQ(fi_eq_write(g->eq, FI_NOTIFY, &e, sizeof(e), 0), sizeof(e));
}

static uint32_t read_event(struct greedy *g, bool sread)
{
	struct cm_event e;
	uint32_t event = 0;

	CHECK((sread ? fi_eq_sread(g->eq, &event, &e, sizeof(e), 0, 0)
		     : fi_eq_read(g->eq, &event, &e, sizeof(e), 0)) > 0);
	if (event == FI_CONNREQ)
		fi_freeinfo(((struct fi_eq_cm_entry *)(void *)&e)->info);
	return event;
}

static void greedy_open(struct greedy *g)
{
	struct fi_eq_attr attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC};

	cm_domain(&g->c, 0, NULL);
	OK(fi_eq_open(g->c.o.fabric, &attr, &g->eq, NULL));
	g->c.pep = cm_pep(&g->c, g->eq);
	OK(fi_listen(g->c.pep));
	cm_end(&g->c, &g->client, g->c.o.info);
}

static void greedy_close(struct greedy *g)
{
	CLOSE(g->c.pep);
	g->c.pep = NULL;
	cm_close_end(&g->c, &g->client);
	CLOSE(g->eq);
	cm_close(&g->c);
}

static void hear(bool sread)
{
	struct obj_name name;
	struct greedy g;
	unsigned int steps = 0;

	greedy_open(&g);
	name = obj_name(&g.c.pep->fid);
	for (unsigned int i = 0; i < STORE; i++)
		write_event(&g);
	OK(fi_connect(g.client.ep, name.bytes, NULL, 0));
	do {
		cm_progress(&g.c); /* the client's */
		write_event(&g);
	} while (read_event(&g, sread) != FI_CONNREQ && ++steps < MOST_STEPS);
	CHECK(steps < MOST_STEPS);
	greedy_close(&g);
}

static void read_them(struct api *a)
{
	(void)a;
	hear(false);
}

static void sread_them(struct api *a)
{
	(void)a;
	hear(true);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"read", read_them, 1, {0}},
		{"sread", sread_them, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
