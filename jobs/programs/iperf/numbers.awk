# The document of `iperf3 -J` as `metric value` lines: the same numbers as parse.py, in POSIX awk, for users without swingbot.
# -v sessions=N is the expected number of streams. Prints nothing unless there is exactly one whole document.
{ whole = $0 }
/^\t"end":/ { end = 1 }
/^\t"error":/ { bad = 1 }
end && /^\t\t\t\t"sender":\t\{/ { streams++ }
/^\t\t"[a-z_]+":/ { name = $1 }
end && /^\t\t\t"bits_per_second":\t[0-9.e+]+,?$/ {
	value = $2
	sub(/,$/, "", value)
	if (name ~ /sum_sent/) { sent = value; sents++ }
	if (name ~ /sum_received/) { received = value; receiveds++ }
}
END {
	if (whole != "}" || bad || sents != 1 || receiveds != 1 || sent <= 0 || received <= 0) exit
	if (sessions != "" && streams != sessions) exit
	printf "tcp.sender.bps %.17g\ntcp.receiver.bps %.17g\n", sent, received
}
