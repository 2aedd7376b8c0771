"""What some readers must not see, in words that nothing else has, and all addresses for it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import httpx
from starlette.routing import Route

from swingbot.core.model import ids
from tests.db.test_fuzz_routes import application
from tests.served import Served

# Nothing else contains these: names, subjects, reasons and people that are hidden; levels.
WORD: Final = "quokka"
LEVEL: Final = 424_242.0
LEAK: Final = re.compile(r"quokka|424.?242", re.IGNORECASE)
METRIC, UNIT_JOB = "quokka.speed", "quokka-job"
OWN: Final = "vm-icount"  # a testbox and its group that are not hidden


@dataclass
class Hidden:
    """Numbers by kind, and commits."""

    numbers: dict[str, list[int]] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    build_key: str = ""
    order: int = 0


# Values of the parameters of addresses other than ids.
NAMES: Final = {
    "{form}": ["mail", "commit", "lkp", "show"],
    "{path:path}": ["manifest.json", "order.json", "samples.csv", "runs.csv", "", "results.tar"],
    "{file}": ["all.xml", "fixed.xml", "mm-demo.xml"],
    "{key}": ["1"],
    "{sha256}": ["0" * 64],
    "{tree}": ["mm-demo"],
}
# Of lists.
QUERIES: Final = ("", "?testbox=quokka-box", "?metric=quokka.speed", "?tree=mm-demo", "?limit=1")
PARAMETER: Final = re.compile(r"\{[^}]*\}")


def addresses(site: Served, hidden: Hidden, numbers: dict[str, list[int]]) -> list[str]:
    """Addresses of every route that is read, for objects of these numbers by kind."""
    found = []
    commit = hidden.commits[0]
    kernels = [f"v{number}" for number in hidden.numbers["variant"]] + hidden.commits
    queries = {
        "/search": ("?q=quokka", "?q=speed", f"?q={commit[:12]}", f"?q={commit}"),
        "/posted": (f"?patch={commit}",),
        "/cover": (f"?tree=mm-demo&code={commit}", "?tree=mm-demo&code=mm/memory.c"),
        "/metric": (
            "?metric=quokka.speed",
            "?metric=quokka.speed&unit_job=quokka-job",
            "?metric=quokka.speed&unit_job=quokka-job&testbox=quokka-box",
        ),
        "/results": (
            "?tree=mm-demo",
            "?tree=mm-demo&testbox=quokka-box",
            *(f"?tree=mm-demo&kernel={one}&kernel={commit}" for one in kernels),
        ),
        "/{plural}": QUERIES,
    }
    all_ids = [(kind, ids.show(kind, n)) for kind, them in numbers.items() for n in them]
    for route in application(site).routes:
        if not isinstance(route, Route) or "GET" not in (route.methods or {"GET"}):
            continue
        path = route.path
        if path == "/{plural}":
            plurals = [f"{kind}s" for kind in (*numbers, "tree", "compiler", "metric")]
            paths = [f"/{p}{end}" for p in (*plurals, "testboxes") for end in ("", ".json")]
        elif path.startswith("/metric/"):
            ends = ("", ".json", ".csv", ".svg")
            paths = [
                f"/metric/mm-demo/{testbox}/{UNIT_JOB}/{METRIC}{end}"
                for testbox in ("quokka-box", OWN)
                for end in ends
            ]
        elif path == "/{kind}/{id}":
            paths = [f"/{kind}/{id}{end}" for kind, id in all_ids for end in ("", ".json")]
            paths += [f"/testbox/quokka-box{end}" for end in ("", ".json")]
            paths += [f"/kernel/{hidden.build_key}{end}" for end in ("", ".json")]
            paths += [f"/tree/mm-demo{end}" for end in ("", ".json")]
        elif path == "/person/{name}":
            paths = ["/person/Ada", f"/person/{WORD} Quentin"]
        elif "{id}" in path:
            first = path.split("/")[1]
            paths = [
                path.replace("{kind}", kind).replace("{id}", id)
                for kind, id in all_ids
                if first in (kind, "{kind}", "raw", "plot", "moderation")
            ]
            paths += [f"{one}.json" for one in paths if path.count("/") == 2]
        else:
            paths = [path]
        for name, values in NAMES.items():
            paths = [
                one.replace(name, value)
                for one in paths
                for value in (values if name in one else [""])
            ]
        paths = [PARAMETER.sub("mm-demo", one) for one in paths]
        asked = ("", *queries.get(path.split(".")[0], ()))
        found += [one + query for one in paths for query in asked]
    return found


def read(site: Served, address: str, headers: dict[str, str]) -> httpx.Response:
    """The beginning of an answer; a stream does not end."""
    if not address.endswith("/progress"):
        try:
            return site.client.get(address, headers=headers)
        except httpx.ReadError:  # the server closed it after a failure
            return site.client.get(address, headers=headers)
    url = f"http://127.0.0.1:{site.port}{address}"
    with httpx.stream("GET", url, headers=headers, timeout=60) as answer:
        return httpx.Response(answer.status_code, text=next(answer.iter_text(), ""))


def leak(hidden: Hidden, address: str, answer: httpx.Response) -> str:
    """What an answer has that is hidden, beyond repeating its address; empty: nothing."""
    text = f"{answer.status_code} {answer.headers} {answer.text}"
    if answer.status_code >= 500:
        return text[:300]
    for asked in re.findall(r"[^=/&?]{4,}", address.replace(".json", "")):
        text = text.replace(asked, "")
    found = LEAK.search(text) or re.search("|".join(one[:12] for one in hidden.commits), text)
    return text[max(0, found.start() - 200) : found.end() + 100] if found else ""
