"""Settings from one TOML file; `SWINGBOT_<SECTION>_<KEY>` overrides a key.

Order of precedence: environment, then the file (`--config`, `SWINGBOT_CONFIG`,
`/etc/swingbot/swingbot.toml`), then the default below. Unknown keys are errors that name the file.
Secrets are never settings: they are files under `paths.state`, or files named by `*_file` keys.
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
from typing import Annotated, Any, Final, get_type_hints
from urllib.parse import urlsplit

from swingbot.core.moderation.ruling import RELEASES
from swingbot.core.proof.gates import BadGate
from swingbot.core.proof.gates import names as gate_names
from swingbot_jobs import codec, resources
from swingbot_jobs.codec import Hidden, at_least, one_of
from swingbot_jobs.contract import worker_name
from swingbot_jobs.contract.compiler import FORM, is_compiler
from swingbot_jobs.contract.heartbeat import BEAT_SECONDS
from swingbot_jobs.yaml_lines import LocatedValue

_WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
_PASSWORD = re.compile(r"(://[^/@:\s]*):[^/@\s]*@")
DEFAULT_FILE = Path("/etc/swingbot/swingbot.toml")

HEARTBEATS: Final = 2  # a part that misses fewer does not hang


class SettingsError(ValueError):
    """Invalid settings file or variable; the message names the key and the expected value."""


def _key(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


def _xdg(variable: str, fallback: str) -> str:
    return os.environ.get(variable) or str(Path.home() / fallback)


def _above_0(number: float) -> str | None:
    return None if number > 0 else f"{number:g} is not greater than 0"


def _networks(text: str) -> str | None:
    for proxy in filter(None, (word.strip() for word in text.split(","))):
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            return f"{proxy!r} is not a valid address or network such as 192.0.2.0/28"
    return None


def _compiler(name: str) -> str | None:
    return None if is_compiler(name) else f"{name!r} is not a compiler; use {FORM}"


def _workers(text: str) -> str | None:
    names = listed(text)
    if not names or len(set(names)) != len(names):
        return "must list at least one worker, and each only once"
    for name in names:
        if not _WORKER.fullmatch(name) or worker_name.drives_testbox(name):
            return (
                f"{name!r} is not a valid name of a build worker; use letters,"
                " digits and ._-, and do not start with testbox- (reserved for testboxes)"
            )
    return None


def _gates(text: str) -> str | None:
    try:
        gate_names(text)
    except BadGate as error:
        return str(error)
    return None


def _mails(number: int) -> str | None:
    return None if number >= 1 else "must be at least 1; to stop all mail: `swingbot report stop`"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSection:
    state: str = _key(
        "",
        "directory for persistent data; default ${XDG_STATE_HOME:-~/.local/state}/swingbot",
    )
    cache: str = _key(
        "",
        "directory for data that can be recreated: kernels, ccache, packages; default"
        " ${XDG_CACHE_HOME:-~/.cache}/swingbot",
    )
    jobs: str = _key(str(resources.folder("jobs")), "directory of job files, programs and schemas")
    workers: str = _key(
        str(resources.folder("workers")), "directory that contains testboxes/, kconfig/ and rootfs/"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DbSection:
    url: str = _key(
        "",
        "database URL, postgresql+psycopg2://user@host/db; empty: embedded server under"
        " paths.state",
    )
    password_file: str = _key("", "file with the password of the user in db.url")
    owner_url: str = _key(
        "",
        "URL of the same database for the role that owns the tables, used by `swingbot db"
        " upgrade`; empty: db.url",
    )
    owner_password_file: str = _key("", "file with the password of the user in db.owner_url")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSection:
    host: str = _key("127.0.0.1", "address on which the web service listens")
    port: int = _key(
        8010,
        "port of pages, API and artifacts; the embedded service also uses the next three ports",
    )
    public_url: str = _key("", "base URL of links in mails; default http://<host>:<port>")
    exchange_url: str = _key(
        "",
        "URL to which workers upload results and from which they fetch kernels; default"
        " http://<host>:<port>",
    )
    read: Annotated[str, one_of("open", "token")] = _key(
        "open",
        "access to pages: open: anyone who can reach them; token: only with a token of any role",
    )
    raw: Annotated[str, one_of("open", "token")] = _key(
        "open",
        "access to raw results, artifacts and kits: open: same as web.read; token: only with a"
        " token, or a worker's token of an attempt",
    )
    metrics: Annotated[str, one_of("open", "token", "off")] = _key(
        "open", "access to /metrics: open: anyone; token: only with a token; off: disabled"
    )
    proxies: Annotated[str, _networks] = _key(
        "",
        "comma-separated addresses or networks of trusted proxies (X-Forwarded-For and -Proto);"
        " empty: none",
    )
    hosts: str = _key(
        "",
        "comma-separated host names to answer for, besides localhost, this host's name and those of"
        " public_url and exchange_url; *: any",
    )
    rate: Annotated[float, at_least(0)] = _key(
        40.0,
        "processor seconds per minute allowed for one client, all in a burst; 0: no limit",
    )
    write_rate: Annotated[int, at_least(0)] = _key(
        120,
        "modifying requests per minute allowed for one person's token, a quarter of them in a"
        " burst; 0: no limit",
    )
    open_requests: Annotated[int, at_least(0)] = _key(
        5, "maximum number of open web requests (comparisons and experiments) per person"
    )
    testbox_minutes: Annotated[float, at_least(0)] = _key(
        600.0,
        "testbox time that one person's web requests may use in 24 hours, in minutes (estimated)",
    )
    patch_kib: Annotated[int, at_least(1)] = _key(
        1024, "maximum size of a patch sent over the web, in KiB"
    )
    wheel: str = _key(
        "",
        "wheel of swingbot that /install offers; empty: the one of this version in dist/ beside the"
        " service's Python environment, or that pip installed it from",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildbotSection:
    host: str = _key(
        "127.0.0.1",
        "address on which the master listens for workers; any except loopback requires"
        " tls_certificate and tls_key",
    )
    worker_port: int = _key(0, "port for workers; 0: web.port + 2")
    www_host: str = _key(
        "127.0.0.1",
        "address on which Buildbot's own pages listen; plain HTTP, so use a TLS proxy",
    )
    www_port: int = _key(0, "port of Buildbot's own pages; 0: web.port + 1")
    public_url: str = _key(
        "",
        "base URL of Buildbot's own pages; default http://<host of web.public_url>:<www_port>/",
    )
    address: str = _key(
        "",
        "name or address by which workers reach the master, as in its certificate; default:"
        " buildbot.host, or 127.0.0.1 if that is a wildcard",
    )
    tls_certificate: str = _key(
        "",
        "PEM file with the master's certificate followed by the chain up to the CA; empty: plain"
        " text, on loopback only",
    )
    tls_key: str = _key("", "PEM file with the private key of tls_certificate")
    tls_ca: str = _key(
        "",
        "PEM file with the CA that workers of `swingbot up` trust; empty: tls_certificate itself",
    )
    secrets: str = _key(
        "",
        "directory with the secret of each worker, in a file named after the worker; default"
        " <state>/worker-secrets",
    )
    elsewhere: str = _key(
        "",
        "comma-separated names or globs (such as testbox-*) of workers that run on other hosts;"
        " `swingbot up` does not start them",
    )
    pages: Annotated[str, one_of("open", "operator", "off")] = _key(
        "open",
        "access to Buildbot's own pages: open: anyone who can reach them; operator: only with an"
        " operator's token; off: disabled",
    )
    control: Annotated[str, one_of("nobody", "operator")] = _key(
        "nobody",
        "who may start and stop builds on Buildbot's own pages: nobody, or operator; swingbot"
        " itself does not use them",
    )
    logs_days: float = _key(
        56.0, "days after which Buildbot deletes the logs of its steps; 0: never"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSection:
    url: str = _key(
        "",
        "URL from which build workers fetch commits; default: path of the mirror, for workers on"
        " this host",
    )
    host: str = _key(
        "127.0.0.1",
        "address on which `swingbot git` serves the mirror, read-only, to anyone who can reach it",
    )
    port: int = _key(9418, "port of `swingbot git`")
    paths: str = _key(
        "*",
        "comma-separated globs of local paths from which trees may be fetched, such as /srv/git/*;"
        " empty: only URLs",
    )
    fetch_gib: Annotated[float, _above_0] = _key(
        20.0, "maximum size of one fetch, in GiB; a complete kernel history has 5"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSection:
    jobs: int = _key(0, "parallel jobs of make (-j); 0: number of CPUs")
    kconfig: str = _key(
        "vm-x86_64",
        "kernel configuration of new trees, workers/kconfig/<name>.config; <name>+align64 also"
        " merges fragments/align64.config",
    )
    compiler: Annotated[str, _compiler] = _key(
        "gcc", "compiler of new trees, such as gcc, gcc-12 or clang-19; see `swingbot compilers`"
    )
    workers: Annotated[str, _workers] = _key(
        "builder",
        "comma-separated names of the workers that build kernels, each with the compilers it has",
    )
    deadline_seconds: int = _key(
        3600,
        "processor time of a kernel build for each job of make, in seconds",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSection:
    deadline_seconds: int = _key(
        43200,
        "longest boot with its runs that may be requested, in seconds",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSection:
    dir: str = _key(
        "", "directory of locally built benchmark binaries, preferred to Debian's; empty: none"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSection:
    poll_seconds: float = _key(60.0, "polling interval of watched branches, in seconds")
    boots: int = _key(3, "boots per kernel in an automatic comparison")
    testbox: str = _key("vm-icount", "default testbox of trees and comparisons")
    bisect_improvements: bool = _key(False, "also bisect improvements")


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectSection:
    confidence: float = _key(
        0.99, "posterior probability at which a commit is confirmed as the culprit"
    )
    max_boots: int = _key(
        200, "maximum number of boots of a bisection; then it ends as inconclusive"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxSection:
    failures: int = _key(
        3,
        "consecutive failed attempts after which a bare-metal testbox is quarantined; 0: never",
    )
    screening_boots: int = _key(
        10,
        "boots of an anchor that a bare-metal testbox must complete before its results count, if"
        " it is new or its hardware changed; 0: none",
    )
    idle_aa_minutes: float = _key(
        30.0,
        "minutes after which an idle testbox boots a known kernel again, to measure its noise; 0:"
        " never",
    )
    stuck_minutes: float = _key(
        120.0,
        "minutes without any completed order, while orders wait, after which the operator gets a"
        " mail; 0: never",
    )
    invalid_pct: float = _key(
        20.0,
        "percentage of invalid runs among a testbox's latest ones above which the operator gets a"
        " mail; 0: never",
    )
    mails: bool = _key(
        True,
        "send mails about testboxes and the queue to mail.to; false: only pages and `swingbot"
        " status` show problems",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofSection:
    gates: Annotated[str, _gates] = _key(
        "all",
        "comma-separated gates that are run for a culprit before its mail (docs/proof.md); layout"
        " and executed build additional kernels",
    )
    require: Annotated[str, _gates] = _key(
        "reproduced,tip,code,facts",
        "comma-separated gates that must pass before a mail is sent automatically; other gates"
        " hold the mail only if they fail",
    )
    deadline_hours: float = _key(
        24.0, "hours after which an unfinished gate is abandoned and the mail is written without it"
    )
    budget_minutes: float = _key(
        240.0,
        "estimated testbox minutes that the gates of one culprit may use together; gates beyond"
        " that are not run; 0: no limit",
    )
    merged_trees: str = _key(
        "",
        "comma-separated names of trees on which others base their work, such as mainline; reports"
        " mention it",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSection:
    release: Annotated[str, one_of(*RELEASES)] = _key(
        "hold",
        "release of reports: hold: by a person; earned: automatic for classes that people released"
        " often enough; release: automatic unless in doubt",
    )
    dry_run: bool = _key(
        True,
        "send all reports only to mail.to, and show on pages who would receive them; false: send to"
        " author, maintainers and lists",
    )
    stop: bool = _key(False, "stop all mail while true, like `swingbot report stop`")
    sender: str = _key("swingbot <swingbot@localhost>", "From address of all reports")
    to: str = _key(
        "swingbot-reports@localhost",
        "comma-separated addresses of the operator, who gets all reports in a dry run and reports"
        " without other recipients",
    )
    contact: str = _key("the operator of this swingbot", "contact person named in every mail")
    bcc: str = _key(
        "",
        "comma-separated addresses for a blind copy of every mail; a copy in mail.bcc_maildir"
        " proves that a mail was sent",
    )
    bcc_maildir: str = _key("", "Maildir that receives the copies for mail.bcc")
    host: str = _key(
        "", "SMTP server; empty: embedded server, which delivers to a Maildir under paths.state"
    )
    port: int = _key(25, "port of mail.host")
    key_file: str = _key(
        "",
        "key with which the loop delivers to the embedded server, created by it; empty: mail.key"
        " under paths.state",
    )
    domain: str = _key("swingbot.localdomain", "domain of Message-IDs; must never change")
    list_id: str = _key(
        "",
        "value of the List-Id header, such as reports.swingbot.example.org; empty: no header",
    )
    regzbot: bool = _key(False, "ask regzbot to track reports about commits in proof.merged_trees")
    archive: str = _key(
        "",
        "archive of mailing lists (public-inbox git repository, Maildir, mbox file or directory),"
        " used to send reports as replies to the patch; empty: none",
    )
    still_days: float = _key(
        30.0,
        "days between reminders that a change is still present, at tips measured anyway; 0: none",
    )
    get_maintainer: bool = _key(
        False,
        "take maintainers and lists from scripts/get_maintainer.pl of the tree's base, run behind"
        " the walls of a build; false: only authors",
    )
    aa_pairs: Annotated[int, at_least(0)] = _key(
        20,
        "pairs of boots of one kernel, without a claimed change, that a bare-metal testbox needs"
        " before reports about it go to anybody but mail.to; 0: none",
    )
    aa_days: Annotated[int, at_least(1)] = _key(2, "days (UTC) that these boots must span")
    virtual_testboxes: str = _key(
        "",
        "comma-separated names or globs (such as vm-*) of virtual testboxes whose reports may go to"
        " others than mail.to; empty: none",
    )
    private_trees: str = _key(
        "",
        "comma-separated names or globs (such as dev-*) of trees whose reports are sent only to"
        " the author",
    )
    opt_outs: str = _key("", "comma-separated addresses or @domains that do not receive reports")
    most_recipients: Annotated[int, _mails] = _key(15, "maximum number of recipients of one report")
    per_list: Annotated[int, _mails] = _key(
        5, "maximum number of mails to one mailing list in 24 hours; further ones are held"
    )
    per_recipient: Annotated[int, _mails] = _key(
        10,
        "maximum number of mails to one other recipient in 24 hours; further ones are held; mail.to"
        " and mail.digest_to have no limit",
    )
    digest: bool = _key(True, "report improvements in one weekly mail; false: in separate reports")
    digest_to: str = _key("", "comma-separated recipients of the weekly digest; empty: mail.to")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSection:
    enabled: bool = _key(
        False,
        "delete expired files once a day by the rules below; false: only by `swingbot retention"
        " --prune`",
    )
    kernels_days: Annotated[float, at_least(0)] = _key(
        180.0,
        "days to keep kernel images after their last boot; they are rebuilt if needed; 0: forever",
    )
    debug_days: Annotated[float, at_least(0)] = _key(
        180.0,
        "days to keep System.map, object lists and function records after the kernel's last boot;"
        " 0: forever",
    )
    rootfs_days: Annotated[float, at_least(0)] = _key(
        365.0, "days to keep root file systems after their last boot; 0: forever"
    )
    results_days: Annotated[float, at_least(0)] = _key(
        0.0,
        "days to keep raw results after the boot; without them nothing can be parsed again; 0:"
        " forever",
    )
    logs_days: Annotated[float, at_least(0)] = _key(
        90.0, "days to keep console and build logs; 0: forever"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSection:
    stop_below_mib: Annotated[int, at_least(0)] = _key(
        1000,
        "free space on the disk of paths.state, in MiB, below which no orders are dispatched; 0:"
        " no limit",
    )
    warn_below_mib: Annotated[int, at_least(0)] = _key(
        5000, "free space in MiB below which status and pages show a warning"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSection:
    hung_seconds: float = _key(
        30.0,
        "seconds without a heartbeat after which status, /healthz, /metrics and `swingbot up`"
        " report a part as hung",
    )
    restart_seconds: float = _key(
        90.0,
        "seconds without a heartbeat after which `swingbot up` kills a part, which then starts"
        " again (under systemd: WatchdogSec= of its unit)",
    )
    stalled_seconds: Annotated[float, at_least(BEAT_SECONDS)] = _key(
        25.0,
        "seconds that the loop may compute without a commit, a query or a program that it waits"
        " for; then it stops its heartbeat",
    )


def _reachable(host: str) -> str:
    """Convert a listening address to one that clients can connect to."""
    return "127.0.0.1" if host in ("0.0.0.0", "::", "") else host


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    paths: PathSection = field(default_factory=PathSection)
    db: DbSection = field(default_factory=DbSection)
    web: WebSection = field(default_factory=WebSection)
    buildbot: BuildbotSection = field(default_factory=BuildbotSection)
    git: GitSection = field(default_factory=GitSection)
    build: BuildSection = field(default_factory=BuildSection)
    boot: BootSection = field(default_factory=BootSection)
    benchmarks: BenchmarkSection = field(default_factory=BenchmarkSection)
    watch: WatchSection = field(default_factory=WatchSection)
    bisect: BisectSection = field(default_factory=BisectSection)
    testboxes: TestboxSection = field(default_factory=TestboxSection)
    proof: ProofSection = field(default_factory=ProofSection)
    mail: MailSection = field(default_factory=MailSection)
    retention: RetentionSection = field(default_factory=RetentionSection)
    disk: DiskSection = field(default_factory=DiskSection)
    health: HealthSection = field(default_factory=HealthSection)
    # "section.key" -> origin, shown by `swingbot settings`
    sources: Hidden[Mapping[str, str]] = field(default_factory=dict)

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
        """URL for workers: the service itself, not the public URL."""
        return (
            self.web.exchange_url or f"http://{_reachable(self.web.host)}:{self.web.port}"
        ).rstrip("/")

    @property
    def buildbot_url(self) -> str:
        """URL of Buildbot's own pages, with a trailing slash; empty if they are disabled."""
        if self.buildbot.pages == "off":
            return ""
        return (
            self.buildbot.public_url
            or f"http://{urlsplit(self.web_url).hostname or '127.0.0.1'}:{self.buildbot_www_port}"
        ).rstrip("/") + "/"

    @property
    def master_address(self) -> str:
        """Address of the master for workers, `host:port`, with IPv6 addresses in brackets."""
        host = self.buildbot.address or _reachable(self.buildbot.host)
        return f"{f'[{host}]' if ':' in host else host}:{self.buildbot_worker_port}"

    @property
    def git_url(self) -> str:
        return self.git.url or str(self.mirror)

    @property
    def git_paths(self) -> list[str]:
        return listed(self.git.paths)

    @property
    def worker_secrets(self) -> Path:
        return (
            Path(self.buildbot.secrets).expanduser().absolute()
            if self.buildbot.secrets
            else self.state / "worker-secrets"
        )

    # The other ports are relative to the first one, so that --port moves all of them.
    @property
    def buildbot_www_port(self) -> int:
        return self.buildbot.www_port or self.web.port + 1

    @property
    def buildbot_worker_port(self) -> int:
        return self.buildbot.worker_port or self.web.port + 2

    @property
    def smtp_port(self) -> int:
        return self.mail.port if self.mail.host else self.web.port + 3

    # Paths under the state directory.
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
    def reproductions(self) -> Path:
        return self.state / "reproductions"

    @property
    def mail_key(self) -> Path:
        file = self.mail.key_file
        return Path(file).expanduser() if file else self.state / "mail.key"

    @property
    def log(self) -> Path:
        return self.state / "log"

    @property
    def secret_file(self) -> Path:
        return self.state / "secret"


@dataclass(frozen=True, slots=True)
class Group:
    """Related sections, with an example for the settings file."""

    title: str
    sections: tuple[str, ...]
    example: str


GROUPS: Final = (
    Group(
        "Storage and network",
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
        "Builds and measurements",
        ("watch", "bisect", "build", "boot", "benchmarks", "testboxes"),
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
        "Proof and mail",
        ("proof", "mail"),
        """\
[mail]
host = "smtp.example.org"
sender = "swingbot <swingbot@example.org>"
to = "lab@example.org"
domain = "swingbot.example.org"   # must never change
dry_run = true                    # all mail goes only to mail.to
""",
    ),
    Group(
        "Retention and health",
        ("retention", "disk", "health"),
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
    """Mask the password of a URL for display."""
    return _PASSWORD.sub(r"\1:***@", value) if isinstance(value, str) else value


SECTIONS = tuple(f.name for f in dataclasses.fields(Settings) if f.name != "sources")


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
                f"{file}: {error.strerror}; give another file with --config, or unset"
                " SWINGBOT_CONFIG"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{file}: not valid TOML: {error}") from None
    settings = _read(document, str(file or ""), env)
    if settings.mail.bcc_maildir and not settings.mail.bcc:
        raise SettingsError(
            "mail.bcc_maildir requires mail.bcc; set it to the address delivered to that Maildir"
        )
    health = settings.health
    if not HEARTBEATS * BEAT_SECONDS <= health.hung_seconds <= health.restart_seconds:
        raise SettingsError(
            f"health.hung_seconds must be between {HEARTBEATS * BEAT_SECONDS:g} and"
            f" health.restart_seconds = {health.restart_seconds:g}, got {health.hung_seconds:g}"
        )
    return settings


def _read(document: dict[str, Any], file: str, env: Mapping[str, str]) -> Settings:
    """Read the sections of the file with the variables, whose texts become what the keys need."""
    sources: dict[str, str] = {}
    if "sources" in document:
        raise SettingsError(f"{file}: key 'sources' is unknown here")
    for name, section in document.items():
        for key, value in section.items() if isinstance(section, dict) else ():
            sources[f"{name}.{key}"] = file
            if isinstance(value, str):
                section[key] = LocatedValue(value, 0, file, plain=True)
    for name, kind in get_type_hints(Settings).items():
        for key in (f.name for f in dataclasses.fields(kind)) if name in SECTIONS else ():
            variable = variable_of(f"{name}.{key}")
            if variable in env and isinstance(section := document.setdefault(name, {}), dict):
                section[key] = LocatedValue(env[variable], 0, variable, plain=True)
                sources[f"{name}.{key}"] = variable
    try:
        settings = codec.typed(Settings, LocatedValue(document, 0, file))
    except codec.BadDocument as error:
        raise SettingsError(str(error)) from None
    return dataclasses.replace(settings, sources=sources)


def variable_of(key: str) -> str:
    """Environment variable that sets `key` ("section.key")."""
    return f"SWINGBOT_{key.replace('.', '_').upper()}"


def listed(text: str) -> list[str]:
    """Words of a comma-separated list."""
    return [name for word in text.split(",") if (name := word.strip())]


def build_workers(build: BuildSection) -> list[str]:
    """Names of the workers that build kernels."""
    return listed(build.workers)


def with_place(settings: Settings, state: Path | None, port: int | None) -> Settings:
    """Return the settings with the state directory and first port of the command line, if given."""
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
