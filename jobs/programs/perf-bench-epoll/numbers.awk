# perf bench epoll as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v test=NAME, -v nr_task=N and -v nr_fds=N are the job's. Prints nothing unless there is exactly one result.
{ sub(/^[ \t]+/, ""); sub(/[ \t\r]+$/, "") }
/^Run summary \[PID [0-9]+\]: [0-9]+ threads (monitoring on|doing epoll_ctl ops) [0-9]+ file-descriptors for [0-9]+ secs\.$/ {
	begun++
	threads = $5
	seconds = $(NF - 1)
	waits = $7 == "monitoring"
	fds = waits ? $9 : $10
}
/^Averaged [0-9]+ operations\/sec \(\+- ?[0-9]+\.[0-9]+%\), total secs = [0-9]+$/ {
	rates++
	rate = $2
	match($0, /[0-9]+\.[0-9]+%/)
	spread = substr($0, RSTART, RLENGTH - 1)
}
/^Averaged [0-9]+ (ADD|MOD|DEL) operations \(\+- ?[0-9]+\.[0-9]+%\)$/ {
	calls++
	seen[$3] = 1
	sum += $2
	if ($2 == 0) bad = 1
	match($0, /[0-9]+\.[0-9]+%/)
	one = substr($0, RSTART, RLENGTH - 1) + 0
	if (one > worst) worst = one
}
END {
	if (begun != 1 || seconds < 1 || bad) exit
	if (nr_task != "" && nr_task != threads) exit
	if (nr_fds != "" && nr_fds != fds) exit
	if (waits) {
		if (rates != 1 || calls || rate == 0 || (test != "" && test != "wait")) exit
		printf "ops/s %.17g\nstddev%% %.17g\n", rate, spread
	} else {
		if (rates || calls != 3 || !("ADD" in seen) || !("MOD" in seen) || !("DEL" in seen) || (test != "" && test != "ctl")) exit
		printf "ctl_ops/s %.17g\nstddev%% %.17g\n", sum / seconds, worst
	}
}
