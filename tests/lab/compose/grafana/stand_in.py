"""What Grafana does with our provisioning, without Grafana: GET /api/health, GET /api/provisioned,
and SQL by POST to /api/query.

Variables in provisioning files are put in by os.path.expandvars, as Grafana puts `$NAME` in;
one that is not set stays, and is refused here.
"""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg2
import yaml

PROVISIONING = Path(os.environ["GF_PATHS_PROVISIONING"])
SSL_MODES = ("disable", "require", "verify-ca", "verify-full")  # of lib/pq, Grafana's driver


def provisioned(kind: str) -> dict[str, Any]:
    """The one file of a kind. Raises ValueError if a variable of it is not set."""
    (file,) = (PROVISIONING / kind).glob("*.y*ml")
    document: dict[str, Any] = yaml.safe_load(os.path.expandvars(file.read_text()))
    if "$SWINGBOT" in str(document):
        raise ValueError(f"{file} has a variable that is not set")
    return document


def ask(sql: str) -> dict[str, Any]:
    """Columns and rows of one query through the provisioned data source."""
    (source,) = provisioned("datasources")["datasources"]
    host, _, port = source["url"].partition(":")
    more = source["jsonData"]
    if more["sslmode"] not in SSL_MODES:
        raise ValueError(f"unsupported sslmode {more['sslmode']!r}")
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
    rules = [rule["uid"] for group in provisioned("alerting")["groups"] for rule in group["rules"]]
    return {
        "dashboards": titles,
        "rules": rules,
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
        self._answer(lambda: ask(sql))

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
