# time -p around make as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v units=N is the expected number of units. Prints nothing unless there is exactly one result.
/^[ \t]*units [0-9]+[ \t]*$/ { builds++; built = $2 }
/^[ \t]*real [0-9]+\.[0-9][0-9][ \t]*$/ { reals++; real = $2 }
/^[ \t]*user [0-9]+\.[0-9][0-9][ \t]*$/ { users++; user = $2 }
/^[ \t]*sys [0-9]+\.[0-9][0-9][ \t]*$/ { systems++; sys = $2 }
END {
	if (builds != 1 || reals != 1 || users != 1 || systems != 1 || real == 0 || (units != "" && built != units)) exit
	printf "buildtime_per_iteration %.17g\n", real
	printf "user_time_per_iteration %.17g\n", user
	printf "sys_time_per_iteration %.17g\n", sys
}
