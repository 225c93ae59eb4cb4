#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a benchmark of collectives on several hosts, each a network namespace of its own, joined by a
# bridge. Needs root, or a user who may become root in namespaces; otherwise the status is 77.
#
#     hosts.sh HOSTS EACH collective PROVIDER WHAT SIZE...       EACH members a host
#     hosts.sh HOSTS EACH mpi OPTION... collective_mpi WHAT SIZE...
#
# Programs are named by their paths.
# shellcheck disable=SC2154,SC2034 # what hosts.bash sets and uses
. "$(dirname "$0")/../client/hosts.bash"
count=$1 each=$2
shift 2
apart= # all processes must see each other's process ids
make_hosts "$count"
if [ "$1" = mpi ]; then
	mpi_hosts "$each"
	on 1 "${mpirun[@]}" "${@:2}"
else
	pids="${holder[*]}"
	"$1" "$2" "$((count * each))@${pids// /,}" "${@:3}"
fi
