# page-fault's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v nr_task=N is the expected number of tasks. Prints nothing unless there is exactly one result.
/^[ \t]*page-fault: mode=/ {
	results++
	for (n = 2; n <= NF; n++) {
		at = index($n, "=")
		value[substr($n, 1, at - 1)] = substr($n, at + 1)
	}
}
END {
	tasks = value["tasks"] + 0
	if (results != 1 || tasks < 1 || value["faults"] < 1 || value["seconds"] <= 0 || (nr_task != "" && tasks != nr_task)) exit
	printf "%s %.17g\n", value["mode"] == "thread" ? "per_thread_ops" : "per_process_ops", value["faults"] / value["seconds"] / tasks
}
