# perf bench syscall's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v loop=N is the expected number of calls. Prints nothing unless there is exactly one result.
/^# Executed [0-9,]+ [a-z]+\(\) calls[ \t]*$/ {
	loops++
	calls = $3
	name = substr($4, 1, index($4, "(") - 1)
	gsub(/,/, "", calls)
}
/^[ \t]*Total time: +[0-9]+\.[0-9]+ \[sec\][ \t]*$/ { times++; total = $3 }
/^[ \t]*[0-9]+\.[0-9]+ usecs\/op[ \t]*$/ { costs++; cost = $1 }
/^[ \t]*[0-9][0-9,]* ops\/sec[ \t]*$/ { rates++; rate = $1; gsub(/,/, "", rate) }
END {
	if (loops != 1 || times != 1 || costs != 1 || rates != 1 || rate == 0 || (loop != "" && calls != loop)) exit
	if (rate * cost > 1010000 + cost || rate * cost < 990000 - cost) exit
	printf "%s.total_time_sec %.17g\n", name, total
	printf "%s.usecs_per_op %.17g\n", name, cost
	printf "%s.ops_per_sec %.17g\n", name, rate
}
