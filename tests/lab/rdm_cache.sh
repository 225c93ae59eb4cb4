#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Registrations of buffers are kept and reused, within the limits set, and never used for other
# pages mapped at the same addresses. If the kernel does not report unmapping, none is kept, and
# everything works.
# TIMEOUT=200
. "$(dirname "$0")/lab.bash"
need ip rdma setpriv prlimit
interface=()
for n in 0 1; do interface+=("$(ip -o -4 addr show to "${address[n]}" | awk '{ print $2; exit }')"); done
export LD_LIBRARY_PATH=$BUILD

objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

# cache NAME=VALUE... -- CASE: its output is in $work/out.
cache() {
	local settings=()
	while [ "$1" != -- ]; do settings+=("$1") && shift; done
	env "${settings[@]}" timeout 60 "${as[@]}" "$BUILD/t/lab_rdm_cache" "$2" "${interface[@]}" >"$work/out" 2>&1 ||
		fail "${settings[*]} $2: $(cat "$work/out")"
	echo "${settings[*]} $2: $(paste -sd';' "$work/out")"
}

# keeps COUNT: both sides keep so many registrations.
keeps() {
	[ "$(grep -c "^side [01]: $1 kept$" "$work/out")" -eq 2 ] || fail "not $1 of each side are kept: $(cat "$work/out")"
}

# says TEXT: the log has the text.
says() {
	grep -q "$1" "$work/out" || fail "the log does not say '$1': $(cat "$work/out")"
}

before=$(objects)
as=()
cache -- again
keeps 1
[ "$(grep -c 'never registered again' "$work/out")" -eq 2 ] || fail "registered again"
cache FI_MR_CACHE_MAX_COUNT=3 -- many
keeps 3
cache FI_MR_CACHE_MAX_SIZE=450000 -- many
keeps 4

cache -- changed
keeps 1
cache -- busy
cache -- bare
cache -- child
keeps 1
cache -- shared
keeps 0

cache FI_MR_CACHE_MONITOR=disabled -- again
keeps 0
cache FI_LOG_LEVEL=warn FI_MR_CACHE_MONITOR=memhooks -- again
keeps 0
says 'FI_MR_CACHE_MONITOR=memhooks: there is userfaultfd'
cache FI_MR_CACHE_MONITOR=memhooks -- imported
keeps 1

# Where the system call is forbidden, the kernel's device serves those who may open it.
if [ -w /dev/userfaultfd ]; then
	cache -- forbidden
	keeps 1
fi
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all)
ulimit -l unlimited
cache FI_LOG_LEVEL=warn -- forbidden
keeps 0
! grep -q userfaultfd "$work/out" || fail "a warning nobody asked for: $(cat "$work/out")"
cache FI_LOG_LEVEL=warn FI_MR_CACHE_MONITOR=userfaultfd -- forbidden
keeps 0
says 'FI_MR_CACHE_MONITOR=userfaultfd: there is no watch'

# Works for any user; kept registrations are released when the limit of locked memory is reached.
as=(prlimit --memlock=1600000 setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all)
cache FI_LOG_LEVEL=info FI_LOG_SUBSYS=mr -- many
[ "$(grep -c '^side [01]: [1-9] kept$' "$work/out")" -eq 2 ] || fail "all or nothing is kept: $(cat "$work/out")"
! grep -q 'does not register' "$work/out" || fail "nothing has made way: $(cat "$work/out")"

gone() {
	[ "$(objects)" = "$before" ]
}
within 10 gone || fail "left behind: $(objects), before: $before"
