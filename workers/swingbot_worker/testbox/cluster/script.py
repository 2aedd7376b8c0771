"""Job scripts of the two nodes of a cluster. Pure.

They send the same facts and runs as the script of a single testbox, and synchronize over the wire.

Both nodes bring up their network card. The server then waits for requests of the client on a TCP
port: `serve UNIT_JOB NUMBER` restarts its program for that run, because on a single testbox each
run has its own server too; `bye` stops the server. The client sends the request before each run,
outside of the measured time. Neither node starts a process during a run: the server sleeps in
`read` and only prints an occasional line on its console. Shell variables begin with sb_.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot_jobs.contract.deadline import run_limit
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import ClusterDriver
from swingbot_jobs.testbox.wire import CLIENT, SERVER
from swingbot_worker import runner
from swingbot_worker.rootfs import cpio
from swingbot_worker.runner.fact_script import held

PORT: Final = 1001
# Maximum time for link negotiation, which takes some seconds on real hardware.
CARRIER_SECONDS: Final = 30
# Maximum time until a server that has answered before is ready for the next run.
AGAIN_SECONDS: Final = 60
# Interval of the heartbeat of a waiting node.
BEAT_SECONDS: Final = 15
# Fact that explains why the wire could not be used. Its first word is one of the keywords below.
TROUBLE: Final = "wire_trouble"
CARD, CARRIER, SILENCE, PROGRAM = "card", "carrier", "silence", "program"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeTerms:
    """Parameters that both nodes share.

    `wait`: maximum seconds from one node being ready until the other one is.
    """

    token: str
    wait: int


def entries(
    role: str,
    driver: ClusterDriver,
    jobs: Sequence[UnitJob],
    read: Callable[[str], bytes],
    terms: HandshakeTerms,
) -> list[cpio.Entry]:
    """Return the job files of one node, its script first.

    `read` returns the contents of a file of `jobs/programs` by its path.
    """
    programs = sorted({job.program for job in jobs})
    if role == SERVER:
        files = [
            cpio.file(f"job/programs/{name}/serve", read(f"{name}/serve"), executable=True)
            for name in programs
        ]
        answer = _filled(_ANSWER, {"TOKEN": shlex.quote(terms.token)})
        return [
            _script(_server(driver, jobs, terms)),
            cpio.file("job/wire/answer", answer.encode(), executable=True),
            *files,
        ]
    files = [
        cpio.file(f"job/programs/{name}/run", read(f"{name}/client"), executable=True)
        for name in programs
    ]
    monitors = sorted({name for job in jobs for name in job.monitors})
    monitor_files = [
        cpio.file(f"job/programs/{name}/run", read(f"{name}/run"), executable=True)
        for name in monitors
    ]
    return [_script(_client(driver, jobs, terms)), *files, *monitor_files]


def _script(text: str) -> cpio.Entry:
    return cpio.file("job/run.sh", text.encode(), executable=True)


def _client(driver: ClusterDriver, jobs: Sequence[UnitJob], terms: HandshakeTerms) -> str:
    addresses = {"server": driver.address(SERVER), "server6": driver.address(SERVER, "ipv6")}
    more = _wire(driver, CLIENT, terms) + _filled(
        _CLIENT,
        {"SERVER": addresses["server"], "WAIT": str(terms.wait), "AGAIN": str(AGAIN_SECONDS)},
    )
    runs = "\n".join(line for job in jobs for line in runner.lines(job, _served(job, addresses)))
    return runner.framed(
        jobs, more, f"probe_monitors\nwire_up && find_server\n{runs}\nfarewell", alone=True
    )


def _served(job: UnitJob, addresses: Mapping[str, str]) -> Callable[[int], str]:
    """Return a function from the run number to the lines that wait for the server and run it."""
    line_of, name = runner.run_of(job, addresses), shlex.quote(job.name)
    return lambda number: (
        f"if served {name} {number}; then\n{line_of(number)}\nelse\nnot_served {name} {number}\nfi"
    )


def _server(driver: ClusterDriver, jobs: Sequence[UnitJob], terms: HandshakeTerms) -> str:
    longest = max(
        (run_limit(job, monitor) for job in jobs for monitor in (None, *job.monitors)),
        default=0,
    )
    cases = "\n".join(_case(job) for job in jobs)
    silence = max(terms.wait, longest + 2 * AGAIN_SECONDS)
    more = _wire(driver, SERVER, terms) + _filled(
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


def _wire(driver: ClusterDriver, role: str, terms: HandshakeTerms) -> str:
    values = {
        "CARD": driver.cards[role],
        "IPV4": driver.ipv4[role],
        "IPV6": driver.ipv6[role],
        "TOKEN": terms.token,
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

# say TEXT: print on the console, where the driver expects a heartbeat
say() {
	echo "<2>swingbot: $*" >/dev/kmsg
}

# trouble WORD...: record why the wire cannot be used; only the first reason is reported
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

# wire_up: set the addresses of the network card and wait for its carrier
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
# ask WORD...: set sb_said to the answer of the server, empty if it does not answer
ask() {
	sb_said=$(printf '%s\n' "$sb_token $*" | timeout 20 nc -w 5 @SERVER@ "$sb_port" 2>/dev/null)
}

# answers ANSWER SECONDS WORD...: ask until the server answers ANSWER; fail if it answers "cannot",
# if ANSWER does not arrive within SECONDS, or if the carrier is lost for ten seconds
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

# served UNIT_JOB NUMBER: succeed once the server is ready for this run
served() {
	[ -z "$sb_trouble" ] && answers ok @AGAIN@ serve "$1" "$2" &&
		answers "serving $1 $2" @AGAIN@ state
}

# not_served UNIT_JOB NUMBER: send a failed run, because the server was not ready for it
not_served() {
	sb_at=$1/$2
	mkdir -p "$sb_at"
	echo 1 >"$sb_at/rc"
	: >"$sb_at/stdout"
	echo "the server of the cluster could not be used: $sb_trouble" >"$sb_at/stderr"
	send "$sb_at"
	rm -rf "${sb_at%/*}"
}

# farewell: stop the server
farewell() {
	[ -n "$sb_trouble" ] || ask bye
	[ -z "$sb_wire" ] || carrier || trouble carrier "$sb_wire"
}
"""

_SERVER: Final = r"""
# start PROGRAM NAME=VALUE...: start the server of PROGRAM; it accepts requests on return
start() {
	sb_serve=$sb_programs/$1/serve
	shift
	timeout -s KILL 30 env "$@" "$sb_serve" >serve.log 2>&1 </dev/null 3>&- 5>&- ||
		sb_cannot="cannot serve: $(tail -n 1 serve.log | cut -c 1-200)"
}

# serve UNIT_JOB NUMBER: stop all processes of the last run and start the server for this one
serve() {
	sweep
	put_back
	sb_cannot=
	case $1 in
@CASES@
	*) sb_cannot="cannot serve $1: the job does not exist" ;;
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
				if carrier; then
					trouble silence "of the client"
				else
					trouble carrier "$sb_wire"
				fi
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

# Runs for each connection, with the connection as stdin and stdout.
_ANSWER: Final = r"""#!/bin/busybox sh
# shellcheck shell=dash
# Generated by swingbot_worker.testbox.cluster: handles one request of a client that knows the token
# of this boot.
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
