"""How facts look on a page: the sheet of a boot, and what differs between two sides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swingbot.core.stats.fact_differences import differences
from swingbot.web.http.render import Renderer
from swingbot_db.read.facts import facts_differ, sheet_of


@dataclass(frozen=True)
class Settings:
    maildir: Path = Path("maildir")
    web_url: str = "http://lab.example.org:8010"
    buildbot_url: str = "http://127.0.0.1:8011/"


def rendered(macro: str, *given: Any) -> str:
    jinja = Renderer(Settings())._jinja
    return jinja.from_string(
        '{% import "macros.html" as m with context %}{{ m[macro](*given) }}'
    ).render(macro=macro, given=given)


def test_what_blocks_is_reported_above_the_table_and_values_are_only_text() -> None:
    base, head = (
        {"microcode": "0x1", "build_id": "aa", "cmdline": "a"},
        {"microcode": "<b>", "build_id": "bb", "cmdline": "a"},
    )
    found = [
        {"testbox": "box", "arms": [1]} | d.to_json()
        for d in differences({0: base}, {0: head}, paired=True)
    ]
    page = rendered("facts_differ", found, ["base", "head"])
    assert page.index(
        "No verdict on box: microcode differs: 0x1 in base, &lt;b&gt; in head"
    ) < page.index("<table")
    assert page.index("blocks a verdict") < page.index("the variant itself")
    assert "<b>" not in page


def test_where_nothing_differs_nothing_is_shown_and_the_variant_alone_is_folded() -> None:
    assert rendered("facts_differ", [], []).strip() == ""
    variant = [
        {"testbox": "box", "arms": [1]} | d.to_json()
        for d in differences({0: {"build_id": "aa"}}, {0: {"build_id": "bb"}}, paired=True)
    ]
    assert "<details>" in rendered("facts_differ", variant, ["base", "head"])


def test_a_sheet_shows_every_group_with_units_and_names_what_is_not_known() -> None:
    page = rendered(
        "sheet",
        sheet_of(
            {"memory_kb": 2046048, "odd": "<b>"},
            {"config_sha256": None, "compiler_version": "gcc 12"},
        ),
    )
    assert "<dd>2046048 kB</dd>" in page and "&lt;b&gt;" in page and "gcc 12" in page
    unknown = "".join(re.findall('<p class="n">Unknown: (.*?)</p>', page))
    assert unknown.count("<span") > 50 and ">governor<" in unknown and "memory_kb" not in unknown


def test_a_fact_is_what_is_compared_only_if_every_unit_job_says_so() -> None:
    boots = [
        {"arm": arm, "testbox": "box", "spec": "s", "k": 0, "facts": {"smt": smt}}
        for arm, smt in enumerate(("on", "off"))
    ]
    kinds = []
    for jobs in (
        [{"compare_fact": ["smt"]}, {"demand": {"smt": "on"}}],
        [{"compare_fact": ["smt"]}, {}],
    ):
        parts = [{"testbox": "box", "spec": "s", "unit_jobs": jobs, "repeatable": False}]
        (found,) = facts_differ(boots, parts, [{"settings": {}}] * 2, [(0, 1)])
        assert found["arms"] == [1]
        kinds.append(found["kind"])
    assert kinds == ["compared", "blocks"]
