#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# FI_HOOK=monitor on the distribution's fi_pingpong, and fi_mon_sampler, which reads its figures: while it runs, and what it left.
# TIMEOUT=120
. "$(dirname "$0")/ours.bash"
pingpong=/usr/bin/fi_pingpong sampler=$BUILD/bin/fi_mon_sampler folder=$work/figures
need $pingpong pgrep
monitor=(env LD_LIBRARY_PATH="$BUILD" FI_HOOK=monitor FI_OFI_HOOK_MONITOR_BASEPATH="$folder" FI_LOG_LEVEL=warn)

# figure CALL COLUMN: the sum of a column of a call in all samples.
figure() { awk -F, -v call="$1" -v column="$2" '$2 == call { sum += $column } END { print sum + 0 }' "$work/samples"; }

# refuses TEXT OPTION...: the sampler fails, and says so.
refuses() {
	! timeout 10 "$sampler" "${@:2}" >"$work/out" 2>&1 || fail "fi_mon_sampler ${*:2}: succeeded"
	grep -q -- "$1" "$work/out" || fail "fi_mon_sampler ${*:2}: $(cat "$work/out")"
}

# What a process has done is in the file that it left, as it was asked to.
setting=("${monitor[@]}" FI_OFI_HOOK_MONITOR_LINGER=yes)
play $pingpong -p shm -e rdm -m tagged -S 4096 -I 50
files=("$folder"/*)
[ ${#files[@]} -eq 2 ] || fail "two processes left ${files[*]}"
[ "$(stat -c %a "$folder" "${files[@]}" | xargs)" = '700 600 600' ] || fail "$(stat "$folder" "${files[@]}")"
[ "$("$sampler" -d "$folder" | grep -c '^[0-9]* fi_pingpong (ended)$')" -eq 2 ] || fail "$("$sampler" -d "$folder")"
for file in "${files[@]}"; do
	timeout 10 "$sampler" -d "$folder" "${file##*/}" >"$work/samples" || fail "fi_mon_sampler: $(cat "$work/samples")"
	sent=$(($(figure fi_tinject 6) + $(figure fi_tsend 6)))
	[ $sent -eq $((50 * 4096)) ] || fail "50 messages of 4096 bytes: $(cat "$work/samples")"
	[ "$(figure fi_domain 3)" -eq 1 ] || fail "a domain is opened once: $(cat "$work/samples")"
	[ "$(figure fi_cq_read 3)" -gt "$(figure fi_cq_read 4)" ] || fail "no fi_cq_read had an effect: $(cat "$work/samples")"
done
rm "${files[@]}"

# A process that runs, and whose file goes with it.
setting=("${monitor[@]}")
next_port
start "${setting[@]}" timeout 50 $pingpong -B $port -p shm -e rdm -m tagged -I 100000000 2>"$work/server"
within 10 listening $port || fail "the server does not listen"
start "${setting[@]}" timeout 50 $pingpong -P $port -p shm -e rdm -m tagged -I 100000000 127.0.0.1 2>"$work/client"
client=$pid
playing() {
	running=$(pgrep -P "$client" -x fi_pingpong) && timeout 10 "$sampler" -d "$folder" -n 1 "$running" >"$work/samples" 2>&1 &&
		[ "$(figure fi_trecv 3)" -gt 0 ]
}
within 20 playing || fail "the client cannot be sampled: $(cat "$work/samples" "$work/client")"
assert_ours "$running"
"$sampler" -d "$folder" | grep -q "^$running fi_pingpong\$" || fail "not listed: $("$sampler" -d "$folder")"
timeout 20 "$sampler" -d "$folder" -i 0.3 -n 3 "$running" >"$work/samples" || fail "$(cat "$work/samples")"
# The first sample has all so far, the others what came since.
[ "$(grep -c ',fi_trecv,' "$work/samples")" -eq 3 ] || fail "three samples: $(cat "$work/samples")"
[ "$(grep -c ',fi_domain,' "$work/samples")" -eq 1 ] || fail "a call of the past is in several samples: $(cat "$work/samples")"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work" "$folder"
	! setpriv --reuid=65534 --clear-groups "$sampler" -d "$folder" -n 1 "$running" >"$work/out" 2>&1 ||
		fail "another user reads: $(cat "$work/out")"
	chmod 700 "$folder"
fi
# A file that another process cuts ends the sampler, with an error.
cp "$folder/$running" "$folder/cut"
mv "$folder/cut" "$folder/6"
timeout 30 "$sampler" -d "$folder" -i 0.1 6 >"$work/cut" 2>&1 &
cut=$!
started+=("$cut")
begun() { grep -qs fi_domain "$work/cut"; }
within 10 begun || fail "no sample: $(cat "$work/cut")"
truncate -s 0 "$folder/6"
wait "$cut"
[ $? -eq 1 ] && grep -q 'become shorter$' "$work/cut" || fail "the file was cut: $(tail -3 "$work/cut")"
rm "$folder/6"
# The process has ended when it is a zombie: its parent, asleep, does not reap it.
timeout 30 "$sampler" -d "$folder" -i 0.1 "$running" >"$work/samples" &
waits=$!
started+=("$waits")
kill -STOP "$client"
kill -KILL "$running"
wait "$waits"
ended=$?
listed=$("$sampler" -d "$folder")
kill -CONT "$client"
[ $ended -eq 0 ] || fail "the sampler does not end with the process"
grep -q "^$running fi_pingpong (ended)\$" <<<"$listed" || fail "a zombie is listed as running: $listed"
[ -e "$folder/$running" ] || fail "a killed process cannot remove its file"

# What is no file of the hook, or not the user's alone.
head -c 20000 /dev/urandom >"$folder/1"
refuses 'not a file of FI_HOOK=monitor' -d "$folder" 1
head -c 60 "$folder/$running" >"$folder/2"
refuses 'not a file of FI_HOOK=monitor' -d "$folder" 2
head -c 1000 "$folder/$running" >"$folder/3" # shorter than its rows
refuses 'not a file of FI_HOOK=monitor' -d "$folder" 3
ln -s "$running" "$folder/4"
refuses 'Too many levels' -d "$folder" 4
refuses 'No such file' -d "$folder" 5
refuses 'is no process id' -d "$folder" ../1
refuses 'is no good value' -i 0 1
refuses 'is no good value' -n x 1
chmod 777 "$folder"
play $pingpong -p shm -e rdm -m tagged -S 64 -I 10
grep -q "no monitor: $folder: Operation not permitted\$" "$work/client" || fail "a folder of all: $(cat "$work/client")"

# A symbolic link is no folder, with slashes behind it, either.
chmod 700 "$folder"
ln -s "$folder" "$work/link"
setting=("${monitor[@]}" FI_OFI_HOOK_MONITOR_BASEPATH="$work/link//")
play $pingpong -p shm -e rdm -m tagged -S 64 -I 10
grep -q "no monitor: $work/link: Not a directory\$" "$work/client" || fail "a link: $(cat "$work/client")"
