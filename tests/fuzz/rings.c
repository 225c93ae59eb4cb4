/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes what processes of the same user can write. Packets come through the endpoint's receive ring, with lengths, claims and
 * tokens that fit or not; and between any two calls the words change that peers share with it: of its ring, of theirs, and of
 * their tables of regions. The endpoint's own packets must be valid. Each input closes everything.
 */
#include <sys/epoll.h>

#define PROVIDER "weft"
#include "app.h"
#include "base/forked.h"
#include "hw/shm/shm.h"
#include "neighbor.h"
#include "conn/stall.h"

#define STEPS    120
#define SENT_MAX 8
#define PAYLOAD  SHM_PACKET_MAX

/* A peer: its end of the connection, its ring and its table. */
static struct far {
	int sock; /* -1: closed */
	int ring_fd, table_fd;
	struct ring ring;
	struct share_page *table;
	uint64_t at; /* the next packet in its ring */
	bool spoilt; /* its words were changed: what is there need not be a packet */
} far[SENDERS];

/* The last packets that the endpoint sent, to any peer; and memory that one of them announced. */
static struct packet sent[SENT_MAX];
static unsigned int sent_count;
static uint64_t announced;

static struct shm *shm(void)
{
	return world.worker->conn.via[LINK_HOST].state;
}

/* ---- The peers' ends ---- */

static void make_progress(void)
{
	world.worker->conn.opener.armed = true; /* polls the sockets, too */
	worker_progress(world.worker);
	reap();
}

/* Reads the packets in the peer's ring. */
static void read_far(struct far *f)
{
	while (!f->spoilt && ring_published(&f->ring, f->at)) {
		const struct link_slot *slot = ring_slot_at(&f->ring, f->at);
		size_t head = shm_header_len(slot->head);

		MUST(slot->len <= SHM_PACKET_MAX);
		MUST(wire_op(slot->head) >= WIRE_MSG && wire_op(slot->head) < WIRE_OPS);
		sent[sent_count++ % SENT_MAX] =
			(struct packet){.head = slot->head, .tag = slot->tag};
		if (wire_op(slot->head) == WIRE_RTS)
			memcpy(&announced,
			       (const char *)slot + head + offsetof(struct wire_rts, segment),
			       sizeof(announced));
		f->at += (head + slot->len + RING_SLOT - 1) / RING_SLOT;
		f->ring.page->head = f->at;
	}
}

static void connect_peer(unsigned int i)
{
	struct peer *peer = peer_made(i);
	struct far *f = &far[i];
	struct accepted conn = {.inside = true,
				.pid = neighbor.pid,
				.hello = {.kind = HELLO_CONNECT,
					  .your_id = i + 1,
					  .cma_addr = (uintptr_t)&cma_word,
					  .cma_value = cma_word}};
	int pair[2];

	if (contact_linked(&peer->conn))
		return;
	/* The peer was lost in the middle of a send, which began to connect again. */
	if (contact_attempts(&peer->conn))
		contact_failed(&peer->conn, FI_ECONNREFUSED);
	if (f->sock >= 0)
		close(f->sock);
	neighbor_pair(pair);
	MUST(!forked_guard(pair[0]));
	f->sock = pair[1];
	f->spoilt = false;
	f->at = f->ring.page->head;
	conn.fds[0] = dup(f->ring_fd);
	conn.fds[1] = dup(f->table_fd);
	peer->conn.sock = peer->conn.wake = pair[0];
	peer->conn.kind = LINK_HOST;
	MUST(!conn_link(&peer->conn, &conn, &(struct wire_nic){.qpn = 0}));
	MUST(!conn_watch(&peer->conn, EPOLLIN));
	contact_connected(&peer->conn);
}

/* No peer holds an access guard of the endpoint: it would be waited for. */
static void let_go(void)
{
	for (unsigned int i = 0; i < RING_GUARDS; i++)
		shm()->ring.page->guards[i].word = 0;
}

static void hang_up(unsigned int i)
{
	let_go();
	if (far[i].sock >= 0)
		close(far[i].sock);
	far[i].sock = -1;
	for (int n = 0; peer_is_connected(i); n++) {
		make_progress();
		MUST(n < 100000);
	}
	if (peer_at(i) && contact_attempts(&peer_at(i)->conn))
		contact_failed(&peer_at(i)->conn, FI_ECONNREFUSED);
}

/* ---- Packets ---- */

/* An address in the memory of the process; or any. */
static uint64_t address(struct input *in)
{
	switch (take8(in) % 4) {
	case 0:
		return UINT64_C(1) << 63 | take32(in);
	case 1:
		return word(in, announced);
	default:
		return (uintptr_t)arena + take16(in);
	}
}

static size_t rts(struct input *in, void *to)
{
	struct wire_rts r = {.count = 1 + take8(in) % 2};
	uint8_t more = take8(in);

	for (unsigned int i = 0; i < r.count; i++) {
		r.segment[i] = (struct wire_segment){address(in), CHOOSE(in, lengths), take8(in)};
		r.len += r.segment[i].len;
	}
	r.len += more > 250 ? more : 0;
	memcpy(to, &r, sizeof(r));
	return offsetof(struct wire_rts, segment) + r.count * sizeof(r.segment[0]);
}

static size_t joint(struct input *in, void *to)
{
	struct wire_joint j = {address(in), CHOOSE(in, lengths), take8(in), 4096u << take8(in) % 7};

	memcpy(to, &j, sizeof(j));
	return sizeof(j);
}

/* The payload that packets of this kind have, or any. */
static size_t payload(struct input *in, unsigned int op, void *to)
{
	uint8_t how = take8(in);

	if (op == WIRE_RTS && how % 4)
		return rts(in, to);
	if (op == WIRE_JOINT && how % 4)
		return joint(in, to);
	return take(in, to, how & 1 ? take8(in) : take16(in) % (PAYLOAD + 1));
}

/* Says how a packet is not as it should be; 0: it is. */
enum { ODD_CLAIM = 1, ODD_LEN = 2, ODD_SRC = 4, ODD_STATE = 8, UNPUBLISHED = 16 };

/* Puts a packet into the endpoint's ring, as a sender does. */
static void packet(struct input *in, unsigned int i)
{
	static unsigned char bytes[PAYLOAD];
	unsigned int op = take8(in) % (WIRE_OPS + 1), flags = take8(in), odd = take8(in);
	struct packet ours = sent[(sent_count + SENT_MAX - 1 - take8(in) % SENT_MAX) % SENT_MAX];
	uint32_t id = (uint32_t)word(in, wire_id(ours.head)), me = pool_id(peer_at(i));
	struct ring *r = &shm()->ring;
	uint64_t tag = word(in, op == WIRE_JOINT ? announced : ours.tag), data = word(in, 1), head,
		 replaced;
	size_t len = payload(in, op, bytes), at;
	uint64_t pos = r->page->head;
	struct link_slot *slot;

	odd = odd < 128 ? 0 : odd;
	head = WIRE_HEAD(op, flags, odd & 64 ? WIRE_RX_GROUP : 0,
			 op == WIRE_FRAG ? (uint32_t)ours.tag : id);
	at = shm_header_len(head);
	if (shm_ring_claim(r, &pos, me & RING_DEAD,
			   odd & ODD_CLAIM ? take8(in)
					   : (uint32_t)((at + len + RING_SLOT - 1) / RING_SLOT),
			   &replaced))
		return;
	slot = ring_slot_at(r, pos);
	slot->src = odd & ODD_SRC ? take8(in) : me;
	slot->len = odd & ODD_LEN ? take32(in) : (uint32_t)len;
	slot->head = head;
	slot->tag = tag;
	memcpy(slot->rest, &data, sizeof(data));
	memcpy((char *)slot + at, bytes, len);
	if (!(odd & UNPUBLISHED))
		__atomic_store_n(&slot->token,
				 r->secret + pos +
					 (odd & ODD_STATE ? (uint64_t)take8(in) << 56 : 0),
				 __ATOMIC_RELEASE);
}

/* ---- Words ---- */

static uint64_t *ring_word(const struct ring *r, uint8_t which, uint64_t pos)
{
	struct ring_page *page = r->page;
	uint64_t *of_page[] = {&page->head,
			       &page->hint,
			       (uint64_t *)&page->closed,
			       &page->guards[which / 16].word,
			       &page->joint.left,
			       &page->joint.helped};

	if (which % 16 < 6)
		return of_page[which % 16];
	return which % 16 < 11 ? ring_claim_at(r, pos)
			       : (uint64_t *)ring_slot_at(r, pos) + which / 16 % 8;
}

/* Changes a word of a ring, near the place where the next packets are. */
static void change_ring(struct input *in, const struct ring *r, uint64_t head, uint32_t id)
{
	uint8_t which = take8(in), how = take8(in);
	uint64_t pos = head + take8(in) % 64 - 4, *at = ring_word(r, which, pos);

	switch (how % 8) {
	case 0:
		*at = take8(in);
		break;
	case 1:
		*at += (uint64_t)(int8_t)take8(in);
		break;
	case 2:
		*at = claim_word(ring_lap(r, pos) + (how >> 6), how & 32 ? RING_DEAD : id,
				 take8(in));
		break;
	case 3:
		*at = r->secret + pos + ((uint64_t)take8(in) << 56);
		break;
	case 4:
		*at = (uint64_t)take8(in) << 32 | id;
		break;
	case 5:
		*at = (uint64_t)shm()->joint.seq << 32 | take32(in);
		break;
	case 6:
		*at ^= UINT64_C(1) << take8(in) % 64;
		break;
	default:
		*at = take64(in);
	}
}

/* Changes a word of a peer's table. */
static void change_table(struct input *in, struct share_page *page)
{
	uint8_t which = take8(in);
	uint32_t *small[] = {&page->hashed, &page->used, &page->notify_all,
			     &page->bucket[share_bucket(1)], &page->bucket[share_bucket(2)]};

	if (which < 64)
		*small[which % 5] = take32(in);
	else
		((uint64_t *)&page->entry[which / 8 % 2])[which % 8] = word(in, (uintptr_t)arena);
}

static void change(struct input *in, unsigned int i)
{
	uint8_t where = take8(in);

	if (where < 128) {
		change_ring(in, &shm()->ring, shm_head(shm()), pool_id(peer_at(i)));
	} else if (where < 224) {
		far[i].spoilt = true;
		change_ring(in, &far[i].ring, far[i].at, i + 1);
	} else {
		change_table(in, far[i].table);
	}
}

/* ---- Steps ---- */

/* Time passes: a head that has not moved for long is judged, and what is due at times is done. */
static void wait_long(void)
{
	world.worker->conn.expired_ms = 0;
	for (int n = 0; n < 3; n++) {
		world.worker->conn.stall.looked = world.worker->conn.stall.judge = 0;
		if (world.worker->conn.stall.since)
			world.worker->conn.stall.since = 1;
		stall_watch(&world.worker->conn);
	}
	reap();
}

/* Claims without a packet are skipped one by one; then all that peers have left is delivered, and nothing is kept of those unknown. */
static void come_to_rest(void)
{
	for (int n = 0; peer_at(UNKNOWN); n++) {
		wait_long();
		make_progress();
		MUST(n < 4096);
	}
}

static void event(uint8_t what, unsigned int i)
{
	switch (what % 8) {
	case 0:
		hang_up(i);
		break;
	case 1:
		wait_long();
		break;
	case 2:
		world.worker->conn.via[LINK_HOST].transport->arm(shm());
		break;
	case 3:
		send(far[i].sock, &(char){BOOT_WAKE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case 4:
		send(far[i].sock, &(char){BOOT_DISCONNECT}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	default:
		make_progress();
	}
}

static void step(struct input *in)
{
	uint8_t what = take8(in);
	unsigned int i = what & 64 ? UNKNOWN : what >> 7;

	for (unsigned int n = 0; n < SENDERS; n++)
		connect_peer(n);
	switch (what % 8) {
	case 0:
	case 1:
		packet(in, i);
		break;
	case 2:
		change(in, i);
		break;
	case 3:
		read_far(&far[i]);
		break;
	case 4:
	case 5:
		event(what >> 3 & 7, i);
		break;
	default:
		app_step(in);
	}
	if (what & 32)
		make_progress();
}

/* Small rings, whose ends inputs reach. */
static void initialize(void)
{
	neighbor_open();
	setenv("FI_WEFT_RING_SIZE", "65536", 1);
	for (unsigned int i = 0; i < SENDERS; i++)
		far[i].table = table_make(&far[i].table_fd);
}

static void peers_open(void)
{
	for (unsigned int i = 0; i < SENDERS; i++) {
		MUST(!shm_ring_create(&far[i].ring, 65536, &far[i].ring_fd));
		table_fill(far[i].table);
		far[i].sock = -1;
	}
	sent_count = 0;
	memset(sent, 0, sizeof(sent));
	announced = 0;
}

static void peers_close(void)
{
	for (unsigned int i = 0; i < SENDERS; i++) {
		shm_ring_unmap(&far[i].ring);
		close(far[i].ring_fd);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned int fds;

	if (!far[0].table)
		initialize();
	fds = lowest_fd();
	peers_open();
	world_open();
	for (int i = 0; i < STEPS && in.left; i++) {
		step(&in);
		limits_check();
	}
	for (unsigned int i = 0; i < SENDERS; i++)
		hang_up(i);
	make_progress();
	come_to_rest();
	club_leave();
	world_quiesce();
	world_close();
	peers_close();
	MUST(lowest_fd() == fds);
	return 0;
}
