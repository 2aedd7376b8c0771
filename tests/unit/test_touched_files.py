"""What a diff reads, by the names that git itself gives files."""

from __future__ import annotations

import pytest

from swingbot.core.patchset.diff import diff_of
from swingbot.core.patchset.touched import touched_files

HUNK = "@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("diff", "before", "after"),
    [
        (f"diff --git a/m/x b/m/x\n--- a/m/x\n+++ b/m/x\n{HUNK}", {"m/x"}, {"m/x"}),
        ("diff --git a/m/x b/m/x\nold mode 100644\nnew mode 100755\n", {"m/x"}, {"m/x"}),
        ("diff --git a/x b/y\ncopy from m/x\ncopy to m/y\n", {"m/x"}, {"m/y"}),
        ("diff --git a/x b/y\nrename old m/x\nrename new m/y\n", {"m/x"}, {"m/y"}),
        (f"--- m.orig/x\t2026-01-01\n+++ m/x\t2026-01-01\n{HUNK}", {"x"}, {"x"}),
        (f'--- "a/\\303\\274\\t"\n+++ "b/\\303\\274\\t"\n{HUNK}', {"ü\t"}, {"ü\t"}),
    ],
)
def test_the_names_of_a_file_are_found(diff: str, before: set[str], after: set[str]) -> None:
    read = diff_of(diff.encode())
    (file,) = touched_files(read)
    assert ({name.decode() for name in file.before}, file.length) == (before, len(read))
    assert {name.decode() for name in file.after} == after


def test_each_file_is_counted_whichever_form_its_part_has() -> None:
    forms = (
        f"diff --git a/x b/x\n--- a/x\n+++ b/x\n{HUNK}",
        f"--- a/x\n+++ b/x\n{HUNK}",
        "diff --git a/x b/y\ncopy from x\ncopy to y\n",
    )
    read = diff_of("".join(forms * 3).encode())
    files = list(touched_files(read))
    assert [file.before for file in files] == [{b"x"}] * 9
    assert sum(file.length for file in files) == len(read)


def test_a_removed_line_that_looks_like_a_header_hides_no_file() -> None:
    removed = "@@ -1,2 +1 @@\n--- a/y\n-b\n+c\n"
    read = diff_of(f"--- a/x\n+++ b/x\n{removed}--- a/z\n+++ b/z\n{HUNK}".encode())
    assert {b"x", b"z"} <= set().union(*(file.before for file in touched_files(read)))
