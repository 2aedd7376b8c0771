# stress-ng's table of metrics as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v test=NAME is the expected stressor and -v ops=N their number. Prints nothing unless there is exactly one table and one row.
{ sub(/[ \t\r]+$/, "") }
!/^stress-ng: (info|metrc):  ?\[[0-9]+\] / { next }
{
	sub(/^stress-ng: (info|metrc):  ?\[[0-9]+\] /, "")
	units = $0 ~ /^ +\(secs\) +\(secs\) +\(secs\) +\(real time\) +\(usr\+sys time\)( instance \(%\))?( +\(KB\))?$/
	more = 7 + ($0 ~ /\(%\)/) + ($0 ~ /\(KB\)/)
	if (units && headed == more) {
		tables++
		columns = more
	}
	headed = 0
	if ($0 ~ /^stressor +bogo ops real time +usr time +sys time +bogo ops\/s +bogo ops\/s( CPU used per)?( +RSS Max)?$/)
		headed = 7 + ($0 ~ /CPU used per/) + ($0 ~ /RSS Max$/)
}
/^[a-z][a-z0-9-]* +[0-9]+ +[0-9]+\.[0-9][0-9] +[0-9]+\.[0-9][0-9] +[0-9]+\.[0-9][0-9] +[0-9]+\.[0-9][0-9] +[0-9]+\.[0-9][0-9]( +[0-9]+\.[0-9][0-9])?( +[0-9]+)?$/ {
	rows++
	name = $1
	done = $2
	rate = $6
	real = $3
	fields = NF
}
/^metrics[ -]untrustworthy: [1-9]/ { untrusted = 1 }
END {
	if (tables != 1 || rows != 1 || fields != columns || untrusted || done == 0 || rate == 0 || (test != "" && name != test)) exit
	if (ops != "" && done < ops + 0) exit
	printf "%s.ops %.17g\n", name, done
	printf "%s.ops_per_sec %.17g\n", name, rate
	if (rate < 10 && real >= 1) printf "%s.seconds_per_op %.17g\n", name, real / done
}
