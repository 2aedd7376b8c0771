# huge-pages' output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v test=NAME is what the job does. Prints nothing unless there is exactly one complete result of it.
/^[ \t]*huge-pages: test=(collapse|khugepaged|hugetlb|compact) bytes=[0-9]+ asked=[0-9]+ huge=[0-9]+ seconds=[0-9]+\.[0-9]+ timed=[0-9]+ p50_ns=[0-9]+ migrated=[0-9]+ order9_blocks=[0-9]+[ \t]*$/ {
	results++
	for (n = 2; n <= NF; n++) {
		at = index($n, "=")
		value[substr($n, 1, at - 1)] = substr($n, at + 1)
	}
}
END {
	asked = value["asked"] + 0
	huge = value["huge"] + 0
	if (results != 1 || asked < 1 || huge < 1 || value["seconds"] + 0 <= 0 || (test != "" && value["test"] != test)) exit
	compact = value["test"] == "compact"
	if (!compact) printf "latency %.17g\n", value["seconds"] / huge * 1000000
	if ((compact || value["test"] == "hugetlb") && value["migrated"] + 0 >= 1000)
		printf "migrate_time %.17g\n", value["seconds"] / value["migrated"] * 1000000
	printf "huge_share %.17g\n", 100 * huge / asked
	printf "order9_blocks %.17g\n", value["order9_blocks"]
	if (value["timed"] + 0 >= 20) printf "latency_p50 %.17g\n", value["p50_ns"] / 1000
}
