# fio's JSON of one group as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v rw=KIND is what the job does. Prints nothing unless there is one whole group without errors that did it.
{ sub(/[ \t\r]+$/, ""); last = $0 }
/^      "jobname" : ".*",$/ { jobs++ }
/^      "error" : [0-9]+,$/ { errors++; if ($3 + 0) failed = 1 }
/^      "[a-z_A-Z0-9]+" : \{$/ { section = $1; gsub(/"/, "", section); inner = "" }
/^        "[a-z_A-Z0-9]+" : \{$/ { inner = $1 }
/^        "(bw|iops|total_ios)" : [0-9]+(\.[0-9]+)?,$/ && !((section, $1) in number) { number[section, $1] = $3 + 0 }
/^            "99\.000000" : [0-9]+,$/ && inner == "\"clat_ns\"" && !((section, "p99") in number) { number[section, "p99"] = $3 + 0 }
END {
	if (jobs != 1 || errors != 1 || failed || last != "}") exit
	for (n = split("read write", done, " "); n > 0; n--) {
		if (number[done[n], "\"bw\""] > 0 && number[done[n], "\"total_ios\""] > 0) continue
		if (rw == done[n] || rw == "rand" done[n] || rw == "rw" || rw == "randrw") exit
		done[n] = ""
	}
	for (n = 1; n <= 2; n++) {
		if (done[n] == "") continue
		printf "%s_bw_MBps %.17g\n", done[n], number[done[n], "\"bw\""] / 1024
		if (number[done[n], "\"iops\""] > 0) printf "%s_iops %.17g\n", done[n], number[done[n], "\"iops\""]
		if (number[done[n], "\"total_ios\""] >= 1000 && (done[n], "p99") in number)
			printf "%s_clat_99%%_ns %.17g\n", done[n], number[done[n], "p99"]
	}
}
