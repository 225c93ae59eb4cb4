# SPDX-License-Identifier: BSD-2-Clause
# Makes the table of run.sh from the raw figures: lines "WHO/ROW SIZE VALUE" with WHO ours,
# reference or limit. The best of several figures of a row counts: the smallest time, the largest
# rate. Ratios are quotients of these. If a row and its limit were measured in turns PAIRS times or
# more, the ratio is the median of the quotients of neighbours, which suffers least from a varying
# speed of the machine.
# Goals, and whether they were reached, go to the file `targets`.
BEGIN {
	OFS = "\t"
	PAIRS = 5
}
{
	best[$1, $2] = better($1, best[$1, $2], $3)
	sample[$1, $2, ++samples[$1, $2]] = $3
	if ($1 !~ /^limit/) {
		row = substr($1, index($1, "/") + 1)
		if (!seen[row, $2]++) {
			rows[++count] = row
			at[count] = $2
		}
	}
}
END {
	print "what", "bytes", "unit", "ours", "reference", "limit", "ours/reference", "ours/limit"
	for (i = 1; i <= count; i++)
		line(rows[i], at[i], unit(rows[i]), best["ours/" rows[i], at[i]], best["reference/" rows[i], at[i]],
			limit(rows[i], at[i]), over_limit(rows[i], at[i]))
	for (i = 1; i <= count; i++)
		if (against == "")
			derive(rows[i], at[i])
		else
			compare(rows[i], at[i])
	instead("limit/uring", "limit/tcp", 8, "us", "the ping-pong through io_uring")
	instead("limit/tcp-framed", "limit/tcp-bandwidth", 65536, "GB/s", "the stream with frames of 32 bytes")
	instead("limit/tcp-framed", "limit/tcp-bandwidth", 1048576, "GB/s", "the stream with frames of 32 bytes")
	instead("limit/zerocopy", "limit/tcp-bandwidth", 65536, "GB/s", "the stream with MSG_ZEROCOPY")
	instead("limit/zerocopy", "limit/tcp-bandwidth", 1048576, "GB/s", "the stream with MSG_ZEROCOPY")
	if (("limit/line", 8) in best)
		line("a cache line handed over", 64, "us", "", "", best["limit/line", 8])
}

# Shows what an alternative transport reaches, beside the limit of the present one.
function instead(row, other, size, in_unit, what) {
	if ((row, size) in best)
		line(what, size, in_unit, best[row, size], "", best[other, size])
}

function is_rate(name) {
	return name ~ /stream|limit\/ring|plain|bandwidth|framed|zerocopy/
}

function better(name, a, b) {
	return a == "" || is_rate(name) == (b + 0 > a + 0) ? b : a
}

function least(a, b) {
	return a == "" || (b != "" && b + 0 < a + 0) ? b : a
}

function unit(row) {
	if (row ~ /bandwidth/)
		return "GB/s"
	if (is_counted(row))
		return row ~ /(opening|connecting)$/ ? "ms" : row ~ /inserting$/ ? "us" : "bytes"
	return row ~ /^plain/ ? "el/ns" : is_rate(row) ? "M/s" : "us"
}

# Rows of connect.c; their size is a number of endpoints or addresses.
function is_counted(row) {
	return row ~ /\/(opening|connecting|endpoint|connection|inserting|address)$/
}

function over(a, b) {
	return a == "" || b == "" || !b ? "" : a / b
}

# Pairs each figure of this library with its limit measured next to it.
function over_limit(row, size,  name, n, i, j, x, sorted) {
	name = limit_name(row)
	n = samples["ours/" row, size]
	if (n < PAIRS || samples[name, size] != n)
		return over(best["ours/" row, size], limit(row, size))
	for (i = 1; i <= n; i++) {
		x = over(sample["ours/" row, size, i], sample[name, size, i])
		for (j = i; j > 1 && sorted[j - 1] > x; j--)
			sorted[j] = sorted[j - 1]
		sorted[j] = x
	}
	return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

function figure(value, form) {
	return value == "" ? "-" : sprintf(form, value)
}

function label(row, size) {
	return !is_counted(row) ? row : row " (" size (row ~ /(inserting|address)$/ ? " addresses)" : " endpoints)")
}

function line(row, size, in_unit, ours, reference, bound, ratio) {
	print label(row, size), is_counted(row) ? "-" : size, in_unit,
		figure(ours, "%.3f"), figure(reference, "%.3f"), figure(bound, "%.3f"),
		figure(over(ours, reference), "%.2f"), figure(ratio == "" ? over(ours, bound) : ratio, "%.2f")
}

function pair(row) {
	return substr(row, 1, index(row, "/") - 1)
}

# Returns the one-way time of a message of eight bytes.
function message(who, row) {
	return best[who "/" pair(row) "/tsend", 8]
}

# Returns the row of raw figures that limits a row and is measured in turns with it, or "".
function limit_name(row) {
	if (row ~ /^collective/)
		return "limit/" row
	if (row == "tcp/bandwidth")
		return "limit/tcp-bandwidth"
	if (row == "keyed/tsend")
		return "limit/keyed"
	if (row ~ /^encrypted/)
		return row ~ /bandwidth/ ? "limit/tls-bandwidth" : "limit/tls"
	return row == "tcp/tsend" ? "limit/tcp" : row == "udp/send" ? "limit/udp" : ""
}

# Returns the limit of a row. Messages: inside a host the better of two copies and one CMA read,
# over the network a plain socket. One-sided: the system call that does it, or a message there and
# one back if the target must answer. Streams: a plain ring of cache lines. Collectives: Open MPI's.
function limit(row, size) {
	if (row ~ /^plain/)
		return best["limit/plain", size]
	if (row ~ /^udp\/stream/)
		return ""
	if (row ~ /stream/)
		return size == 8 ? best["limit/ring", 8] : ""
	if (row ~ /fetch_add$/)
		return size == 8 && message("ours", row) != "" ? 2 * message("ours", row) : ""
	if (limit_name(row))
		return best[limit_name(row), size]
	if (is_counted(row))
		return ""
	if (row ~ /\/(write|read)$/)
		return row ~ /:shm/ ? best["limit/vm" substr(row, index(row, "/") + 1), size] : ""
	if (row ~ /:(tcp|net|sockets)/)
		return best["limit/tcp", size]
	return least(best["limit/copy", size], best["limit/cma", size])
}

# GB/s
function speed(size, time) {
	return over(size / 1000, time)
}

# Prints rows derived from others, and goals.
function derive(row, size,  ours, reference) {
	ours = best["ours/" row, size]
	reference = best["reference/" row, size]
	network(row, size, ours, reference, over_limit(row, size))
	collective(row, size, ours, reference, over_limit(row, size))
	if (row ~ /\/(write|read)$/ && size >= 65536)
		line(row ", rate", size, "GB/s", speed(size, ours), speed(size, reference), speed(size, limit(row, size)))
	if (row ~ /^plain/)
		target(row ", ours/hand-vectorised", over(ours, best["limit/plain", size]), "at least", 0.7)
	if (size != 8)
		return
	if (row ~ /\/(read|fetch_add)$/) {
		ours = over(ours, message("ours", row))
		line(row " / one-way message", size, "x", ours, over(reference, message("reference", row)), 2)
		if (row ~ /:/)
			target(row " / one-way message", ours, "at most", 2.2)
	}
	if (row ~ /stream,(inject_write|atomic_sum)$/)
		target(row ", ours/reference", over(ours, reference), "at least", 2)
}

# Goals of the network part.
function network(row, size, ours, reference, ratio) {
	if (row ~ /^(tcp\/tsend|udp\/send)$/ && size == 8)
		target(row " of 8 bytes, ours/limit", ratio, "at most", 1.05)
	if (row == "udp/stream")
		target(row " of " size " bytes, ours/reference", over(ours, reference), "at least", 3)
	if (row == "tcp/bandwidth") {
		target(row " of " size " bytes, ours/limit", ratio, "at least", 0.97)
		target(row " of " size " bytes, ours/reference", over(ours, reference), "at least", 1.3)
	}
	if (row == "keyed/tsend")
		target(row " of " size " bytes, ours/without a key", ratio, "at most", 1.02)
	if (row == "encrypted/bandwidth")
		target(row " of " size " bytes, ours/OpenSSL's own", ratio, "at least", 1)
	if (row == "encrypted/tsend")
		target(row " of " size " bytes, ours/OpenSSL's own", ratio, "at most", 1.1)
	if (row == "tcp/address")
		target(row ", bytes", ours, "at most", 32)
	if (row == "tcp/connection")
		target(row ", bytes", ours, "at most", 8192)
}

function collective(row, size, ours, reference, ratio) {
	if (row !~ /^collective/)
		return
	target(row " of " size " bytes, ours/Open MPI", ratio, "at most", 1)
	if (reference != "")
		target(row " of " size " bytes, ours/reference", over(ours, reference), "at most", 0.5)
}

# Compares two builds. A row measured at least three times has changed if all figures of one build
# are better than all of the other, by 3 % or more.
function compare(row, size,  a, b, i, j, wins, all, ratio) {
	a = "ours/" row
	b = "reference/" row
	all = samples[a, size] * samples[b, size]
	for (i = 1; i <= samples[a, size]; i++)
		for (j = 1; j <= samples[b, size]; j++)
			wins += better(row, sample[b, size, j], sample[a, size, i]) == sample[a, size, i]
	ratio = over(best[a, size], best[b, size])
	if (all >= 9 && (wins == all || !wins) && (ratio < 0.97 || ratio > 1.03))
		printf "    %-37s %8s   %.2f %s\n", row, size, ratio, wins ? "faster" : "SLOWER" >targets
}

function target(what, value, sense, bound) {
	printf "%-48s %6s   %s %s: %s\n", what, figure(value, "%.2f"), sense, bound, verdict(value, sense, bound) >targets
}

function verdict(value, sense, bound) {
	if (value == "")
		return "not measured"
	return (sense == "at most" ? value <= bound : value >= bound) ? "met" : "missed"
}
