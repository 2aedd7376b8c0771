"""Names, archives, tables and ranges of raw results: what comes from outside may be anything."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core import limits
from swingbot.core.raw import tables
from swingbot.core.raw.changes import changes
from swingbot.core.raw.readme import readme
from swingbot.core.raw.result_root import ResultRootParts, compiler_name, result_root
from swingbot.core.raw.tar_members import members
from swingbot.web.http.file_response import part

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MEASURED = ResultRootParts(
    program="netperf",
    unit_job="netperf-cs-localhost-ipv4-50%-300s-TCP_RR",
    tbox_group="lkp-skl-d01",
    rootfs="debian-12-x86_64",
    kconfig="x86_64-rhel-9.4",
    layout=0,
    compiler="gcc",
    compiler_version="gcc (Debian 12.2.0-14) 12.2.0",
    commit=COMMIT,
)
IN_THE_DATABASE = re.compile(r"result(/[-a-zA-Z0-9+=:.%_]{1,255}){7}")  # as result_root demands


def test_a_result_root_is_named_as_lkp_names_it() -> None:
    assert (
        result_root(MEASURED)
        == f"result/netperf/cs-localhost-ipv4-50%-300s-TCP_RR/lkp-skl-d01/debian-12-x86_64/x86_64-rhel-9.4/gcc-12/{COMMIT}"
    )


def test_layouts_of_a_kernel_do_not_share_a_result_root() -> None:
    assert "/x86_64-rhel-9.4+layout3/" in result_root(dataclasses.replace(MEASURED, layout=3))


@pytest.mark.parametrize(
    ("compiler", "version", "name"),
    [
        ("gcc", "gcc (Debian 12.2.0-14) 12.2.0", "gcc-12"),
        ("gcc-13", "gcc-13 (GCC) 13.1.0", "gcc-13"),
        ("clang", "Debian clang version 14.0.6", "clang-14"),
        ("gcc", "", "gcc"),
    ],
)
def test_a_compiler_is_named_with_its_major_version(compiler: str, version: str, name: str) -> None:
    assert compiler_name(compiler, version) == name


@given(st.text(), st.text(), st.text(), st.text(), st.text())
def test_no_name_leads_out_of_its_directory_or_out_of_the_table(
    unit_job: str, group: str, rootfs: str, kconfig: str, version: str
) -> None:
    found = result_root(
        dataclasses.replace(
            MEASURED,
            unit_job=unit_job,
            tbox_group=group,
            rootfs=rootfs,
            kconfig=kconfig,
            compiler_version=version,
        )
    )
    assert IN_THE_DATABASE.fullmatch(found)
    assert not {".", ".."} & set(found.split("/"))


def a_tar(*files: tuple[str, bytes], links: tuple[str, ...] = ()) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    return out.getvalue()


def unpacked(content: bytes) -> tuple[dict[tuple[str | None, int, str], bytes], list[str]]:
    notes: list[str] = []
    found = {}
    for member in members(io.BytesIO(content), notes.append):
        try:
            found[member.unit_job, member.run, member.path] = member.read()
        except tarfile.ReadError as error:
            notes.append(str(error))
    return found, notes


def test_files_of_runs_and_facts_of_the_boot_are_distinguished() -> None:
    found, notes = unpacked(
        a_tar(("j-1/0/stdout", b"a"), ("j-1/12/perf/data", b"b"), ("facts/nr_cpu", b"1"))
    )
    assert found == {
        ("j-1", 0, "stdout"): b"a",
        ("j-1", 12, "perf/data"): b"b",
        (None, 0, "facts/nr_cpu"): b"1",
    }
    assert notes == []


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "j-1/0/../../x",
        "j-1/0/.ssh",
        "j-1/0",
        "j-1/00/x",
        "j-1/-1/x",
        "j 1/0/x",
        "x",
    ],
)
def test_names_that_lead_elsewhere_are_left_out_and_noted(name: str) -> None:
    found, notes = unpacked(a_tar((name, b"a"), ("j-1/0/stdout", b"a")))
    assert set(found) == {("j-1", 0, "stdout")}
    assert len(notes) == 1


def test_links_and_second_files_of_a_name_are_left_out_and_noted() -> None:
    found, notes = unpacked(
        a_tar(("j-1/0/stdout", b"first"), ("j-1/0/stdout", b"second"), links=("j-1/0/stderr",))
    )
    assert found == {("j-1", 0, "stdout"): b"first"}
    assert len(notes) == 2


def test_a_file_that_claims_gigabytes_is_not_read() -> None:
    header = tarfile.TarInfo("j-1/0/stdout")
    header.size = limits.RAW_FILE_BYTES + 1
    found, notes = unpacked(header.tobuf(tarfile.GNU_FORMAT))
    assert found == {}
    assert "results.tar has it" in notes[0]


WHOLE = a_tar(("j-1/0/stdout", b"a" * 700), ("j-1/0/stderr", b"b" * 1500), ("j-1/1/stdout", b"c"))


@given(st.integers(0, len(WHOLE)))
def test_an_archive_cut_anywhere_gives_what_is_whole_in_it(end: int) -> None:
    whole, _ = unpacked(WHOLE)
    found, _ = unpacked(WHOLE[:end])
    assert found.items() <= whole.items()


@given(st.binary(max_size=3000))
def test_any_bytes_are_an_archive_of_something_or_of_nothing(content: bytes) -> None:
    unpacked(content)


def test_a_value_of_the_csv_gives_back_the_same_double() -> None:
    values = [0.1 + 0.2, 1e-300, 5e15 + 0.5, -0.0, 123456789.123456789]
    text = "".join(
        tables.csv_lines(
            tables.SAMPLES, ({"value": value, "metric": "m", "seq": 0} for value in values)
        )
    )
    assert [float(row["value"]) for row in csv.DictReader(io.StringIO(text))] == values


def test_an_unknown_cell_is_empty_and_a_formula_is_text() -> None:
    text = "".join(
        tables.csv_lines(
            tables.RUNS,
            [
                {
                    "reason": '=HYPERLINK("x")\nsecond "line", and more',
                    "seconds": None,
                    "status": "failed",
                }
            ],
        )
    )
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["reason"] == '\'=HYPERLINK("x")\nsecond "line", and more'
    assert (row["seconds"], row["result_root"], row["status"]) == ("", "", "failed")


def test_the_readme_names_every_column_and_what_is_not_there() -> None:
    text = readme(
        {"kind": "comparison", "id": "c5", "boots": [], "files": []}, ["x1/console.log: gone"]
    )
    for column in (*tables.SAMPLES, *tables.RUNS, *tables.FACTS, *tables.METRICS):
        assert f"    {column.name:12} {column.type:8}" in text
    assert "x1/console.log: gone" in text


def test_rereading_says_what_came_went_and_moved() -> None:
    found = changes(
        {"same": [1.0], "moved": [1.0, 2.0], "went": [3.0]},
        {"same": [1.0], "moved": [1.0, 2.5], "came": [4.0]},
    )
    assert {metric: (change.kind, change.old, change.new) for metric, change in found.items()} == {
        "moved": ("changed", (1.0, 2.0), (1.0, 2.5)),
        "went": ("gone", (3.0,), ()),
        "came": ("added", (), (4.0,)),
    }


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (None, range(10)),
        ("bytes=0-", range(10)),
        ("bytes=3-", range(3, 10)),
        ("bytes=3-5", range(3, 6)),
        ("bytes=3-99", range(3, 10)),
        ("bytes=-4", range(6, 10)),
        ("bytes=-99", range(10)),
        ("bytes=10-", None),
        ("bytes=-0", None),
        ("bytes=5-3", range(10)),
        ("bytes=0-1,3-4", range(10)),
        ("lines=1-2", range(10)),
        ("bytes=-", range(10)),
    ],
)
def test_a_range_is_the_part_it_names_or_everything(
    header: str | None, wanted: range | None
) -> None:
    assert part(header, 10) == wanted


def test_the_columns_in_the_docs_are_the_columns() -> None:
    text = (Path(__file__).parents[2] / "docs" / "raw-results.md").read_text()
    for column in tables.SAMPLES:
        assert f"| `{column.name}` | {column.type} |" in text
