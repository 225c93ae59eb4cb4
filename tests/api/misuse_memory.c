/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_av(3), fi_av_set(3) and fi_mr(3) forbid. */
#include "obj.h"
#include "lib/rig.h"
#include "lib/misuse.h"

#define AV(b) ((b)->r.o.av)

/* ---- fi_av ---- */

static ssize_t av_with(struct bench *b, struct fi_av_attr *attr)
{
	ssize_t ret = fi_av_open(DOMAIN(b), attr, &b->out.av, NULL);

	if (!ret)
		CLOSE(b->out.av);
	return ret;
}

MISUSE(av_without_attr, ANY, av_with(b, NULL));
MISUSE(av_no_result, REFUSED, fi_av_open(DOMAIN(b), &(struct fi_av_attr){0}, NULL, NULL));
MISUSE(av_type, REFUSED, av_with(b, &(struct fi_av_attr){.type = 99}));
MISUSE(av_bits, REFUSED, av_with(b, &(struct fi_av_attr){.rx_ctx_bits = 64}));
MISUSE(av_negative_bits, REFUSED, av_with(b, &(struct fi_av_attr){.rx_ctx_bits = -1}));
MISUSE(av_count, ANY, av_with(b, &(struct fi_av_attr){.count = SIZE_MAX}));
MISUSE(av_flags, REFUSED, av_with(b, &(struct fi_av_attr){.flags = UINT64_C(1) << 50}));
MISUSE(av_read_without_name, REFUSED, av_with(b, &(struct fi_av_attr){.flags = FI_READ}));
MISUSE(av_empty_name, ANY, av_with(b, &(struct fi_av_attr){.name = "", .flags = FI_READ}));
MISUSE(av_unknown_name, REFUSED,
       av_with(b, &(struct fi_av_attr){.name = "no-vector-of-ours", .flags = FI_READ}));
MISUSE(av_name_of_a_path, ANY,
       av_with(b, &(struct fi_av_attr){.name = "../../tmp/x", .flags = FI_READ}));
MISUSE(av_insert_nothing, REFUSED, fi_av_insert(AV(b), NULL, 1, &b->out.addr, 0, NULL));
MISUSE(av_insert_none, FINE, fi_av_insert(AV(b), NULL, 0, NULL, 0, NULL));
MISUSE(av_insert_zeros, ANY, fi_av_insert(AV(b), b->bytes, 1, &b->out.addr, 0, NULL));
MISUSE(av_insert_flags, REFUSED,
       fi_av_insert(AV(b), b->bytes, 1, &b->out.addr, UINT64_C(1) << 50, NULL));
MISUSE(av_insert_errors_nowhere, REFUSED,
       fi_av_insert(AV(b), b->bytes, 1, &b->out.addr, FI_SYNC_ERR, NULL));
MISUSE(av_insert_user_id_nowhere, REFUSED,
       fi_av_insert(AV(b), b->bytes, 1, NULL, FI_AV_USER_ID, NULL));
MISUSE(av_svc_no_node, ANY, fi_av_insertsvc(AV(b), NULL, NULL, &b->out.addr, 0, NULL));
MISUSE(av_svc_bad_node, ANY,
       fi_av_insertsvc(AV(b), "no such node", "no such service", &b->out.addr, 0, NULL));
MISUSE(av_sym_no_node, ANY, fi_av_insertsym(AV(b), NULL, 2, NULL, 2, &b->out.addr, 0, NULL));
MISUSE(av_sym_much, ANY,
       fi_av_insertsym(AV(b), "127.0.0.1", SIZE_MAX, "1000", SIZE_MAX, NULL, 0, NULL));
MISUSE(av_remove_nothing, REFUSED, fi_av_remove(AV(b), NULL, 1, 0));
MISUSE(av_remove_none, FINE, fi_av_remove(AV(b), NULL, 0, 0));
MISUSE(av_remove_unknown, ANY, fi_av_remove(AV(b), &(fi_addr_t){12345}, 1, 0));
MISUSE(av_remove_unspec, ANY, fi_av_remove(AV(b), &(fi_addr_t){FI_ADDR_UNSPEC}, 1, 0));
MISUSE(av_remove_flags, ANY, fi_av_remove(AV(b), &(fi_addr_t){12345}, 1, UINT64_C(1) << 50));
MISUSE(av_lookup_nowhere, REFUSED, fi_av_lookup(AV(b), b->r.self, NULL, &b->len));
MISUSE(av_lookup_no_length, REFUSED, fi_av_lookup(AV(b), b->r.self, b->bytes, NULL));
MISUSE(av_lookup_unknown, REFUSED, fi_av_lookup(AV(b), 12345, b->bytes, &b->len));
MISUSE(av_lookup_unspec, REFUSED, fi_av_lookup(AV(b), FI_ADDR_UNSPEC, b->bytes, &b->len));
MISUSE(av_straddr_nothing, FINE, (fi_av_straddr(AV(b), NULL, b->bytes, &b->len), 0));
MISUSE(av_straddr_nowhere, FINE, (fi_av_straddr(AV(b), b->bytes, NULL, &b->len), 0));
MISUSE(av_straddr_no_length, FINE, (fi_av_straddr(AV(b), b->bytes, b->bytes, NULL), 0));
MISUSE(av_bind_nothing, REFUSED, fi_av_bind(AV(b), NULL, 0));
MISUSE(av_bind_queue, REFUSED, fi_av_bind(AV(b), &b->r.o.cq->fid, 0));
MISUSE(av_set_user_id_unknown, ANY, fi_av_set_user_id(AV(b), 12345, 1, 0));
MISUSE(av_auth_key_nothing, ANY, fi_av_insert_auth_key(AV(b), NULL, 16, &b->out.addr, 0));
MISUSE(av_auth_key_no_length, ANY, fi_av_lookup_auth_key(AV(b), 0, b->bytes, NULL));

static ssize_t removed(struct bench *b, int what)
{
	fi_addr_t addr;
	ssize_t ret;

	addr = obj_insert_ep(AV(b), b->other.ep);
	OK(fi_av_remove(AV(b), &addr, 1, 0));
	switch (what) {
	case 0:
		ret = fi_av_remove(AV(b), &addr, 1, 0);
		break;
	case 1:
		ret = fi_send(EP(b), b->bytes, 8, NULL, addr, NULL);
		break;
	case 2:
		ret = fi_av_lookup(AV(b), addr, b->bytes, &b->len);
		break;
	default:
		ret = fi_write(EP(b), b->bytes, 8, NULL, addr, b->r.base, b->r.key, NULL);
	}
	return ret;
}

MISUSE(av_remove_twice, ANY, removed(b, 0));
MISUSE(send_to_removed, -FI_EINVAL, removed(b, 1));
MISUSE(lookup_removed, REFUSED, removed(b, 2));
MISUSE(write_to_removed, -FI_EINVAL, removed(b, 3));

/* ---- fi_av_set ---- */

static ssize_t set_with(struct bench *b, struct fi_av_set_attr *attr)
{
	ssize_t ret = fi_av_set(AV(b), attr, &b->out.set, NULL);

	if (!ret)
		CLOSE(b->out.set);
	return ret;
}

MISUSE(set_without_attr, ANY, set_with(b, NULL));
MISUSE(set_no_result, REFUSED, fi_av_set(AV(b), &(struct fi_av_set_attr){0}, NULL, NULL));
MISUSE(set_range_unknown, REFUSED,
       set_with(b, &(struct fi_av_set_attr){
			   .count = 2, .start_addr = 900, .end_addr = 901, .stride = 1}));
MISUSE(set_no_stride, ANY,
       set_with(b, &(struct fi_av_set_attr){.count = 2, .start_addr = 0, .end_addr = 0}));
MISUSE(set_backwards, ANY,
       set_with(b,
		&(struct fi_av_set_attr){.count = 2, .start_addr = 5, .end_addr = 0, .stride = 1}));
MISUSE(set_key_without_key, ANY,
       set_with(b, &(struct fi_av_set_attr){.start_addr = FI_ADDR_NOTAVAIL,
					    .end_addr = FI_ADDR_NOTAVAIL,
					    .comm_key_size = 8}));
MISUSE(set_flags, ANY,
       set_with(b, &(struct fi_av_set_attr){.start_addr = FI_ADDR_NOTAVAIL,
					    .end_addr = FI_ADDR_NOTAVAIL,
					    .flags = UINT64_C(1) << 50}));

static ssize_t with_set(struct bench *b, int what)
{
	struct fi_av_set_attr attr = {.start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL};
	struct fid_av_set *set;
	ssize_t ret = 0;

	OK(fi_av_set(AV(b), &attr, &set, NULL));
	switch (what) {
	case 0:
		ret = fi_av_set_insert(set, 12345);
		break;
	case 1:
		ret = fi_av_set_remove(set, b->r.self);
		break;
	case 2:
		ret = fi_av_set_addr(set, NULL);
		break;
	case 3:
		ret = fi_av_set_union(set, NULL);
		break;
	case 4:
		ret = fi_av_set_intersect(set, NULL);
		break;
	case 5:
		ret = fi_av_set_diff(set, NULL);
		break;
	case 6:
		ret = fi_av_set_union(set, set);
		break;
	case 7:
		CHECK_EQ(fi_close(&AV(b)->fid), -FI_EBUSY);
		break;
	case 8:
		ret = fi_join_collective(EP(b), FI_ADDR_NOTAVAIL, set, 0, NULL, NULL);
		break;
	case 9:
		ret = fi_join_collective(EP(b), 12345, set, 0, &b->out.mc, NULL);
		break;
	case 10:
		ret = fi_av_set_insert(set, FI_ADDR_UNSPEC);
		break;
	case 11:
		ret = fi_join_collective(b->idle, FI_ADDR_NOTAVAIL, set, 0, &b->out.mc, NULL);
		break;
	}
	CLOSE(set);
	return ret;
}

MISUSE(set_insert_unknown, REFUSED, with_set(b, 0));
MISUSE(set_remove_unknown, REFUSED, with_set(b, 1));
MISUSE(set_address_nowhere, REFUSED, with_set(b, 2));
MISUSE(set_union_nothing, REFUSED, with_set(b, 3));
MISUSE(set_intersect_nothing, REFUSED, with_set(b, 4));
MISUSE(set_diff_nothing, REFUSED, with_set(b, 5));
MISUSE(set_union_itself, ANY, with_set(b, 6));
MISUSE(set_keeps_vector, FINE, with_set(b, 7));
MISUSE(join_no_result, REFUSED, with_set(b, 8));
MISUSE(join_by_unknown_group, REFUSED, with_set(b, 9));
MISUSE(set_insert_unspec, REFUSED, with_set(b, 10));
MISUSE(join_before_enable, REFUSED, with_set(b, 11));

/* ---- fi_mr ---- */

static ssize_t region(struct bench *b, const void *buf, size_t len, uint64_t access, uint64_t flags)
{
	ssize_t ret = fi_mr_reg(DOMAIN(b), buf, len, access, 0, 1234, flags, &b->out.mr, NULL);

	if (!ret)
		CLOSE(b->out.mr);
	return ret;
}

MISUSE(mr_nothing, ANY, region(b, NULL, 64, FI_REMOTE_WRITE, 0));
MISUSE(mr_empty, ANY, region(b, b->bytes, 0, FI_REMOTE_WRITE, 0));
MISUSE(mr_beyond, REFUSED, region(b, b->bytes, SIZE_MAX, FI_REMOTE_WRITE, 0));
MISUSE(mr_no_access, ANY, region(b, b->bytes, 8, 0, 0));
MISUSE(mr_all_access, ANY, region(b, b->bytes, 8, ~UINT64_C(0), 0));
MISUSE(mr_flags, REFUSED, region(b, b->bytes, 8, FI_REMOTE_WRITE, UINT64_C(1) << 50));
MISUSE(mr_no_result, REFUSED,
       fi_mr_reg(DOMAIN(b), b->bytes, 8, FI_REMOTE_WRITE, 0, 1234, 0, NULL, NULL));
MISUSE(mr_offset, REFUSED,
       fi_mr_reg(DOMAIN(b), b->bytes, 8, FI_REMOTE_WRITE, 8, 1234, 0, &b->out.mr, NULL));
MISUSE(mr_vector_nothing, REFUSED,
       fi_mr_regv(DOMAIN(b), NULL, 2, FI_REMOTE_WRITE, 0, 1234, 0, &b->out.mr, NULL));
MISUSE(mr_vector_of_none, REFUSED,
       fi_mr_regv(DOMAIN(b), NULL, 0, FI_REMOTE_WRITE, 0, 1234, 0, &b->out.mr, NULL));
MISUSE(mr_vector_long, REFUSED,
       fi_mr_regv(DOMAIN(b), (struct iovec *)(void *)b->r.words, 4000, FI_REMOTE_WRITE, 0, 1234, 0,
		  &b->out.mr, NULL));
MISUSE(mr_attr_nothing, REFUSED, fi_mr_regattr(DOMAIN(b), NULL, 0, &b->out.mr));
MISUSE(mr_attr_bare, REFUSED, fi_mr_regattr(DOMAIN(b), &(struct fi_mr_attr){0}, 0, &b->out.mr));
MISUSE(mr_attr_key_without_key, ANY,
       fi_mr_regattr(DOMAIN(b),
		     &(struct fi_mr_attr){.mr_iov = &(struct iovec){b->bytes, 8},
					  .iov_count = 1,
					  .auth_key_size = 16},
		     0, &b->out.mr));
MISUSE(mr_attr_base_of_class, ANY, ({
	       ssize_t ret_ =
		       fi_mr_regattr(DOMAIN(b),
				     &(struct fi_mr_attr){.mr_iov = &(struct iovec){b->bytes, 8},
							  .iov_count = 1,
							  .requested_key = 4321,
							  .access = FI_SEND,
							  .base_mr = (void *)b->r.o.cq},
				     0, &b->out.mr);
	       if (!ret_)
		       CLOSE(b->out.mr);
	       ret_;
       }));
MISUSE(mr_dmabuf_nothing, REFUSED,
       fi_mr_regattr(DOMAIN(b), &(struct fi_mr_attr){.iov_count = 1}, FI_MR_DMABUF, &b->out.mr));
MISUSE(mr_bind_nothing, REFUSED, fi_mr_bind(b->r.mr, NULL, 0));
MISUSE(mr_bind_queue, REFUSED, fi_mr_bind(b->r.mr, &b->r.o.cq->fid, FI_REMOTE_WRITE));
MISUSE(mr_bind_foreign_counter, REFUSED, ({
	       struct fid_cntr *c = obj_cntr(&b->other, FI_WAIT_NONE);
	       ssize_t ret_ = fi_mr_bind(b->r.mr, &c->fid, FI_REMOTE_WRITE);

	       CLOSE(c);
	       ret_;
       }));
MISUSE(mr_bind_foreign_endpoint, REFUSED, fi_mr_bind(b->r.mr, &b->other.ep->fid, 0));
MISUSE(mr_bind_flags, REFUSED, fi_mr_bind(b->r.mr, &b->r.sent->fid, UINT64_C(1) << 50));
MISUSE(mr_refresh_nothing, ANY, fi_mr_refresh(b->r.mr, NULL, 1, 0));
MISUSE(mr_refresh_none, ANY, fi_mr_refresh(b->r.mr, NULL, 0, 0));
MISUSE(mr_enable_twice, ANY, fi_mr_enable(b->r.mr));
MISUSE(mr_raw_nothing, ANY, fi_mr_raw_attr(b->r.mr, NULL, NULL, NULL, 0));
MISUSE(mr_raw_no_length, ANY, fi_mr_raw_attr(b->r.mr, &b->out.addr, (uint8_t *)b->bytes, NULL, 0));
MISUSE(mr_raw_short, ANY,
       fi_mr_raw_attr(b->r.mr, &b->out.addr, (uint8_t *)b->bytes, &(size_t){1}, 0));
MISUSE(mr_map_nothing, ANY, fi_mr_map_raw(DOMAIN(b), 0, NULL, 8, &b->out.addr, 0));
MISUSE(mr_map_nowhere, ANY, fi_mr_map_raw(DOMAIN(b), 0, (uint8_t *)b->bytes, 8, NULL, 0));
MISUSE(mr_map_short, ANY, fi_mr_map_raw(DOMAIN(b), 0, (uint8_t *)b->bytes, 1, &b->out.addr, 0));
MISUSE(mr_unmap_unknown, ANY, fi_mr_unmap_key(DOMAIN(b), 987654321));

int main(int argc, char **argv)
{
	return misuse_main(argc, argv);
}
