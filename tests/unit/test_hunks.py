"""Which hunk changes which function."""

from __future__ import annotations

from swingbot.core.patchset.hunks import hunks_of, touching

DIFF = """From 1 Mon Sep 17 00:00:00 2001
Subject: [PATCH] mm: drain at once

--- a/not/a/file
 mm/page_alloc.c | 4 ++--

diff --git a/mm/page_alloc.c b/mm/page_alloc.c
index 1..2 100644
--- a/mm/page_alloc.c
+++ b/mm/page_alloc.c
@@ -10,5 +10,6 @@ static int rmqueue_bulk(struct zone *zone)
 \tint allocated = 0;
 }

-void free_unref_page_commit(struct page *page)
+static void free_unref_page_commit(struct page *page)
+{
 \tpcp = 1;
@@ -90 +91 @@ void rmqueue(void)
--- a/looks like a file
+++ b/and is a line of code
\\ No newline at end of file
diff --git a/include/linux/mm.h b/include/linux/mm.h
--- a/include/linux/mm.h
+++ b/include/linux/mm.h
@@ -1,2 +1,2 @@
-#define BATCH 31
+#define BATCH 1
 int drain(void);
"""


def test_a_hunk_names_the_functions_whose_lines_it_changes() -> None:
    assert [(one.path, sorted(one.functions), len(one.lines)) for one in hunks_of(DIFF)] == [
        ("mm/page_alloc.c", ["free_unref_page_commit"], 8),
        ("mm/page_alloc.c", ["rmqueue"], 4),
        ("include/linux/mm.h", [], 4),
    ]


def test_the_hunks_of_a_name_change_it_or_at_least_name_it() -> None:
    hunks = list(hunks_of(DIFF))
    assert [touching(hunks, name) for name in ("rmqueue", "BATCH", "drain")] == [
        [hunks[1]],
        [hunks[2]],
        [],
    ]


def test_a_diff_that_is_cut_off_ends_with_what_there_is() -> None:
    assert [len(one.lines) for one in hunks_of(DIFF[: DIFF.index("\tpcp")])] == [8]
    assert list(hunks_of("")) == []
