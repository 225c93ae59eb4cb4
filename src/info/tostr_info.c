/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_tostr; structs and objects as text: one line per member, nested structs indented. */
#include <rdma/fabric.h>
#include <string.h>

#include "base/log.h"
#include "info/tostr.h"

#define INDENT 4 /* columns per level */

static void add_named(struct text *t, int set, const void *data)
{
	bool flags = tostr_names(set)->flags;

	text_add(t, "%s", flags ? "[ " : "");
	tostr_value(t, set, data);
	text_add(t, "%s", flags ? " ]" : "");
}

static void add_pointer(struct text *t, const void *p)
{
	if (p)
		text_add(t, "%p", p);
	else
		text_add(t, "(nil)");
}

static void add_ctx_count(struct text *t, size_t count)
{
	if (count == FI_SHARED_CONTEXT)
		text_add(t, "FI_SHARED_CONTEXT");
	else
		text_add(t, "%zu", count);
}

static void tostr_info_add_string(struct text *t, const char *s)
{
	text_add(t, "%s", s ? s : "(null)");
}

static void add_version(struct text *t, uint32_t version)
{
	text_add(t, "%u.%u", FI_MAJOR(version), FI_MINOR(version));
}

/* The value of `m` in the struct at `data`. */
static void tostr_info_add_member(struct text *t, const struct tostr_member *m, const void *data)
{
	union {
		const void *raw;
		const uint8_t *u8;
		const uint16_t *u16;
		const uint32_t *u32;
		const unsigned long *u64;
		const size_t *size;
		const int *i;
		void *const *ptr;
		char *const *str;
	} at = {(const char *)data + m->offset};

	switch (m->kind) {
	case SIZE:
		text_add(t, "%zu", *at.size);
		break;
	case U8:
		text_add(t, "%u", *at.u8);
		break;
	case U16:
		text_add(t, "%u", *at.u16);
		break;
	case U32:
		text_add(t, "%u", *at.u32);
		break;
	case U64:
		text_add(t, "%lu", *at.u64);
		break;
	case INT:
		text_add(t, "%d", *at.i);
		break;
	case HEX32:
		text_add(t, "0x%x", *at.u32);
		break;
	case HEX64:
		text_add(t, "0x%lx", *at.u64);
		break;
	case BITS64:
		text_add(t, "0x%016lx", *at.u64);
		break;
	case STR:
		tostr_info_add_string(t, *at.str);
		break;
	case PTR:
		add_pointer(t, *at.ptr);
		break;
	case VERSION:
		add_version(t, *at.u32);
		break;
	case CTX_COUNT:
		add_ctx_count(t, *at.size);
		break;
	case NAMED:
		add_named(t, m->set, at.raw);
		break;
	}
}

static void add_label(struct text *t, int level, const char *name)
{
	text_add(t, "%*s%s:", level * INDENT, "", name);
}

static void add_members(struct text *t, int level, const struct tostr_layout *layout,
			const void *data)
{
	for (size_t i = 0; i < layout->count; i++) {
		add_label(t, level, layout->member[i].name);
		text_add(t, " ");
		tostr_info_add_member(t, &layout->member[i], data);
		text_add(t, "\n");
	}
}

/* Writes struct `set` at `data`, which may be NULL, under its name. */
static void add_struct(struct text *t, int level, int set, const void *data)
{
	const struct tostr_layout *layout = tostr_layout(set);

	add_label(t, level, layout->name);
	text_add(t, data ? "\n" : " (null)\n");
	if (data)
		add_members(t, level + 1, layout, data);
}

static void tostr_info_add_addr(struct text *t, const char *name, uint32_t format, const void *addr)
{
	add_label(t, 1, name);
	text_add(t, " ");
	if (addr)
		tostr_addr(t, format, addr);
	else
		tostr_info_add_string(t, NULL);
	text_add(t, "\n");
}

void tostr_nic(struct text *t, const struct fid_nic *nic)
{
	add_label(t, 1, "nic");
	text_add(t, "\n");
	add_struct(t, 2, TOSTR_DEVICE_ATTR, nic->device_attr);
	add_struct(t, 2, TOSTR_BUS_ATTR, nic->bus_attr);
	if (nic->bus_attr && nic->bus_attr->bus_type == FI_BUS_PCI)
		add_struct(t, 3, TOSTR_PCI_ATTR, &nic->bus_attr->attr.pci);
	add_struct(t, 2, TOSTR_LINK_ATTR, nic->link_attr);
}

/* Writes an object's own description. False: it has none. */
static bool add_object(struct text *t, const struct fid *fid)
{
	size_t room = t->size - t->len;

	if (FI_CHECK_OP(fid->ops, struct fi_ops, tostr)) {
		fid->ops->tostr(fid, t->buf + t->len,
				room + 1); /* +1: the byte that fi_tostr leaves free */
		t->len += strnlen(t->buf + t->len, room - 1);
		t->buf[t->len] = '\0';
		return true;
	}
	if (fid->fclass == FI_CLASS_NIC)
		tostr_nic(t, (const struct fid_nic *)fid);
	return fid->fclass == FI_CLASS_NIC;
}

/* Writes an object's own description, or its address. */
static void tostr_fid(struct text *t, const struct fid *fid)
{
	if (!add_object(t, fid))
		text_add(t, "fid: %p\n", (const void *)fid);
}

static void add_nic(struct text *t, const struct fid_nic *nic)
{
	if (nic && add_object(t, &nic->fid))
		return;
	add_label(t, 1, "nic");
	text_add(t, " ");
	add_pointer(t, nic);
	text_add(t, "\n");
}

/* Writes one entry, ignoring `next`. */
static void add_info(struct text *t, const struct fi_info *info)
{
	add_struct(t, 0, FI_TYPE_INFO, info);
	tostr_info_add_addr(t, "src_addr", info->addr_format, info->src_addr);
	tostr_info_add_addr(t, "dest_addr", info->addr_format, info->dest_addr);
	add_label(t, 1, "handle");
	text_add(t, " ");
	add_pointer(t, info->handle);
	text_add(t, "\n");
	add_struct(t, 1, FI_TYPE_TX_ATTR, info->tx_attr);
	add_struct(t, 1, FI_TYPE_RX_ATTR, info->rx_attr);
	add_struct(t, 1, FI_TYPE_EP_ATTR, info->ep_attr);
	add_struct(t, 1, FI_TYPE_DOMAIN_ATTR, info->domain_attr);
	add_struct(t, 1, FI_TYPE_FABRIC_ATTR, info->fabric_attr);
	add_nic(t, info->nic);
}

/* Writes the struct at `data`. Returns false if `type` is not a struct. */
static bool tostr_struct(struct text *t, enum fi_type type, const void *data)
{
	if (!tostr_layout(type))
		return false;
	if (type == FI_TYPE_INFO)
		add_info(t, data);
	else
		add_struct(t, 0, type, data);
	return true;
}

#define TOSTR_BYTES 8192

static void tostr_write_text(struct text *t, const void *data, enum fi_type type)
{
	switch ((int)type) {
	case FI_TYPE_VERSION:
		text_add(t, "%d.%d.%d", FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_REVISION_VERSION);
		break;
	case FI_TYPE_FID:
		tostr_fid(t, data);
		break;
	case FI_TYPE_LOG_LEVEL:
		text_add(t, "%s", log_level_name(*(const int *)data));
		break;
	case FI_TYPE_LOG_SUBSYS:
		text_add(t, "%s", log_subsys_name(*(const int *)data));
		break;
	default:
		if (type <= FI_TYPE_WAIT_OBJ && tostr_names(type))
			tostr_value(t, type, data);
		else if (type > FI_TYPE_WAIT_OBJ || !tostr_struct(t, type, data))
			text_add(t, "Unknown type");
	}
}

char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	struct text t;

	if (!data || !buf || !len)
		return NULL;
	buf[0] = '\0';
	if (len < 2)
		return buf;
	text_init(&t, buf, len - 1); /* n bytes hold n - 2 characters, as in every release */
	tostr_write_text(&t, data, datatype);
	return buf;
}

char *fi_tostr(const void *data, enum fi_type datatype)
{
	static __thread char buf[TOSTR_BYTES];

	return fi_tostr_r(buf, sizeof(buf), data, datatype);
}
