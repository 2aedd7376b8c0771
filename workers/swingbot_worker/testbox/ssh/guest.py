"""What the kernel under test starts: PID 1 of a bare-metal testbox, and the words on the kernel's
command line. Pure.

It does what the virtual machine's does (workers/rootfs/init), but has neither a port for results
nor anyone who ends it: results wait in memory until the job is over and go out then, and the box
reboots itself. While the job runs nothing of ours does but a line on the console now and then,
printed by the shell itself without starting anything.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from swingbot_jobs.contract.settings import joined
from swingbot_jobs.testbox.definition import Testbox
from swingbot_worker.rootfs import cpio

INIT = "ssh/init"
WORD = "swingbot"
# Seconds between two signs of life on the console.
BEAT_SECONDS = 15
# What the results port waits for whoever fetches them.
SERVE_SECONDS = 180
# Characters of base64 in a line of results on the console.
LINE = 76
# Each line is printed this often: a console that shares its line with the kernel's own text loses
# some.
ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCard:
    """The network card that results leave by: its hardware address, and its address or `dhcp`."""

    mac: str
    address: str
    gateway: str = ""


def cmdline(box: Testbox, token: str, panic_seconds: int, delay_us: int, job: str = "") -> str:
    """The kernel's command line. `token` tells this boot from any other, in and out of the guest.

    The words of the `job` come last: of a parameter set twice, the kernel takes the last value.
    """
    ours = (
        *(f"{WORD}={token}", f"rdinit=/{INIT}", f"panic={panic_seconds}", "oops=panic"),
        *("printk.time=1", "printk.devkmsg=on", f"swingbot.delay_us={delay_us}"),
    )
    return joined(*ours, *shlex.split(box.cmdline), job)


def entries(
    token: str, secret: str, results: str, card: NetworkCard | None, port: int
) -> Sequence[cpio.Entry]:
    """The files that a bare-metal testbox gets beside the job: its init, and what this boot needs
    to know, which the command line need not show.
    """
    known = {"token": token, "secret": secret, "results": results, "port": str(port)}
    if card is not None:
        known |= {"mac": card.mac, "address": card.address, "gateway": card.gateway}
    told = "".join(f"{name}={shlex.quote(value)}\n" for name, value in known.items())
    filled = (
        _INIT.replace("@BEAT@", str(BEAT_SECONDS))
        .replace("@SERVE@", str(SERVE_SECONDS))
        .replace("@LINE@", str(LINE))
    )
    filled = filled.replace("@ROUNDS@", " ".join(str(number) for number in range(ROUNDS)))
    made = [
        cpio.file(INIT, filled.encode(), executable=True),
        cpio.file("ssh/boot", told.encode()),
        cpio.file("ssh/serve", _SERVE.encode(), executable=True),
    ]
    return [*made, cpio.file("ssh/lease", _LEASE.encode(), executable=True)]


_INIT = r"""#!/bin/busybox sh
# shellcheck shell=dash
# PID 1 of a bare-metal testbox under test: mounts, loopback, the order's delay, the job, the
# results, reboot.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
mount -t tmpfs -o size=64m results /run # a run that floods its output fills this, not memory
mkdir -p /out
mount -t tmpfs -o size=300m out /out

# shellcheck disable=SC1091 # made for this boot
. /ssh/boot
say() {
	echo "<2>swingbot: $token $*" >/dev/kmsg
}

ip link set lo up
ip addr add 127.0.0.2/32 dev lo # glibc leaves 127.0.0.1 out of account (AI_ADDRCONFIG): netperf -4 needs one more

delay=
# shellcheck disable=SC2013 # words are wanted
for word in $(cat /proc/cmdline); do
	case $word in swingbot.delay_us=*) delay=${word#*=} ;; esac
done
[ -z "$delay" ] || usleep "$delay"

mkfifo /ssh/never
exec 4<>/ssh/never # nobody writes: reading it with a limit is a pause that starts no process
: >/out/results.tar
say up
if [ ! -e /job/run.sh ]; then
	say no job
else
	trap : CHLD # ends the pause
	read -r last _ </proc/uptime
	sh /job/run.sh 3>>/out/results.tar 4<&- &
	job=$!
	while jobs >/dev/null && [ -d /proc/$job ]; do
		read -r -t 5 _ <&4
		read -r now _ </proc/uptime
		[ $((${now%.*} - ${last%.*})) -lt @BEAT@ ] || {
			say beat
			last=$now
		}
	done
	trap - CHLD
fi
size=$(stat -c %s /out/results.tar)
say "done $size"

over_console() {
	gzip -c /out/results.tar >/out/packed
	sum=$(sha256sum </out/packed)
	lines=$(base64 -w @LINE@ /out/packed | wc -l)
	for _ in @ROUNDS@; do
		echo "SB+$lines:${sum%% *}:"
		base64 -w @LINE@ /out/packed | awk '{ printf "SB:%05d:%s:\n", NR - 1, $0 }'
		echo "SB+$lines:${sum%% *}:"
	done >/dev/console
	sleep 2 # what stands in the line's buffer would not outlive the reboot
}

over_network() {
	card=
	for entry in /sys/class/net/*; do
		[ "$(cat "$entry/address")" != "$mac" ] || card=${entry##*/}
	done
	[ -n "$card" ] || {
		say "no card $mac"
		return
	}
	ip link set "$card" up
	if [ "$address" = dhcp ]; then
		udhcpc -i "$card" -n -q -t 10 -s /ssh/lease >/dev/null 2>&1 || say "no lease $card"
	else
		ip addr add "$address" dev "$card"
		[ -z "$gateway" ] || ip route add default via "$gateway"
	fi
	say "serving $card"
	nc -ll -p "$port" -e /ssh/serve 2>/dev/null &
	waited=0
	while [ ! -e /out/taken ] && [ "$waited" -lt @SERVE@ ]; do
		sleep 1
		waited=$((waited + 1))
		[ $((waited % @BEAT@)) != 0 ] || say beat
	done
}

case $results in
console) over_console ;;
*) over_network ;;
esac
say bye
reboot -f
"""

_SERVE = r"""#!/bin/busybox sh
# One connection: results for whoever knows this boot's secret.
. /ssh/boot
read -r -t 20 word || exit 1
[ "$word" = "$secret" ] || exit 1
echo "swingbot $token $(stat -c %s /out/results.tar)"
cat /out/results.tar
read -r -t 60 word && [ "$word" = taken ] && : >/out/taken
"""

_LEASE = r"""#!/bin/busybox sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/${mask:-24}" dev "$interface"
[ -z "$router" ] || ip route add default via "${router%% *}"
"""
