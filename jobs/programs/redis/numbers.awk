# `redis-benchmark --csv` as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v test=LIST and -v requests=N are the job's. Prints nothing unless each test has exactly one row.
{ sub(/[ \t\r]+$/, "") }
$0 == "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"" { named++ }
/^"/ { of_table++ }
/^"(SET|GET|LPUSH|LPOP)"(,"[0-9]+\.[0-9][0-9][0-9]?")+$/ {
	line = $0
	gsub(/"/, "", line)
	columns = split(line, column, ",")
	if (columns != 2 && columns != 8) next
	name = column[1]
	if (name in rate) bad = 1
	found++
	order[found] = name
	rate[name] = column[2]
	if (column[2] <= 0) bad = 1
	wide[name] = columns == 8
	middle[name] = column[5]
	slow[name] = column[7]
}
END {
	if (test != "") {
		count = split(toupper(test), asked, ",")
		if (count != found) exit
		for (i = 1; i <= count; i++) if (!(asked[i] in rate)) exit
	}
	for (i = 1; i <= found; i++) if (wide[order[i]] != (named > 0)) bad = 1
	if (bad || !found || of_table != found + named) exit
	for (i = 1; i <= found; i++) {
		name = order[i]
		lower = tolower(name)
		metric = name
		if (name == "SET" || name == "GET") metric = lower "_total_throughput_rps"
		printf "%s %.17g\n", metric, rate[name]
		if (!named) continue
		printf "%s_p50_ms %.17g\n", lower, middle[name]
		if (requests != "" && requests >= 1000) printf "%s_p99_ms %.17g\n", lower, slow[name]
	}
}
