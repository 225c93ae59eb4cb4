/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment variables of the library, all read by the first env_get. Each row is a variable
 * and the member it sets: type, member, variable, default, help. A size_t of -1 is the largest
 * value. An unset string is NULL unless it has a default.
 */
#ifndef WEFT_BASE_ENV_H
#define WEFT_BASE_ENV_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define ENV_ROWS(ROW)                                                                              \
	ROW(const char *, log_level, "FI_LOG_LEVEL", NULL,                                         \
	    "Most talkative level of log messages: warn, trace, info or debug; unset: none")       \
	ROW(const char *, log_prov, "FI_LOG_PROV", NULL,                                           \
	    "Comma list of providers that may log; a leading ^ leaves them out")                   \
	ROW(const char *, log_subsys, "FI_LOG_SUBSYS", NULL,                                       \
	    "Comma list of subsystems that may log: core, fabric, domain, ep_ctrl, ep_data, av, "  \
	    "cq, eq, mr, cntr; a leading ^ leaves them out")                                       \
	ROW(int, log_interval, "FI_LOG_INTERVAL", "2000",                                          \
	    "Milliseconds between two messages that are limited in rate")                          \
	ROW(const char *, hook, "FI_HOOK", NULL,                                                   \
	    "Semicolon list of what sees each call of the application: trace, perf, profile, "     \
	    "monitor")                                                                             \
	ROW(const char *, monitor_folder, "FI_OFI_HOOK_MONITOR_BASEPATH", NULL,                    \
	    "Folder of the files that FI_HOOK=monitor shows its figures in; unset: ofi-UID in "    \
	    "/dev/shm")                                                                            \
	ROW(bool, monitor_linger, "FI_OFI_HOOK_MONITOR_LINGER", "no",                              \
	    "Such a file stays when its process ends")                                             \
	ROW(const char *, perf_counter, "FI_PERF_CNTR", "cpu_instr",                               \
	    "What FI_HOOK=perf counts beside the time: cpu_instr, cpu_cycles")                     \
	ROW(const char *, trace_file, "FI_WEFT_TRACE_FILE", NULL,                                  \
	    "Beginning of the name of the file, for Perfetto, to which FI_HOOK=trace writes the "  \
	    "calls; the process id and .json follow")                                              \
	ROW(const char *, provider, "FI_PROVIDER", NULL,                                           \
	    "Comma list of providers to offer; a leading ^ leaves them out")                       \
	ROW(const char *, provider_path, "FI_PROVIDER_PATH", NULL,                                 \
	    "Colon list of folders whose files *-fi.so are providers, and of such files, with a "  \
	    "+ those to prefer; of providers with one name the highest version is used, with a "   \
	    "leading @ the first; unset: the folder libfabric beside the library")                 \
	ROW(bool, shm_disable_cma, "FI_SHM_DISABLE_CMA", "no",                                     \
	    "No copies straight between the memories of two processes")                            \
	ROW(const char *, tcp_iface, "FI_TCP_IFACE", NULL,                                         \
	    "Name of the only network interface to offer, or a comma list of some")                \
	ROW(int, port_low, "FI_TCP_PORT_LOW_RANGE", "0",                                           \
	    "First of the port numbers endpoints choose from, those of datagrams, too; 0: any of " \
	    "the dynamic range")                                                                   \
	ROW(int, port_high, "FI_TCP_PORT_HIGH_RANGE", "0", "Last of those port numbers")           \
	ROW(const char *, advertise, "FI_WEFT_ADVERTISE", NULL,                                    \
	    "IP address that peers use for endpoints over TCP instead of the one they are bound "  \
	    "to; a port number behind it stands for FI_TCP_PORT_LOW_RANGE")                        \
	ROW(bool, tcp_firewall_addr, "FI_TCP_FIREWALL_ADDR", "no",                                \
	    "Peers cannot connect to this process: its endpoints connect to each address that "    \
	    "is inserted into their address vector")                                               \
	ROW(const char *, relay, "FI_WEFT_RELAY", NULL,                                            \
	    "Address of an endpoint, as fi_av_straddr prints it, that tells those behind a "       \
	    "firewall who waits for them: these connect to it at once, the others when they wait") \
	ROW(int, peer_timeout, "FI_WEFT_PEER_TIMEOUT", "30000",                                    \
	    "Milliseconds without a sign of life after which a peer across the network is gone")   \
	ROW(const char *, rails, "FI_WEFT_RAILS", "1",                                             \
	    "Interfaces that tcp, and two whose RDMA devices verbs, uses together between two "     \
	    "hosts: 1: only the endpoint's own; a number: so many at most, 4, of those about as "  \
	    "fast as that one; auto: these, for tcp up to 25 Gbit/s; or a comma list of names")                                                 \
	ROW(int, rail_timeout, "FI_WEFT_RAIL_TIMEOUT", "2000",                                     \
	    "Milliseconds without an answer after which what is under way over one of several "    \
	    "interfaces goes again over the others")                                               \
	ROW(int, sender_timeout, "FI_WEFT_SENDER_TIMEOUT", "-1",                                   \
	    "Milliseconds without any part of a long message after which a sender across the "     \
	    "network, which announced it and was asked for it, is gone; 0: never; -1: never if "   \
	    "the address vector holds it, else FI_WEFT_PEER_TIMEOUT")                              \
	ROW(int, operation_timeout, "FI_WEFT_OPERATION_TIMEOUT", "0",                              \
	    "Milliseconds without progress of an operation after which its peer, if it is "        \
	    "across the network or not connected yet, is given up; 0: never")                      \
	ROW(bool, closed, "FI_WEFT_CLOSED", "no",                                                  \
	    "Only peers whose address is in the address vector may connect")                       \
	ROW(const char *, auth_key_file, "FI_WEFT_AUTH_KEY_FILE", NULL,                            \
	    "File with the key of the job, 16 to 64 bytes, mode 0600; for endpoints whose "        \
	    "application gives none")                                                              \
	ROW(const char *, auth, "FI_WEFT_AUTH", "prove",                                           \
	    "What a key is for: prove: to prove who connects; encrypt: what goes across the "      \
	    "network is also encrypted, by tcp")                                                   \
	ROW(bool, kernel_tls, "FI_WEFT_KERNEL_TLS", "yes",                                         \
	    "The kernels encrypt where both ends' have TLS (the module tls)")                      \
	ROW(const char *, verbs_device, "FI_VERBS_DEVICE_NAME", NULL,                              \
	    "Comma list of RDMA devices, or beginnings of their names, to use; unset: all")        \
	ROW(const char *, verbs_iface, "FI_VERBS_IFACE", NULL,                                     \
	    "Comma list of network interfaces, or beginnings of their names, whose RoCE devices "  \
	    "to use; unset: all")                                                                  \
	ROW(int, verbs_gid_index, "FI_VERBS_GID_IDX", "-1",                                        \
	    "The only entry of an RDMA port's table of GIDs to use; -1: what fits the address")    \
	ROW(const char *, mr_cache_monitor, "FI_MR_CACHE_MONITOR", NULL,                           \
	    "How the library learns that memory of a kept registration was unmapped: userfaultfd, " \
	    "or disabled: none is kept; unset: userfaultfd where the kernel permits it; "              \
	    "a monitor that the program has imported comes first")          \
	ROW(size_t, mr_cache_max_size, "FI_MR_CACHE_MAX_SIZE", "-1",                               \
	    "Bytes of such memory at most; 0: half of a CPU's share of the host's")                \
	ROW(size_t, mr_cache_max_count, "FI_MR_CACHE_MAX_COUNT", "1024",                           \
	    "Such registrations at most; 0: none is kept")                                         \
	ROW(size_t, ring_size, "FI_WEFT_RING_SIZE", "262144",                                      \
	    "Bytes of the shared receive ring of an endpoint")                                     \
	ROW(size_t, eager_max, "FI_WEFT_EAGER_MAX", "4096",                                        \
	    "Bytes of a message up to which it is copied into a peer's ring, from 4096 to 16384; " \
	    "longer ones go by rendezvous")                                                        \
	ROW(size_t, joint_min, "FI_WEFT_JOINT_MIN", "65536",                                       \
	    "Bytes of a message or a one-sided operation in shared memory from which on both "     \
	    "processes copy, a part each, if both make progress, at least 65536; -1: never")                       \
	ROW(size_t, tcp_eager_max, "FI_WEFT_TCP_EAGER_MAX", "262144",                              \
	    "Bytes of a message up to which tcp sends it at once, from 4096 to 1048576; longer "   \
	    "ones go by rendezvous")                                                               \
	ROW(size_t, unexpected_max, "FI_WEFT_UNEXPECTED_MAX", "67108864",                          \
	    "Bytes of unexpected messages kept for an endpoint before senders are asked to pause") \
	ROW(size_t, pending_max, "FI_WEFT_PENDING_MAX", "64",                                      \
	    "Connections to a listener, from 1 to 4096, that are kept while their hello has not "  \
	    "come or may not be answered yet; when more come, those of the origin that has most "  \
	    "are closed first")                                                                    \
	ROW(size_t, unknown_max, "FI_WEFT_UNKNOWN_MAX", "0",                                       \
	    "Peers of an endpoint that its address vector does not hold, at most; further ones "   \
	    "are refused; 0: 4096, or three quarters of the descriptors that the process may "     \
	    "open and uses for nothing else, if that is less; -1: no limit")                       \
	ROW(size_t, unexpected_limit, "FI_WEFT_UNEXPECTED_LIMIT", "0",                             \
	    "Bytes of unexpected messages kept for an endpoint at most, half of them from peers "  \
	    "of its address vector, which may have more under way, half from all others, who "     \
	    "may leave as many bytes of answers unread; -1: no limit; 0: twice the sum of "        \
	    "FI_WEFT_UNEXPECTED_MAX and 256 MiB")                                                  \
	ROW(int, access_timeout, "FI_WEFT_ACCESS_TIMEOUT", "10000",                                \
	    "Milliseconds that the close of a region or an endpoint waits for a peer that "        \
	    "accesses memory directly, or a change of a shared address vector for the process "    \
	    "that has its lock; then it fails with FI_EBUSY; in twice the time a packet that a "   \
	    "process of this host announced and never sent is skipped")                            \
	ROW(int, spin_us, "FI_WEFT_SPIN_US", "50",                                                 \
	    "Microseconds a blocking read polls before it sleeps, counted from the last fragment of a long message") \
	ROW(const char *, stats, "FI_WEFT_STATS", NULL,                                            \
	    "File to which a report of each endpoint and its peers is appended when it closes or " \
	    "the process exits; %p stands for the number of the process")                          \
	ROW(const char *, stats_signal, "FI_WEFT_STATS_SIGNAL", NULL,                              \
	    "USR1, USR2, HUP or WINCH: a signal after which the next progress calls append such "  \
	    "reports, to standard error without FI_WEFT_STATS; unless the program handles it")
/* clang-format on */

#define ENV_MEMBER(type, member, name, fallback, help) type member;
struct env_settings {
	ENV_ROWS(ENV_MEMBER)
};
#undef ENV_MEMBER

struct env_row {
	const char *name;
	enum fi_param_type type;
	const char *fallback; /* default, as the user would write it; NULL: none */
	const char *help;
	size_t offset; /* of the member in struct env_settings */
};

/* Returns the rows and sets *count. */
const struct env_row *env_rows(size_t *count);

/* Returns the settings; the first call reads the environment. Never fails. From any thread. */
const struct env_settings *env_get(void);

/*
 * Parses `text` as `type` into *value: const char *, int, bool (FI_PARAM_BOOL) or size_t. Booleans:
 * 0, 1, yes, no, true, false, on, off in any case. Numbers as in C; -1 is the largest size_t.
 * Returns 0, or -FI_EINVAL with *value unchanged. Does not copy a string.
 */
int env_parse(enum fi_param_type type, const char *text, void *value);

#endif
