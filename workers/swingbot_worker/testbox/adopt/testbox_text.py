"""Write the testbox file of a machine, and list what a person has to fill in. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swingbot_jobs.testbox.ssh import Console, Power, SshDriver
from swingbot_worker.testbox.adopt.find_console import DEVICES, ConsoleSearch
from swingbot_worker.testbox.adopt.kernel_proposal import QUIET, KernelProposal, option_of
from swingbot_worker.testbox.adopt.survey import MachineSurvey

BOOT_SECONDS: Final = 120
_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9/_.+-]*(?: [A-Za-z0-9/_.+-]+)*")
# Words that YAML 1.1 reads as something other than text.
_WORDS: Final = {"on", "off", "yes", "no", "true", "false", "null", "y", "n"}
_NOISE: Final = re.compile(r"\((?:R|TM)\)|\bCPU\b|\bProcessor\b|\b[0-9]+-Core\b|@.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bmc:
    """How the controller reaches the BMC of the machine."""

    address: str
    user: str
    password_file: str

    @property
    def _words(self) -> tuple[str, ...]:
        reach = ("-I", "lanplus", "-H", self.address, "-U", self.user, "-f", self.password_file)
        return ("ipmitool", *reach)

    @property
    def power(self) -> Power:
        def switch(what: str) -> tuple[str, ...]:
            return (*self._words, "chassis", "power", what)

        return Power(on=switch("on"), cycle=switch("cycle"), status=switch("status"))

    @property
    def console(self) -> Console:
        """Serial-over-LAN. ipmitool wants a terminal, which script gives it."""
        activate = shlex.join((*self._words, "sol", "activate"))
        return Console(
            command=("script", "-q", "-f", "-c", activate, "/dev/null"),
            end=(*self._words, "sol", "deactivate"),
        )

    @property
    def inventory(self) -> tuple[str, ...]:
        ask = shlex.join(self._words)
        return ("sh", "-c", f"{ask} mc info && {ask} fru print")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What is known of a machine when its file is written.

    `power_trouble`: why the power switch of the BMC could not be asked; empty if it answered.
    """

    name: str
    driver: SshDriver
    survey: MachineSurvey
    kernel: KernelProposal
    without: tuple[str, ...]
    tuned: bool  # there is a tuning list `quiet`
    bmc: Bmc | None
    power_trouble: str
    search: ConsoleSearch

    @property
    def model(self) -> str:
        """The processor without its maker's ornaments, else the product."""
        name = " ".join(_NOISE.sub(" ", self.survey.text("cpu_model")).split())
        return (name or self.survey.text("product") or "unknown")[:100]

    @property
    def group(self) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", self.model.lower()).strip("-")
        return f"{slug[:48] or 'unknown'}-{self.survey.number('nr_socket') or 1}s"

    @property
    def line(self) -> str:
        """The serial line of the console, else that of the idle system; empty if there is none."""
        found = self.search.found
        if found is None:
            return self.survey.console if self.bmc else ""
        return found.line or (self.survey.console if found.kernel else "")

    @property
    def console_word(self) -> str:
        """What names the line on a command line; empty if there is none."""
        options = self.survey.options(self.line)
        return f"console={self.line}{f',{options}' if options else ''}" if self.line else ""

    @property
    def console(self) -> Console | None:
        found = self.search.found
        if found is not None:
            return found.console
        return self.bmc.console if self.bmc else None


def text_of(adoption: Adoption) -> str:
    """Return the testbox file: equal machines and options give equal text."""
    survey = adoption.survey
    named = adoption.console_word
    lines = [
        f"# Written by `swingbot-worker adopt` from what the idle system of {adoption.name} said.",
        f"name: {_scalar(adoption.name)}",
        f"tbox_group: {_scalar(adoption.group)}  # machines of one group are the same hardware",
        "driver: ssh",
        f"description: {_scalar(_described(survey))}",
        f"model: {_scalar(adoption.model)}",
        f"nr_cpu: {survey.number('nr_cpu')}",
        f"nr_node: {max(survey.number('nr_node'), 1)}",
        f"memory_mb: {survey.number('memory_kb') // 1024}",
        "label: bare metal",
        f"boot_seconds: {BOOT_SECONDS}  # from leaving the idle system to the job; its own boots"
        " replace this",
        *([f"cmdline: {_scalar(f'console=tty0 {named}')}"] if named else []),
        *([f"kconfig: {adoption.kernel.kconfig}"] if adoption.kernel.kconfig else []),
        *([f"tuning: {QUIET}"] if adoption.tuned else []),
        *(
            [f"tuning_without: {_flow(adoption.without)}  # facts that this machine does not have"]
            if adoption.tuned and adoption.without
            else []
        ),
        "ssh:",
        *(f"  {line}" for line in _ssh(adoption)),
    ]
    return "\n".join(lines) + "\n"


def _ssh(adoption: Adoption) -> list[str]:
    driver, console = adoption.driver, adoption.console
    lines = [f"host: {_scalar(driver.host)}"]
    lines += [f"port: {driver.port}"] if driver.port != 22 else []
    lines += [
        f"key: {_scalar(driver.key)}",
        f"known_hosts: {_scalar(driver.known_hosts)}",
        "enter: kexec",
    ]
    needed = []
    if console is None:
        lines += ["console: none", "results: network"]
        needed = [option_of(card) for card in [adoption.survey.card_driver] if card]
    elif console.device:
        lines += [f"console: {{device: {_scalar(console.device)}, baud: {console.baud}}}"]
    else:
        lines += ["console:", f"  command: {_flow(console.command)}"]
        lines += [f"  end: {_flow(console.end)}"] if console.end else []
    if adoption.line.startswith("ttyS"):
        needed.append("SERIAL_8250_CONSOLE")
    if adoption.bmc is None:
        lines.append("power: none")
    else:
        power = adoption.bmc.power
        lines += ["power:", f'  "on": {_flow(power.on)}', f"  cycle: {_flow(power.cycle)}"]
        lines.append(f"  status: {_flow(power.status)}")
        lines.append(f"inventory: {_flow(adoption.bmc.inventory)}")
    return [*lines, *([f"kconfig_needed: {_flow(needed)}"] if needed else [])]


def _described(survey: MachineSurvey) -> str:
    sockets, threads = survey.number("nr_socket") or 1, survey.number("threads_per_core") or 1
    cores = max(survey.number("nr_cpu") // (sockets * threads), 1)
    parts = [
        survey.text("product"),
        f"sockets x cores x threads {sockets}x{cores}x{threads}",
        f"microcode {survey.text('microcode')}" if survey.text("microcode") else "",
        f"firmware {survey.text('bios_version')}" if survey.text("bios_version") else "",
        f"memory {survey.home.dimms}" if survey.home.dimms else "",
        f"disks {survey.text('disk_model')}" if survey.text("disk_model") else "",
        f"cards {survey.text('nic_driver')}" if survey.text("nic_driver") else "",
    ]
    return "; ".join(filter(None, parts))[:600]


def to_do(adoption: Adoption) -> list[str]:
    """Return what a person has to do or decide, each in one sentence."""
    survey, kernel = adoption.survey, adoption.kernel
    sentences = [*_about_bmc(adoption), *_about_console(adoption)]
    present = survey.home.number("present") or 0
    if present > survey.number("nr_cpu"):
        sentences.append(
            f"{survey.number('nr_cpu')} of {present} CPUs are online in the idle system: set nr_cpu"
            " if kernels under test have more (nosmt or maxcpus of the idle system, smt)."
        )
    if not kernel.kconfig:
        sentences.append(
            f"There is no kernel configuration server-{survey.home['machine']}: set kconfig to one"
            " for this machine."
        )
    for name, option in kernel.lacking:
        sentences.append(
            f"No configuration names CONFIG_{option} for the driver {name}: put it into a"
            " fragment in workers/kconfig/fragments/ and add that to kconfig, if disks or results"
            " need it."
        )
    if adoption.tuned and survey.text("clocksource") not in ("", "tsc"):
        sentences.append(
            f"The idle system has the clock source {survey.text('clocksource')}, and the list"
            f" {QUIET} demands tsc: see why its kernel rejected it (dmesg | grep -i tsc), or add"
            " clocksource to tuning_without."
        )
    return [
        *sentences,
        f"Check that tbox_group ({adoption.group}) is shared only by identical machines.",
    ]


def _about_bmc(adoption: Adoption) -> list[str]:
    bmc, home = adoption.bmc, adoption.survey.home
    if bmc is not None:
        if not adoption.power_trouble:
            return []
        return [
            f"Power and console by the BMC {bmc.address} are not proven"
            f" ({adoption.power_trouble.rstrip('.')}): the BMC must be that of this machine, and"
            f" {bmc.password_file} must hold the password of its user {bmc.user}, with mode 600."
        ]
    if home["bmc_device"] and not home["bmc_tool"]:
        return [
            "The machine has a BMC, but no ipmitool to ask its address: install ipmitool there,"
            " or give --bmc ADDRESS."
        ]
    return [
        "No BMC was found: set ssh.power to the commands of its power switch, or give"
        " --bmc ADDRESS."
    ]


def _about_console(adoption: Adoption) -> list[str]:
    search = adoption.search
    if search.held:
        end = f" ({shlex.join(adoption.bmc.console.end)})" if adoption.bmc else ""
        return [
            f"A console is held by another session ({search.held}): end it{end}, and run this"
            " again."
        ]
    if search.found is None:
        written = ", ".join(adoption.survey.lines) or "the kernel's console"
        why = (
            f"None of {search.tried} consoles showed what was written to {written}: look at the"
            " cable, and at the firmware's serial redirection"
            if search.tried
            else "There was no console to try: no BMC that answers, and no serial line of this"
            f" controller in {DEVICES} that is free"
        )
        kept = "set ssh.console"
        if adoption.bmc:
            kept = "ssh.console and cmdline are guesses"
            kept += "" if adoption.line else ": cmdline must name the line (console=ttyS1,115200n8)"
        return [f"{why}; {kept}. Or run this again with --console COMMAND.", *_about_card(adoption)]
    if not adoption.line:
        return [
            "The console shows the kernel's messages, but not on which line: add"
            " console=<line>,<baud> to cmdline."
        ]
    if not search.found.kernel:
        return [
            f"{adoption.line} reaches the console, but the idle system's messages do not: add"
            f" console=tty0 {adoption.console_word} to its command line (with Ansible,"
            f" swingbot_testbox__console: {adoption.line}), and reboot it."
        ]
    return []


def _about_card(adoption: Adoption) -> list[str]:
    """Without a console results leave over the card."""
    if adoption.console is not None or adoption.survey.card_driver:
        return []
    return [
        "Without a console results leave over the network, and the driver of its card is not"
        " known: list its option in ssh.kconfig_needed (see ethtool -i)."
    ]


def _scalar(value: str) -> str:
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return value if plain else json.dumps(value, ensure_ascii=False)


def _flow(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, words))}]"
