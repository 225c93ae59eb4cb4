#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs tests, one after the other: tests/run.sh NAME...
# Prints a line for each, the output of those that fail, these once more at the end, and last
# "N passed, N failed[, N skipped]".
#
# A test is a program or script that exits with 0, with 77 and a reason as its last line where it cannot run,
# or with anything else when it fails. It has 60 seconds, or what a line TIMEOUT=seconds among the first ten
# of its source says. Whatever it leaves running is ended. It is told in the environment:
#   BUILD  the build folder (a full path)        HW  the transport; api and fault tests run once for each of $HW,
#          or once, where a line HW=transport among the first ten of its source says so
# Read from the environment:
#   ARGS   arguments for the tests    RUN  what to run programs under    SLOWER  factor for the time limits
#   FEWER  how many times less often tests repeat what is only surer by number, and shorter what is only surer by length
#   WATCH  a command: a test after which it does not say what it said before has left something behind, and fails
set -u
cd "$(dirname "$0")/.." || exit
BUILD=$(realpath "${BUILD:-build}")
export BUILD
logs=$BUILD/log
mkdir -p "$logs"
passed=0 failed=0 skipped=0 turn=0 job='' mark=$$.$RANDOM failures=()

# find_test NAME: sets source and program; api_tags is tests/api/tags.*, base_pool tests/unit/base_pool.c.
find_test() {
	local path
	# shellcheck disable=SC2206 # RUN is a command and its options
	for path in "tests/${1%%_*}/${1#*_}".{sh,py,c} "tests/unit/$1.c"; do
		[ -f "$path" ] || continue
		source=$path
		case $path in
		*.c) program=(${RUN-} "$BUILD/t/$1") ;;
		*.sh) program=(bash "$path") ;;
		*.py) program=(python3 "$path") ;;
		esac
		return 0
	done
	return 1
}

# setting NAME FILE: what a word NAME=value among the first ten lines of a test says.
setting() {
	sed -n "1,10s/.*\<$1=\([a-z0-9][a-z0-9]*\).*/\1/p" "$2" | head -n 1
}

# end_left: ends what the test started and left running, by its process group and by the mark in its environment.
end_left() {
	local pid
	[ -z "$job" ] || kill -KILL -- -"$job" 2>/dev/null
	# shellcheck disable=SC2013 # numbers
	for pid in $(grep -lsz "^WEFT_TEST=$mark\$" /proc/[0-9]*/environ | cut -d/ -f3); do
		kill -KILL "$pid" 2>/dev/null
	done
	job=
}

# run_test LOG: runs program; sets status and seconds.
run_test() {
	local start=${EPOCHREALTIME/[.,]/} us
	# shellcheck disable=SC2086 # ARGS is a list of words
	WEFT_TEST=$mark setsid timeout --kill-after=5 "$limit" "${program[@]}" ${ARGS-} >"$1" 2>&1 </dev/null &
	job=$!
	wait "$job"
	status=$?
	end_left
	us=$((${EPOCHREALTIME/[.,]/} - start))
	printf -v seconds '%d.%02d' $((us / 1000000)) $((us / 10000 % 100))
}

# left_behind BEFORE LOG: is the word of WATCH still another, seconds after the test? What it says goes into the log.
left_behind() {
	local now try
	for try in {1..20}; do
		[ "$try" -eq 1 ] || sleep 0.2
		now=$(${WATCH:-true} 2>&1)
		[ "$now" != "$1" ] || return
	done
	printf 'left behind: %s\nbefore it was: %s\n' "$now" "$1" >>"$2"
}

# report WORD LABEL [REASON]: the line of a test; on a terminal it replaces the one shown while the test ran.
report() {
	[ ! -t 1 ] || printf '\r\033[K'
	printf '%*d/%d %s  %-32s %6s s%s\n' ${#total} $turn "$total" "$1" "$2" "$seconds" "${3:+  $3}"
}

# one NAME [TRANSPORT]
one() {
	local label=$1${2:+ ($2)} log=$logs/$1${2:+.$2}.log before
	turn=$((turn + 1))
	if ! find_test "$1"; then
		seconds=0 report FAIL "$label" "no such test"
		failed=$((failed + 1))
		return
	fi
	limit=$(setting TIMEOUT "$source")
	limit=$((${limit:-60} * ${SLOWER:-1}))
	export CK_TIMEOUT_MULTIPLIER=${SLOWER:-1} # of check's own limits
	[ ! -t 1 ] || printf '%*d/%d ....  %s' ${#total} $turn "$total" "$label"
	before=$(${WATCH:-true} 2>&1)
	HW=${2:-${HW-}} run_test "$log"
	case $status in 0 | 77) if left_behind "$before" "$log"; then status=left; fi ;; esac
	case $status in
	0) passed=$((passed + 1)) && report pass "$label" ;;
	77) skipped=$((skipped + 1)) && report skip "$label" "$(tail -n 1 "$log")" ;;
	124 | 137) failed=$((failed + 1)) && report FAIL "$label" "ended at its limit of $limit s" ;;
	left) failed=$((failed + 1)) && report FAIL "$label" "something is left behind" ;;
	*) failed=$((failed + 1)) && report FAIL "$label" "status $status" ;;
	esac
	case $status in
	0 | 77) [ "$total" -eq 1 ] || return ;; # a test run alone always shows its output
	*) failures+=("$label" "$log") ;;
	esac
	sed 's/^/    /' "$log"
}

# again LABEL LOG...: after many tests, those that failed once more, each with the last its log says.
again() {
	echo "failed:"
	while [ $# -gt 1 ]; do
		echo "$1"
		tail -n 5 "$2" | cut -c 1-200 | sed 's/^/    /'
		shift 2
	done
}

trap 'end_left; echo; echo "interrupted" >&2; exit 130' INT TERM

runs=()
for name in "$@"; do
	case $name in
	api_* | fault_*)
		find_test "$name" && only=$(setting HW "$source") || only=
		for hw in ${only:-${HW:-shm}}; do runs+=("$name $hw"); done
		;;
	*) runs+=("$name") ;;
	esac
done
total=${#runs[@]}
for words in "${runs[@]}"; do
	# shellcheck disable=SC2086 # a name and perhaps a transport
	one $words
done

[ ${#failures[@]} -eq 0 ] || [ "$total" -eq 1 ] || again "${failures[@]}"
summary="$passed passed, $failed failed"
[ $skipped -eq 0 ] || summary+=", $skipped skipped"
echo "$summary"
[ $failed -eq 0 ] && [ "$total" -gt 0 ]
