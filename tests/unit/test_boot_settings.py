"""What a job sets for its boot: how it is written, what is refused, and what is sent."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.model.records import JobFile
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.settings import with_settings
from swingbot.core.stats.fact_differences import BootSettings, against, differences
from swingbot.service.ports import RequestError
from swingbot.service.ports.specs import Specs
from swingbot.service.watch.resolve_jobs import check_parts, refuse_long, resolve_parts
from swingbot_jobs import codec
from swingbot_jobs.contract import settings
from swingbot_jobs.contract.fact_sheet import facts_of, not_as_asked
from swingbot_jobs.contract.orders import SCHEMA_DIR
from swingbot_jobs.contract.settings import SettingError
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.contract.unit_job import UnitJob, cmdline_of, spec_sha256
from swingbot_jobs.language.expand import NominalTestbox, expand
from swingbot_jobs.language.job import JobError
from swingbot_jobs.language.lint import lint
from swingbot_jobs.reading.lkp import job_file
from swingbot_jobs.reading.result import Results
from swingbot_jobs.testbox.definition import ClusterDriver, Testbox, remembered
from swingbot_jobs.testbox.file import load, load_all
from swingbot_jobs.testbox.table import TestboxError
from swingbot_jobs.testbox.wire import ROLES
from swingbot_worker import runner
from swingbot_worker.readers.run_status import settings_read
from swingbot_worker.runner.fact_script import functions
from swingbot_worker.testbox.cluster import script as cluster
from swingbot_worker.testbox.qemu import argv
from swingbot_worker.testbox.ssh import guest
from tests.contract.labs import JOBS, played_lab
from tests.programs import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
NEVER = "transparent_hugepage=never"
QEMU = """\
name: box
tbox_group: boxes
driver: qemu
model: some VM
nr_cpu: 2
memory_mb: 512
qemu: {accel: tcg}
"""
COMMAND = QEMU.replace("driver: qemu", "driver: command").replace(
    "qemu: {accel: tcg}", "command: {argv: [boot]}"
)


def jobs(lines: str, **overrides: str) -> list[UnitJob]:
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    return expand(f"hackbench:\n{lines}", "jobs/j.yaml", NominalTestbox(), PROGRAMS, dotted)


def a_job(name: str = "a-job", **more: Any) -> UnitJob:
    return UnitJob(name=name, program="prints", params={}, runs=1, **more)


# --- the language


def test_words_and_sysctls_are_of_every_unit_job_and_of_no_name() -> None:
    text = (
        f"  ipc: [pipe, socket]\nkernel_cmdline: {NEVER}   nokaslr\nsysctl:\n  vm.swappiness: 10\n"
    )
    assert [(job.name, job.cmdline, job.sysctl) for job in jobs(text)] == [
        (name, f"{NEVER} nokaslr", {"vm.swappiness": "10"}) for name in ("j-pipe", "j-socket")
    ]


def test_a_later_document_has_settings_of_its_own() -> None:
    text = "kernel_cmdline: nosmt\nsysctl.vm.swappiness: 10\n"
    text += "---\nkernel_cmdline:\nhackbench.ipc: pipe\nsysctl.vm.swappiness: 20\n"
    assert [(job.cmdline, job.sysctl) for job in jobs(text)] == [
        ("nosmt", {"vm.swappiness": "10"}),
        ("", {"vm.swappiness": "20"}),
    ]


def test_settings_can_be_set_from_outside_and_taken_away() -> None:
    text = "sysctl: {vm/swappiness: 10, kernel.pid_max: 999}\nkernel_cmdline: nosmt\n"
    [job] = jobs(text, sysctl__vm__swappiness="7", kernel_cmdline="maxcpus=1 nokaslr")
    assert (job.cmdline, job.sysctl) == (
        "maxcpus=1 nokaslr",
        {"kernel.pid_max": "999", "vm.swappiness": "7"},
    )
    [job] = jobs(text, sysctl__vm__swappiness="", kernel_cmdline="")
    assert (job.cmdline, job.sysctl) == ("", {"kernel.pid_max": "999"})


def test_a_sysctl_of_a_device_whose_name_has_a_dot_keeps_it() -> None:
    [job] = jobs("sysctl: {net/ipv4/conf/eth0.1/rp_filter: 0, net/core/somaxconn: 9}\n")
    assert list(job.sysctl) == ["net.core.somaxconn", "net/ipv4/conf/eth0.1/rp_filter"]
    assert settings.sysctl_path("net.ipv4.conf.eth0/1.rp_filter") == settings.sysctl_path(
        "net/ipv4/conf/eth0.1/rp_filter"
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("kernel_cmdline: [a, b]\n", "jobs/j.yaml:2: kernel_cmdline must be words with blanks"),
        ("\nkernel_cmdline: init=/bin/sh\n", "jobs/j.yaml:3: kernel_cmdline: the kernel parameter"),
        ("kernel_cmdline: 'a=\"b c\"'\n", "jobs/j.yaml:2: kernel_cmdline: 'a=\"b' is not a valid"),
        ("kernel_cmdline: a -- b\n", "'--' is not a valid word"),
        ("kernel_cmdline: PATH=/tmp\n", "'PATH=/tmp' is not a valid word"),
        ("kernel_cmdline: a=é\n", "is not a valid word"),
        ("kernel_cmdline: a=1 a=1\n", "'a=1' appears twice"),
        ("kernel_cmdline: sysctl.vm.swappiness=1\n", "write it under the key sysctl"),
        ("sysctl: 5\n", "jobs/j.yaml:2: sysctl must be a table of names and values"),
        ("sysctl:\n  vm: 1\n", "jobs/j.yaml:3: 'vm' is not a valid sysctl name"),
        ("sysctl:\n  ../vm.x: 1\n", "jobs/j.yaml:3: '../vm.x' is not a valid sysctl name"),
        ("sysctl:\n  vm..x: 1\n", "'vm..x' is not a valid sysctl name"),
        ("sysctl:\n  vm.x: [1, 2]\n", "jobs/j.yaml:3: the sysctl vm.x must have exactly one value"),
        ("sysctl:\n  vm.x:\n", "jobs/j.yaml:3: the sysctl vm.x must have exactly one value"),
        ("sysctl:\n  vm.x: 010\n", "jobs/j.yaml:3: vm.x: YAML reads 010 as another value"),
        ('sysctl:\n  vm.x: "1\\n2"\n', "jobs/j.yaml:3: the sysctl vm.x can't be '1\\n2'"),
        ("sysctl:\n  vm.x: 1\n  vm/x: 1\n", "jobs/j.yaml:4: the sysctl vm.x is set twice, first"),
        ("sysctl:\n  sc_swappiness: 1\n", "jobs/j.yaml:3: sc_swappiness is LKP's name"),
        ("sysctl:\n  kernel.modprobe: /x\n", "jobs/j.yaml:3: the sysctl kernel.modprobe can't"),
        (
            "sysctl: {vm.swappiness: 1}\ndemand: {vm.swappiness: 2}\n",
            "the job sets vm.swappiness to 1 and demands 2; remove one of the two",
        ),
        ("boot_params: x\n", "jobs/j.yaml:2: boot_params would have no effect here"),
    ],
)
def test_a_setting_that_can_not_be_is_refused_with_its_line(lines: str, message: str) -> None:
    with pytest.raises(JobError) as error:
        jobs(lines)
    assert message in str(error.value)
    found = lint(f"hackbench:\n{lines}", "jobs/j.yaml", [NominalTestbox()], PROGRAMS)
    assert any(message in finding.text for finding in found.findings)


def test_all_that_is_wrong_with_settings_is_found_at_once() -> None:
    text = "hackbench:\nkernel_cmdline: quiet\nsysctl:\n  vm.x: [1]\n  kernel.panic: 0\n  vm.y: 1\n"
    found = lint(text, "j.yaml", [NominalTestbox()], PROGRAMS).findings
    assert [finding.text.partition(": ")[0] for finding in found] == [
        "j.yaml:2",
        "j.yaml:4",
        "j.yaml:5",
    ]


# --- policy and form


OWNED = "console=tty0 root=/dev/sda init=/bin/sh rdinit=/x initrd=x panic=0 oops=no crashkernel=1G"
OWNED += (
    " swingbot.delay_us=1 swingbot=o1 softlockup-panic=1 printk.time=0 quiet loglevel=1 ip=dhcp"
)
OWNED += " systemd.run=x rd.break reboot=p nfsroot=x rootfstype=ramfs kgdboc=ttyS0 bootconfig"
OF_THE_MACHINE = "iomem=relaxed acpi=off pci=nomsi lockdown=none memmap=1G!4G intel_iommu=off"
OF_THE_MACHINE += " module.sig_enforce=0 efi=runtime msr.allow_writes=on thermal.off=1"
USEFUL = (
    "transparent_hugepage=never nosmt maxcpus=1 mitigations=auto nokaslr slub_debug=F,kmalloc-*"
)
USEFUL += " isolcpus=domain,managed_irq,1-3 hugepagesz=2M hugepages=8 init_on_alloc=1 rodata=off"

REFUSED = "kernel.panic kernel.panic_on_oops vm.panic_on_oom kernel.core_pattern kernel.modprobe"
REFUSED += " kernel.hotplug kernel.kexec_load_disabled kernel.kexec_load_limit_panic kernel.sysrq"
REFUSED += " kernel.printk kernel.printk_devkmsg kernel/usermodehelper/bset kernel.modules_disabled"
REFUSED += " fs.binfmt_misc.register vm.drop_caches kernel.poweroff_cmd kernel/core_pattern"


@pytest.mark.parametrize("trust", ["trusted", "untrusted"])
def test_no_job_may_set_what_the_lab_needs_itself(trust: Trust) -> None:
    for word in OWNED.split():
        with pytest.raises(SettingError, match="can't be set by a job"):
            settings.check_words(f"nosmt {word}", trust)
    settings.check_words(USEFUL, trust)


def test_a_kernel_that_is_not_trusted_does_not_reach_the_machine_below_it() -> None:
    settings.check_words(OF_THE_MACHINE, "trusted")
    for word in OF_THE_MACHINE.split():
        with pytest.raises(SettingError, match="the kernel to boot is not trusted"):
            settings.check_words(word, "untrusted")


def test_sysctls_that_the_lab_needs_itself_are_refused() -> None:
    for name in REFUSED.split():
        with pytest.raises(SettingError, match="can't be set by a job"):
            settings.check_sysctls({settings.sysctl_name(name): "1"})


def test_a_stricter_policy_leaves_what_was_stored_readable() -> None:
    document = codec.plain(a_job()) | {"cmdline": "panic=0", "sysctl": {"kernel.panic": "0"}}
    assert codec.plain(codec.typed(UnitJob, document)) == document


def test_there_is_an_end_to_words_and_sysctls() -> None:
    with pytest.raises(ValueError, match="25 words"):
        a_job(cmdline=" ".join(f"a{number}" for number in range(25)))
    with pytest.raises(ValueError, match="1025 characters"):
        a_job(cmdline="a" * 1025)
    with pytest.raises(ValueError, match="65 sysctls"):
        a_job(sysctl={f"vm.x{number}": "1" for number in range(65)})


def test_a_unit_job_without_settings_keeps_its_hash() -> None:
    assert codec.plain(a_job()) == {"name": "a-job", "program": "prints", "params": {}, "runs": 1}
    one, other = a_job(cmdline="nosmt"), a_job(sysctl={"vm.swappiness": "1"})
    assert len({spec_sha256([job]) for job in (a_job(), one, other)}) == 3
    for job in (one, other):
        assert codec.typed(UnitJob, json.loads(json.dumps(codec.plain(job)))) == job


SCHEMA = json.loads((SCHEMA_DIR / "order-1.schema.json").read_text())
UNIT_JOB = jsonschema.Draft202012Validator(SCHEMA["properties"]["unit_jobs"]["items"])
LETTERS = st.text(alphabet="abZ09_.,:=-/*! \n\t\"'$é", max_size=12)


@given(cmdline=LETTERS, name=LETTERS, value=LETTERS)
def test_what_the_schema_of_orders_takes_has_the_form_of_a_unit_job(
    cmdline: str, name: str, value: str
) -> None:
    job = {"name": "a-job", "program": "prints", "params": {}, "runs": 1}
    for more in ({"cmdline": cmdline}, {"sysctl": {name: value}}):
        said = why_not({**job, **more})
        # what a pattern cannot say
        assert said is None or "appears twice" in said or " is written " in said


def why_not(unit_job: dict[str, Any]) -> str | None:
    """Why a unit job that its schema takes is not one; None if it is, or the schema refuses it."""
    try:
        if UNIT_JOB.is_valid(unit_job):
            codec.typed(UnitJob, unit_job)
        return None
    except ValueError as error:
        return str(error)


# --- a boot's unit jobs and its testbox


def parts(
    testbox: Testbox, *lines: str, trust: Trust = "trusted", programs: str = "hackbench"
) -> list[UnitJob]:
    files = [
        JobFile(name=f"j{number}.yaml", text=f"{programs}:\n{text}")
        for number, text in enumerate(lines)
    ]
    testboxes = KnownTestboxes(present={"box": testbox})
    kept: list[UnitJob] = []

    def add(found: list[UnitJob]) -> str:
        kept.extend(found)
        return "spec"

    specs = SimpleNamespace(add=add)
    made = resolve_parts(
        PROGRAMS,
        testboxes,
        cast(Specs, specs),
        files,
        ["box"],
        {},
        trust,
    )
    assert made == [("box", "spec")]
    return kept


def test_a_boot_longer_than_the_lab_allows_is_refused_when_it_is_requested() -> None:
    testbox = load_all(ROOT / "workers" / "testboxes")["vm-tcg"]
    short = KnownTestboxes(present={"box": testbox}, boot_ceiling=600.0)
    files = [JobFile(name="n.yaml", text="netperf:\n  test: TCP_STREAM\n  runtime: 900\n")]
    with pytest.raises(RequestError, match="a boot of box with 1 unit job takes about 15 min"):
        check_parts(PROGRAMS, short, files, ["box"], {}, "trusted")
    [(_, unit_jobs)] = check_parts(
        PROGRAMS, replace(short, boot_ceiling=86_400.0), files, ["box"], {}, "trusted"
    )
    assert unit_jobs[0].params["runtime"] == "900"


def test_the_limit_of_a_testbox_precedes_that_of_the_lab() -> None:
    testbox = replace(load_all(ROOT / "workers" / "testboxes")["vm-tcg"], longest_boot_seconds=3600)
    lab = KnownTestboxes(present={"box": testbox}, boot_ceiling=600.0)
    files = [JobFile(name="n.yaml", text="netperf:\n  test: TCP_STREAM\n  runtime: 900\n")]
    [(_, unit_jobs)] = check_parts(PROGRAMS, lab, files, ["box"], {}, "trusted")
    with pytest.raises(RequestError) as refused:
        refuse_long(lab, "box", unit_jobs, 94 * 60.0)
    assert str(refused.value) == (
        "a boot of box with 1 unit job takes 1 h 34 min, and the limit of this testbox is 1 h"
        " (longest_boot_seconds in its file); request fewer unit jobs or runs"
    )


def refused(testbox: Testbox, *lines: str, trust: Trust = "trusted") -> str:
    with pytest.raises(RequestError) as error:
        parts(testbox, *lines, trust=trust)
    return str(error.value)


def a_testbox(more: str = "", text: str = QEMU) -> Testbox:
    return load(text + more, "box.yaml")


def test_unit_jobs_of_one_boot_have_one_command_line() -> None:
    assert refused(a_testbox(), "kernel_cmdline: nosmt\n", "  ipc: pipe\n") == (
        "j0-defaults and j1-pipe have different kernel_cmdline ('nosmt' and ''), and one boot has"
        " one kernel command line; measure them in separate requests"
    )
    same = parts(
        a_testbox(), "kernel_cmdline: nosmt\n", "kernel_cmdline: nosmt\nsysctl: {vm.x: 1}\n"
    )
    assert cmdline_of(same) == "nosmt" and cmdline_of([]) == ""


def test_what_an_untrusted_kernel_may_not_set_is_refused_when_it_is_asked_for() -> None:
    assert parts(a_testbox(), "kernel_cmdline: iomem=relaxed\n")[0].cmdline == "iomem=relaxed"
    said = refused(a_testbox(), "kernel_cmdline: iomem=relaxed\n", trust="untrusted")
    assert "the kernel parameter iomem can't be set by a job" in said


def test_a_command_line_that_the_kernel_would_cut_is_refused() -> None:
    long = a_testbox(f"cmdline: {'x' * 700}\n")
    assert parts(long, "kernel_cmdline: nosmt\n")
    said = refused(long, f"kernel_cmdline: a={'y' * 1000}\n")
    assert "the kernel reads 2047; remove words from the job's" in said


@pytest.mark.parametrize(
    ("text", "more", "can"),
    [
        (QEMU, "", ("cmdline", "sysctl")),
        (QEMU, "can_set: [sysctl]\n", ("sysctl",)),
        (QEMU, "can_set: []\n", ()),
        (QEMU, "engine: lkp\nlkp: {src: /opt/lkp}\n", ("sysctl",)),
        (COMMAND, "", ("sysctl",)),
        (COMMAND, "can_set: [sysctl, cmdline]\n", ("cmdline", "sysctl")),
    ],
)
def test_a_testbox_says_what_a_job_can_set_there(
    text: str, more: str, can: tuple[str, ...]
) -> None:
    made = a_testbox(more, text)
    assert made.can_set == can
    assert remembered(json.loads(json.dumps(made.to_json()))).can_set == can
    lines = {"cmdline": "kernel_cmdline: nosmt\n", "sysctl": "sysctl: {vm.x: 1}\n"}
    for what, line in lines.items():
        if what in can:
            assert parts(made, line)
        else:
            assert refused(made, line).startswith(
                "testbox box can't set what the job requests with"
            )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("can_set: cmdline\n", "can_set: 'cmdline' is not a list"),
        ("can_set: [kconfig]\n", "'kconfig' is not one of cmdline, sysctl"),
        (
            "engine: lkp\nlkp: {src: /x}\ncan_set: [cmdline]\n",
            "a testbox with the engine lkp has one kernel command line",
        ),
    ],
)
def test_a_testbox_can_not_say_that_it_can_set_more(more: str, message: str) -> None:
    with pytest.raises(TestboxError, match=message):
        a_testbox(more)


def test_a_sysctl_of_the_job_counts_more_than_the_testbox_demand() -> None:
    quiet = a_testbox("demand: {vm.swappiness: 0, thp_enabled: never}\n")
    [job] = parts(quiet, "sysctl: {vm.swappiness: 60}\n")
    assert (job.demand, job.sysctl) == ({"thp_enabled": "never"}, {"vm.swappiness": "60"})


# --- settings of an experiment


def test_settings_are_added_and_names_stay() -> None:
    own = [
        a_job("one", cmdline="nosmt", sysctl={"vm.swappiness": "1"}),
        a_job("two", cmdline="nosmt"),
    ]
    made = with_settings(own, f" {NEVER}  nosmt", {"vm/overcommit_memory": "1"})
    assert [(job.name, job.cmdline, job.sysctl) for job in made] == [
        ("one", f"nosmt {NEVER}", {"vm.overcommit_memory": "1", "vm.swappiness": "1"}),
        ("two", f"nosmt {NEVER}", {"vm.overcommit_memory": "1"}),
    ]
    assert with_settings(own, None, {}) == own
    assert with_settings(own, "", {"vm.swappiness": "1"})[0] == own[0]


@pytest.mark.parametrize(
    ("cmdline", "sysctl", "message"),
    [
        (
            "transparent-hugepage=always",
            {},
            "the job already has transparent_hugepage=never on the kernel command line",
        ),
        (
            None,
            {"vm.swappiness": "2"},
            "the unit job a-job already sets vm.swappiness to 1, not 2",
        ),
        (
            None,
            {"kernel.numa_balancing": "1"},
            "or its testbox demands 0; remove the demand",
        ),
        ("init=/bin/sh", {}, "the kernel parameter init can't be set by a job"),
        (None, {"kernel.panic": "1"}, "the sysctl kernel.panic can't be set by a job"),
        (None, {"vm.x": "1\n2"}, "a value is one line"),
        (None, {"panic": "1"}, "is not a valid sysctl name"),
    ],
)
def test_settings_that_conflict_are_refused(
    cmdline: str | None, sysctl: dict[str, str], message: str
) -> None:
    own = a_job(cmdline=NEVER, sysctl={"vm.swappiness": "1"}, demand={"kernel.numa_balancing": "0"})
    with pytest.raises(SettingError, match=message):
        with_settings([own], cmdline, sysctl)


# --- what is sent


def test_the_job_s_words_are_the_last_ones() -> None:
    quiet = a_testbox("cmdline: mitigations=auto\n")
    line = argv.kernel_cmdline(quiet, 7, NEVER)
    assert line.endswith(f" swingbot.delay_us=7 mitigations=auto {NEVER}")
    assert guest.cmdline(quiet, "o1-a1", 5, 7, NEVER).endswith(f" mitigations=auto {NEVER}")
    for without in (argv.kernel_cmdline(quiet, 7), guest.cmdline(quiet, "o1-a1", 5, 7)):
        assert without.endswith(" mitigations=auto")


def lines_of(job: UnitJob) -> list[str]:
    script = runner.script([job], alone=True)
    return script.partition("\nprobe_monitors\n")[2].splitlines()


def test_a_sysctl_is_set_before_the_runs_looked_at_around_each_and_set_back() -> None:
    lines = lines_of(a_job(sysctl={"net.ipv4.tcp_rmem": "1 2 3", "vm.dirty_bytes": "9"}))
    files = "/proc/sys/net/ipv4/tcp_rmem /proc/sys/vm/dirty_bytes"
    assert lines[:-2] == [
        "hold '1 2 3' /proc/sys/net/ipv4/tcp_rmem",
        "note /proc/sys/vm/dirty_ratio",
        "hold 9 /proc/sys/vm/dirty_bytes",
        f"look facts-before a-job 0 {files}",
        "one_run a-job 0 90 - prints",
        f"look facts-after a-job 0 {files}",
        "seen a-job 0",
        "put_back",
    ]


def test_words_are_looked_for_in_what_init_was_given(tmp_path: Path) -> None:
    # the kernel hands nokaslr to init although it knows it, and says nothing of a module's
    job = a_job(cmdline="slub_debug=F,* nosmt nokaslr zswap.enabled=1")
    text = functions([job])
    assert text.endswith("\ncheck_cmdline 'slub_debug=F,*' nosmt\n")
    assert "check_cmdline" not in functions([a_job()])
    environ = tmp_path / "environ"
    environ.write_bytes(b"HOME=/\0nosmt=x\0slub_debug=F,*\0")
    commands = text.replace("/proc/1/environ /proc/1/cmdline", str(environ))
    subprocess.run(["sh", "-c", f"mkdir facts\n{commands}"], cwd=tmp_path, check=True, timeout=20)
    assert (tmp_path / "facts" / "cmdline_unknown").read_text() == "slub_debug=F,*\n"


@pytest.mark.parametrize("job", [{"cmdline": NEVER}, {"sysctl": {"vm.dirty_bytes": "9"}}])
def test_the_script_with_settings_has_nothing_that_shellcheck_knows_to_be_wrong(
    tmp_path: Path, job: dict[str, Any]
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(runner.script([a_job(**job)], alone=True))
    shellcheck = ROOT / ".venv" / "bin" / "shellcheck"
    checked = subprocess.run(
        [str(shellcheck), "-s", "dash", script], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, "")


def test_lkp_runs_a_job_with_sysctls_as_any_other() -> None:
    [plain] = jobs("")
    [sets] = jobs("sysctl: {vm.swappiness: 1}\n")
    assert job_file(sets, PROGRAMS) == job_file(plain, PROGRAMS)


def test_both_nodes_of_a_cluster_set_the_sysctls() -> None:
    testbox = load_all(ROOT / "workers" / "testboxes")["cs-vm"]
    assert isinstance(testbox.driver, ClusterDriver)
    job = replace(a_job(sysctl={"vm.swappiness": "1"}, cmdline="nosmt"), program="netperf")
    words = cluster.HandshakeTerms(token="t", wait=9)
    for role in ROLES:
        script = cluster.entries(role, testbox.driver, [job], lambda _: b"", words)[
            0
        ].content.decode()
        assert "hold 1 /proc/sys/vm/swappiness\n" in script
        assert "\ncheck_cmdline nosmt\n" in script


def test_a_program_of_the_operator_gets_the_words_and_is_not_believed(tmp_path: Path) -> None:
    lab = played_lab(tmp_path)
    file = lab.site.workers / "testboxes" / "played.yaml"
    job = JOBS[0] | {"cmdline": "nosuchword=1 nosmt"}
    outcome = lab.boot([job])
    assert (outcome["status"], outcome["fault"]) == ("infra", "order")
    assert "testbox played can't set what the job requests with kernel_cmdline" in outcome["reason"]
    file.write_text(json.dumps(json.loads(file.read_text()) | {"can_set": ["cmdline"]}))
    machine, statement = tmp_path / "machine.py", 'print("words:", os.environ["SWINGBOT_CMDLINE"])'
    machine.write_text(machine.read_text().replace("sys.exit(sub", f"{statement}\nsys.exit(sub"))
    outcome = lab.boot([job])
    assert "words: nosuchword=1 nosmt\n" in (lab.out / "driver.log").read_text()
    # this host was not booted with them
    assert {(run["status"], run["reason"]) for run in outcome["runs"]} == {
        ("invalid", "not as set: the kernel command line of this boot lacks nosuchword=1, nosmt")
    }


# --- what came of it


def dump(**values: str) -> str:
    return "".join(
        f"/proc/sys/{name.replace('__', '/')}:{value}\n" for name, value in values.items()
    )


def files(before: str, after: str) -> dict[str, str]:
    return {"facts-before": before, "facts-after": after}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (dump(vm__x="1\t2"), dump(vm__x="1 2"), None),
        (dump(vm__x="1\t2"), "", "not as set: the kernel has no sysctl vm.x that can be read"),
        (
            dump(vm__x="1 2"),
            dump(vm__x="1 3"),
            "not as set: vm.x is 1 3, not 1 2: the kernel did not take the value",
        ),
    ],
)
def test_a_sysctl_has_to_be_so_before_and_after_a_run(
    before: str, after: str, why: str | None
) -> None:
    assert not_as_asked(a_job(sysctl={"vm.x": "1 2"}), {}, files(before, after)) == why


@pytest.mark.parametrize(
    ("boot", "why"),
    [
        ({"cmdline": "console=x nosmt"}, None),
        ({"cmdline": "console=x nosmt=force"}, "this boot lacks nosmt"),
        ({}, "this boot lacks nosmt"),
        (
            {"cmdline": "nosmt", "cmdline_unknown": "nosmt"},
            "the kernel does not know the parameter or its value: nosmt",
        ),
    ],
)
def test_the_words_have_to_be_on_the_command_line_and_known_to_the_kernel(
    boot: dict[str, str], why: str | None
) -> None:
    said = not_as_asked(a_job(cmdline="nosmt"), boot, {})
    assert said is None if why is None else said is not None and said.endswith(why)


def test_a_whole_command_line_is_kept_and_other_facts_stay_short() -> None:
    long = f"a={'x' * 1500}"
    members = {"sheet": f"/proc/cmdline:{long}\n/proc/sys/kernel/osrelease:{long}\n"}
    found = facts_of(members)
    assert found["cmdline"] == long and len(str(found["kernel_release"])) == 1000


def test_what_sysctls_were_becomes_facts_of_the_boot() -> None:
    unit_jobs = [a_job("one", sysctl={"vm.x": "1"}), a_job("two", sysctl={"vm.x": "2"}), a_job()]
    runs = {
        ("one", 0): files("", dump(vm__x="1")),
        ("two", 0): files("", dump(vm__x="2", vm__y="3")),
    }
    assert settings_read(unit_jobs, Results(runs=runs)) == {"set.vm.x": "1, 2"}


# --- two arms that differ on purpose


BOOT = {"cmdline": "console=ttyS0 panic=-1 swingbot.delay_us=1200", "cpu_model": "x", "nr_cpu": 2}


def said_of(
    arms: tuple[BootSettings, BootSettings], base: dict[str, object], head: dict[str, object]
) -> str | None:
    found = differences({0: BOOT | base}, {0: BOOT | head}, paired=False, arms=arms)
    return against(found)


def test_arms_may_differ_in_exactly_the_words_that_they_were_asked_for() -> None:
    arms = (BootSettings(), BootSettings(cmdline=NEVER))
    head: dict[str, object] = {"cmdline": f"{BOOT['cmdline']} {NEVER}", "thp_enabled": "never"}
    base: dict[str, object] = {"thp_enabled": "always"}
    assert said_of(arms, base, head) is None
    assert said_of((BootSettings(), BootSettings()), base, head) is not None
    more = head | {"cmdline": f"{head['cmdline']} nosmt"}
    assert "the kernel command line differs" in str(said_of(arms, base, more))
    assert "the CPU model differs" in str(said_of(arms, base, head | {"cpu_model": "y"}))
    swapped: dict[str, object] = {"cmdline": f"{BOOT['cmdline']} {NEVER}"}
    assert "the kernel command line differs" in str(said_of(arms, swapped, {}))


def test_what_a_word_decides_is_compared_and_no_other_fact_of_the_machine() -> None:
    arms = (BootSettings(cmdline="nosmt"), BootSettings())
    words: dict[str, object] = {"cmdline": f"{BOOT['cmdline']} nosmt", "nr_cpu": 1}
    assert said_of(arms, words, {}) is None
    assert "memory" in str(said_of(arms, words | {"memory_kb": 1}, {"memory_kb": 99}))


def test_arms_may_differ_in_exactly_the_sysctls_that_they_were_asked_for() -> None:
    arms = (
        BootSettings(sysctl={"vm.swappiness": "1"}),
        BootSettings(sysctl={"vm.swappiness": "9"}),
    )
    base: dict[str, object] = {"set.vm.swappiness": 1, "vm.swappiness": 1}
    head: dict[str, object] = {"set.vm.swappiness": 9, "vm.swappiness": 9}
    assert said_of(arms, base, head) is None
    assert "vm.swappiness differs" in str(said_of((arms[0], arms[0]), base, head))
    other = "vm.overcommit_memory"
    assert f"{other} differs" in str(said_of(arms, base | {other: 0}, head | {other: 1}))
