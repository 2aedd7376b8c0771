# pgbench's summary and the log that `run` prints as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without
# swingbot. -v transactions=N and -v n_client=N are the job's. Prints nothing unless all transactions were made and are in the log.
{ sub(/^[ \t]+/, ""); sub(/[ \t\r]+$/, "") }
/^tps = [0-9]+\.[0-9]+ \((without initial connection time|excluding connections establishing)\)$/ {
	rates++
	tps = $3
}
/^number of transactions actually processed: [0-9]+\/[0-9]+$/ {
	results++
	split($NF, made, "/")
}
/^number of failed transactions: [0-9]+ / { failed += $5 }
/^latency [0-9]+ us [0-9]+$/ {
	if (n && $2 + 0 <= us[n]) bad = 1
	n++
	us[n] = $2 + 0
	count[n] = $4
	logged += $4
}
function percentile(percent, below, i) {
	below = 0
	for (i = 1; i <= n; i++) {
		below += count[i]
		if (below * 100 >= percent * made[1]) return us[i] / 1000
	}
}
END {
	if (rates != 1 || results != 1 || tps == 0 || made[1] != made[2] || failed || bad || logged != made[1]) exit
	if (transactions != "" && n_client != "" && made[2] != transactions * n_client) exit
	printf "tps %.17g\n", tps
	if (made[1] >= 20) printf "p50_ms %.17g\n", percentile(50)
	if (made[1] >= 1000) printf "p99_ms %.17g\n", percentile(99)
}
