"""The compose files that users get, without an engine: their rules hold, their variables are the
ones that .env.example explains."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import signal
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from swingbot.app.settings import SECTIONS, load
from swingbot_jobs.contract.heartbeat import Beat, encode
from tests.docker import program

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = (ROOT / "docker-compose.yml").read_text()
ELSEWHERE = (ROOT / "docker-compose.elsewhere.yml").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+):-([^{}]*)\}")  # the inner one, where one is nested
_REQUIRED = re.compile(r"\$\{(\w+)(?::\?[^{}]*)?\}")  # without a default
LAB = {
    "SWINGBOT_LAB_NAME": "lab.example.org",
    "SWINGBOT_LAB_BIND": "192.0.2.10",
    "SWINGBOT_TESTBOXES": "/srv/testboxes",
}
HOUR = 3600.0
ONE_SHOT = {"migrate", "keys"}
WORKERS = {"build-worker", "testbox-worker"}
Service = dict[str, Any]


def compose(text: str = COMPOSE, **given: str) -> dict[str, Any]:
    """A file with variables put in, as an engine's command does: `given`, else the default."""
    while _VARIABLE.search(text):
        text = _VARIABLE.sub(lambda match: given.get(match[1], match[2]), text)
    document: dict[str, Any] = yaml.safe_load(_REQUIRED.sub(lambda match: given[match[1]], text))
    return document


def variables() -> list[tuple[str, str]]:
    """Each use of a variable with its default."""
    uses, text = [], COMPOSE + ELSEWHERE
    while new := _VARIABLE.findall(text):
        uses += new
        text = _VARIABLE.sub(r"\2", text)
    return uses


BASE, LAID_OVER = compose(), compose(ELSEWHERE, **LAB)
SERVICES: dict[str, Service] = BASE["services"]
ALL = SERVICES | {"exchange": LAID_OVER["services"]["exchange"]}
services = pytest.mark.parametrize("name", ALL)


def example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


# -- every service


@services
def test_every_service_runs_with_nothing_to_spare(name: str) -> None:
    service = ALL[name]
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["read_only"] is True
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.get("privileged")
    assert service["init"] is True
    assert service["mem_limit"]
    assert 0 < service["pids_limit"] <= 4096
    assert service["logging"]["options"]["max-size"]
    assert not {"pid", "ipc", "userns_mode", "devices"} & set(service)


@services
def test_no_service_sees_the_engine_or_the_host(name: str) -> None:
    sources = [volume.split(":")[0] for volume in ALL[name].get("volumes", [])]
    assert all(
        source in BASE["volumes"] | LAID_OVER["volumes"] or source.startswith("./dashboards/")
        for source in sources
    ), sources


@services
def test_every_service_says_whether_it_is_well_or_ends(name: str) -> None:
    service = ALL[name]
    if name in ONE_SHOT:
        assert service["restart"] == "on-failure:5"
        assert "healthcheck" not in service
    else:
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["healthcheck"]["start_period"]


@services
def test_every_service_waits_until_what_it_needs_is_there(name: str) -> None:
    for needed, how in ALL[name].get("depends_on", {}).items():
        wanted = "service_completed_successfully" if needed in ONE_SHOT else "service_healthy"
        assert how == {"condition": wanted}, needed


@services
def test_images_from_elsewhere_have_exact_versions(name: str) -> None:
    service = ALL[name]
    if "build" in service:
        assert service["image"].startswith("swingbot-")
        assert (
            service["build"]["args"]["BASE"] == re.search(r"^ARG BASE=(\S+)$", DOCKERFILE, re.M)[1]  # type: ignore[index]
        )
    else:
        assert re.search(r":\d+\.\d+", service["image"]), service["image"]


# -- who reaches whom


def test_only_pages_are_published_and_only_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"web": ["127.0.0.1:8010:8010"], "grafana": ["127.0.0.1:3000:3000"]}


def test_controllers_on_other_hosts_reach_master_and_exchange_alone() -> None:
    over = LAID_OVER["services"]
    published = {name: service["ports"] for name, service in over.items() if "ports" in service}
    assert published == {
        "master": ["192.0.2.10:8012:8012"],
        "exchange": ["192.0.2.10:8013:8013"],
    }
    reached = re.findall(r"location (\S+(?: \S+)?) \{", (ROOT / "docker/exchange.conf").read_text())
    assert reached == ["/", "~ ^/(artifacts|attempts)/"]
    networks = {name: set(service.get("networks", [])) for name, service in over.items()}
    assert not any(nets for name, nets in networks.items() if name not in published)
    assert networks["exchange"] == {"elsewhere", "lab"}, "not where the database is"


def test_the_master_names_the_exchange_to_workers_and_the_certificate_has_its_name() -> None:
    over = LAID_OVER["services"]
    for name in ("master", "web"):
        environment = SERVICES[name]["environment"] | over[name]["environment"]
        settings = load(None, {key: str(value) for key, value in environment.items()})
        assert settings.exchange_url == "https://lab.example.org:8013"
    assert over["exchange"]["networks"]["lab"] == {"aliases": ["lab.example.org"]}
    assert {over[name]["environment"]["SWINGBOT_EXCHANGE_CA"] for name in WORKERS} == {
        "/keys/ca.pem"
    }
    assert over["keys"]["environment"] == {"SWINGBOT_BUILDBOT_ADDRESS": "lab.example.org"}


def started(tmp_path: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the entry of Grafana's container with the variables of the compose file.

    Grafana itself is replaced by a program that prints its environment.
    """
    shutil.copytree(ROOT / "dashboards", tmp_path / "dashboards")
    (tmp_path / "password").write_text("a-pass-word")
    entry = tmp_path / "dashboards/start"
    text = entry.read_text().replace("/run/secrets/db_grafana", str(tmp_path / "password"))
    entry.write_text(text.replace("/run.sh", "/usr/bin/env"))
    service = compose(**given)["services"]["grafana"]
    program, script = service["entrypoint"]
    assert script == "/etc/grafana/swingbot/start"
    environment = {  # an engine puts variables in after YAML was read, so all are text
        key: "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in service["environment"].items()
    }
    return subprocess.run(
        [program, str(entry)],
        env=environment
        | {
            "SWINGBOT_GRAFANA_DASHBOARDS": str(tmp_path / "boards"),
            "GF_PATHS_PROVISIONING": str(tmp_path / "provisioning"),
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("bind", "url", "wanted", "anonymous"),
    [
        ("127.0.0.1", "http://localhost:8010", "", "true"),
        ("::1", "http://[::1]:8010/", "", "true"),
        ("127.0.0.1", "https://swingbot.example.org", "", "false"),  # a proxy in front of it
        ("127.0.0.1", "http://localhost.example.org:8010", "", "false"),
        ("0.0.0.0", "http://localhost:8010", "", "false"),
        ("192.0.2.7", "http://192.0.2.7:8010", "", "false"),
        ("192.0.2.7", "http://192.0.2.7:8010", "true", "true"),
        ("127.0.0.1", "http://localhost:8010", "false", "false"),
    ],
)
def test_boards_ask_for_a_login_unless_they_and_the_pages_are_on_loopback(
    tmp_path: Path, bind: str, url: str, wanted: str, anonymous: str
) -> None:
    done = started(
        tmp_path,
        SWINGBOT_BIND=bind,
        SWINGBOT_PUBLIC_URL=url,
        SWINGBOT_GRAFANA_ANONYMOUS=wanted,
    )
    assert done.returncode == 0, done.stderr
    environment = done.stdout.splitlines()
    assert f"GF_AUTH_ANONYMOUS_ENABLED={anonymous}" in environment
    assert "SWINGBOT_GRAFANA_DB_PASSWORD=a-pass-word" in environment


def test_boards_link_to_the_address_of_the_pages(tmp_path: Path) -> None:
    assert started(tmp_path, SWINGBOT_PUBLIC_URL="https://a.example.org/bot/").returncode == 0
    names = {file.name for file in (ROOT / "dashboards/json").iterdir()}
    written = {file.name: json.loads(file.read_text()) for file in (tmp_path / "boards").iterdir()}
    assert set(written) == names
    for board in written.values():
        (web,) = (v for v in board["templating"]["list"] if v["name"] == "web")
        assert web["query"] == web["current"]["value"] == "https://a.example.org/bot"
        assert web["hide"] == 2
        assert "127.0.0.1" not in json.dumps(board)


def test_alert_rules_link_to_the_address_of_the_pages(tmp_path: Path) -> None:
    """Grafana puts no variables into annotations."""
    assert started(tmp_path, SWINGBOT_PUBLIC_URL="https://a.example.org/bot/").returncode == 0
    shipped = ROOT / "dashboards/provisioning"
    written = {
        str(file.relative_to(tmp_path / "provisioning")): file.read_text()
        for file in (tmp_path / "provisioning").glob("*/*")
    }
    assert set(written) == {str(file.relative_to(shipped)) for file in shipped.glob("*/*")}
    (group,) = yaml.safe_load(written["alerting/swingbot.yaml"])["groups"]
    for rule in group["rules"]:
        assert "https://a.example.org/bot" in rule["annotations"]["summary"], rule["uid"]
        assert "127.0.0.1" not in str(rule)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("localhost:8010", "does not begin with http"),
        ('https://a/"b', "a character that"),
        ("https://a/|w x", "a character that"),
    ],
)
def test_an_address_that_would_break_the_boards_is_refused(
    tmp_path: Path, url: str, words: str
) -> None:
    done = started(tmp_path, SWINGBOT_PUBLIC_URL=url.replace('"', '\\"'))
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "boards").exists()


@pytest.mark.parametrize(
    ("to", "kind", "receiver"),
    [
        ("", "email", "swingbot-reports@localhost"),
        ("a@example.org,b@example.org", "email", "a@example.org,b@example.org"),
        ("https://chat.example.org/hook", "webhook", "https://chat.example.org/hook"),
    ],
)
def test_alerts_of_grafana_leave_by_mail_or_webhook(
    tmp_path: Path, to: str, kind: str, receiver: str
) -> None:
    environment = started(tmp_path, SWINGBOT_GRAFANA_ALERT_TO=to).stdout.splitlines()
    assert {
        f"SWINGBOT_GRAFANA_ALERT_KIND={kind}",
        f"SWINGBOT_GRAFANA_ALERT_TO={receiver}",
        "GF_SMTP_ENABLED=true",
        "GF_SMTP_HOST=mail:2525",
        "GF_SMTP_FROM_ADDRESS=swingbot@localhost.localdomain",  # Grafana wants a dot
    } <= set(environment)


@pytest.mark.parametrize("prometheus", ["", "http://prometheus.example.org:9090"])
def test_the_board_of_the_service_asks_prometheus_if_there_is_one(
    tmp_path: Path, prometheus: str
) -> None:
    done = started(tmp_path, SWINGBOT_GRAFANA_PROMETHEUS=prometheus)
    assert f"SWINGBOT_GRAFANA_PROMETHEUS={prometheus}" in done.stdout.splitlines()
    board = json.loads((tmp_path / "boards/service.json").read_text())
    assert board["uid"] == "swingbot-service"
    said = [p["options"]["content"] for p in board["panels"] if p["type"] == "text"]
    assert any("No Prometheus is configured" in text for text in said) == (not prometheus)
    assert any("targets" in panel for panel in board["panels"]) == bool(prometheus)


def test_an_address_of_prometheus_without_a_scheme_is_refused(tmp_path: Path) -> None:
    done = started(tmp_path, SWINGBOT_GRAFANA_PROMETHEUS="prometheus:9090")
    assert done.returncode == 2
    assert "'prometheus:9090', the address of Prometheus, does not begin with http" in done.stderr


def test_writing_boards_again_says_what_changed(tmp_path: Path) -> None:
    def write(url: str) -> list[str]:
        command = ["sh", str(ROOT / "dashboards/write-boards"), url, str(tmp_path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    boards = sorted(file.name for file in (ROOT / "dashboards/json").iterdir())
    assert sorted(write("https://a.example.org")) == boards
    assert write("https://a.example.org") == []
    assert sorted(write("https://b.example.org")) == boards


def test_workers_have_no_way_to_the_database_nor_to_the_world() -> None:
    document = compose()
    assert document["networks"]["lab"] == document["networks"]["back"] == {"internal": True}
    assert all(SERVICES[name]["networks"] == ["lab"] for name in WORKERS)
    assert SERVICES["postgres"]["networks"] == ["back"]
    assert SERVICES["keys"]["network_mode"] == "none"


def test_each_password_is_shown_to_those_who_need_it() -> None:
    shown = {name: set(service.get("secrets", [])) for name, service in SERVICES.items()}
    assert {name for name, secrets in shown.items() if "db_admin" in secrets} == {
        "postgres",
        "migrate",
    }
    assert {name for name, secrets in shown.items() if "db_owner" in secrets} == {"migrate"}
    assert not any(shown[name] for name in WORKERS | {"keys", "git", "mail"})
    assert set().union(*shown.values()) == set(compose()["secrets"])


def test_no_value_of_the_file_is_a_secret() -> None:
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            assert "PASSWORD" not in key or key.endswith(("_FILE", "__FILE")), (name, key)
            assert not re.search(r"://[^/\s]*:[^/\s]*@", str(value)), (name, key)


def test_a_worker_sees_its_own_keys_alone() -> None:
    for name in WORKERS:
        keys = [volume for volume in SERVICES[name]["volumes"] if "keys" in volume]
        assert keys == [f"{'builder' if name == 'build-worker' else 'testbox'}-keys:/keys:ro"]


# -- its environment


def test_every_variable_is_explained_with_its_default_and_none_is_left_over() -> None:
    used: dict[str, set[str]] = {}
    for name, default in variables():
        used.setdefault(name, set()).add(default)
    assert not re.search(r"(?<!\$)\$(?!\$|\{\w+:-)", COMPOSE), "a variable without a default"
    required = set(_REQUIRED.findall(ELSEWHERE))
    for name in required:
        assert f"${{{name}:?" in ELSEWHERE, f"nothing says that {name} is missing"
    assert required == set(LAB)
    assert all(len(defaults) == 1 for defaults in used.values()), used
    explained = example()
    assert explained.pop("COMPOSE_PROJECT_NAME")
    assert {name: default for name, (default,) in used.items()} | dict.fromkeys(
        required, ""
    ) == explained


def test_all_settings_that_parts_get_are_settings() -> None:
    defaults = load(None, {})
    known = {
        f"SWINGBOT_{section}_{field.name}".upper()
        for section in SECTIONS
        for field in dataclasses.fields(getattr(defaults, section))
    }
    # Options of `swingbot db roles`, and what workers and Grafana read by themselves.
    others = re.compile(
        r"SWINGBOT_(?:DB_ADMIN_URL|DB_ADMIN_PASSWORD_FILE|DB_GRAFANA_PASSWORD_FILE|BUILD_\w+|GRAFANA_\w+)|POSTGRES_\w+|GF_\w+"
    )
    for name, service in SERVICES.items():
        environment = {key: str(value) for key, value in service.get("environment", {}).items()}
        assert not [key for key in environment if key not in known and not others.fullmatch(key)], (
            name
        )
        load(None, environment)


def test_the_master_speaks_tls_to_workers_and_pages_are_where_their_links_say() -> None:
    settings = load(
        None, {key: str(value) for key, value in SERVICES["master"]["environment"].items()}
    )
    assert settings.buildbot.tls_certificate
    assert settings.buildbot.tls_key
    assert settings.exchange_url == "http://web:8010"
    assert settings.web_url == "http://localhost:8010"
    assert f"git:{settings.git.port}" == "git:9418"
    assert str(settings.buildbot_worker_port) in SERVICES["testbox-worker"]["command"][4]


def test_the_testbox_of_the_images_is_the_one_that_the_worker_drives() -> None:
    (kept,) = set(re.findall(r"-type f ! -name (\S+)\.yaml -delete", DOCKERFILE))
    assert (ROOT / "workers" / "testboxes" / f"{kept}.yaml").is_file()
    assert SERVICES["testbox-worker"]["command"][2] == f"testbox-{kept}"
    assert set(program("keys").WORKERS) == {"builder", f"testbox-{kept}"}


# -- images


def test_images_name_no_address_and_come_from_one_base() -> None:
    assert not re.search(r"https?://|git@|index-url", DOCKERFILE)
    stages = re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.M)
    assert stages[0][0] == "${BASE}"
    assert all(base in [name for _, name in stages] for base, _ in stages[1:])
    assert re.findall(r"^USER (\S+)$", DOCKERFILE, re.M) == ["10001:10001"] * 3
    assert DOCKERFILE.count("--require-hashes") == 2


def test_only_what_images_hold_is_sent_to_the_engine() -> None:
    lines = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert lines[0] == "*"
    assert not [line for line in lines if "secrets" in line or "env" in line]


def test_the_part_of_the_lock_holds_all_that_it_needs_and_no_tests() -> None:
    locked = program("locked")
    project, lock = (ROOT / "pyproject.toml").read_text(), (ROOT / "requirements.lock").read_text()
    part = locked.part(lock, locked.declared(project, ["worker"]))
    names = set(locked.blocks(part))
    assert {
        "buildbot-worker",
        "twisted",
        "zope-interface",
        "cffi",
        "pyyaml",
        "httpx",
        "httpcore",
    } <= names
    assert not {"pytest", "mypy", "ansible-core", "buildbot", "sqlalchemy"} & names
    assert all("--hash=sha256:" in block for block in locked.blocks(part).values())
    everything = locked.part(lock, locked.declared(project, ["master", "worker", "test", "lab"]))
    assert set(locked.blocks(everything)) == set(locked.blocks(lock))


def test_a_part_follows_who_wants_whom() -> None:
    a = "a==1 \\\n    --hash=sha256:0\n    # via ours (pyproject.toml)\n"
    b = "B_c==2 \\\n    --hash=sha256:1\n    # via\n    #   a\n    #   d\n"
    lock = a + b + "d==3 \\\n    --hash=sha256:2\n    # via ours (pyproject.toml)\n"
    locked = program("locked")
    assert list(locked.blocks(locked.part(lock, {"a"}))) == ["a", "b-c"]
    with pytest.raises(SystemExit, match="make lock"):
        locked.part(lock, {"x"})


# -- the small programs


def test_a_connection_counts_only_if_it_stands_and_goes_to_that_port() -> None:
    health = program("health")
    header = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
        "timeout inode\n"
    )
    row = (
        "   0: 0300580A:9C40 0400580A:1F4C {} 00000000:00000000 02:000A7214 00000000 10001   "
        "     0 1 2 0000000000000000 20 4 30 10 -1\n"
    )
    assert health.connected(8012, header + row.format("01"))
    assert not health.connected(8012, header + row.format("02"))
    assert not health.connected(8010, header + row.format("01"))
    assert not health.connected(40000, header + row.format("01"))
    assert not health.connected(8012, "")
    assert health.listens(40000, header + row.format("0A"))
    assert not health.listens(40000, header + row.format("01"))
    assert not health.listens(8012, header + row.format("0A"))


def test_a_container_whose_process_hangs_is_killed_and_no_other_process(tmp_path: Path) -> None:
    health, file = program("health"), tmp_path / "heartbeat"
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            now, pid = time.monotonic(), child.pid
            assert health.main(["beats", str(file)]) == 0, "it is starting"
            for age in (-0.0005, 0.0, 1.0, HOUR):  # the oldest is that of its predecessor
                file.write_bytes(encode(Beat(monotonic=now - age, pid=pid, boot_id="x")))
                assert health.main(["beats", str(file)]) == 0, age
                assert child.poll() is None
            vars(health)["HUNG_SECONDS"] = 0.05
            time.sleep(0.1)
            file.write_bytes(encode(Beat(monotonic=time.monotonic(), pid=pid, boot_id="x")))
            time.sleep(0.1)
            assert health.main(["beats", str(file)]) == 1
            assert child.wait(20) == -signal.SIGKILL
            assert not file.exists()
        finally:
            child.kill()


def test_health_is_a_status_and_never_an_exception() -> None:
    health = program("health")
    assert health.main(["url", "http://127.0.0.1:1/healthz"]) == 1
    assert health.main(["listens", "1"]) == 1
    assert health.main(["listens"]) == 2


def test_keys_made_again_are_the_same_but_for_the_certificate_and_apart(tmp_path: Path) -> None:
    keys = program("keys")
    for name in ("builder", "testbox"):
        (tmp_path / name).mkdir()
    seen = []
    for _ in range(2):
        keys.make(tmp_path)
        seen.append(
            {
                str(file.relative_to(tmp_path)): file.read_bytes()
                for file in tmp_path.rglob("*")
                if file.is_file()
            }
        )
    changed = {name for name, content in seen[0].items() if seen[1][name] != content}
    assert changed <= {"master/master.pem", "master/master.key"}
    assert "master/master.pem" in changed
    for worker, directory in keys.WORKERS.items():
        assert {name for name in seen[1] if name.startswith(f"{directory}/")} == {
            f"{directory}/secret",
            f"{directory}/ca.pem",
        }
        assert seen[1][f"{directory}/secret"] == seen[1][f"master/workers/{worker}"]
    assert seen[1]["builder/secret"] != seen[1]["testbox/secret"]


def test_a_lab_with_a_name_has_it_in_the_certificate_that_the_exchange_has_too(
    tmp_path: Path,
) -> None:
    for name in ("builder", "testbox", "exchange"):
        (tmp_path / name).mkdir()
    program("keys").make(tmp_path, "lab.example.org")
    certificate = x509.load_pem_x509_certificate((tmp_path / "exchange/master.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["master", "lab.example.org", "localhost"]
    context = ssl.create_default_context(cafile=tmp_path / "builder/ca.pem")
    context.load_cert_chain(tmp_path / "exchange/master.pem", tmp_path / "exchange/master.key")
    assert {file.name for file in (tmp_path / "exchange").iterdir()} == {"master.pem", "master.key"}


def test_preparing_twice_changes_no_password(tmp_path: Path) -> None:
    (tmp_path / "docker").mkdir()
    shutil.copy(ROOT / "docker" / "prepare", tmp_path / "docker")
    shutil.copy(ROOT / ".env.example", tmp_path)
    made = []
    for _ in range(2):
        subprocess.run(
            ["sh", "docker/prepare"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin"},
        )
        made.append({file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == set(compose()["secrets"])
    assert len(set(made[0].values())) == len(made[0])
    assert all(re.fullmatch("[0-9a-f]{48}", secret) for secret in made[0].values())
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".env").read_text() == (ROOT / ".env.example").read_text()


def test_the_builders_filter_denies_what_harms_a_host_and_allows_what_walls_are_made_of() -> None:
    profile = json.loads((ROOT / "docker" / "seccomp-walls.json").read_text())
    (rule,) = profile["syscalls"]
    assert (profile["defaultAction"], rule["action"]) == ("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO")
    assert len(rule["names"]) == len(set(rule["names"]))
    assert {
        "bpf",
        "kexec_load",
        "init_module",
        "keyctl",
        "perf_event_open",
        "open_by_handle_at",
        "userfaultfd",
        "io_uring_setup",
    } <= set(rule["names"])
    assert not {
        "clone",
        "clone3",
        "unshare",
        "mount",
        "umount2",
        "pivot_root",
        "prctl",
        "seccomp",
        "chroot",
        "sethostname",
    } & set(rule["names"])


def test_the_builder_has_the_limits_that_count_as_walls() -> None:
    """A part's limits of memory and processes, and its own tmpfs from which programs can run."""
    builder = compose()["services"]["build-worker"]
    variables = builder["environment"]
    (scratch,) = (line for line in builder["tmpfs"] if line.startswith("/scratch:"))
    size = variables["SWINGBOT_BUILD_DISK_MB"]
    assert variables["SWINGBOT_BUILD_SCRATCH"] == "/scratch"
    assert {"exec", f"size={size}m"} <= set(scratch.partition(":")[2].split(","))
    assert builder["mem_limit"] and builder["pids_limit"]
