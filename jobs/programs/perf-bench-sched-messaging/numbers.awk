# perf bench sched messaging as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v nr_groups=N and -v mode=NAME are the job's. Prints nothing unless there is exactly one result.
{ sub(/^[ \t]+/, ""); sub(/[ \t\r]+$/, "") }
/^# [0-9]+ groups == [0-9]+ (processes|threads) run$/ {
	runs++
	groups = $2
	tasks = $6
}
/^Total time: +[0-9]+\.[0-9][0-9][0-9] \[sec\]$/ {
	times++
	time = $3
}
END {
	if (runs != 1 || times != 1 || time == 0 || (nr_groups != "" && nr_groups != groups)) exit
	if (mode != "" && tasks != (mode == "process" ? "processes" : "threads")) exit
	printf "total_time %.17g\n", time
}
