# perf bench sched pipe's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v loops=N is the expected number of rounds. Prints nothing unless there is exactly one result.
/^# Executed [0-9,]+ pipe operations between two (processes|threads)[ \t]*$/ { begun++; done = $3; gsub(/,/, "", done) }
/^[ \t]*[0-9][0-9,]* ops\/sec[ \t]*$/ { rates++; rate = $1; gsub(/,/, "", rate) }
/^[ \t]*[0-9]+\.[0-9]+ usecs\/op[ \t]*$/ { costs++; cost = $1 }
END {
	if (begun != 1 || rates != 1 || costs != 1 || rate == 0 || (loops != "" && done != loops)) exit
	if (rate * cost > 1010000 + cost || rate * cost < 990000 - cost) exit
	printf "ops_per_sec %.17g\n", rate
}
