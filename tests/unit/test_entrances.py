"""Every way in for strangers' text has a row in docs/security.md, and is read in linear time."""

from __future__ import annotations

import ast
import gc
import gzip
import inspect
import io
import json
import re
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from swingbot.adapters.kernel_child import QUESTIONS
from swingbot.adapters.mail_child import READERS
from swingbot.app.settings import load
from swingbot.app.web import service
from swingbot.core.limits import RECORD_VALUES
from swingbot.core.mail.posting import posted_as
from swingbot.core.mail.recipients import BadMaintainers, read_maintainers
from swingbot.core.mail.trailers import people_in_trailers
from swingbot.core.model import cursor
from swingbot.core.patchset.bundle import read_bundle
from swingbot.core.patchset.model import SeriesError
from swingbot.core.patchset.read import read_file
from swingbot.core.raw import boot_record
from swingbot.core.raw.tar_members import members
from swingbot.service.bisect.weigh_points import read_objects
from swingbot.service.limits import OBJECT_LIST_BYTES, RECORD_BYTES
from swingbot.service.ports.lab import QuarantinedGit
from swingbot.web.http import json_body
from swingbot.web.pages.form_body import read_form
from swingbot_jobs.contract import distro_config
from swingbot_jobs.kernel_diff.config import options
from swingbot_jobs.kernel_diff.record import BadRecord, read_record
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.yaml_lines import JobError, read_documents
from swingbot_worker import InfraError
from swingbot_worker.kbuild.log import error_lines
from swingbot_worker.testbox.adopt import driver_options, survey
from swingbot_worker.testbox.console import judge
from swingbot_worker.testbox.ssh import memory_modules
from tests.patch_series import a_diff
from tests.regular_expressions import modules

ROOT: Final = Path(__file__).parents[2]
SIZES: Final = (32 << 10, 64 << 10, 128 << 10)
GROWTH: Final = 3.0  # of processor time for each doubling
LINEAR_SECONDS: Final = 0.05  # less is not measured

OWN: Final = ""  # documents that swingbot itself, its operator or a person's own command wrote
ROUTES: Final = {
    "PUT /artifacts/{sha256}": "kernel records",
    "PUT /attempts/{id}/phase": "JSON",
    "PUT /attempts/{id}/outcome.json": "JSON",
    "POST /login": "JSON",
    "POST /logout": "JSON",
    "POST /incident/{id}": "JSON",
    "POST /incident/{id}/decide": "JSON",
    "POST /report/{id}/decide": "JSON",
    "POST /incident/{id}/prove": "JSON",
    "POST /report/{id}/readdress": "JSON",
    "POST /outbox/switch": "JSON",
    "POST /commits/known": "JSON",
    "POST /compare": "patches",
    "POST /bisect": "bundles",
    "POST /bisection/{id}/cancel": "JSON",
    "POST /bisection/{id}/skip": "JSON",
    "POST /bisection/{id}/hint": "JSON",
    "POST /testbox/{name}/resume": "JSON",
    "POST /bisection/{id}/resume": "JSON",
    "POST /comparison/{id}/cancel": "JSON",
    "POST /experiment/{id}/cancel": "JSON",
    "POST /comparison/{id}/publish": "JSON",
    "POST /experiment/{id}/publish": "JSON",
    "POST /comparison/{id}/extend": "JSON",
    "POST /experiment/{id}/extend": "JSON",
    "POST /experiment": "patches",
    "POST /moderation/switch": "JSON",
    "POST /tokens/{id}/revoke": "JSON",
    "POST /moderation/{id}": "JSON",
}
CHILDREN: Final = {
    "mail_child series": "patches",
    "mail_child heads": "mails",
    "mail_child mail": "mails",
    "mail_child posting": "mails",
    **{f"kernel_child {read}": "kernel records" for read in QUESTIONS},
    "result_child": "results",
    "reader_child": OWN,
}
# Methods of the mirror; those with a row return what the author of a commit wrote.
GIT: Final = (
    dict.fromkeys(
        (
            *("admit", "apply_series", "call", "check_source", "fetch_branch", "find_patch"),
            *("first_parents", "is_ancestor", "is_kernel", "keep", "merge_base", "patch_ids"),
            *("places", "quarantine", "remote_tip", "resolve", "resolve_remote", "without"),
            *("beyond", "created", "is_sent_by", "known", "outside"),
        ),
        OWN,
    )
    | dict.fromkeys(
        (
            *("changed_paths", "facts", "message", "messages_from", "patches"),
            *("paths_along", "paths_between", "whole_sources"),
        ),
        "commits",
    )
    | {"unbundle": "bundles"}
)
# Modules of the service and of what it shares with workers that parse more than expressions do.
MODULES: Final = {
    "swingbot.adapters.heartbeat": OWN,
    "swingbot.adapters.kernel_reader": OWN,
    "swingbot.adapters.limited_reader": "results",
    "swingbot.adapters.maildir": "mails",
    "swingbot.adapters.maintainers": "maintainers",
    "swingbot.adapters.parser_version": OWN,
    "swingbot.adapters.reader_child": OWN,
    "swingbot.adapters.smtp": OWN,
    "swingbot.adapters.zstd_file": OWN,
    "swingbot.app.bisect_run.journal": OWN,
    "swingbot.app.bisect_run.layout_recipe": OWN,
    "swingbot.app.check_testbox": OWN,
    "swingbot.app.commands.check": OWN,
    "swingbot.app.commands.table_options": OWN,
    "swingbot.app.embedded": OWN,
    "swingbot.app.here": OWN,
    "swingbot.app.keep.retain": OWN,
    "swingbot.app.keep.verify": OWN,
    "swingbot.app.offered_wheel": OWN,
    "swingbot.app.kit_file": OWN,
    "swingbot.app.remote.connection": OWN,
    "swingbot.app.remote.login": OWN,
    "swingbot.app.reproduction": OWN,
    "swingbot.app.settings": OWN,
    "swingbot.core.bisect.tell.journal": OWN,
    "swingbot.core.bisect.tell.logbook": OWN,
    "swingbot.core.mail.addresses": "commits",
    "swingbot.core.mail.encoding": OWN,
    "swingbot.core.model.cursor": "addresses",
    "swingbot.core.patchset.bundle": "bundles",
    "swingbot.core.patchset.mime": "mails",
    "swingbot.core.patchset.patch_mail": "patches",
    "swingbot.core.raw.boot_record": "records of boots",
    "swingbot.core.raw.tables": OWN,
    "swingbot.core.raw.tar_members": "results",
    "swingbot.core.stats.history_file": OWN,
    "swingbot.core.stats.parse": OWN,
    "swingbot.core.stats.table_cells": OWN,
    "swingbot.core.table.request_document": "JSON",
    "swingbot.service.bisect.weigh_points": "lists of objects",
    "swingbot.service.report.address": OWN,
    "swingbot.service.report.draft_followups": OWN,
    "swingbot.service.report.readdress": OWN,
    "swingbot.web.access.forms": "JSON",
    "swingbot.web.api.document_types": OWN,
    "swingbot.web.http.json_body": "JSON",
    "swingbot.web.pages.form_body": "JSON",
    "swingbot_jobs.contract.compiler": "JSON",
    "swingbot_jobs.contract.facts": OWN,
    "swingbot_jobs.contract.orders": OWN,
    "swingbot_jobs.extras": OWN,
    "swingbot_jobs.kernel_diff.record": "kernel records",
    "swingbot_jobs.language.arithmetic": "jobs",
    "swingbot_jobs.language.include": "jobs",
    "swingbot_jobs.reading.lkp": "results",
    "swingbot_jobs.reading.parse": "results",
    "swingbot_jobs.reading.perf_stat": "results",
    "swingbot_jobs.yaml_lines": "jobs",
}
PARSERS: Final = re.compile(
    r"(?:json|tomllib|pickle|marshal|plistlib)\.loads?|json\.JSONDecoder|ast\.(?:parse|literal_eval)"
    r"|(?:tarfile|gzip|bz2|lzma)\.open|zipfile\.ZipFile|zlib\.decompress(?:obj)?|gzip\.decompress"
    r"|zstandard\.ZstdDecompressor|yaml\.\w+|csv\.(?:reader|DictReader)|configparser\.\w+"
    r"|struct\.(?:unpack|unpack_from|iter_unpack)|(?:base64|binascii)\.(?:\w*decode\w*|a2b_\w+)"
    r"|message_from_\w+|email\.message_from_\w+|\w*Header(?:Parser)?|getaddresses|parseaddr"
    r"|parsedate\w*|decode_header|MultipartParser|multipart\.MultipartParser|parse_qsl?|ELFFile"
    r"|(?:ET|ElementTree)\.\w+|HTMLParser"
)
_HEADER_WRITERS: Final = {"Header"}


def rows() -> dict[str, str]:
    """Return what the table of docs/security.md says about each entrance."""
    section = (ROOT / "docs/security.md").read_text().split("## Where strangers' text is read")[1]
    lines = section.partition("\n## ")[0].splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][1:]
    return {re.split("[:,]", row[0])[0]: row[2] for row in cells}


def test_every_route_that_takes_a_body_has_a_row(tmp_path: Path) -> None:
    nowhere = sa.create_engine("postgresql+psycopg2://nobody@127.0.0.1:1/none")
    app: Any = service(load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}), nowhere)
    while hasattr(app, "_app"):
        app = app._app
    bodies = {
        f"{method} {route.path}"
        for route in app.routes
        for method in getattr(route, "methods", None) or ()
        if method not in ("GET", "HEAD")
    }
    assert bodies == set(ROUTES)


def test_every_question_to_a_child_has_a_row() -> None:
    children = {file.stem for file in (ROOT / "master/swingbot/adapters").glob("*_child.py")}
    asked = {"mail_child": READERS, "kernel_child": QUESTIONS}
    questions = {f"{child} {read}" for child, reads in asked.items() for read in reads}
    assert questions | children - set(asked) == set(CHILDREN)


def test_what_git_says_of_a_commit_has_a_row() -> None:
    methods = inspect.getmembers(QuarantinedGit, inspect.isfunction)
    assert {name for name, _ in methods if not name.startswith("_")} == set(GIT)


def test_every_module_that_parses_has_a_row() -> None:
    parsing = {
        name
        for name, file in modules()
        if name.partition(".")[0] in ("swingbot", "swingbot_jobs", "swingbot_db")
        if any(PARSERS.fullmatch(call) for call in _calls(file))
    }
    assert parsing == set(MODULES)


def test_every_row_is_of_an_entrance_and_names_limits() -> None:
    used = {*ROUTES.values(), *CHILDREN.values(), *GIT.values(), *MODULES.values()} - {OWN}
    table = rows()
    assert used | {"consoles", "ELF"} == set(table)
    limits = {
        match[0]
        for file in ROOT.glob("*/*/**/limits.py")
        for match in re.finditer(r"^[A-Z_]+(?=: Final)", file.read_text(), re.MULTILINE)
    }
    for name, said in table.items():
        named = set(re.findall(r"`([A-Z_]+)`", said))
        assert named and named <= limits, name


def _calls(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name not in _HEADER_WRITERS:
                yield name


Read = Callable[[], object]


def _repeated(before: str, pump: str, size: int) -> bytes:
    return (before + pump * (size // len(pump))).encode()


def _patch(before: str, pump: str) -> Callable[[int], Read]:
    return lambda size: lambda: read_file("x", _repeated(before, pump, size))


def _mail(read: str, pump: str, **more: Any) -> Callable[[int], Read]:
    def worst(size: int) -> Read:
        data = b"From x\n" + _repeated("Subject: ", pump, size) + b"\n\n"
        document = {"sizes": [len(data)], "seconds": 60.0, **more}
        return lambda: READERS[read](document, io.BytesIO(data))

    return worst


def _message(line: str) -> Callable[[int], Read]:
    def worst(size: int) -> Read:
        message = "x\n\n" + line * (size // len(line))
        return lambda: (posted_as(message), people_in_trailers(message))

    return worst


def _tar(size: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for number in range(size // 1024):
            info = tarfile.TarInfo(f"job/{number}/out")
            info.size = 1
            tar.addfile(info, io.BytesIO(b"x"))
    return file.getvalue()


def _form(size: int) -> Read:
    head = b'--b\r\ncontent-disposition: form-data; name="head"\r\n\r\n'
    part = head + b"\r\n--" * (size // 40) + b"\r\n"
    return lambda: read_form("multipart/form-data; boundary=b", part * 10 + b"--b--\r\n", 1 << 20)


def _json(before: str, pump: str, after: bytes = b"") -> Callable[[int], Read]:
    return lambda size: lambda: json_body.parse(_repeated(before, pump, size) + after)


def _maintainers(size: int) -> Read:
    line = "a <a@b.example> (maintainer:x)\n"
    return lambda: read_maintainers(line * (size // len(line)))


def _kernel_record(pump: str) -> Callable[[int], Read]:
    def worst(size: int) -> Read:
        packed = gzip.compress(_repeated("", pump, size))
        return lambda: read_record(packed)

    return worst


def _yaml(size: int) -> Read:
    return lambda: read_documents("- b\n" * (size // 4), "x", JobError)


def _unread(note: str) -> None:
    pass


_DIFF: Final = a_diff()
_DISTRO: Final = "CONFIG_X86_64=y\n"
_BY_SUBJECT: Final = {"message_id": "", "subject": "x", "author": "a <a@b.example>"}
_BY_ID: Final = _BY_SUBJECT | {"message_id": "<a@b.example>"}
WORST: Final[Mapping[str, Callable[[int], Read]]] = {
    "encoded words in the text": _patch("From: a@b\nSubject: x\n\nSubject: ", "=?a?q? "),
    "replies in the text": _patch("From: a@b\nSubject: x\n\nSubject: ", "re:"),
    "tags in the text": _patch("From: a@b\nSubject: x\n\nSubject: ", "[PATCH]"),
    "many mails": _patch("", "From x Thu Jan  1 00:00:00 1970\nSubject: x\nFrom: a@b\n\nx\n"),
    "many diffs": _patch(f"From: a@b\nSubject: [PATCH] x\n\n{_DIFF}", _DIFF),
    "many headers": _patch("From: a@b\n", "Subject: [PATCH] x\n"),
    "parts": _patch("From: a@b\nContent-Type: multipart/mixed; boundary=b\n\n", "--b\n\nx\n"),
    "words of a subject": _mail("posting", "=?a?q? ", **_BY_SUBJECT),
    "tags of a subject": _mail("posting", "[PATCH] ", **_BY_SUBJECT),
    "a Message-ID": _mail("posting", "x\nMessage-ID: <a@", **_BY_ID),
    "headers for a list": _mail("heads", "=?utf-8?q?=C3?= "),
    "a mail for a page": _mail("mail", 'x\nContent-Type: a/b;x="'),
    "JSON of backslashes": _json('["', "\\\\", b'"]'),
    "JSON of lists": _json("[", "[[],"),
    "the head of a bundle": lambda size: (
        lambda: read_bundle(_repeated("# v2 git bundle\n", f"-{'1' * 40} x\n", size))
    ),
    "a form": _form,
    "a cursor": lambda size: lambda: cursor.decode("A" * size, (str,)),
    "a line of a message": _message("Link: https://lkml.kernel.org/r/" + "a" * 20),
    "trailers": _message("Cc: " + "<a@" * 90 + "\n"),
    "remarks": _message("Cc: a" + " " * 290 + "\n"),
    "addresses": _message("Cc: <" + ":" * 250 + ">\n"),
    "maintainers": _maintainers,
    "files of results": lambda size: lambda: parse_results(io.BytesIO(_tar(size)), [], {}),
    "raw files of results": lambda size: lambda: list(members(io.BytesIO(_tar(size)), _unread)),
    "a kernel configuration": lambda size: lambda: options("CONFIG_A" * (size // 8)),
    "a kernel record": _kernel_record("[[],"),
    "a deep kernel record": _kernel_record("["),
    "a list of objects": lambda size: (
        lambda: read_objects(_repeated('{"a":"","a', '":"","a', size) + b'":""}')
    ),
    "a record of a boot": lambda size: (
        lambda: boot_record.read_record(_repeated('{"a":"', "\\\\", size) + b'"}')
    ),
    "YAML": _yaml,
    "a console": lambda size: lambda: judge("BUG: Kernel panic - " * (size // 21)),
    "a survey": lambda size: lambda: survey.answer("x", "device 020000 1:2 " * (size // 17)),
    "lines of a survey": lambda size: (
        lambda: survey.answer("x", "device 20000 8086:1572 i40e\na=b\n" * (size // 32))
    ),
    "memory modules of a machine": lambda size: (
        lambda: memory_modules.described("11180000" * (size // 8))
    ),
    "drivers of a machine": lambda size: (
        lambda: driver_options.drivers("driver a b\n" * (size // 11))
    ),
    "modules of a machine": lambda size: (
        lambda: driver_options.modules_used("module a b,c,\n" * (size // 14))
    ),
    "users of a module": lambda size: (
        lambda: driver_options.modules_used("module a " + "b," * size)
    ),
    "a distribution's configuration": lambda size: (
        lambda: distro_config.checked(_DISTRO + "# Linux/x86 \n" * (size // 14))
    ),
    "a line of a makefile": lambda size: (
        lambda: driver_options.options_by_module(["obj-$(CONFIG_A) += " + "a/" * (size // 2)])
    ),
    "a build log": lambda size: lambda: error_lines("error: ld: Kconfig:" * (size // 20)),
}


@pytest.mark.parametrize("name", WORST)
def test_the_worst_text_takes_linear_time(name: str) -> None:
    # All sizes in each round: work beside this test that comes and goes slows them alike.
    rounds = [[_seconds(WORST[name](size)) for size in SIZES] for _ in range(5)]
    last = float("inf")
    for size, seconds in zip(SIZES, map(min, *rounds), strict=True):
        assert seconds <= max(LINEAR_SECONDS, GROWTH * last), f"{size} bytes"
        last = seconds


def test_a_list_of_objects_takes_bounded_memory_or_is_not_read() -> None:
    path, digest = "mm/slub.o", "a" * 64
    assert read_objects(json.dumps({path: digest}).encode()) == {path: digest}
    of_names = ",".join(f'"{number:x}":0' for number in range(1 << 19))[: OBJECT_LIST_BYTES - 20]
    most = "{" + of_names.rpartition(",")[0] + "}"
    assert len(_within_memory(most)) > 300_000
    for worst in ("[],", "{},", "[" * 500 + "]" * 500 + ","):
        rows = worst * (OBJECT_LIST_BYTES // len(worst) - 20)
        assert _within_memory(f'{{"a":[{rows}0]}}') == {}
    assert _within_memory(f"{most}{' ' * OBJECT_LIST_BYTES}") == {}


@pytest.mark.parametrize("worst", ["[],", "{},", "0,", '"\\u2028",', '{"a":0},'])
def test_a_record_of_a_boot_takes_bounded_memory_or_is_not_read(worst: str) -> None:
    known = b'{"archive": "x"}'
    assert boot_record.read_record(known) == {"archive": "x"}
    rows = worst.encode() * ((RECORD_BYTES - 20) // len(worst))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 300000 values"):
            boot_record.read_record(b'{"a":[%s0]}' % rows)
        few = worst.encode() * (RECORD_VALUES // 5)
        assert boot_record.read_record(b'{"a":[%s0]}' % few)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def _within_memory(text: str) -> Mapping[str, str]:
    packed = text.encode()
    tracemalloc.start()
    try:
        objects = read_objects(packed)
        assert tracemalloc.get_traced_memory()[1] < 128 << 20
    finally:
        tracemalloc.stop()
    return objects


REFUSALS: Final = (
    *(SeriesError, BadMaintainers, BadRecord, InfraError),
    *(ValueError, RecursionError),
)


def _seconds(read: Read) -> float:
    gc.disable()  # its passes take as long as other tests have left objects
    begun = time.process_time()
    try:
        with suppress(
            SeriesError, BadMaintainers, BadRecord, InfraError, ValueError, RecursionError
        ):
            read()
        return time.process_time() - begun
    finally:
        gc.enable()
