# netperf's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v nr_threads=N is the expected number of instances. Prints nothing if one is missing.
function added(list, count, n, total) { total = 0; for (n = 1; n <= count; n++) total += list[n]; return total }
function say(name, value) { printf "%s %.17g\n", name, value }
/Throughput/ || (/Rate/ && /Time/) {
	split("", column)
	for (n = 1; n <= NF; n++) if (!($n in column)) column[$n] = n
	rate = "Throughput" in column ? column["Throughput"] : column["Rate"]
	errors = "Errors" in column
	seen = 1
	next
}
/ TEST from .* to / { begun++; next }
/10\^6bits/ { unit = "Mbps"; streams = 1; next }
/per sec/ { unit = "tps"; requests = 1; next }
/^[ \t]*Iterations:/ { iterations = $2; next }
seen && /^[ \t]*[0-9]+([ \t]+-?[0-9]+(\.[0-9]+)?)+[ \t]*$/ {
	if (errors && $2 ~ /\./) {
		if (NF >= rate - 2) received[++receivers] = $(rate - 2)
		if ($(rate - 2) <= 0) still = 1
	} else if (NF >= rate) {
		sent[++count] = $rate
		if ($rate <= 0) still = 1
		elapsed = $(column["Time"]) + 0
		if (count == 1 || elapsed < shortest) shortest = elapsed
		if (count == 1 || elapsed > longest) longest = elapsed
		bytes = errors ? $2 : $3
	}
}
END {
	if (!count || unit == "" || (nr_threads != "" && count != nr_threads * (iterations ? iterations : 1))) exit
	if ((errors && receivers != count) || count < begun || still) exit
	if (shortest <= 0 || shortest < 0.9 * longest || streams + requests > 1) exit
	if (!iterations) iterations = 1
	s = added(sent, count)
	r = added(received, receivers)
	both = s / iterations + r / iterations
	say("Throughput_" unit, s / count)
	say("ThroughputBoth_" unit, s / count + r / count)
	say("Throughput_total_" unit, s / iterations)
	say("ThroughputBoth_total_" unit, both)
	if (receivers) {
		say("ThroughputRecv_" unit, r / count)
		say("ThroughputRecv_total_" unit, r / iterations)
	}
	if (unit == "tps") say("workload", both * elapsed)
	else if (bytes > 0) say("workload", both * elapsed * 1e6 / 8 / bytes)
}
