# hackbench's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v iterations=N is the expected number of times. Prints nothing if one is missing, or if several instances ran.
/^[ \t]*Instance: / { instances++ }
/^[ \t]*Running in .* tasks\)[ \t]*$/ { tasks = $(NF - 1); sub(/.*==[ \t]*/, "", tasks); begun++; next }
/^[ \t]*Each sender will pass / { size = $5 * $8; next }
/^[ \t]*Time: [0-9.]+[ \t]*$/ {
	time = $2 + 0
	total += time
	if (!count || time < best) best = time
	if (!count || time > worst) worst = time
	count++
}
/^signaling .* worker threads to terminate|longjmp| \(error: .*\)|failed|^(Killed|Terminated|Aborted|Segmentation fault)/ { ended = 1 }
END {
	kb = int(tasks * size / 1024)
	if (!count || ended || count < begun || instances > 1 || best <= 0 || kb < 1 || (iterations != "" && count != iterations)) exit
	printf "throughput %.17g\n", kb / best
	printf "throughput_avg %.2f\n", kb / (total / count)
	printf "throughput_worst %.17g\n", kb / worst
}
