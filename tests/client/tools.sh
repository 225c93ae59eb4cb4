#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The project's own fi_info, fi_strerror, fi_pingpong and demo.
# TIMEOUT=180
. "$(dirname "$0")/ours.bash"
need pgrep
bin=$BUILD/bin

# says PATTERN COMMAND...: the command succeeds and prints a line that matches.
says() {
	timeout 10 "${@:2}" >"$work/out" 2>&1 || fail "${*:2}: $(cat "$work/out")"
	grep -q -- "$1" "$work/out" || fail "${*:2}: nothing like '$1': $(cat "$work/out")"
}

# refuses PATTERN COMMAND...: the command fails and prints a line that matches.
refuses() {
	! timeout 20 "${@:2}" >"$work/out" 2>&1 || fail "${*:2}: succeeded"
	grep -q -- "$1" "$work/out" || fail "${*:2}: nothing like '$1': $(cat "$work/out")"
}

says '^Invalid argument$' "$bin/fi_strerror" 22
says '^Invalid argument$' "$bin/fi_strerror" -22
says '^Provided buffer is too small$' "$bin/fi_strerror" 0x101
refuses 'not a number' "$bin/fi_strerror" x

says '^provider: weft$' "$bin/fi_info"
says '^    protocol: FI_PROTO_WEFT$' "$bin/fi_info"
says '^    api: 2\.6$' "$bin/fi_info"
says '^    api: 1\.5$' "$bin/fi_info" --api=1.5
! "$bin/fi_info" | grep Unknown || fail "fi_info has no name for something"
says '^weft:$' "$bin/fi_info" -l
says '^libfabric api: 2\.' "$bin/fi_info" --version
says 'prov_name: shm' "$bin/fi_info" -v -p shm
says 'type: FI_EP_RDM' "$bin/fi_info" -t FI_EP_RDM -c 'FI_MSG|FI_TAGGED' -m 'FI_CONTEXT|FI_CONTEXT2'
says 'addr_format: FI_ADDR_STR' "$bin/fi_info" -v -a FI_ADDR_STR
says '^# FI_LOG_LEVEL' "$bin/fi_info" -e
says '^FI_LOG_LEVEL=warn$' env FI_LOG_LEVEL=warn "$bin/fi_info" -g LOG_LEVEL
! "$bin/fi_info" -v | grep 'security:' || fail "fi_info shows levels that nobody asked for"
says '^    security: open$' "$bin/fi_info" --security -p tcp
says '^    security: closed$' env FI_WEFT_CLOSED=yes "$bin/fi_info" --security -v -p tcp
head -c 32 /dev/urandom >"$work/key"
chmod 640 "$work/key"
says '^    security: no endpoint opens.*Permission denied' env FI_WEFT_AUTH_KEY_FILE="$work/key" \
	"$bin/fi_info" --security -p tcp
chmod 600 "$work/key"
says '^    security: \(keyed, closed$\|.*Function not implemented\)' env FI_WEFT_CLOSED=1 \
	FI_WEFT_AUTH_KEY_FILE="$work/key" "$bin/fi_info" --security -p tcp
says '^    security: \(keyed, encrypted$\|.*Function not implemented\)' env FI_WEFT_AUTH=encrypt \
	FI_WEFT_AUTH_KEY_FILE="$work/key" "$bin/fi_info" --security -p tcp
says '^    security: no endpoint opens.*Invalid argument' env FI_WEFT_AUTH=encrypt \
	"$bin/fi_info" --security -p tcp
refuses 'No data available' "$bin/fi_info" -p no-such-provider
refuses 'is no capability' "$bin/fi_info" -c FI_NOTHING
refuses 'no version' "$bin/fi_info" --api=1.x
refuses 'Usage' "$bin/fi_info" --nothing

says '^::1: ' "$bin/fi_info" --why ::1
says '^127.0.0.1: tcp would be tried first' "$bin/fi_info" --why 127.0.0.1 -p tcp
says '^    shm: the address is none of this host' "$bin/fi_info" --why 192.0.2.1
refuses 'not connected: Connection refused' "$bin/fi_info" --why 127.0.0.1:9
refuses 'no process of this network namespace' "$bin/fi_info" --why fi_shm://none-of-these
refuses '^fi_sockaddr_in6://\[::1\]:9: not connected: Connection refused' "$bin/fi_info" --why '[::1]:9'
for address in '[::1' '[::1]x' '[::1]:' 127.0.0.1:; do
	refuses "^fi_info: --why=.*: neither HOST:PORT" "$bin/fi_info" --why "$address"
done
refuses '^fi_info: --why=no host:9: ' "$bin/fi_info" --why 'no host:9'
refuses '^fi_info: --why=no host: ' "$bin/fi_info" --why 'no host'
refuses '^fi_info: --why=127.0.0.1:no-port: ' "$bin/fi_info" --why 127.0.0.1:no-port
refuses 'endpoints of FI_EP_RDM, not of FI_EP_MSG$' "$bin/fi_info" --why 127.0.0.1:9 -t FI_EP_MSG
# A server that gets no message of those who ask.
next_port
start timeout 60 "$bin/rdm_pingpong" -P $port 127.0.0.1 >"$work/server" 2>&1
within 10 "$bin/fi_info" --why 127.0.0.1:$port >/dev/null 2>&1 || fail "--why reaches no server"
says '^fi_sockaddr_in://127.0.0.1:[0-9]*: connected by shm$' "$bin/fi_info" --why 127.0.0.1:$port
says '^    tcp: a better one is used$' "$bin/fi_info" --why fi_sockaddr_in://127.0.0.1:$port
says '^    direct reads of its memory: FI_SHM_DISABLE_CMA is set$' \
	env FI_SHM_DISABLE_CMA=1 "$bin/fi_info" --why 127.0.0.1:$port
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null &&
	setpriv --reuid 65534 "$bin/fi_info" --version >/dev/null 2>&1; then
	says "^    shm: the process is another user's$" \
		setpriv --reuid 65534 "$bin/fi_info" --why 127.0.0.1:$port
fi

# One that lets in only who knows a key; without OpenSSL nothing has one.
next_port
start env FI_WEFT_AUTH_KEY_FILE="$work/key" timeout 60 "$bin/rdm_pingpong" -P $port 127.0.0.1 >"$work/keyed" 2>&1
if within 10 env FI_WEFT_AUTH_KEY_FILE="$work/key" "$bin/fi_info" --why 127.0.0.1:$port >/dev/null 2>&1; then
	refuses 'not connected: Permission denied' "$bin/fi_info" --why 127.0.0.1:$port
	refuses '^    refused by the endpoint: .*FI_WEFT_AUTH_KEY_FILE' "$bin/fi_info" --why 127.0.0.1:$port
else
	grep -q 'Function not implemented' "$work/keyed" || fail "no keyed server: $(cat "$work/keyed")"
fi

for provider in weft shm; do
	for mode in msg tagged; do
		play "$bin/fi_pingpong" -p $provider -e rdm -m $mode -c -I 100
		[ "$(grep -c '=100' "$work/client")" -eq 6 ] || fail "$provider $mode: $(cat "$work/client")"
	done
done
for type in rdm msg dgram; do
	provider=weft
	[ $type != dgram ] || provider=udp
	play "$bin/fi_pingpong" -p $provider -e $type -s 127.0.0.1 -v -c -I 10 -S 64
	for side in client server; do
		grep -q 'src_addr: .*127\.0\.0\.1:' "$work/$side" ||
			fail "$type: not the address asked for: $(cat "$work/$side")"
	done
done
refuses 'no such choice' "$bin/fi_pingpong" -e pigeon
refuses 'no such choice' "$bin/fi_pingpong" -o xml

# quantiles FILE: each line of a table has quantiles that rise, and the mean is below the last.
quantiles() {
	awk 'NR > 1 && !($9 > 0 && $9 <= $10 && $10 <= $11 && $7 <= $11) { exit 1 } END { exit NR != 7 }' "$1" ||
		fail "quantiles: $(cat "$1")"
}
play "$bin/fi_pingpong" -p shm -e rdm -I 200 -L
quantiles "$work/client"
quantiles "$work/server"
columns='bytes,sent,acked,total_bytes,seconds,mb_per_s,usec_per_xfer,mxfers_per_s,p50_usec,p99_usec,max_usec'
play "$bin/fi_pingpong" -p shm -e rdm -I 100 -o csv
[ "$(head -n 1 "$work/client")" = "$columns" ] || fail "csv: $(cat "$work/client")"
[ "$(cut -d , -f 1,2,4 "$work/client" | sed -n 3p)" = 256,100,51200 ] || fail "csv: $(cat "$work/client")"
play "$bin/fi_pingpong" -p shm -e rdm -I 100 -o json
python3 - "$work/client" "$columns" <<-'END' || fail "json: $(cat "$work/client")"
	import json, sys
	rows = json.load(open(sys.argv[1]))
	assert [r["bytes"] for r in rows] == [64, 256, 1024, 4096, 65536, 1048576]
	assert all(list(r) == sys.argv[2].split(",") for r in rows)
	assert all(r["p50_usec"] <= r["p99_usec"] <= r["max_usec"] for r in rows)
END

timeout 120 examples/demo.sh >"$work/demo" 2>&1 || fail "demo: $(cat "$work/demo")"
for line in '^ *1048576 ' 'all 1052592 bytes in place$' 'no two were alike$' 'each is whole and in order$'; do
	grep -q "$line" "$work/demo" || fail "demo: no line '$line': $(cat "$work/demo")"
done
