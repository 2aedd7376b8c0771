"""`/install` offers the wheel of the service, and says why where there is none to offer."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from swingbot.app import offered_wheel
from swingbot.core.access.roles import Role
from swingbot.core.model import document_version
from swingbot.web.pages.wheel import NoWheel
from tests import wheel
from tests.served import Served, served

Serve = Callable[..., Served]
NAME = "swingbot-0.1.0-py3-none-any.whl"
MODULE = "swingbot/core/model/document_version.py"


@pytest.fixture
def serve(db_url: str, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda **environment: stack.enter_context(served(db_url, tmp_path, **environment))


def small_wheel(path: Path, version: bytes | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MODULE, version or Path(document_version.__file__).read_bytes())
    return path


def damaged(archive: bytes) -> bytes:
    """The archive with other bytes in its file, which zlib refuses."""
    begin = archive.index(MODULE.encode()) + len(MODULE)
    return archive[:begin] + b"\xff" * 8 + archive[begin + 8 :]


def test_a_wheel_that_the_service_cannot_reach_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unreachable = tmp_path / ("x" * 300)  # Path.is_file raises, as for a file under /root
    monkeypatch.setattr(offered_wheel, "_usual", lambda: iter([unreachable]))
    with pytest.raises(NoWheel, match="has no wheel to offer"):
        offered_wheel.offered_wheel("")


def test_the_wheel_of_the_page_is_checked_installed_and_used(serve: Serve, tmp_path: Path) -> None:
    built = wheel.build(tmp_path / "dist")
    site = serve(SWINGBOT_WEB_WHEEL=str(built), SWINGBOT_WEB_READ="token")
    token = site.token("Ada", Role.READER)["Authorization"].split()[1]
    assert site.client.get("/install").status_code == 401
    assert site.client.get(f"/install/{built.name}").status_code == 401
    page = site.client.get("/install", headers={"Authorization": f"Bearer {token}"}).text
    commands = re.findall(r"<pre>(.*?)</pre>", page, re.S)[0]
    commands = commands.replace("&#39;", "'").replace("&#34;", '"').splitlines()[:2]
    assert commands[0].startswith("curl ") and commands[1].startswith("echo ")
    place = tmp_path / "laptop"
    place.mkdir()
    done = subprocess.run(
        ["sh", "-ec", "\n".join(commands)],
        cwd=place,
        env={**os.environ, "SWINGBOT_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stdout == f"{built.name}: OK\n", done.stderr
    bin_ = wheel.install(tmp_path / "venv", place / built.name)
    here = {"SWINGBOT_URL": f"http://127.0.0.1:{site.port}", "SWINGBOT_TOKEN": token}
    asked = wheel.run(bin_ / "swingbot", "list", "trees", cwd=place, **here)
    assert asked.returncode == 0, asked.stderr


def test_the_file_is_served_with_its_digest_and_read_again_when_it_changes(
    serve: Serve, tmp_path: Path
) -> None:
    path = small_wheel(tmp_path / NAME)
    site = serve(SWINGBOT_WEB_WHEEL=str(path))
    first = site.client.get(f"/install/{NAME}")
    assert first.content == path.read_bytes()
    tag = f'"{hashlib.sha256(first.content).hexdigest()}"'
    assert first.headers["etag"] == tag and tag.strip('"') in site.client.get("/install").text
    again = site.client.get(f"/install/{NAME}", headers={"If-None-Match": tag})
    assert again.status_code == 304
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more", "x")
    assert site.client.get(f"/install/{NAME}").content == path.read_bytes() != first.content
    other = site.client.get("/install/swingbot-9-py3-none-any.whl", headers={"Accept": "*/*"})
    assert other.status_code == 404 and NAME in other.text
    for odd in ("..%2f..%2fetc%2fpasswd", "x" * 5000):
        assert site.client.get(f"/install/{odd}").status_code in (400, 404, 414)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (NAME, None, f"{NAME} cannot be read: No such file or directory"),
        ("wheel.whl", b"", "wheel.whl is not the name of a wheel of swingbot"),
        (NAME, b"no archive", f"{NAME} is not a wheel of swingbot"),
        (NAME, b"PK\x05\x06" + bytes(18), f"{NAME} is not a wheel of swingbot"),
        (NAME, b"damaged", f"{NAME} is not a wheel of swingbot"),
        (NAME, b"VERSION = 7\n", "is of another version than this service"),
    ],
)
def test_what_is_not_the_wheel_of_this_service_is_not_offered(
    name: str, content: bytes | None, words: str, serve: Serve, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None and content.startswith(b"VERSION"):
        small_wheel(path, content)
    elif content == b"damaged":
        path.write_bytes(damaged(small_wheel(path).read_bytes()))
    elif content is not None:
        path.write_bytes(content)
    site = serve(SWINGBOT_WEB_WHEEL=str(path))
    page = site.client.get("/install")
    assert page.status_code == 200 and words in page.text and "pipx" not in page.text
    answer = site.client.get(f"/install/{name}", headers={"Accept": "application/json"})
    assert answer.status_code == 404 and words in answer.json()["detail"]
