"""What the two boxes of a cluster run instead of the usual script: the same facts and runs, with a
wire and an understanding about who does what when.

Both bring up their card. The server then waits for the client's word on a port of the wire: `serve
UNIT_JOB NUMBER` makes it begin afresh for that run, as on one box where each run has a server of
its own; `bye` ends it. The client says so before each run, outside of the run's time. Neither
starts anything while a run is timed: the server sleeps in `read`, but for a line on its console now
and then. Pure; variables of ours begin with sb_.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import ClusterDriver
from swingbot_jobs.testbox.wire import CLIENT, SERVER
from swingbot_worker import runner
from swingbot_worker.rootfs import cpio
from swingbot_worker.runner.facts import held

PORT: Final = 1001
# A real link negotiates for some seconds.
CARRIER_SECONDS: Final = 30
# A server that was reached before is back after a run within this.
AGAIN_SECONDS: Final = 60
# Between two signs of life of a box that waits.
BEAT_SECONDS: Final = 15
# the fact that says why the wire could not be used; its first word is one of these
TROUBLE: Final = "wire_trouble"
CARD, CARRIER, SILENCE, PROGRAM = "card", "carrier", "silence", "program"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeTerms:
    """What both ends have to agree on.

    `wait`: seconds from one box being ready until the other one is, at most.
    """

    token: str
    wait: int


def entries(
    role: str,
    driver: ClusterDriver,
    jobs: Sequence[UnitJob],
    read: Callable[[str], bytes],
    words: HandshakeTerms,
) -> list[cpio.Entry]:
    """The job files of one node, its script first; `read` gives a file of `jobs/programs` by its
    path.
    """
    programs = sorted({job.program for job in jobs})
    if role == SERVER:
        files = [
            cpio.file(f"job/programs/{name}/serve", read(f"{name}/serve"), executable=True)
            for name in programs
        ]
        answer = _filled(_ANSWER, {"TOKEN": shlex.quote(words.token)})
        return [
            _script(_server(driver, jobs, words)),
            cpio.file("job/wire/answer", answer.encode(), executable=True),
            *files,
        ]
    files = [
        cpio.file(f"job/programs/{name}/run", read(f"{name}/client"), executable=True)
        for name in programs
    ]
    monitors = sorted({name for job in jobs for name in job.monitors})
    watching = [
        cpio.file(f"job/programs/{name}/run", read(f"{name}/run"), executable=True)
        for name in monitors
    ]
    return [_script(_client(driver, jobs, words)), *files, *watching]


def _script(text: str) -> cpio.Entry:
    return cpio.file("job/run.sh", text.encode(), executable=True)


def _client(driver: ClusterDriver, jobs: Sequence[UnitJob], words: HandshakeTerms) -> str:
    there = {"server": driver.address(SERVER), "server6": driver.address(SERVER, "ipv6")}
    more = _wire(driver, CLIENT, words) + _filled(
        _CLIENT, {"SERVER": there["server"], "WAIT": str(words.wait), "AGAIN": str(AGAIN_SECONDS)}
    )
    runs = "\n".join(line for job in jobs for line in runner.lines(job, _served(job, there)))
    return runner.framed(
        jobs, more, f"probe_monitors\nwire_up && find_server\n{runs}\nfarewell", alone=True
    )


def _served(job: UnitJob, there: Mapping[str, str]) -> Callable[[int], str]:
    """The line of one run, once the server is ready for it."""
    line_of, name = runner.run_of(job, there), shlex.quote(job.name)
    return lambda number: (
        f"if served {name} {number}; then\n{line_of(number)}\nelse\nnot_served {name} {number}\nfi"
    )


def _server(driver: ClusterDriver, jobs: Sequence[UnitJob], words: HandshakeTerms) -> str:
    longest = max(
        (runner.limit_of(job, monitor) for job in jobs for monitor in (None, *job.monitors)),
        default=0,
    )
    cases = "\n".join(_case(job) for job in jobs)
    silence = max(words.wait, longest + 2 * AGAIN_SECONDS)
    more = _wire(driver, SERVER, words) + _filled(
        _SERVER, {"CASES": cases, "SILENCE": str(silence), "BEAT": str(BEAT_SECONDS)}
    )
    return runner.framed(jobs, more, "wire_up && serve_all", alone=True)


def _case(job: UnitJob) -> str:
    params = " ".join(shlex.quote(f"{name}={value}") for name, value in sorted(job.params.items()))
    return "\n".join(
        (
            "\t" + shlex.quote(job.name) + ")",
            *(f"\t\t{line}" for line in held(job)),
            f"\t\tstart {job.program} {params}",
            "\t\t;;",
        )
    )


def _wire(driver: ClusterDriver, role: str, words: HandshakeTerms) -> str:
    values = {
        "CARD": driver.cards[role],
        "IPV4": driver.ipv4[role],
        "IPV6": driver.ipv6[role],
        "TOKEN": words.token,
    }
    plain = {"PORT": str(PORT), "CARRIER": str(CARRIER_SECONDS)}
    return _filled(_WIRE, {name: shlex.quote(value) for name, value in values.items()} | plain)


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


_WIRE: Final = r"""
sb_card=@CARD@
sb_ipv4=@IPV4@
sb_ipv6=@IPV6@
sb_token=@TOKEN@
sb_port=@PORT@
sb_trouble=

# say TEXT: on the console, where whoever drives us looks for signs of life
say() {
	echo "<2>swingbot: $*" >/dev/kmsg
}

# trouble WORD...: why the wire cannot be used; the first reason is told
trouble() {
	[ -n "$sb_trouble" ] || {
		sb_trouble=$*
		fact wire_trouble "$sb_trouble"
		say "wire: $sb_trouble"
	}
}

carrier() {
	[ "$(cat "/sys/class/net/$sb_wire/carrier" 2>/dev/null)" = 1 ]
}

# wire_up: our card gets its addresses, and has a carrier
wire_up() {
	sb_wire=
	for sb_file in /sys/class/net/*; do
		case $sb_card in
		"${sb_file##*/}" | "$(cat "$sb_file/address" 2>/dev/null)") sb_wire=${sb_file##*/} ;;
		esac
	done
	if [ -z "$sb_wire" ]; then
		trouble card "$sb_card"
		return 1
	fi
	fact wire_driver "$(sed -n 's/^DRIVER=//p' "/sys/class/net/$sb_wire/device/uevent" 2>/dev/null)"
	echo 0 >"/proc/sys/net/ipv6/conf/$sb_wire/accept_dad"
	ip link set "$sb_wire" up
	ip addr add "$sb_ipv4" dev "$sb_wire"
	ip -6 addr add "$sb_ipv6" dev "$sb_wire"
	sb_tries=0
	until carrier; do
		if [ "$sb_tries" -ge @CARRIER@ ]; then
			trouble carrier "$sb_wire"
			return 1
		fi
		sb_tries=$((sb_tries + 1))
		sleep 1
	done
	sb_tries=$(cat "/sys/class/net/$sb_wire/speed" 2>/dev/null)
	case $sb_tries in -*) ;; *) fact wire_speed_mbit "$sb_tries" ;; esac
} 2>/dev/null
"""

_CLIENT: Final = r"""
# ask WORD...: sb_said becomes what the server answers, nothing if it does not
ask() {
	sb_said=$(printf '%s\n' "$sb_token $*" | timeout 20 nc -w 5 @SERVER@ "$sb_port" 2>/dev/null)
}

# answers ANSWER SECONDS WORD...: ask until the server says ANSWER; not if it says that it cannot,
# or for so many seconds something else or nothing, or the wire has had no carrier for ten seconds
answers() {
	sb_answer=$1
	clock
	sb_until=$((sb_now + $2 * 100))
	sb_dark=$((sb_now + 1000))
	sb_beat=$((sb_now + 1000))
	shift 2
	while :; do
		ask "$@"
		case $sb_said in
		"$sb_answer") return 0 ;;
		cannot*)
			trouble program "$sb_said"
			return 1
			;;
		esac
		clock
		carrier && sb_dark=$((sb_now + 1000))
		if [ "$sb_now" -gt "$sb_dark" ]; then
			trouble carrier "$sb_wire"
			return 1
		fi
		if [ "$sb_now" -gt "$sb_until" ]; then
			trouble silence @SERVER@
			return 1
		fi
		[ "$sb_now" -lt "$sb_beat" ] || {
			sb_beat=$((sb_now + 1000))
			say waiting for the server
		}
		usleep 200000
	done
}

find_server() {
	answers waiting @WAIT@ state
}

# served UNIT_JOB NUMBER: whether the server is ready for this run
served() {
	[ -z "$sb_trouble" ] && answers ok @AGAIN@ serve "$1" "$2" && answers "serving $1 $2" @AGAIN@ state
}

# not_served UNIT_JOB NUMBER: this run was not made
not_served() {
	sb_at=$1/$2
	mkdir -p "$sb_at"
	echo 1 >"$sb_at/rc"
	: >"$sb_at/stdout"
	echo "the server of the cluster could not be used: $sb_trouble" >"$sb_at/stderr"
	send "$sb_at"
	rm -rf "${sb_at%/*}"
}

# farewell: the server need not wait any more
farewell() {
	[ -n "$sb_trouble" ] || ask bye
	[ -z "$sb_wire" ] || carrier || trouble carrier "$sb_wire"
}
"""

_SERVER: Final = r"""
# start PROGRAM NAME=VALUE...: what the client asks of this program is answered when this returns
start() {
	sb_serve=$sb_programs/$1/serve
	shift
	timeout -s KILL 30 env "$@" "$sb_serve" >serve.log 2>&1 </dev/null 3>&- 5>&- || sb_cannot="cannot serve: $(tail -n 1 serve.log | cut -c 1-200)"
}

# serve UNIT_JOB NUMBER: afresh, for one run; nothing of the last one lives on
serve() {
	sweep
	put_back
	sb_cannot=
	case $1 in
@CASES@
	*) sb_cannot="cannot serve $1: there is no such job" ;;
	esac
	echo "${sb_cannot:-serving $1 $2}" >state
	listen
}

listen() {
	nc -ll -p "$sb_port" -e /job/wire/answer >/dev/null 2>&1 </dev/null 3>&- 5>&- &
}

serve_all() {
	mkfifo asked
	exec 5<>asked
	echo waiting >state
	listen
	clock
	sb_last=$sb_now
	while :; do
		sb_verb=
		# shellcheck disable=SC3045 # busybox has it
		read -r -t @BEAT@ sb_verb sb_job sb_number <&5
		clock
		case $sb_verb in
		serve) serve "$sb_job" "$sb_number" ;;
		bye) break ;;
		*)
			say beat
			[ $((sb_now - sb_last)) -lt @SILENCE@00 ] || {
				if carrier; then trouble silence "of the client"; else trouble carrier "$sb_wire"; fi
				break
			}
			;;
		esac
		[ -z "$sb_verb" ] || sb_last=$sb_now
	done
	exec 5>&-
	sweep
	put_back
	carrier || trouble carrier "$sb_wire"
}
command -v put_back >/dev/null || put_back() {
	:
}
"""

# Started for each connection, with the connection as its input and output.
_ANSWER: Final = r"""#!/bin/busybox sh
# shellcheck shell=dash
# Generated by swingbot_worker.testbox.cluster: one word of the client, for whoever knows this
# boot's token.
cd "${SWINGBOT_WORK:-/run/swingbot}" || exit 1
# shellcheck disable=SC3045 # busybox has it
read -r -t 20 token word rest || exit 1
[ "$token" = @TOKEN@ ] || exit 1
case $word in
state) cat state ;;
serve | bye)
	echo ok
	echo "$word $rest" >asked
	;;
esac
"""
