# Output of a will-it-scale program as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v nr_task=N -v mode=thread|process as in the program's call. Prints nothing unless there is exactly one average.
/Assertion .* failed|^(Killed|Terminated)/ { died = 1 }
/^[ \t]*average:[ \t]*[0-9.]+[ \t]*$/ { averages++; average = $0; sub(/^[ \t]*average:[ \t]*/, "", average); average += 0 }
END {
	tasks = nr_task ~ /^[0-9]+$/ ? nr_task + 0 : 1
	if (averages != 1 || died || tasks < 1 || average <= 0) exit
	printf "%s %d\n", mode == "thread" ? "per_thread_ops" : "per_process_ops", int(average / tasks)
	printf "workload %.17g\n", average
}
