# page-cache's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v test=NAME and -v size=BYTES are what the job does. Prints nothing unless there is exactly one complete result of it.
/^[ \t]*page-cache: test=(read|truncate|mmap) bytes=[0-9]+ loops=[0-9]+ operations=[0-9]+ seconds=[0-9]+\.[0-9]+ p50_ns=[0-9]+ p99_ns=[0-9]+[ \t]*$/ {
	results++
	for (n = 2; n <= NF; n++) {
		at = index($n, "=")
		value[substr($n, 1, at - 1)] = substr($n, at + 1)
	}
}
END {
	kilobytes = value["bytes"] / 1024 * value["loops"]
	if (results != 1 || kilobytes < 1 || value["operations"] + 0 < 1 || value["seconds"] + 0 <= 0) exit
	if ((test != "" && value["test"] != test) || (size ~ /^[0-9]+$/ && value["bytes"] + 0 != size + 0)) exit
	printf "throughput %.17g\n", kilobytes / value["seconds"]
	if (value["operations"] + 0 >= 20) printf "latency_p50 %.17g\n", value["p50_ns"] / 1000
	if (value["operations"] + 0 >= 1000) printf "latency_p99 %.17g\n", value["p99_ns"] / 1000
}
