# SPDX-License-Identifier: BSD-2-Clause
"""Sends and receives a tagged message without C code: every call, also those inline in the headers, is a symbol of the
library. BUILD is the build folder."""
import ctypes as c
import os
import sys
import time

FI_MSG, FI_TAGGED, FI_SEND, FI_RECV, FI_TRANSMIT = 0x2, 0x8, 0x800, 0x400, 0x800
FI_CONTEXT, FI_CONTEXT2 = 1 << 59, 1 << 52
FI_EP_RDM, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE = 3, 4, 0
FI_EAGAIN = 11
FI_VERSION = 2 << 16 | 6
FI_ADDR_UNSPEC = c.c_uint64(-1)
PATIENCE = 10  # seconds


class EpAttr(c.Structure):  # the beginning of fi_ep_attr
    _fields_ = [("type", c.c_int)]


class FabricAttr(c.Structure):  # the beginning of fi_fabric_attr
    _fields_ = [("fabric", c.c_void_p), ("name", c.c_char_p), ("prov_name", c.c_char_p)]


class Info(c.Structure):
    _fields_ = [
        ("next", c.c_void_p), ("caps", c.c_uint64), ("mode", c.c_uint64), ("addr_format", c.c_uint32),
        ("src_addrlen", c.c_size_t), ("dest_addrlen", c.c_size_t), ("src_addr", c.c_void_p), ("dest_addr", c.c_void_p),
        ("handle", c.c_void_p), ("tx_attr", c.c_void_p), ("rx_attr", c.c_void_p), ("ep_attr", c.POINTER(EpAttr)),
        ("domain_attr", c.c_void_p), ("fabric_attr", c.POINTER(FabricAttr)), ("nic", c.c_void_p),
    ]


class CqAttr(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("flags", c.c_uint64), ("format", c.c_int), ("wait_obj", c.c_int),
        ("signaling_vector", c.c_int), ("wait_cond", c.c_int), ("wait_set", c.c_void_p),
    ]


class AvAttr(c.Structure):
    _fields_ = [
        ("type", c.c_int), ("rx_ctx_bits", c.c_int), ("count", c.c_size_t), ("ep_per_node", c.c_size_t),
        ("name", c.c_char_p), ("map_addr", c.c_void_p), ("flags", c.c_uint64),
    ]


class Entry(c.Structure):  # fi_cq_tagged_entry
    _fields_ = [
        ("op_context", c.c_void_p), ("flags", c.c_uint64), ("len", c.c_size_t), ("buf", c.c_void_p),
        ("data", c.c_uint64), ("tag", c.c_uint64),
    ]


void_p, size_t, u64, info_p = c.c_void_p, c.c_size_t, c.c_uint64, c.POINTER(Info)
CALLS = {  # what is returned, what is passed
    "fi_allocinfo": (info_p,),
    "fi_strerror": (c.c_char_p, c.c_int),
    "fi_freeinfo": (None, info_p),
    "fi_getinfo": (c.c_int, c.c_uint32, c.c_char_p, c.c_char_p, u64, info_p, c.POINTER(info_p)),
    "fi_fabric": (c.c_int, void_p, c.POINTER(void_p), void_p),
    "fi_domain": (c.c_int, void_p, info_p, c.POINTER(void_p), void_p),
    "fi_av_open": (c.c_int, void_p, c.POINTER(AvAttr), c.POINTER(void_p), void_p),
    "fi_cq_open": (c.c_int, void_p, c.POINTER(CqAttr), c.POINTER(void_p), void_p),
    "fi_endpoint": (c.c_int, void_p, info_p, c.POINTER(void_p), void_p),
    "fi_ep_bind": (c.c_int, void_p, void_p, u64),
    "fi_enable": (c.c_int, void_p),
    "fi_getname": (c.c_int, void_p, void_p, c.POINTER(size_t)),
    "fi_av_insert": (c.c_int, void_p, void_p, size_t, c.POINTER(u64), u64, void_p),
    "fi_trecv": (c.c_ssize_t, void_p, void_p, size_t, void_p, u64, u64, u64, void_p),
    "fi_tsend": (c.c_ssize_t, void_p, void_p, size_t, void_p, u64, u64, void_p),
    "fi_cq_read": (c.c_ssize_t, void_p, c.POINTER(Entry), size_t),
    "fi_close": (c.c_int, void_p),
}


class Library:
    """The calls above, as methods that raise on an error."""

    def __init__(self, path):
        self.library = c.CDLL(path)
        for name, (result, *arguments) in CALLS.items():
            try:
                call = getattr(self.library, name)
            except AttributeError:
                sys.exit(f"{name} is not a symbol of {path}")
            call.restype, call.argtypes = result, arguments

    def __getattr__(self, name):
        call = getattr(self.library, name)

        def checked(*arguments):
            result = call(*arguments)
            if isinstance(result, int) and result < 0 and result != -FI_EAGAIN:
                sys.exit(f"{name}: {self.library.fi_strerror(-result).decode()}")
            return result

        return checked

    def open(self, name, *arguments):
        fid = void_p()
        getattr(self, name)(*arguments, c.byref(fid), None)
        return fid


def retry(fi, cq, call, *arguments):
    """Repeats a call while it returns -FI_EAGAIN, with progress in between."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        result = call(*arguments)
        if result != -FI_EAGAIN:
            return result
        fi.fi_cq_read(cq, None, 0)
    sys.exit("nothing came")


def find(fi, provider):
    hints, info = fi.fi_allocinfo(), info_p()
    hints.contents.caps = FI_MSG | FI_TAGGED
    hints.contents.mode = FI_CONTEXT | FI_CONTEXT2
    hints.contents.ep_attr.contents.type = FI_EP_RDM
    fi.fi_getinfo(FI_VERSION, None, None, 0, hints, c.byref(info))
    fi.fi_freeinfo(hints)
    entry = info
    while entry and entry.contents.fabric_attr.contents.prov_name != provider:
        entry = c.cast(entry.contents.next, info_p)
    if not entry:
        sys.exit(f"no entry of {provider.decode()}")
    return info, entry


def send_to_itself(fi, ep, av, cq):
    name, room, me = c.create_string_buffer(256), size_t(256), u64()
    fi.fi_getname(ep, name, c.byref(room))
    if fi.fi_av_insert(av, name, 1, c.byref(me), 0, None) != 1:
        sys.exit("fi_av_insert refused the address")
    inbox, outbox = c.create_string_buffer(64), c.create_string_buffer(b"no compiler needed", 64)
    contexts = (c.c_char * 128)()  # two fi_context2
    receive, send = c.addressof(contexts), c.addressof(contexts) + 64
    fi.fi_trecv(ep, inbox, 64, None, FI_ADDR_UNSPEC, 0xFEED, 0, receive)
    retry(fi, cq, fi.fi_tsend, ep, outbox, 64, None, me, 0xFEED, send)
    done = {}
    while len(done) < 2:
        entry = Entry()
        retry(fi, cq, fi.fi_cq_read, cq, c.byref(entry), 1)
        done[entry.op_context] = entry
    assert set(done) == {receive, send}, done
    assert done[send].flags & FI_SEND and done[send].flags & FI_TAGGED, hex(done[send].flags)
    assert done[receive].flags & FI_RECV and done[receive].flags & FI_TAGGED, hex(done[receive].flags)
    assert done[receive].len == 64 and done[receive].tag == 0xFEED
    assert inbox.raw == outbox.raw, inbox.raw


def check(fi, provider):
    info, entry = find(fi, provider)
    fabric = fi.open("fi_fabric", entry.contents.fabric_attr)
    domain = fi.open("fi_domain", fabric, entry)
    av = fi.open("fi_av_open", domain, c.byref(AvAttr(count=1)))
    cq = fi.open("fi_cq_open", domain, c.byref(CqAttr(format=FI_CQ_FORMAT_TAGGED, wait_obj=FI_WAIT_NONE)))
    ep = fi.open("fi_endpoint", domain, entry)
    fi.fi_ep_bind(ep, av, 0)
    fi.fi_ep_bind(ep, cq, FI_TRANSMIT | FI_RECV)
    fi.fi_enable(ep)
    send_to_itself(fi, ep, av, cq)
    for fid in (ep, cq, av, domain, fabric):
        fi.fi_close(fid)
    fi.fi_freeinfo(info)
    print(f"{provider.decode()}: a tagged message went round")


def main():
    fi = Library(os.path.join(os.path.abspath(os.environ.get("BUILD", "build")), "libfabric.so.1"))
    for provider in sys.argv[1:] or ["weft", "shm"]:
        check(fi, provider.encode())


main()
