#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2034,SC2154 # what the files read here set, and the other way round
# Runs the tests of tests/lab/list: on this machine's RDMA devices if it has any, else in virtual
# machines. Prints their lines; the last one has the counts: "N passed, N failed[, N skipped]".
# Environment:
#     KERNEL   kernel of the virtual machine, 6.1 or 6.12; default: both, one after the other
#     MORE     1: also the tests of tests/lab/more
#     TESTS    a pattern of test names in both lists: TESTS=lab_t*
#     NAMES    tests that are not in the lists
#     OPTIONAL 1: without a virtual machine all is skipped; if one kernel is unavailable, the other
#              one runs all tests, which is printed and is no failure
#     and those of kernel.bash
# With both kernels each test runs on one of them, in turns. Tests named by TESTS or NAMES, and
# those with a line KERNELS=all among the first ten of their source, run on both.
set -u
cd "$(dirname "$0")/../../.." || exit
BUILD=$(realpath "${BUILD:-build}")
export BUILD
limit=1300 # limit of a virtual machine in seconds: four times what one kernel's tests take on an idle machine
more=1500  # and for the tests of tests/lab/more
boot=240   # of these, the limit for booting
passed=0 failed=0 skipped=0 qemu='' work='' failures=()
. tests/lab/vm/kernel.bash
. tests/lab/vm/boot.bash

# Settings of the tests on a device and under emulation, which is slow.
settings=(HW=verbs WATCH=tests/lab/objects.sh)
guest_settings=(SLOWER=3 FEWER=10 LAB_GUEST=1)

fail() {
	echo "lab: $*" >&2
	exit 1
}

# no_guest WHY
no_guest() {
	[ "${OPTIONAL-}" = 1 ] || fail "$@"
	echo "lab: $*: the tests that need RDMA are not run here"
	echo "0 passed, 0 failed, ${#tests[@]} skipped"
	exit 0
}

end_guest() {
	[ -z "$qemu" ] || kill "$qemu" 2>/dev/null
	[ -z "$work" ] || rm -rf "$work"
}

# hear: reads the machine's lines until it ends; sets $status (its exit status), $at (how far it
# came), and counts. What it says about failed tests once more, at its end, is kept for ours.
hear() {
	local line seconds=$boot start=$SECONDS done=0 again=
	status='' at='did not come up'
	while IFS= read -r -t "$seconds" line; do
		case $line in
		'lab: up')
			line="$head: up after $((SECONDS - start)) s"
			seconds=$limit
			;;
		'lab: broken: '*) at="is ${line#lab: }" && continue ;;
		'lab: end '*) status=${line##* } && continue ;;
		*' passed, '*' failed'*) continue ;; # counts of this machine
		'failed:') again=1 line="failed, $head:" ;;
		esac
		if [ -n "$again" ]; then failures+=("$line") && continue; fi
		echo "$line"
		if counted "$line"; then done=$((done + 1)); fi
		[ "$seconds" -eq $boot ] || at="went down during ${tests[done]-its end}"
	done
}

# counted LINE: counts the line of a test; fails for others.
counted() {
	[[ $1 =~ ^\ {0,3}[0-9]+/[0-9]+\ (pass|FAIL|skip)\  ]] || return
	case ${BASH_REMATCH[1]} in
	pass) passed=$((passed + 1)) ;;
	FAIL) failed=$((failed + 1)) ;;
	skip) skipped=$((skipped + 1)) ;;
	esac
}

# last_words: prints the last output of qemu and the kernel; after a panic, the lines before it.
last_words() {
	sed 's/^/    /' "$work/qemu"
	tr -d '\r' <"$work/console" | awk '
		/Kernel panic|Oops|BUG:|blocked for more than/ && !last { last = NR + 16 }
		{ line[NR] = $0 }
		END { if (!last || last > NR) last = NR; for (i = last > 25 ? last - 24 : 1; i <= last; i++) print "    " line[i] }'
}

# boot_guest TEST...: boots a machine that runs the tests; succeeds if it ended as it should. Sets
# what hear sets.
boot_guest() {
	echo "$head: booting"
	make_initramfs "$work/initrd" '' bash tests/lab/vm/inside.sh env "${settings[@]}" "${guest_settings[@]}" \
		tests/run.sh "$@" || fail "no initramfs"
	rm -f "$work/out" && mkfifo "$work/out"
	guest $limit -serial stdio </dev/null >"$work/out" 2>"$work/qemu" &
	qemu=$!
	hear <"$work/out"
	kill "$qemu" 2>/dev/null
	wait "$qemu"
	case $?,$status in
	0,[01]) return 0 ;;
	124,*) at+=", for which it had $limit s" ;;
	esac
	return 1
}

# run_guest VERSION TEST...: runs a machine; an irregular end is a failed run. A machine that did
# not boot has a second try: emulated processors sometimes fail on instructions that the kernel
# patches at boot.
run_guest() {
	local status at head tests=("${@:2}")
	head="kernel $1 ($(cat "$kernel/name"))"
	boot_guest "${tests[@]}" && return
	if [[ $at = 'did not come up'* ]]; then
		echo "$head: the guest $at, and has a second try; its last words:"
		last_words
		boot_guest "${tests[@]}" && return
	fi
	failed=$((failed + 1))
	echo "$head: FAIL  the guest $at; its last words:"
	last_words
}

# names FILE: prints its selected tests.
names() {
	local name
	for name in ${NAMES:-$(sed 's/#.*//' "$1")}; do
		# shellcheck disable=SC2053 # a pattern
		[[ $name != ${TESTS:-*} ]] || echo "$name"
	done
}

# on_all TEST: succeeds if the test runs on every kernel.
on_all() {
	[ -n "${TESTS-}${NAMES-}" ] || head -qn 10 "tests/${1%%_*}/${1#*_}".* | grep -q 'KERNELS=all'
}

# of_progress N OF: prints the tests for the Nth of OF kernels.
of_progress() {
	local name turn=0
	for name in "${tests[@]}"; do
		if on_all "$name"; then
			echo "$name"
		else
			[ $((turn % $2)) -ne "$1" ] || echo "$name"
			turn=$((turn + 1))
		fi
	done
}

mapfile -t tests < <(
	names tests/lab/list
	[ -z "${MORE-}${TESTS-}" ] || [ -n "${NAMES-}" ] || names tests/lab/more
)
[ -z "${MORE-}${TESTS-}" ] || limit=$((limit + more))
[ ${#tests[@]} -gt 0 ] || fail "no test's name is like '${TESTS:-*}'"

if grep -qs '^SKIP *=.* src/hw/verbs/%' config.mk; then
	no_guest "the library is built without RDMA, which needs libibverbs, librdmacm and libnl-route"
fi
if [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
	exec env "${settings[@]}" tests/run.sh "${tests[@]}"
fi
for program in qemu-system-x86_64 busybox; do
	command -v "$program" >/dev/null || no_guest "there is no $program"
done
trap end_guest EXIT
trap 'echo "interrupted" >&2; exit 130' INT TERM
new_work
versions=() missing=()
for version in ${KERNEL:-6.1 6.12}; do
	if get_kernel "$version"; then versions+=("$version"); else missing+=("$why"); fi
done
if [ ${#missing[@]} -gt 0 ]; then
	[ ${#versions[@]} -gt 0 ] || no_guest "${missing[0]}"
	[ "${OPTIONAL-}" = 1 ] || fail "${missing[0]}"
	echo "lab: ${missing[0]}: all runs on ${versions[*]}"
fi
for i in "${!versions[@]}"; do
	get_kernel "${versions[i]}"
	# shellcheck disable=SC2046 # names
	run_guest "${versions[i]}" $(of_progress "$i" ${#versions[@]})
done

[ ${#failures[@]} -eq 0 ] || printf '%s\n' "${failures[@]}"
summary="$passed passed, $failed failed"
[ $skipped -eq 0 ] || summary+=", $skipped skipped"
echo "$summary"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
