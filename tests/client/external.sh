#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Providers of others, as libraries of their own: one built with the headers of libfabric 1.17 and for the
# distribution's library, and one built with ours, carry an application's messages; what the application sees
# is what it sees over the distribution's library. Those that cannot be used are logged and passed by.
# TIMEOUT=180
. "$(dirname "$0")/ours.bash"
need apt-get dpkg-deb
cc=${CC:-cc}
old=$BUILD/old
source=tests/client/external
reference=$(ldconfig -p | awk '$1 == "libfabric.so.1" { print $NF; exit }')
[ -n "$reference" ] || skip "libfabric1 is not installed"

if [ ! -d "$old/usr/include/rdma" ]; then
	mkdir -p "$old"
	(cd "$old" && timeout 60 apt-get download libfabric-dev) >"$work/apt" 2>&1 ||
		skip "libfabric-dev can not be fetched: $(tail -n 1 "$work/apt")"
	dpkg-deb -x "$old"/libfabric-dev_*.deb "$old"
fi

# provider FOLDER OPTION...: builds the provider into the folder.
provider() {
	mkdir -p "$work/$1"
	$cc -std=gnu11 -w -fPIC -shared -I"$old/usr/include" -o "$work/$1/lib$1-fi.so" "${@:2}" $source/loop.c \
		"$reference" || fail "the provider $1 does not compile"
}

# info PATH OPTION...: fi_info, for release 1.17, and its log, with the providers of the path.
info() {
	FI_LOG_LEVEL=info FI_PROVIDER_PATH=$1 timeout 20 "$BUILD/bin/fi_info" --api=1.17 "${@:2}" 2>&1
}

# offers PATH OPTION...: the providers of fi_info's entries, each once, in one line.
offers() {
	FI_PROVIDER_PATH=$1 timeout 20 "$BUILD/bin/fi_info" --api=1.17 "${@:2}" 2>&1 | awk '/^provider:/ { print $2 }' | uniq | xargs
}

# passed_by PATH TEXT: the library offers what it offers without the path, and its log has the text.
passed_by() {
	[ "$(offers "$1")" = "$plain" ] || fail "$1: $(offers "$1") instead of $plain"
	info "$1" | grep -q "$2" || fail "$1: the log does not say '$2': $(info "$1" | grep ':core:')"
}

is() {
	[ "$2" = "$3" ] || fail "$1: '$2' instead of '$3'"
}

# run PATH API NAME OPTION...: the application with a provider of this name; what precedes its command.
run() {
	FI_PROVIDER_PATH=$1 timeout 50 "${@:4}" "$work/client" "$2" "$3"
}

# same PATH NAME: the application says the same over both libraries; $ours is what it says.
same() {
	run "$1" 1.17 "$2" >"$work/theirs" 2>"$work/log"
	ours=$(run "$1" 1.17 "$2" env LD_LIBRARY_PATH="$BUILD" 2>"$work/log")
	is "$2 of $1, beside what it is over $reference" "$ours" "$(cat "$work/theirs")"
}

provider loop
$cc -std=gnu11 -w -I"$old/usr/include" -o "$work/client" $source/client.c "$reference" || fail "client.c does not compile"

# The application, over both libraries.
export FI_LOOP_MARK=7
for name in loop LOOP 'tcp;loop'; do
	same "$work/loop" "$name"
	[[ $ours == *"1000 rounds" ]] || fail "$name: no messages were sent: $ours, $(cat "$work/log")"
done
for name in loops 'loop;ofi_rxm'; do
	same "$work/loop" "$name"
	[[ $ours == "fi_getinfo: No data available" ]] || fail "$name: $ours"
done

# A provider of the present interface, and an application that asks for it.
mkdir "$work/new"
$cc -std=gnu11 -Wall -Wextra ${WERROR-} -fPIC -shared -Iinclude -o "$work/new/libnew-fi.so" $source/loop.c "$lib" ||
	fail "the provider does not compile with the present headers"
run "$work/new" 2.6 loop env LD_LIBRARY_PATH="$BUILD" >"$work/ours" || fail "a provider of the present interface"
grep -q 'api 2.6$' "$work/ours" || fail "the interface version: $(cat "$work/ours")"

# The same by the exported functions, as languages without C headers call: gnu_inline leaves the calls to those.
$cc -std=gnu11 -w -O0 -Iinclude '-DWEFT_CALL=extern inline __attribute__((gnu_inline))' -o "$work/symbols" \
	$source/client.c "$lib" -Wl,-rpath,"$BUILD" || fail "client.c does not compile for the exported functions"
nm -D --undefined-only "$work/symbols" | grep -q ' fi_cq_read@WEFT_1.0' || fail "client.c calls no exported functions"
FI_PROVIDER_PATH=$work/new timeout 50 "$work/symbols" 2.6 loop >"$work/symbols.out" || fail "the exported functions"
diff "$work/ours" "$work/symbols.out" || fail "the exported functions say something else"

# Its place, its names, its parameter, its log, its end.
plain=$(offers "")
is "after all others" "$(offers "$work/loop")" "$plain loop"
is "by name" "$(offers "$work/loop" -p LOOP)" "loop"
is "left out by name" "$(offers "$work/loop" -p ^loop)" "$plain"
is "as a top layer" "$(offers "$work/loop" -p 'tcp;loop')" "loop"
is "as a lower layer" "$(offers "$work/loop" -p 'loop;ofi_rxm')" ""
is "FI_PROVIDER=loop" "$(FI_PROVIDER=loop offers "$work/loop")" "loop"
is "FI_PROVIDER=udp,loop" "$(FI_PROVIDER=udp,loop offers "$work/loop")" "udp loop"
is "FI_PROVIDER=^loop" "$(FI_PROVIDER=^loop offers "$work/loop")" "$plain"
info "$work/loop" -l | grep -A1 '^loop:' | grep -q 'version: 7.3' || fail "fi_info -l: $(info "$work/loop" -l)"
info "$work/loop" -g LOOP_MARK | grep -A2 'FI_LOOP_MARK: Integer' | tail -n 1 | grep -q '^FI_LOOP_MARK=7$' ||
	fail "fi_info -g: $(info "$work/loop" -g LOOP_MARK)"
info "$work/loop" | grep -q ':loop:core:fi_prov_ini():[0-9]*<info> loop starts, mark 7$' || fail "its log"
is "calls of its cleanup" "$(info "$work/loop" | grep -c 'loop ends$')" 1
is "a younger interface" "$(FI_PROVIDER_PATH=$work/loop "$BUILD/bin/fi_info" --api=2.0 -p loop 2>&1)" \
	"fi_info: No data available (-61)"

# With an open object in the hints, entries are those of its provider.
$cc -std=gnu11 -Wall -Wextra ${WERROR-} -Iinclude -o "$work/hints" $source/hints.c "$lib" -Wl,-rpath,"$BUILD" ||
	fail "hints.c does not compile"
is "objects in the hints" "$(FI_PROVIDER_PATH=$work/loop timeout 50 "$work/hints" 1.17)" "nothing: both
fabric of loop: loop
domain of loop: loop
fabric of tcp: others
domain of tcp: others"

# Where it is looked for.
mkdir -p "$work/lib/libfabric"
cp "$lib" "$work/lib" && cp "$work/loop/libloop-fi.so" "$work/lib/libfabric"
is "beside the library" "$(unset FI_PROVIDER_PATH &&
	LD_PRELOAD=$work/lib/libfabric.so.1 timeout 20 "$BUILD/bin/fi_info" --api=1.17 -p loop | head -n 1)" "provider: loop"
is "beside the library by a relative path" "$(unset FI_PROVIDER_PATH && cd "$work" &&
	LD_PRELOAD=lib/libfabric.so.1 timeout 20 "$BUILD/bin/fi_info" --api=1.17 -p loop 2>&1)" "fi_info: No data available (-61)"
is "a file" "$(offers "$work/loop/libloop-fi.so" -p loop)" "loop"
is "twice the same" "$(info "$work/loop:$work/loop" | grep -c 'loop starts')" 1
is "no folder" "$(info "$work/none" | grep -c "FI_PROVIDER_PATH: $work/none: No such file or directory")" 1

# A program that the archive is part of has no folder, whatever lies beside it.
$cc -std=gnu11 -w -Iinclude -pthread -o "$work/lib/archive" $source/client.c "$BUILD/libfabric.a" \
	$(sed -n 's/^LIBS = //p' config.mk) || fail "client.c does not link with the archive"
is "beside a program" "$(unset FI_PROVIDER_PATH && cd "$work/lib" && LD_LIBRARY_PATH=$BUILD timeout 20 ./archive 1.17 loop 2>&1 | tail -n 1)" \
	"fi_getinfo: No data available"
(cd "$work/lib" && FI_PROVIDER_PATH=libfabric LD_LIBRARY_PATH=$BUILD timeout 50 ./archive 1.17 loop) | grep -q 'api 1.17$' ||
	fail "the archive does not load what the user names"

# A program with raised rights loads none; the library is found by the program's own path.
chmod 711 "$work"
if [ "$(id -u)" = 0 ] && setpriv --reuid=nobody --clear-groups test -r "$lib" -a -x "$work" &&
	! findmnt -n -T "$work" -o OPTIONS | grep -q nosuid; then
	cp "$work/symbols" "$work/raised" && chown nobody "$work/raised" && chmod u+s "$work/raised"
	FI_LOG_LEVEL=warn FI_PROVIDER_PATH=$work/new timeout 20 "$work/raised" 2.6 loop >"$work/raised.out" 2>&1 &&
		fail "a program with raised rights loads what its user says"
	grep -q 'raised rights' "$work/raised.out" || fail "raised rights: $(cat "$work/raised.out")"
	$cc -std=gnu11 -w -Iinclude -o "$work/beside" $source/client.c "$work/lib/libfabric.so.1" -Wl,-rpath,"$work/lib"
	(unset FI_PROVIDER_PATH && timeout 50 "$work/beside" 1.17 loop >"$work/beside.out") || fail "beside the library: $(cat "$work/beside.out")"
	chown nobody "$work/beside" && chmod u+s "$work/beside"
	(unset FI_PROVIDER_PATH && FI_LOG_LEVEL=warn timeout 20 "$work/beside" 1.17 loop >"$work/raised.out" 2>&1) &&
		fail "a program with raised rights loads what lies beside the library"
	grep -q 'raised rights' "$work/raised.out" || fail "raised rights, beside: $(cat "$work/raised.out")"
fi

# Two of one name: the highest version, the first, the preferred one.
provider low '-DVERSION=FI_VERSION(1,0)'
provider high '-DVERSION=FI_VERSION(9,0)'
version() {
	FI_PROVIDER_PATH=$1 timeout 20 "$BUILD/bin/fi_info" --api=1.17 -p loop | awk '/version:/ { print $2 }'
}
is "low:high" "$(version "$work/low:$work/high")" 9.0
is "high:low" "$(version "$work/high:$work/low")" 9.0
is "@low:high" "$(version "@$work/low:$work/high")" 1.0
is "high:+low" "$(version "$work/high:+$work/low/liblow-fi.so")" 1.0
is "low:+low:high" "$(version "$work/low:+$work/low/liblow-fi.so:$work/high")" 1.0
is "+low:low:high" "$(version "+$work/low/liblow-fi.so:$work/low:$work/high")" 1.0
is "+low:high" "$(version "+$work/low/liblow-fi.so:$work/high")" 1.0

# One that asks fi_getinfo, also while it is loaded, for what it layers over.
provider layered '-DOVER="tcp"'
is "a layer over tcp" "$(offers "$work/layered" -p loop)" "tcp;loop"
FI_PROVIDER_PATH=$work/layered LD_LIBRARY_PATH=$BUILD timeout 50 "$work/client" 1.17 'tcp;loop' >"$work/ours" ||
	fail "the application over tcp;loop"

# One of the development line.
provider next '-DFI_API=FI_VERSION(2,7)'
is "a provider of 2.7" "$(offers "$work/next" -p loop)" "loop"

# What cannot be used.
provider young '-DFI_API=FI_VERSION(99,0)'
passed_by "$work/young" 'provider loop is for interface 99.0, supported are'
provider aged '-DFI_API=FI_VERSION(1,2)'
passed_by "$work/aged" 'provider loop is for interface 1.2, supported are'
provider null -DINIT=NULL
passed_by "$work/null" 'libnull-fi.so: fi_prov_ini returns NULL'
provider mute -DNO_INIT
passed_by "$work/mute" 'libmute-fi.so: there is no fi_prov_ini in it'
provider nameless -DCLAIM=NULL
passed_by "$work/nameless" 'libnameless-fi.so: its provider has no name'
provider namesake '-DCLAIM="udp"' '-DVERSION=FI_VERSION(200,0)'
passed_by "$work/namesake" 'a provider may not be called "udp"'
provider list '-DCLAIM="a,b"'
passed_by "$work/list" 'a provider may not be called "a,b"'
provider lost -Wl,-z,undefs -Wl,-z,now -DMISSING
passed_by "$work/lost" 'could not be loaded: .*undefined symbol: .*ofi_nobody'
mkdir "$work/broken" "$work/empty"
{ head -c 16 "$work/loop/libloop-fi.so" && head -c 9000 /dev/zero; } >"$work/broken/libbroken-fi.so"
passed_by "$work/broken" "could not be loaded: $work/broken/libbroken-fi.so"
for bytes in 100 2000 8000; do
	mkdir "$work/$bytes"
	head -c $bytes "$work/loop/libloop-fi.so" >"$work/$bytes/libcut-fi.so"
	passed_by "$work/$bytes" "could not be loaded: $work/$bytes/libcut-fi.so: the file is cut off"
done
: >"$work/empty/libempty-fi.so"
passed_by "$work/empty" 'could not be loaded: .*file too short'
provider bare -DBARE
passed_by "$work/bare" 'loop: an entry lacks attributes'
for folder in null mute aged lost broken empty; do
	same "$work/$folder" loop
	[ "$ours" = "fi_getinfo: No data available" ] || fail "$folder: $ours"
done
echo "the providers carry messages as over $reference"
