# anon-touch's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# Prints nothing unless there is exactly one complete result.
/^[ \t]*anon-touch: bytes=[0-9]+ passes=[0-9]+ access=(seq|random) content=(same|mixed) touch_seconds=[0-9]+\.[0-9]+ retouch_seconds=[0-9]+\.[0-9]+ free_seconds=[0-9]+\.[0-9]+ touch_p50_ns=[0-9]+ touch_p99_ns=[0-9]+ retouch_p50_ns=[0-9]+ retouch_p99_ns=[0-9]+ system_seconds=[0-9]+\.[0-9]+ major_faults=[0-9]+[ \t]*$/ {
	results++
	for (n = 2; n <= NF; n++) {
		at = index($n, "=")
		value[substr($n, 1, at - 1)] = substr($n, at + 1)
	}
}
END {
	kilobytes = value["bytes"] / 1024
	pages = int(kilobytes / 4)
	passes = value["passes"] + 0
	touch = value["touch_seconds"] + 0
	again = value["retouch_seconds"] + 0
	if (results != 1 || kilobytes < 1 || passes < 1 || touch <= 0 || again <= 0 || value["free_seconds"] <= 0) exit
	printf "throughput %.17g\n", kilobytes * (1 + passes) / (touch + again)
	printf "touch_throughput %.17g\n", kilobytes / touch
	printf "retouch_throughput %.17g\n", kilobytes * passes / again
	printf "free_throughput %.17g\n", kilobytes / value["free_seconds"]
	printf "system_time %.17g\n", value["system_seconds"]
	if (pages >= 20) printf "touch_p50 %.17g\n", value["touch_p50_ns"] / 1000
	if (pages >= 1000) printf "touch_p99 %.17g\n", value["touch_p99_ns"] / 1000
	if (pages * passes >= 20) printf "retouch_p50 %.17g\n", value["retouch_p50_ns"] / 1000
	if (pages * passes >= 1000) printf "retouch_p99 %.17g\n", value["retouch_p99_ns"] / 1000
}
