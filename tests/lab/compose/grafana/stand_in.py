"""What Grafana does with our provisioning, without Grafana: GET /api/health, GET /api/provisioned,
and SQL by POST to /api/query.

Variables in provisioning files are put in by os.path.expandvars, as Grafana puts `$NAME` in;
one that is not set stays, and is refused here. In annotations of alert rules Grafana puts nothing
in (grafana#54975), so a variable there would reach the reader of a mail.
"""

from __future__ import annotations

import json
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg2
import yaml

PROVISIONING = Path(os.environ.get("GF_PATHS_PROVISIONING", "/etc/grafana/provisioning"))
SSL_MODES = ("disable", "require", "verify-ca", "verify-full")  # of lib/pq, Grafana's driver


def provisioned(kind: str) -> dict[str, list[Any]]:
    """The entries of all files of a kind. Raises ValueError if a variable of them is not set."""
    found: dict[str, list[Any]] = {}
    for file in sorted((PROVISIONING / kind).glob("*.y*ml")):
        if literal := literal_variables(yaml.safe_load(file.read_text())):
            raise ValueError(f"{file} has variables that Grafana does not put in: {literal}")
        document = yaml.safe_load(os.path.expandvars(file.read_text()))
        if "$SWINGBOT" in str(document):
            raise ValueError(f"{file} has a variable that is not set")
        for key, entries in document.items():
            if isinstance(entries, list):
                found.setdefault(key, []).extend(entries)
    return found


def literal_variables(document: dict[str, Any]) -> list[str]:
    """Annotations of rules that name a variable of the environment."""
    return [
        text
        for group in document.get("groups", [])
        for rule in group["rules"]
        for text in rule["annotations"].values()
        if re.search(r"\$\{?[A-Z]", text)
    ]


def refused(source: dict[str, Any]) -> str | None:
    """What Grafana's driver, lib/pq up to Grafana 11, says of a data source; None: nothing."""
    mode = source["jsonData"]["sslmode"]
    if mode in SSL_MODES:
        return None
    return (
        f'pq: unsupported sslmode "{mode}"; only "require" (default), "verify-full", "verify-ca",'
        ' and "disable" supported'
    )


def ask(sql: str, uid: str = "swingbot") -> dict[str, Any]:
    """Columns and rows of one query through a provisioned data source."""
    (source,) = (s for s in provisioned("datasources")["datasources"] if s["uid"] == uid)
    host, _, port = source["url"].partition(":")
    more = source["jsonData"]
    if words := refused(source):
        raise ValueError(words)
    with psycopg2.connect(
        host=host,
        port=port,
        user=source["user"],
        password=source["secureJsonData"]["password"],
        dbname=more["database"],
        sslmode=more["sslmode"],
    ) as conn:
        cursor = conn.cursor()
        cursor.execute(sql)
        return {
            "columns": [column.name for column in cursor.description or ()],
            "rows": cursor.fetchall(),
        }


def shown() -> dict[str, Any]:
    (provider,) = provisioned("dashboards")["providers"]
    titles = [
        json.loads(file.read_text())["title"]
        for file in sorted(Path(provider["options"]["path"]).glob("*.json"))
    ]
    alerting = provisioned("alerting")
    rules = [rule["uid"] for group in alerting["groups"] for rule in group["rules"]]
    return {
        "dashboards": titles,
        "rules": rules,
        "summaries": [
            rule["annotations"]["summary"]
            for group in alerting["groups"]
            for rule in group["rules"]
        ],
        "receivers": [
            (receiver["type"], receiver["settings"]["addresses"])
            for point in alerting["contactPoints"]
            for receiver in point["receivers"]
        ],
        "admin": bool(Path(os.environ["GF_SECURITY_ADMIN_PASSWORD__FILE"]).read_text()),
    }


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/api/health":
            self._answer(lambda: {"database": "ok"} if ask("SELECT 1")["rows"] else {})
        else:
            self._answer(shown)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        sql = self.rfile.read(int(self.headers["content-length"])).decode()
        uid = self.headers.get("x-datasource", "swingbot")
        self._answer(lambda: ask(sql, uid))

    def _answer(self, get: Any) -> None:
        try:
            status, said = 200, get()
        except Exception as error:  # whatever it is, the test wants to read it
            status, said = 500, {"error": str(error)}
        body = json.dumps(said, default=str).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


if __name__ == "__main__":
    (Path("/var/lib/grafana") / "grafana.db").touch()  # where Grafana keeps its own database
    ThreadingHTTPServer(("0.0.0.0", 3000), Answers).serve_forever()
