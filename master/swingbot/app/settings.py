"""Settings: one TOML file, every key documented here, every key overridable by `SWINGBOT_<SECTION>_<KEY>`.

Order of precedence: environment, then the file (`--config`, `SWINGBOT_CONFIG`,
`/etc/swingbot/swingbot.toml`), then the default below. Unknown keys are errors that name the file.
Secrets never stand here: they are files under `paths.state`, or named by `*_file` keys.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_type_hints
from urllib.parse import urlsplit

from swingbot.core.moderation.ruling import RELEASES
from swingbot.core.proof.gates import BadGate
from swingbot.core.proof.gates import names as gate_names
from swingbot_jobs import resources
from swingbot_jobs.contract.compiler import FORM, is_compiler

_WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
_PASSWORD = re.compile(r"(://[^/@:\s]*):[^/@\s]*@")
DEFAULT_FILE = Path("/etc/swingbot/swingbot.toml")


# Settings of earlier versions that are constants now, with their value. Who had set that value loses nothing.
CONSTANTS: Final[Mapping[str, float]] = {
    "web.uploads": 16,
    "boxes.lease_seconds": 300.0,
    "boxes.invalid_runs": 20,
    "mail.suspicious_synced_pct": 20.0,
    "mail.suspicious_write_pct": 50.0,
    "retention.kits_days": 30.0,
    "loop.tick_seconds": 2.0,
}


class SettingsError(ValueError):
    """A settings file or variable is wrong; says which key and what it should be."""


def _key(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


def _xdg(variable: str, fallback: str) -> str:
    return os.environ.get(variable) or str(Path.home() / fallback)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    state: str = _key(
        "",
        "directory of everything that must survive a restart; default ${XDG_STATE_HOME:-~/.local/state}/swingbot",
    )
    cache: str = _key(
        "",
        "directory of what can be made again: kernels, ccache, packages; default ${XDG_CACHE_HOME:-~/.cache}/swingbot",
    )
    jobs: str = _key(str(resources.folder("jobs")), "job files, programs and schemas")
    workers: str = _key(str(resources.folder("workers")), "testboxes/, kconfig/ and rootfs/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Db:
    url: str = _key(
        "", "postgresql+psycopg2://user@host/db; empty: the embedded server under paths.state"
    )
    password_file: str = _key("", "file with the password of db.url's user")
    owner_url: str = _key(
        "",
        "the same database as the role that owns the tables, for `swingbot db upgrade`; empty: db.url",
    )
    owner_password_file: str = _key("", "file with the password of db.owner_url's user")


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    host: str = _key("127.0.0.1", "address the pages listen on")
    port: int = _key(
        8010, "port of pages, API and artifacts; the embedded Buildbot takes the next three"
    )
    public_url: str = _key("", "what links in mails begin with; default http://<host>:<port>")
    exchange_url: str = _key(
        "", "where workers bring results to and fetch kernels from; default http://<host>:<port>"
    )
    read: str = _key(
        "open",
        "open: everybody who reaches the pages reads them; token: only who has a token, of any role",
    )
    raw: str = _key(
        "open",
        "open: raw results, artifacts and kits as web.read says; token: only with a token, and for workers with their attempt's",
    )
    metrics: str = _key(
        "open", "/metrics is open: for everybody; token: only with a token; off: not there"
    )
    proxies: str = _key(
        "",
        "comma-separated addresses or networks of proxies whose X-Forwarded-For and -Proto are believed; empty: nobody's",
    )
    rate: int = _key(
        1200, "requests a minute that one client may make, a quarter of them at once; 0: any number"
    )
    write_rate: int = _key(
        120,
        "forms and requests a minute that one person's token may send to change something, a quarter of them at once; 0: any number",
    )
    connections: int = _key(200, "connections at once; what comes beyond is answered with 503")
    attempt_files: int = _key(200, "files that one attempt may bring")
    attempt_mib: int = _key(4096, "MiB that the files of one attempt may have together")
    open_requests: int = _key(
        5, "comparisons and experiments asked for over the web that one person may have under way"
    )
    box_minutes: float = _key(
        600.0,
        "minutes of testboxes that one person's requests over the web may be foreseen to take in 24 hours",
    )
    patch_kib: int = _key(1024, "KiB that a patch sent over the web may have")


@dataclass(frozen=True, slots=True, kw_only=True)
class Buildbot:
    host: str = _key(
        "127.0.0.1",
        "address that the master listens on for workers; another one than loopback needs tls_certificate and tls_key",
    )
    worker_port: int = _key(0, "port for workers; 0: web.port + 2")
    www_host: str = _key(
        "127.0.0.1",
        "address that Buildbot's own pages listen on; they speak plain HTTP, so put a proxy before them",
    )
    www_port: int = _key(0, "port of Buildbot's own pages; 0: web.port + 1")
    public_url: str = _key(
        "",
        "what links to Buildbot's own pages begin with; default http://<host of web.public_url>:<www_port>/",
    )
    address: str = _key(
        "",
        "name or address by which workers reach the master, as its certificate has it; default: buildbot.host, or 127.0.0.1 for any",
    )
    tls_certificate: str = _key(
        "",
        "PEM file with the master's certificate, and after it the chain up to the CA; empty: plain text, on loopback alone",
    )
    tls_key: str = _key("", "PEM file with the key of tls_certificate")
    tls_ca: str = _key(
        "",
        "PEM file with the CA that workers of `swingbot up` trust; empty: tls_certificate itself",
    )
    secrets: str = _key(
        "",
        "directory with one file for each worker, named as it, that holds its secret; default <state>/worker-secrets",
    )
    elsewhere: str = _key(
        "",
        "comma-separated names of workers, or globs such as box-*, that run on other hosts: `swingbot up` starts none of them",
    )
    pages: str = _key(
        "open",
        "who may read Buildbot's own pages: open: who reaches them; operator: who signs in with an operator's token; off: there are none",
    )
    control: str = _key(
        "nobody",
        "who may start and stop builds on Buildbot's own pages: nobody, or operator; swingbot itself needs neither",
    )
    logs_days: float = _key(
        56.0, "Buildbot's logs of a step are deleted after so many days; 0: never"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    url: str = _key(
        "",
        "where build workers fetch commits from; default: the path of the mirror, for workers on this host",
    )
    host: str = _key(
        "127.0.0.1",
        "address that `swingbot git` serves the mirror on, read-only and to everyone who reaches it",
    )
    port: int = _key(9418, "port of `swingbot git`")
    paths: str = _key(
        "*",
        "comma-separated globs of paths on this host that trees may be fetched from, such as /srv/git/*; empty: URLs alone",
    )
    fetch_gib: float = _key(20.0, "GiB that one fetch may bring; a whole kernel history has 5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    jobs: int = _key(0, "make -j; 0: number of processors")
    kconfig: str = _key(
        "vm-x86_64",
        "name of workers/kconfig/<name>.config used for new trees; <name>+align64 merges fragments/align64.config over it",
    )
    compiler: str = _key(
        "gcc", "compiler of new trees: gcc, gcc-12, clang-19 ...; `swingbot compilers` lists them"
    )
    workers: str = _key(
        "builder",
        "comma-separated names of the workers that build kernels, each what it has a compiler for",
    )
    deadline_seconds: int = _key(3600, "a kernel build is given up after this")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    deadline_seconds: int = _key(
        900, "wall-clock limit of one boot with its runs, whatever the testbox says"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmarks:
    dir: str = _key(
        "", "directory of benchmark binaries that the operator has built; they win over Debian's"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    poll_seconds: float = _key(60.0, "how often branches are looked at")
    boots: int = _key(3, "boots a side of an automatic comparison")
    testbox: str = _key("vm-icount", "testbox of trees and comparisons that name none")
    bisect_improvements: bool = _key(
        False, "also look for the commit behind a change for the better"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisect:
    confidence: float = _key(0.99, "posterior of a commit at which it is confirmed and named")
    max_boots: int = _key(200, "a bisection that used so many boots ends as inconclusive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    idle_aa_minutes: float = _key(
        30.0,
        "a testbox idle for so long boots a known kernel again, for its noise record; 0: never",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    failures: int = _key(
        3,
        "attempts in a row that a bare-metal testbox may fail before it is quarantined; 0: any number",
    )
    screening_boots: int = _key(
        10,
        "boots of an anchor that a bare-metal testbox makes before it may vote, when it is new or its hardware changed; 0: none",
    )
    stuck_minutes: float = _key(
        120.0,
        "the operator gets a mail when nothing ended for so long although orders wait; 0: never",
    )
    invalid_pct: float = _key(
        20.0, "the operator gets a mail when more of a testbox's latest runs are invalid; 0: never"
    )
    mails: bool = _key(
        True,
        "mails about testboxes and the queue go to mail.to; false: pages and `swingbot status` alone tell of them",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    gates: str = _key(
        "all",
        "comma-separated gates that a culprit goes through before its mail (docs/proof.md); layout and executed build kernels of their own",
    )
    require: str = _key(
        "reproduced,tip,code,facts",
        "comma-separated gates that have to be passed before a mail leaves by itself; the others hold it if they fail",
    )
    deadline_hours: float = _key(
        24.0, "a gate that is not over after so long is not run, and the mail is written without it"
    )
    budget_minutes: float = _key(
        240.0,
        "what the gates of one culprit may be foreseen to cost together; those that do not fit are not run; 0: whatever it costs",
    )
    merged_trees: str = _key(
        "",
        "comma-separated names of trees whose branch others base their work on, such as mainline; a report says so",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    release: str = _key(
        "hold",
        "hold: a person releases each report; earned: classes that people released often enough leave by themselves; release: all without doubts do",
    )
    dry_run: bool = _key(
        True,
        "all mail goes to mail.to alone, and pages say to whom it would be sent; false: it goes to author, maintainers and lists",
    )
    stop: bool = _key(
        False, "nothing is sent, as after `swingbot report stop`, until this is false again"
    )
    sender: str = _key("swingbot <swingbot@localhost>", "From of every report")
    to: str = _key(
        "swingbot-reports@localhost",
        "comma-separated addresses of the operator: who gets every report in a dry run, and one that has no one else",
    )
    contact: str = _key("the operator of this swingbot", "a person, named in every mail")
    bcc: str = _key(
        "",
        "comma-separated addresses that get a hidden copy of every mail; one delivered to mail.bcc_maildir settles whether a mail left",
    )
    bcc_maildir: str = _key("", "Maildir to which copies for mail.bcc are delivered")
    host: str = _key(
        "", "SMTP server; empty: the embedded one, which delivers to a Maildir under paths.state"
    )
    port: int = _key(25, "port of mail.host")
    domain: str = _key("swingbot.localdomain", "right side of Message-IDs; must never change")
    list_id: str = _key(
        "",
        "name in the header List-Id, such as reports.swingbot.example.org; empty: no such header",
    )
    regzbot: bool = _key(
        False, "reports about commits of proof.merged_trees ask regzbot to track them"
    )
    archive: str = _key(
        "",
        "archive of the mailing lists: a public-inbox git repository, a Maildir, or a file or directory of mbox; reports answer the patch",
    )
    still_days: float = _key(
        30.0,
        "days between mails that only say that a change is still there, at tips measured anyway; 0: none",
    )
    get_maintainer: bool = _key(
        False,
        "maintainers and lists come from the tree's own scripts/get_maintainer.pl, run behind walls; false: authors alone",
    )
    private_trees: str = _key(
        "",
        "comma-separated names of trees, or globs such as dev-*, of whose commits only the author is told",
    )
    opt_outs: str = _key("", "comma-separated addresses, or @domains, that get no report")
    most_recipients: int = _key(15, "recipients that one report has at most")
    per_list: int = _key(
        5, "mails that one mailing list gets in 24 hours at most; what is beyond is held"
    )
    digest: bool = _key(
        True, "improvements are told in one mail a week; false: each in a report of its own"
    )
    digest_to: str = _key("", "comma-separated readers of the weekly digest; empty: mail.to")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    enabled: bool = _key(
        False,
        "the loop prunes once a day what the rules below allow; false: `swingbot retention` alone does, when it is told to",
    )
    kernels_days: float = _key(
        180.0,
        "kernel images are kept so long after their last boot; one that is needed again is built again; 0: for ever",
    )
    debug_days: float = _key(
        180.0,
        "System.map, lists of objects and records of functions are kept so long after their kernel's last boot; 0: for ever",
    )
    rootfs_days: float = _key(
        365.0, "root file systems are kept so long after their last boot; 0: for ever"
    )
    results_days: float = _key(
        0.0,
        "raw results are kept so long after their boot; without them nothing can be read again; 0: for ever",
    )
    logs_days: float = _key(90.0, "console and build logs are kept so long; 0: for ever")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    stop_below_mib: int = _key(
        1000,
        "no order is handed out while the disk of paths.state has less free space, in MiB; 0: whatever it has",
    )
    warn_below_mib: int = _key(5000, "status and pages warn of less free space than this, in MiB")


def _reachable(host: str) -> str:
    """An address to connect to, for one to listen on."""
    return "127.0.0.1" if host in ("0.0.0.0", "::", "") else host


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    paths: Paths = field(default_factory=Paths)
    db: Db = field(default_factory=Db)
    web: Web = field(default_factory=Web)
    buildbot: Buildbot = field(default_factory=Buildbot)
    git: Git = field(default_factory=Git)
    build: Build = field(default_factory=Build)
    boot: Boot = field(default_factory=Boot)
    benchmarks: Benchmarks = field(default_factory=Benchmarks)
    watch: Watch = field(default_factory=Watch)
    bisect: Bisect = field(default_factory=Bisect)
    policy: Policy = field(default_factory=Policy)
    boxes: Boxes = field(default_factory=Boxes)
    proof: Proof = field(default_factory=Proof)
    mail: Mail = field(default_factory=Mail)
    retention: Retention = field(default_factory=Retention)
    disk: Disk = field(default_factory=Disk)
    # "section.key" -> where it came from, for `swingbot settings`
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return (
            Path(self.paths.state or Path(_xdg("XDG_STATE_HOME", ".local/state")) / "swingbot")
            .expanduser()
            .absolute()
        )

    @property
    def cache(self) -> Path:
        return (
            Path(self.paths.cache or Path(_xdg("XDG_CACHE_HOME", ".cache")) / "swingbot")
            .expanduser()
            .absolute()
        )

    @property
    def web_url(self) -> str:
        return (self.web.public_url or f"http://{self.web.host}:{self.web.port}").rstrip("/")

    @property
    def exchange_url(self) -> str:
        """Where workers bring results: the service itself, whatever address people see."""
        return (
            self.web.exchange_url or f"http://{_reachable(self.web.host)}:{self.web.port}"
        ).rstrip("/")

    @property
    def buildbot_url(self) -> str:
        """Where people find Buildbot's own pages, ending with a slash; empty if there are none."""
        if self.buildbot.pages == "off":
            return ""
        return (
            self.buildbot.public_url
            or f"http://{urlsplit(self.web_url).hostname or '127.0.0.1'}:{self.buildbot_www_port}"
        ).rstrip("/") + "/"

    @property
    def master_address(self) -> str:
        """How workers reach the master, `host:port`, an IPv6 address in brackets."""
        host = self.buildbot.address or _reachable(self.buildbot.host)
        return f"{f'[{host}]' if ':' in host else host}:{self.buildbot_worker_port}"

    @property
    def git_url(self) -> str:
        return self.git.url or str(self.mirror)

    @property
    def git_paths(self) -> list[str]:
        return [glob.strip() for glob in self.git.paths.split(",") if glob.strip()]

    @property
    def worker_secrets(self) -> Path:
        return (
            Path(self.buildbot.secrets).expanduser().absolute()
            if self.buildbot.secrets
            else self.state / "worker-secrets"
        )

    # The embedded service's other ports follow from the first, so that one --port moves them all.
    @property
    def buildbot_www_port(self) -> int:
        return self.buildbot.www_port or self.web.port + 1

    @property
    def buildbot_worker_port(self) -> int:
        return self.buildbot.worker_port or self.web.port + 2

    @property
    def smtp_port(self) -> int:
        return self.mail.port if self.mail.host else self.web.port + 3

    # What lives where under the state directory.
    @property
    def mirror(self) -> Path:
        return self.state / "mirror.git"

    @property
    def artifacts(self) -> Path:
        return self.state / "artifacts"

    @property
    def maildir(self) -> Path:
        return self.state / "maildir"

    @property
    def log(self) -> Path:
        return self.state / "log"

    @property
    def secret_file(self) -> Path:
        return self.state / "secret"


@dataclass(frozen=True, slots=True)
class Group:
    """Sections that are set together, with an example as it may stand in the file."""

    title: str
    sections: tuple[str, ...]
    example: str


GROUPS: Final = (
    Group(
        "Where it keeps things and is reached",
        ("paths", "db", "web", "git", "buildbot"),
        """\
[paths]
state = "/var/lib/swingbot"
[db]
url = "postgresql+psycopg2://swingbot@db.example.org/swingbot"
password_file = "/etc/swingbot/db.password"
[web]
public_url = "https://swingbot.example.org"
proxies = "127.0.0.1"
""",
    ),
    Group(
        "What is built and measured",
        ("watch", "bisect", "build", "boot", "benchmarks", "boxes", "policy"),
        """\
[watch]
testbox = "rack1"
boots = 5
[build]
workers = "builder, builder-2"
compiler = "gcc-12"
""",
    ),
    Group(
        "What is proved and mailed",
        ("proof", "mail"),
        """\
[mail]
host = "smtp.example.org"
sender = "swingbot <swingbot@example.org>"
to = "lab@example.org"
domain = "swingbot.example.org"   # must never change
dry_run = true                    # all mail goes to mail.to alone
""",
    ),
    Group(
        "What is kept, and for how long",
        ("retention", "disk"),
        """\
[retention]
enabled = true
kernels_days = 90
[disk]
stop_below_mib = 20000
""",
    ),
)


def shown(value: Any) -> Any:
    """A value as it may be shown: a password in a URL is not."""
    return _PASSWORD.sub(r"\1:***@", value) if isinstance(value, str) else value


SECTIONS = tuple(f.name for f in dataclasses.fields(Settings) if f.name != "sources")


def _convert(where: str, kind: type, value: Any) -> Any:
    try:
        if kind is bool:
            if isinstance(value, bool):
                return value
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[
                str(value).lower()
            ]
        if kind in (int, float) and isinstance(value, bool):
            raise ValueError
        if kind is str and not isinstance(value, str):
            raise ValueError
        return kind(value)
    except (KeyError, ValueError, TypeError):
        raise SettingsError(
            f"{where}: {value!r} is not {'true or false' if kind is bool else 'a ' + kind.__name__}"
        ) from None


def load(file: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read settings from `file` and `environ`.

    Raises SettingsError for an unreadable file, an unknown key or a value of the wrong kind.
    """
    env = os.environ if environ is None else environ
    if file is None:
        file = (
            Path(env["SWINGBOT_CONFIG"])
            if env.get("SWINGBOT_CONFIG")
            else (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
        )
    document: dict[str, Any] = {}
    if file is not None:
        try:
            document = tomllib.loads(file.read_text())
        except OSError as error:
            raise SettingsError(
                f"{file}: {error.strerror}; give another file with --config or unset SWINGBOT_CONFIG"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{file}: not TOML: {error}") from None
    _drop_constants(document, file, env)
    hints = get_type_hints(Settings)
    sources: dict[str, str] = {}
    sections: dict[str, Any] = {}
    for name in SECTIONS:
        kind = hints[name]
        known = {f.name: get_type_hints(kind)[f.name] for f in dataclasses.fields(kind)}
        given = document.pop(name, {})
        if not isinstance(given, dict):
            raise SettingsError(f"{file}: [{name}] must be a table of keys")
        values: dict[str, Any] = {}
        for key, value in given.items():
            if key not in known:
                raise SettingsError(
                    f"{file}: unknown key {name}.{key}; known are {', '.join(known)}"
                )
            values[key] = _convert(f"{file}: {name}.{key}", known[key], value)
            sources[f"{name}.{key}"] = str(file)
        for key, type_ in known.items():
            variable = variable_of(f"{name}.{key}")
            if variable in env:
                values[key] = _convert(variable, type_, env[variable])
                sources[f"{name}.{key}"] = variable
        sections[name] = kind(**values)
    if document:
        raise SettingsError(
            f"{file}: unknown section [{next(iter(document))}]; known are {', '.join(SECTIONS)}"
        )
    settings = Settings(**sections, sources=sources)
    for key, words in (("pages", ("open", "operator", "off")), ("control", ("nobody", "operator"))):
        if getattr(settings.buildbot, key) not in words:
            raise SettingsError(
                f"buildbot.{key}: {getattr(settings.buildbot, key)!r} is none of {', '.join(words)}"
            )
    if settings.mail.release not in RELEASES:
        raise SettingsError(
            f"mail.release: {settings.mail.release!r} is none of {', '.join(RELEASES)}"
        )
    if settings.mail.bcc_maildir and not settings.mail.bcc:
        raise SettingsError(
            "mail.bcc_maildir: name in mail.bcc the address whose mail is delivered there"
        )
    _check_web(settings.web)
    _check_build(settings.build)
    if not settings.git.fetch_gib > 0:
        raise SettingsError(f"git.fetch_gib: {settings.git.fetch_gib} leaves nothing to fetch")
    for key in ("most_recipients", "per_list"):
        if getattr(settings.mail, key) < 1:
            raise SettingsError(
                f"mail.{key}: {getattr(settings.mail, key)} is less than 1; `swingbot report stop` stops all mail"
            )
    for key in ("gates", "require"):
        try:
            gate_names(getattr(settings.proof, key))
        except BadGate as error:
            raise SettingsError(f"proof.{key}: {error}") from None
    for section in ("retention", "disk"):
        for name, value in dataclasses.asdict(getattr(settings, section)).items():
            if not value >= 0:
                raise SettingsError(f"{section}.{name}: {value} is less than 0")
    return settings


def _drop_constants(document: dict[str, Any], file: Path | None, env: Mapping[str, str]) -> None:
    """Take what is a constant now out of `document`. Raises SettingsError if it was set to another value."""
    for key, constant in CONSTANTS.items():
        section, _, name = key.partition(".")
        table, variable = document.get(section), variable_of(key)
        if isinstance(table, dict) and name in table:
            _check_constant(f"{file}: {key}", table.pop(name), constant)
            if not table:
                del document[section]
        if variable in env:
            _check_constant(variable, env[variable], constant)


def _check_constant(where: str, value: Any, constant: float) -> None:
    if str(value) not in (str(constant), f"{constant:g}"):
        raise SettingsError(
            f"{where} is no longer a setting: it is always {constant:g}, not {value!r}; remove it"
        )


def variable_of(key: str) -> str:
    """The variable that sets section.key."""
    return f"SWINGBOT_{key.replace('.', '_').upper()}"


def _check_build(build: Build) -> None:
    """Raise SettingsError for a compiler or a worker that cannot be one."""
    if not is_compiler(build.compiler):
        raise SettingsError(f"build.compiler: {build.compiler!r} is not a compiler; use {FORM}")
    names = build_workers(build)
    if not names or len(set(names)) != len(names):
        raise SettingsError("build.workers: name each worker that builds kernels once")
    for name in names:
        if not _WORKER.fullmatch(name) or name.startswith("box-"):
            raise SettingsError(
                f"build.workers: {name!r} cannot be a build worker; use letters, digits and ._-,"
                " and no name that begins with box- (those drive testboxes)"
            )


def build_workers(build: Build) -> list[str]:
    """Names of the workers that build kernels."""
    return [name for word in build.workers.split(",") if (name := word.strip())]


def _check_web(web: Web) -> None:
    """Raise SettingsError for words and numbers that make no sense."""
    for key, words in (
        ("read", ("open", "token")),
        ("raw", ("open", "token")),
        ("metrics", ("open", "token", "off")),
    ):
        if getattr(web, key) not in words:
            raise SettingsError(f"web.{key}: {getattr(web, key)!r} is none of {', '.join(words)}")
    for key in ("connections", "attempt_files", "attempt_mib", "patch_kib"):
        if getattr(web, key) < 1:
            raise SettingsError(f"web.{key}: {getattr(web, key)} is less than 1")
    for key in ("rate", "write_rate", "open_requests", "box_minutes"):
        if not getattr(web, key) >= 0:
            raise SettingsError(f"web.{key}: {getattr(web, key)} is less than 0")
    for proxy in filter(None, (word.strip() for word in web.proxies.split(","))):
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            raise SettingsError(
                f"web.proxies: {proxy!r} is neither an address nor a network such as 192.0.2.0/28"
            ) from None


def with_place(settings: Settings, state: Path | None, port: int | None) -> Settings:
    """The same settings with another state directory or first port, as given on the command line."""
    if state is not None:
        settings = dataclasses.replace(
            settings,
            paths=dataclasses.replace(settings.paths, state=str(state.absolute())),
            sources={**settings.sources, "paths.state": "command line"},
        )
    if port is not None:
        settings = dataclasses.replace(
            settings,
            web=dataclasses.replace(settings.web, port=port),
            sources={**settings.sources, "web.port": "command line"},
        )
    return settings
