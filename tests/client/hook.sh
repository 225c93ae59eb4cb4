#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# FI_HOOK on the distribution's fi_pingpong and fi_info: what the log and the file say of its calls, also when it is killed.
# TIMEOUT=120
. "$(dirname "$0")/ours.bash"
info=/usr/bin/fi_info pingpong=/usr/bin/fi_pingpong
need $info $pingpong pgrep python3
setting=(env LD_LIBRARY_PATH="$BUILD" FI_HOOK=trace)

# lines CALL RESULT: how many lines of the client's log tell of the call with a result.
lines() { grep -c "::ofi_hook_trace:[a-z_]*:$1():[0-9]*<trace> .* = $2, [0-9]* ns\$" "$work/client"; }

# What the log says: a line a call, each with its arguments.
setting+=(FI_LOG_LEVEL=trace)
play $pingpong -p shm -e rdm -m tagged -S 64 -I 10
[ "$(lines fi_tinject 0)" -ge 10 ] || fail "not each fi_tinject is in the log: $(cat "$work/client")"
[ "$(lines fi_trecv 0)" -ge 10 ] || fail "not each fi_trecv is in the log"
[ "$(lines fi_close 0)" -ge 5 ] || fail "not each fi_close is in the log"
grep -q 'fi_trecv().* len 64, .* src_addr [0-9A-FIx_]*[A-Z0-9_]*, tag 0x' "$work/client" || fail "fi_trecv: $(grep -m 1 fi_trecv "$work/client")"
grep -q 'fi_cq_open().* attr fi_cq_attr: size: ' "$work/client" || fail "fi_cq_open shows no attributes"
polls=$(grep -c 'fi_cq_read().* times ' "$work/client")
echo "$polls polls without effect were shown as one"

# The filters of the log, other names, and names that nobody knows.
setting=(env LD_LIBRARY_PATH="$BUILD" FI_HOOK='nobody;ofi_hook_trace;hook_trace' FI_LOG_LEVEL=trace FI_LOG_SUBSYS=core,fabric)
play $pingpong -p shm -e rdm -m tagged -S 64 -I 10
grep -q '<warn> FI_HOOK: there is no hook "nobody"$' "$work/client" || fail "no warning of an unknown hook"
[ "$(lines fi_tinject 0)" -eq 0 ] && [ "$(lines fi_eq_open 0)" -eq 1 ] || fail "FI_LOG_SUBSYS: $(cat "$work/client")"

# Off, nothing is said, and no file is written.
setting=(env LD_LIBRARY_PATH="$BUILD" FI_LOG_LEVEL=trace FI_WEFT_TRACE_FILE="$work/off")
play $pingpong -p shm -e rdm -m tagged -S 64 -I 10
! grep ofi_hook "$work/client" || fail "a hook that nobody asked for"
[ -z "$(compgen -G "$work/off*")" ] || fail "a file that no hook writes"
"${setting[@]}" timeout 10 $info -e >"$work/info" || fail "fi_info -e"
grep -q '^# FI_HOOK: String' "$work/info" || fail "fi_info -e does not know FI_HOOK"

# A file of each process, for its user alone, complete whenever it is read.
events() {
	python3 -c 'import json, sys
print(sum(e["name"] == sys.argv[2] for e in json.load(open(sys.argv[1]))))' "$1" "$2"
}
setting=(env LD_LIBRARY_PATH="$BUILD" FI_HOOK=trace FI_WEFT_TRACE_FILE="$work/trace")
play $pingpong -p shm -e rdm -m tagged -S 64 -I 10
files=("$work"/trace.*.json)
[ ${#files[@]} -eq 2 ] || fail "two processes wrote ${files[*]}"
for file in "${files[@]}"; do
	[ "$(events "$file" fi_tinject)" -ge 10 ] || fail "$file: $(cat "$file")"
	[ "$(stat -c %a "$file")" = 600 ] || fail "$file: $(stat "$file")"
done
rm "${files[@]}"
next_port
start "${setting[@]}" timeout 50 $pingpong -B $port -p shm -e rdm -m tagged -I 100000000
within 10 listening $port || fail "the server does not listen"
start "${setting[@]}" timeout 50 $pingpong -P $port -p shm -e rdm -m tagged -I 100000000 127.0.0.1
playing() { killed=$(pgrep -P "$pid" -x fi_pingpong) && grep -qs fi_tinject "$work/trace.$killed.json"; }
within 20 playing || fail "a client that plays has no file"
kill -KILL "$killed"
file=$work/trace.$killed.json
[ "$(events "$file" fi_tinject)" -gt 0 ] || fail "killed: $(tail -c 500 "$file")"

# Where no file can be, the program runs on.
setting=(env LD_LIBRARY_PATH="$BUILD" FI_HOOK=trace FI_WEFT_TRACE_FILE="$work/no/trace" FI_LOG_LEVEL=warn)
play $pingpong -p shm -e rdm -m tagged -S 64 -I 10
grep -q "FI_WEFT_TRACE_FILE: $work/no/trace.*No such file" "$work/client" || fail "no warning: $(cat "$work/client")"

# A table of the calls when the fabric is closed, and a warning of a counter that nobody knows.
setting=(env LD_LIBRARY_PATH="$BUILD" FI_HOOK=perf FI_PERF_CNTR=cpu_nothing FI_LOG_LEVEL=trace)
play $pingpong -p shm -e rdm -m tagged -S 64 -I 10
grep -q 'FI_PERF_CNTR: there is no counter "cpu_nothing"$' "$work/client" || fail "no warning: $(cat "$work/client")"
grep -q '::ofi_hook_perf:fabric:.*<trace> fi_tinject  *[0-9]* calls  *[0-9]* again  *0 failed  *640 bytes  *[0-9]* ns a call$' \
	"$work/client" || fail "perf: $(cat "$work/client")"
! grep '::ofi_hook_perf:.*fi_domain' "$work/client" || fail "perf counts a call that is made once"
