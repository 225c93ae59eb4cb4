#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The texts of fi_tostr and fi_tostr_r equal the recorded texts, and every public constant has a name.

Intended differences are listed below: where the record has "Unknown" or nothing for a value of the API, the library
prints its name.
"""
import csv
import ctypes
import mmap
import os
import re
import sys

TABLES = "tests/abi/tables/"

# Names that the recorded output shows as "Unknown".
NAMED = {
    "FI_TYPE_ADDR_FORMAT": ["FI_ADDR_PSMX", "FI_ADDR_GNI", "FI_ADDR_BGQ"],
    "FI_TYPE_THREADING": ["FI_THREAD_FID", "FI_THREAD_ENDPOINT"],
    "FI_TYPE_PROTOCOL": ["FI_PROTO_PSMX", "FI_PROTO_MXM", "FI_PROTO_GNI", "FI_PROTO_MRAIL", "FI_PROTO_RSTREAM",
                         "FI_PROTO_COLL"],
    "FI_TYPE_ATOMIC_TYPE": ["FI_FLOAT16", "FI_BFLOAT16", "FI_FLOAT8_E4M3", "FI_FLOAT8_E5M2", "FI_VOID"],
    "FI_TYPE_ATOMIC_OP": ["FI_DIFF", "FI_NOOP"],
}

# Flags that the recorded output leaves out; the library prints them after the others.
FLAGS = {
    "FI_TYPE_CAPS": ["FI_TAGGED_DIRECTED_RECV", "FI_TAGGED_MULTI_RECV", "FI_EXACT_DIRECTED_RECV",
                     "FI_XPU"],
    "FI_TYPE_OP_FLAGS": ["FI_COMMIT_COMPLETE", "FI_AUTH_KEY"],
    "FI_TYPE_MR_MODE": ["FI_MR_XPU_DESC"],
    "FI_TYPE_CQ_EVENT_FLAGS": ["FI_MULTICAST", "FI_COLLECTIVE"],
}

# Groups of the constants table in which every value has a name.
GROUPS = {
    "address format": "FI_TYPE_ADDR_FORMAT",
    "atomic op": "FI_TYPE_ATOMIC_OP",
    "av type": "FI_TYPE_AV_TYPE",
    "collective op": "FI_TYPE_COLLECTIVE_OP",
    "cq format": "FI_TYPE_CQ_FORMAT",
    "cq wait condition": "FI_TYPE_CQ_WAIT_COND",
    "datatype": "FI_TYPE_ATOMIC_TYPE",
    "deferred op type": "FI_TYPE_OP_TYPE",
    "endpoint type": "FI_TYPE_EP_TYPE",
    "eq event": "FI_TYPE_EQ_EVENT",
    "hmem interface": "FI_TYPE_HMEM_IFACE",
    "progress": "FI_TYPE_PROGRESS",
    "protocol": "FI_TYPE_PROTOCOL",
    "threading": "FI_TYPE_THREADING",
    "wait object": "FI_TYPE_WAIT_OBJ",
}

AREA = 0x10000000  # where the recorded program had its objects
NIC = AREA + 0x400


def rows(name):
    with open(TABLES + name, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
lib = ctypes.CDLL(os.path.abspath(os.environ.get("BUILD", "build") + "/libfabric.so"))
lib.fi_tostr.restype = lib.fi_tostr_r.restype = ctypes.c_char_p
lib.fi_tostr.argtypes = [ctypes.c_void_p, ctypes.c_int]
lib.fi_tostr_r.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int]
lib.fi_dupinfo.restype = ctypes.c_void_p
lib.fi_dupinfo.argtypes = lib.fi_freeinfo.argtypes = [ctypes.c_void_p]

constants = {r["name"]: int(r["decimal"]) for release in ("2.6", "2.7")
             for r in rows(f"constants-{release}.tsv") if r["decimal"] != "-"}
fields, sizes = {}, {}
for r in rows("structs-2.6.tsv") + rows("structs-2.7.tsv"):
    if r["field"] == "<total>":
        sizes[r["struct"]] = int(r["size"])
    else:
        fields[r["struct"], r["field"]] = (int(r["offset"]), int(r["size"]))
TOSTR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
kept = []  # keeps objects alive that C points to


def map_area():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    fixed = 0x100000  # MAP_FIXED_NOREPLACE
    got = libc.mmap(AREA, 4096, mmap.PROT_READ | mmap.PROT_WRITE,
                    mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed, -1, 0)
    if got != AREA:
        print("tostr: the address of the record is taken in this process")
        sys.exit(77)


class Struct:
    """A struct of the tables in memory of its own, or at a given address."""

    def __init__(self, name, address=None):
        self.name = name
        if address is None:
            self.memory = ctypes.create_string_buffer(sizes[name])
            address = ctypes.addressof(self.memory)
            kept.append(self.memory)
        self.address = address
        ctypes.memset(address, 0, sizes[name])

    def set(self, field, value):
        offset, size = fields[self.name, field]
        if isinstance(value, (bytes, str)):
            text = ctypes.create_string_buffer(value.encode() if isinstance(value, str) else value)
            kept.append(text)
            value = ctypes.addressof(text)
        ctypes.memmove(self.address + offset, (value % (1 << 8 * size)).to_bytes(size, "little"), size)
        return self


def number(text):
    """The value of a C expression of the table."""
    text = re.sub(r"\(void \*\) ?", "", text).strip()
    version = re.fullmatch(r"FI_VERSION\((\d+),(\d+)\)", text)
    if version:
        return int(version[1]) << 16 | int(version[2])
    total = 0
    for word in text.split("|"):
        word = re.sub(r"ULL$", "", word.strip())
        total |= constants[word] if word in constants else int(word, 0)
    return total


def by_assignments(name, text, separator):
    made = Struct(name)
    for assignment in text.split(separator):
        field, value = assignment.split("=", 1)
        made.set(field.strip(), value.strip('"') if value.startswith('"') else number(value))
    return made.address


def described_info():
    """The recorded fi_info, which has a value in each kind of field."""
    address = Struct("struct fi_context")  # any memory
    ctypes.memmove(address.address, bytes.fromhex("0200162e01020304") + bytes(8), 16)
    Struct("struct fid", AREA)
    Struct("struct fid_nic", NIC)
    tx = Struct("struct fi_tx_attr").set("caps", constants["FI_MSG"]).set("inject_size", 64)
    fabric = Struct("struct fi_fabric_attr").set("name", "127.0.0.0/8").set("prov_name", "tcp")
    fabric.set("prov_version", 2 << 16 | 6).set("api_version", 1 << 16 | 17)
    info = Struct("struct fi_info").set("caps", number("FI_MSG|FI_RMA|FI_TAGGED|FI_SEND|FI_RECV"))
    info.set("mode", constants["FI_CONTEXT"]).set("addr_format", constants["FI_SOCKADDR_IN"])
    info.set("src_addrlen", 16).set("dest_addrlen", 16).set("src_addr", address.address)
    info.set("handle", AREA).set("tx_attr", tx.address).set("fabric_attr", fabric.address).set("nic", NIC)
    return info.address


def described_fid(text):
    fid = Struct("struct fid", AREA)
    if "ops=NULL" in text:
        return AREA
    ops = Struct("struct fi_ops").set("size", 40 if "size=40" in text else sizes["struct fi_ops"])
    if "ops->tostr=NULL" not in text:
        def tostr(_, buf, length):
            said = f"<tostr of the object, len {length}>\n".encode()
            ctypes.memmove(buf, said + b"\0", len(said) + 1)
            return 0
        kept.append(TOSTR(tostr))
        ops.set("tostr", ctypes.cast(kept[-1], ctypes.c_void_p).value)
    fid.set("ops", ops.address)
    return AREA


def described_nic(text):
    """Splits the input into parts by ;, and each part into words field=value."""
    device, bus = Struct("struct fi_device_attr"), Struct("struct fi_bus_attr")
    link, nic = Struct("struct fi_link_attr"), Struct("struct fid_nic")
    for part in text.split("; "):
        for field, value in re.findall(r"(\w+)=([^ ;]+)", part):
            if "device_attr" in part:
                device.set(field, value)
            elif ("struct fi_pci_attr", field) in fields:
                pci = Struct("struct fi_pci_attr", bus.address + fields["struct fi_bus_attr", "attr.pci"][0])\
                    if field == "domain_id" else pci
                pci.set(field, int(value, 0))
            else:
                to = bus if field == "bus_type" else link
                to.set(field, constants.get(value) if value in constants else
                       int(value) if value.isdigit() else value)
    ctypes.memmove(nic.address, constants["FI_CLASS_NIC"].to_bytes(8, "little"), 8)
    nic.set("device_attr", device.address).set("bus_attr", bus.address).set("link_attr", link.address)
    return nic.address


def address_info(row):
    data = bytes.fromhex(re.search(r": ([0-9a-f]+) then zeros", row["input"])[1])
    ctypes.memset(AREA, 0, 256)
    ctypes.memmove(AREA, data, len(data))
    return Struct("struct fi_info").set("addr_format", int(row["input_value"], 16)).set("src_addr", AREA).address


def described(row):
    """Returns the address of the object that the row's input describes."""
    text = re.sub(r" \((fields unknown|FI_\w+ in 2\.6).*\)$", "", row["input"])
    if "NULL" in text and ("data" in text):
        return None
    if row["input_value"].startswith("0x") and "src_addr" not in row["call"]:
        value = row["input_value"]
        kept.append(ctypes.create_string_buffer(int(value, 16).to_bytes((len(value) - 2) // 2, "little"), 16))
        return ctypes.addressof(kept[-1])
    if "src_addr line" in row["call"]:
        return address_info(row)
    if text == "fi_allocinfo()":
        return lib.fi_dupinfo(None)
    if text.startswith("fid_nic"):
        return described_nic(text)
    if text.startswith("struct fid "):
        return described_fid(text)
    name, rest = re.match(r"(struct \w+) (.*)", text).groups()
    if rest == "all zero":
        return Struct(name).address
    return described_info() if name == "struct fi_info" else by_assignments(name, rest, "; ")


def said(row, fi_type):
    """Returns the library's text for the row's input."""
    length = re.search(r"buffer length (\d+)", row["call"])
    if row["call"].startswith("fi_tostr_r"):
        size = int(length[1]) if length else 64
        buf = ctypes.create_string_buffer(max(size, 1) + 64)
        ctypes.memset(buf, 0x7f, len(buf))
        data = None if "data NULL" in row["call"] else described(row)
        got = lib.fi_tostr_r(None if "buffer NULL" in row["call"] else buf, size, data, fi_type)
        if buf.raw[size:] != b"\x7f" * (len(buf) - size):
            return "(wrote behind the buffer)"
    else:
        got = lib.fi_tostr(described(row), fi_type)
    if got is None:
        return "<NULL>"
    text = got.decode()
    if "src_addr line" in row["call"]:
        return next(line.strip() if line.strip() != "src_addr:" else "src_addr: "
                    for line in text.split("\n") if line.startswith("    src_addr:"))
    return text.replace("\n", "\\n")


def wanted(row):
    kind, value = row["fi_type"], row["input_value"]
    text = row["output_2.6"]
    if text == "2.6.0":  # the version of the library
        return ".".join(str(constants[f"FI_{part}_VERSION"]) for part in ("MAJOR", "MINOR", "REVISION"))
    if row["call"] != "fi_tostr" or not value.startswith("0x"):
        return text
    for name in NAMED.get(kind, []):
        if constants[name] == int(value, 16):
            assert text == "Unknown", f"{name} is no exception"
            return name
    names = [text] if text else []
    return ", ".join(names + [n for n in FLAGS.get(kind, []) if constants[n] & int(value, 16)])


def check_record():
    wrong = 0
    for row in rows("tostr.tsv"):
        got, want = said(row, int(row["type_value"])), wanted(row)
        if got != want:
            wrong += 1
            print(f"tostr: {row['fi_type']}, {row['call']}, {row['input']}:\n    got  {got}\n    want {want}")
    return wrong


def check_words():
    """Every public constant has a name."""
    wrong = 0
    for row in rows("constants-2.6.tsv"):
        kind = GROUPS.get(row["group"])
        if not kind or row["decimal"] == "-" or row["name"].endswith("_LAST"):
            continue
        value = ctypes.create_string_buffer(int(row["decimal"]).to_bytes(4, "little"), 8)
        got = lib.fi_tostr(ctypes.addressof(value), constants[kind]).decode()
        if constants.get(got) != int(row["decimal"]):
            wrong += 1
            print(f"tostr: {row['name']} is {got!r}")
    return wrong


map_area()
wrong = check_record() + check_words()
sys.exit(f"tostr: {wrong} texts are not as wanted" if wrong else 0)
