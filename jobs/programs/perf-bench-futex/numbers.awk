# perf bench futex's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v nr_task=N is the expected number of threads. Prints nothing unless there is exactly one result.
function spread(text) {
	text = substr(text, index(text, "(+-") + 3)
	return substr(text, 1, index(text, "%") - 1) + 0
}
/^Run summary \[PID [0-9]+\]: / { threads = $5 }
/^Averaged [0-9]+ operations\/sec \(\+- ?[0-9]+\.[0-9]+%\), total secs = [0-9]+[ \t]*$/ { found++; name = "ops/s"; number = $2; line = $0 }
/^(Wokeup|Requeued) [0-9]+ of [0-9]+ threads in [0-9]+\.[0-9]+ ms \(\+- ?[0-9]+\.[0-9]+%\)[ \t]*$/ {
	found++
	name = $1 == "Wokeup" ? "wokeup_time_ms" : "requeued_time_ms"
	number = $7
	line = $0
	threads = $4
	part = $2 != $4
}
END {
	if (found != 1 || part || number <= 0 || (nr_task != "" && threads != nr_task)) exit
	printf "%s %.17g\n", name, number
	printf "stddev%% %.17g\n", spread(line)
}
