"""PID 1 of a bare-metal testbox under test, and the kernel command line that starts it. Pure.

This init does the same work as the init of virtual machines (workers/rootfs/init). However, it has
no port for results, and no host process ends it: it stores the results in memory until the job is
complete, sends them, and reboots the testbox. While the job runs, swingbot only prints an
occasional line on the console, with a shell builtin, so that no process is started.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from swingbot_jobs.contract.settings import joined
from swingbot_jobs.testbox.definition import Testbox
from swingbot_worker.rootfs import cpio
from swingbot_worker.testbox.ssh import packer

INIT = "ssh/init"
WORD = "swingbot"
# Interval of the heartbeat on the console, in seconds.
BEAT_SECONDS = 15
# Seconds for which the guest serves its results to the driver.
SERVE_SECONDS = 180
# Base64 characters per line of results on the console.
LINE = 76
# Number of times that each line is printed: kernel messages on the same console damage some lines.
ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCard:
    """Network card that sends the results: MAC address, and IP address with prefix or `dhcp`."""

    mac: str
    address: str
    gateway: str = ""


def cmdline(testbox: Testbox, token: str, panic_seconds: int, delay_us: int, job: str = "") -> str:
    """Return the kernel command line.

    `token` identifies this boot, inside and outside of the guest. The kernel reboots
    `panic_seconds` after a panic; the guest waits `delay_us` microseconds before the job. The
    parameters of the job come last, because the last value of a repeated parameter wins.
    """
    parameters = (
        *(f"{WORD}={token}", f"rdinit=/{INIT}", f"panic={panic_seconds}", "oops=panic"),
        *("printk.time=1", "printk.devkmsg=on", f"swingbot.delay_us={delay_us}"),
    )
    return joined(*parameters, *shlex.split(testbox.cmdline), job)


def entries(
    token: str, secret: str, results: str, card: NetworkCard | None, port: int
) -> Sequence[cpio.Entry]:
    """Return the additional files of a bare-metal testbox: its init and the settings of this boot.

    The settings are in a file because they include a secret, which the command line would show.
    """
    settings = {"token": token, "secret": secret, "results": results, "port": str(port)}
    if card is not None:
        settings |= {"mac": card.mac, "address": card.address, "gateway": card.gateway}
    boot_settings = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
    init = (
        _INIT.replace("@BEAT@", str(BEAT_SECONDS))
        .replace("@SERVE@", str(SERVE_SECONDS))
        .replace("@LINE@", str(LINE))
        .replace("@PACKER@", packer.DIRECTORY)
        .replace("@PRESET@", str(packer.PRESET))
    )
    init = init.replace("@ROUNDS@", " ".join(str(number) for number in range(ROUNDS)))
    return [
        cpio.file(INIT, init.encode(), executable=True),
        cpio.file("ssh/boot", boot_settings.encode()),
        cpio.file("ssh/serve", _SERVE.encode(), executable=True),
        cpio.file("ssh/lease", _LEASE.encode(), executable=True),
    ]


_INIT = r"""#!/bin/busybox sh
# shellcheck shell=dash
# PID 1 of a bare-metal testbox under test: mounts file systems, configures loopback, waits for the
# delay of the order, runs the job, sends the results, and reboots.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
mount -t tmpfs -o size=64m results /run # limits a run that floods its output
mkdir -p /out
mount -t tmpfs -o size=300m out /out

# shellcheck disable=SC1091 # generated for this boot
. /ssh/boot
say() {
	echo "<2>swingbot: $token $*" >/dev/kmsg
}

ip link set lo up
# AI_ADDRCONFIG of glibc ignores 127.0.0.1; netperf -4 needs another address.
ip addr add 127.0.0.2/32 dev lo

delay=
# shellcheck disable=SC2013 # splits words on purpose
for word in $(cat /proc/cmdline); do
	case $word in swingbot.delay_us=*) delay=${word#*=} ;; esac
done
[ -z "$delay" ] || usleep "$delay"

mkfifo /ssh/never
exec 4<>/ssh/never # has no writer: a read with a timeout is a pause that starts no process
: >/out/results.tar
say up
if [ ! -e /job/run.sh ]; then
	say no job
else
	trap : CHLD # interrupts the pause
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
	LD_LIBRARY_PATH=/@PACKER@ /@PACKER@/xz -@PRESET@ -c /out/results.tar >/out/packed ||
		gzip -c /out/results.tar >/out/packed # a small memory
	sum=$(sha256sum </out/packed)
	lines=$(base64 -w @LINE@ /out/packed | wc -l)
	for _ in @ROUNDS@; do
		echo "SB+$lines:${sum%% *}:"
		base64 -w @LINE@ /out/packed | awk '{ printf "SB:%06d:%s:\n", NR - 1, $0 }'
		echo "SB+$lines:${sum%% *}:"
	done >/dev/console
	sleep 2 # drain the serial buffer, which the reboot would discard
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
# Serves one connection: sends the results to a client that knows the secret of this boot.
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
