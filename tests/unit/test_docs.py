"""What pages promise about the tree: paths and links that exist, and lines that a terminal
shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from swingbot.web.http.render import TEMPLATES
from swingbot.web.pages.docs import Documentation
from tests import json_page
from tests.calibration import results

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        ROOT / "benchmarks" / "README.md",
        ROOT / "benchmarks" / "scale.md",
        ROOT / "tests" / "demo" / "README.md",
        *(ROOT / "ansible").rglob("README.md"),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
COLUMNS: Final = 100
# A path may begin at the top of the tree or at one of these.
PLACES: Final = (
    "",
    "docs",
    "master",
    "master/swingbot",
    "workers",
    "workers/swingbot_worker",
    "jobs",
    "jobs/swingbot_jobs",
    "db",
    "db/swingbot_db",
)
_PATH: Final = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*(?:/|\.(?:py|md|ya?ml|sql|toml|lock|sh))")
_CODE: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_BARE: Final = re.compile(r"[\w-]+\.(?:py|sql|ya?ml)")
# Bad names of modules, and files that only a job or a kit has.
_ELSEWHERE: Final = {"way.py", "left.py", "kept.py", "letter.py", "job.yaml", "order.yaml"}
_CITATION: Final = re.compile(r'([\w/-]+\.md)`?, "([^"]{1,80})"')
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def tracked() -> frozenset[str]:
    """The files of the repository."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True
    ).stdout
    return frozenset(filter(None, listed.split("\0")))


@cache
def prose(page: Path) -> tuple[tuple[int, str], ...]:
    """Lines outside of code blocks, with their numbers."""
    return tuple(_prose(page))


def _prose(page: Path) -> Iterator[tuple[int, str]]:
    fenced = False
    listed = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not (line.startswith("    ") and not listed):
            yield number, line
        if line and not line.startswith(" "):
            listed = bool(re.match(r"([-*]|\d+\.) ", line))


def test_lines_are_short_outside_of_tables_code_and_addresses() -> None:
    wide = [
        (name(page), number, line)
        for page in PAGES
        for number, line in prose(page)
        if len(line) > COLUMNS
        and not line.lstrip().startswith("|")
        and not line.startswith("![")
        and " " in _CODE.sub("", _LINK.sub("", line)).strip().lstrip("-")
    ]
    assert wide == []


def test_every_path_that_a_page_names_exists() -> None:
    tops = {path.split("/")[0] for path in tracked()} | {
        "core",
        "service",
        "adapters",
        "web",
        "app",
    }
    missing = [
        (name(page), number, word)
        for page in PAGES
        for number, line in prose(page)
        for word in _CODE.findall(line)
        if _PATH.fullmatch(word)
        and (word.split("/")[0] in tops or word.startswith("swingbot_"))
        and not any(list(ROOT.glob(f"{place}/{word}".strip("/"))) for place in PLACES)
    ]
    assert missing == []


def test_every_file_that_a_page_names_without_its_folder_exists() -> None:
    names = {path.rpartition("/")[2] for path in tracked()} | _ELSEWHERE
    missing = [
        (name(page), number, word)
        for page in PAGES
        for number, line in prose(page)
        for word in _CODE.findall(line)
        if _BARE.fullmatch(word) and word not in names
    ]
    assert missing == []


def test_a_page_is_cited_by_a_link() -> None:
    pages = {other.name for other in (ROOT / "docs").glob("*.md")}
    unlinked = [
        (name(page), number, word)
        for page in PAGES
        for number, line in prose(page)
        for word in _CODE.findall(_LINK.sub("", line))
        if word in pages or (word.startswith("docs/") and word.removeprefix("docs/") in pages)
    ]
    assert unlinked == []


# What only this machine or the people here can open: notes beside the repository, directories of
# one machine, and addresses from which packages come.
_OUTSIDE: Final = re.compile(
    r"\.\./shared\b|\b(?:DESIGN|HOUSE)\.md\b|(?<![\w.*>})\]-])/(?:work|home)/\w"
    r"|\bpypi\b|pythonhosted|proxy\.golang|npmjs|crates\.io|--index-url[ =]",
)


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("see ../shared/DESIGN.md", True),
        ("see HOUSE.md", True),
        ("cd /work/main", True),
        ('cache = "/home/ada/.cache"', True),
        ("--index-url http://host/simple", True),
        ("<cache>/work/linux-6.1/lock", False),
        ("$cache/work/x", False),
        ("--no-emit-index-url", False),
        ("no index-url here", False),
    ],
)
def test_what_counts_as_outside_the_repository(text: str, outside: bool) -> None:
    assert bool(_OUTSIDE.search(text)) == outside


def test_no_text_names_what_is_outside_the_repository() -> None:
    places = []
    for file in sorted(tracked()):
        if file == name(Path(__file__)) or not (ROOT / file).is_file():
            continue
        content = (ROOT / file).read_bytes()
        if b"\0" in content:
            continue  # not text
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            places += [(file, number, found[0]) for found in _OUTSIDE.finditer(line)]
    assert len(tracked()) > 1000
    assert places == []


@cache
def anchors(page: Path) -> set[str]:
    """The fragments that GitHub and GitLab make of headings; for the glossary, those that its
    page has."""
    if page.name == "glossary.md":
        return set(Documentation(page.parent).page("glossary").anchors)
    headings = (re.match(r"#+ (.+)", line) for _, line in prose(page))
    return {
        re.sub(r"[^\w\- ]", "", _LINK.sub("", found[1]).lower()).replace(" ", "-")
        for found in headings
        if found
    }


def test_every_link_within_the_tree_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for number, line in prose(page):
            for link in _LINK.findall(_CODE.sub("", line)):
                target, _, fragment = link.partition("#")
                if "://" in link or link.startswith("mailto:"):
                    continue
                place = (page.parent / target).resolve() if target else page
                if not place.exists() or (fragment and fragment not in anchors(place)):
                    broken.append((name(page), number, link))
    assert broken == []


def test_pages_of_the_service_lead_to_documentation_that_is_there() -> None:
    pages = Documentation(ROOT / "docs")
    names = [name for name in pages.files if not name.endswith(".png")]
    texts = {name: str(pages.page(name).body) for name in names}
    templates = {path.name: path.read_text() for path in TEMPLATES.glob("*.html")}
    found = [
        (place, name or "README", fragment)
        for place, text in (texts | templates).items()
        for name, fragment in re.findall(r'(?:href|src)="/docs(?:/([^"#]+))?(?:#([^"]*))?"', text)
    ]
    terms = [
        (place, "glossary", entry or words.replace(" ", "-"))
        for place, text in templates.items()
        for words, entry in re.findall(
            r"\bterm\([\"']([^\"']+)[\"'](?:, [\"']([^\"']+)[\"'])?\)", text
        )
    ]
    assert len(found) > 300 and {one[2] for one in terms} >= {
        "boot",
        "gate",
        "interval",
        "unit-job",
    }
    assert [
        (place, name, fragment)
        for place, name, fragment in found + terms
        if name not in pages.files or (fragment and fragment not in pages.page(name).anchors)
    ] == []
    assert "<script>" not in "".join(texts.values())


_CITING: Final = {".md", ".py", ".sql", ".yaml", ".sh"}


def test_every_section_that_a_file_cites_exists() -> None:
    files = [file for file in sorted(tracked()) if Path(file).suffix in _CITING]
    missing, cited = [], 0
    for file in files:
        text = (ROOT / file).read_text()
        for page, section in _CITATION.findall(re.sub(r"\s*\n[ \t]*(?:#|--)?[ \t]*", " ", text)):
            places = [ROOT / page, ROOT / "docs" / page]
            headings = {
                line.lstrip("#").strip()
                for place in places
                if place.is_file()
                for line in place.read_text().splitlines()
                if line.startswith("#")
            }
            cited += 1
            if section not in headings:
                missing.append((file, page, section))
    assert cited >= 20
    assert missing == []


def test_the_page_of_calibration_results_is_made_from_its_data() -> None:
    assert (ROOT / "docs" / "calibration-results.md").read_text() == results.page(), (
        "python -m tests.calibration.results >docs/calibration-results.md"
    )


def test_the_page_of_json_documents_has_the_types_of_the_code() -> None:
    assert json_page.page() == json_page.PAGE.read_text(), (
        "python -m tests.json_page, into docs/json.md"
    )


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {link.partition("#")[0] for link in _LINK.findall(index.read_text())}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= linked


# What a stranger asks first; README leads to the list, and the list to the answer.
QUESTIONS: Final = (
    "Where is the threshold of a swing?",
    "Which file words the mail?",
    "How do I add a benchmark?",
    "How do I add a testbox?",
    "How do I add a setting?",
    "How do I add a page?",
    "What happens when a boot panics?",
    "How does a push become an order?",
    "Where would I change what one more boot makes us believe?",
)


def test_readme_leads_to_the_questions() -> None:
    assert "docs/README.md#questions" in _LINK.findall((ROOT / "README.md").read_text())


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_two_hops_from_readme(question: str) -> None:
    index = ROOT / "docs" / "README.md"
    _, _, answers = index.read_text().partition("## Questions")
    [row] = [line for line in answers.splitlines() if line.startswith(f"| {question} |")]
    links = [link.partition("#") for link in _LINK.findall(row)]
    assert links
    for target, _, fragment in links:
        place = (index.parent / target).resolve()
        assert place.is_file() and (not fragment or fragment in anchors(place)), row
