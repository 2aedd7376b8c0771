# memcg's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v groups=N and -v pages=N are what the job asks for. Prints nothing unless there is exactly one complete result of it.
/^[ \t]*memcg: groups=[0-9]+ pages=[0-9]+ charged_bytes=[0-9]+ charge_seconds=[0-9]+\.[0-9]+ create_seconds=[0-9]+\.[0-9]+ create_p99_ns=[0-9]+ remove_seconds=[0-9]+\.[0-9]+ remove_p99_ns=[0-9]+ release_seconds=[0-9]+\.[0-9]+ left=[0-9]+[ \t]*$/ {
	results++
	for (n = 2; n <= NF; n++) {
		at = index($n, "=")
		value[substr($n, 1, at - 1)] = substr($n, at + 1)
	}
}
END {
	done = value["groups"] + 0
	each = value["pages"] + 0
	if (results != 1 || done < 1 || each < 1) exit
	if (value["create_seconds"] + 0 <= 0 || value["remove_seconds"] + 0 <= 0 || value["charge_seconds"] + 0 <= 0) exit
	if ((groups != "" && done != groups + 0) || (pages != "" && each != pages + 0)) exit
	if (value["charged_bytes"] + 0 < done * each * 4096) exit
	printf "create_time %.17g\n", value["create_seconds"] / done * 1000000
	printf "remove_time %.17g\n", value["remove_seconds"] / done * 1000000
	printf "charge_time %.17g\n", value["charge_seconds"] / (done * each) * 1000000
	if (done >= 1000) printf "create_p99 %.17g\nremove_p99 %.17g\n", value["create_p99_ns"] / 1000, value["remove_p99_ns"] / 1000
	if (value["left"] + 0 == 0) printf "release_time %.17g\n", value["release_seconds"] * 1000
}
