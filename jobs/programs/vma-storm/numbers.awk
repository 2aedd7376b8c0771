# vma-storm's output as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# Prints nothing unless there is exactly one complete result.
/^[ \t]*vma-storm: areas=[0-9]+ writers=[0-9]+ readers=[0-9]+ seconds=[0-9]+\.[0-9]+ maps=[0-9]+ reads=[0-9]+ lines=[0-9]+[ \t]*$/ {
	results++
	for (n = 2; n <= NF; n++) {
		at = index($n, "=")
		value[substr($n, 1, at - 1)] = substr($n, at + 1)
	}
}
END {
	seconds = value["seconds"] + 0
	if (results != 1 || seconds <= 0 || value["maps"] == 0 || value["reads"] == 0) exit
	if (areas != "" && areas != value["areas"]) exit
	if (nr_task != "" && nr_task != value["writers"]) exit
	if (readers != "" && readers != value["readers"]) exit
	printf "map_ops %.17g\n", value["maps"] / seconds
	printf "read_ops %.17g\n", value["reads"] / seconds
	printf "read_lines %.17g\n", value["lines"] / seconds
}
