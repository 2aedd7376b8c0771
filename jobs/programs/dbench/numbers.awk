# dbench's last line as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v nr_threads=N is the expected number of clients. Prints nothing unless there is exactly one result.
/^Throughput [0-9]+(\.[0-9]+)? MB\/sec  ?[0-9]+ clients  ?[0-9]+ procs  ?max_latency=[0-9]+\.[0-9][0-9][0-9] ms[ \t\r]*$/ {
	found++
	rate = $2
	clients = $4
	procs = $6
	latency = substr($8, index($8, "=") + 1)
}
END {
	if (found != 1 || rate == 0 || (nr_threads != "" && clients != nr_threads)) exit
	printf "throughput_MB/s %.17g\nmax_latency %.17g\nclients %.17g\nprocs %.17g\n", rate, latency, clients, procs
}
