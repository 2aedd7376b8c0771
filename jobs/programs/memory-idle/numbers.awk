# /proc/meminfo and `System RAM` of /proc/iomem as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without
# swingbot. Prints nothing unless the table is whole.
function hex(text, value, n) {
	value = 0
	for (n = 1; n <= length(text); n++) value = value * 16 + index("0123456789abcdef", substr(text, n, 1)) - 1
	return value
}
/^[^ \t]+:[ \t]+[0-9]+([ \t]+[A-Za-z]+)?[ \t]*$/ {
	name = $1
	sub(/:$/, "", name)
	if (!(name in kb)) kb[name] = $2
}
/System RAM/ { lines++ }
/^ *[0-9a-f]+-[0-9a-f]+ : System RAM$/ {
	split($1, range, "-")
	first[++ranges] = hex(range[1])
	last[ranges] = hex(range[2])
	there += last[ranges] - first[ranges] + 1
}
END {
	if (!("MemTotal" in kb) || !("MemFree" in kb) || !("Cached" in kb) || !("Buffers" in kb)) exit
	used = kb["MemTotal"] - kb["MemFree"] - kb["Cached"] - kb["Buffers"]
	if (used <= 0) exit
	printf "used %.17g\n", used * 1024
	if (ranges < lines) there = 0
	for (one = 1; one < ranges; one++)
		for (other = one + 1; other <= ranges; other++)
			if (first[one] <= last[other] && first[other] <= last[one]) there = 0
	if (there - kb["MemTotal"] * 1024 > 0) printf "reserved %.17g\n", there - kb["MemTotal"] * 1024
	if ("Slab" in kb) printf "slab %.17g\n", kb["Slab"] * 1024
	if ("Percpu" in kb) printf "percpu %.17g\n", kb["Percpu"] * 1024
	if ("PageTables" in kb) printf "page_tables %.17g\n", kb["PageTables"] * 1024
	if ("KernelStack" in kb) printf "kernel_stack %.17g\n", kb["KernelStack"] * 1024
}
