"""A real browser for tests: Chromium, headless, driven over a pair of pipes (Chrome DevTools
Protocol, one JSON message a NUL byte).

Protocol: https://chromedevtools.github.io/devtools-protocol/; pipes instead of a WebSocket so that
nothing has to be installed but Chromium.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PROGRAM = "chromium"
# https://github.com/dequelabs/axe-core; .ci/browser checks its sha256
AXE = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swingbot/axe-4.14.1.min.js"
)
# Only the HTML of a node is printed, pages have no frames, and rules that need the style sheet
# itself are off by default: without all that axe takes a third less time.
_BARRIERS = """axe.run(document, {resultTypes: ["violations"],
    selectors: false, iframes: false, preload: false}).then(answer =>
    answer.violations.map(one => `${one.id}: ${one.help}: `
        + one.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(" | ")))"""
_PICTURES = """Promise.all(Array.from(document.images, one => { one.loading = "eager";
    return one.complete || new Promise(done => { one.onload = one.onerror = done }) }))
    .then(() => null)"""
# The protocol's descriptors are 3 and 4.
_MOVE = """import fcntl, os, sys
a, b = (fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3])
os.dup2(a, 3), os.dup2(b, 4), os.close(a), os.close(b)
os.execvp(sys.argv[3], sys.argv[3:])"""
SECONDS = 120.0  # a slow machine may need this for its first page


_TEXT_OUTSIDE = """(() => {
    const edge = document.documentElement.getBoundingClientRect();
    return Array.from(document.querySelectorAll("text")).filter(one => {
        const box = one.getBoundingClientRect();
        return box.width && (box.left < edge.left - 1 || box.right > edge.right + 1
            || box.top < edge.top - 1 || box.bottom > edge.bottom + 1);
    }).map(one => one.textContent);
})()"""
_CUT_OFF = """(() => {
    document.querySelectorAll("details").forEach(one => { one.open = true });
    const hidden = one => getComputedStyle(one).clipPath === "inset(50%)";
    const boxes = one => {
        const found = [[0, document.documentElement.clientWidth, "the window"]];
        for (let at = one; at && at !== document.body; at = at.parentElement) {
            if (at.matches("pre, .skip, .skip *") || hidden(at)) return null;
            const style = getComputedStyle(at), box = at.getBoundingClientRect();
            if (style.overflowX !== "visible" || at.matches("td, th") && style.display !== "none")
                found.push([box.left, box.right, `<${at.localName} class="${at.className}">`]);
        }
        return found;
    };
    const said = [];
    const check = (one, rects, words) => {
        const around = boxes(one);
        for (const rect of around === null ? [] : rects)
            for (const [left, right, name] of around)
                if (rect.width && (rect.left < left - 1.5 || rect.right > right + 1.5)) {
                    said.push(`${words}: ${Math.round(rect.left)}..${Math.round(rect.right)} is`
                        + ` outside of ${name}, ${Math.round(left)}..${Math.round(right)}`);
                    return;
                }
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; node = texts.nextNode();) {
        const unseen = node.parentElement.closest("select, textarea, svg title");
        if (!node.data.trim() || unseen) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        check(node.parentElement, range.getClientRects(), JSON.stringify(node.data.slice(0, 40)));
    }
    for (const one of document.querySelectorAll("img, progress, input, button, svg *"))
        if (one.getClientRects().length) check(one.parentElement, one.getClientRects(),
            `<${one.localName}>`);
    return said;
})()"""


class BrowserError(Exception):
    """The browser did not do what it was asked; the message says what it said."""


class Chromium:
    """The browser of this process: its pipe, and the tabs that wait for messages."""

    def __init__(self, child: subprocess.Popen[bytes], to: int, from_: int) -> None:
        self.child, self._to, self._from = child, to, from_
        self._number = 0
        self._buffer = b""
        self.pages: dict[str, Page] = {}  # by session

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """One command and its answer; events in between are noted. Raises BrowserError."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def next(self) -> dict[str, Any]:
        """The next message; an event is noted by its page. Raises BrowserError."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self._from, 1 << 16) if ready else b""
            if not chunk:
                raise BrowserError("the browser says nothing any more")
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if page := self.pages.get(message.get("sessionId", "")):
            page.note(message.get("method", ""), message.get("params", {}))
        return message


@dataclass
class Page:
    """One tab.

    `failed` are requests that got no answer or one of 400 and above, `complaints` what the browser
    wrote to its console.
    """

    _browser: Chromium
    _session: str
    _loaded: int = 0
    failed: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer; events in between are noted. Raises BrowserError."""
        return self._browser.call(method, self._session, **params)

    def note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded += 1
        elif method == "Network.responseReceived" and params["response"]["status"] >= 400:
            self.failed.append(f"{params['response']['status']} {params['response']['url']}")
        elif method == "Network.loadingFailed" and not params.get("canceled"):
            self.failed.append(params["errorText"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])

    def open(self, url: str) -> None:
        """Go to `url` and wait until all of it is loaded."""
        before = self._loaded
        self.call("Page.navigate", url=url)
        self._wait(before)

    def click(self, selector: str) -> None:
        """Click, with the mouse, in the middle of the first element that `selector` finds,
        and wait for the page that this leads to.
        """
        # images that load late move what is below them: all are there before the place is read
        script = f"""(async () => {{ const found = document.querySelector({json.dumps(selector)});
            if (!found) return null;
            found.scrollIntoView({{block: "center"}});
            await Promise.all(Array.from(document.images, image => {{
                image.loading = "eager"; return image.decode().catch(() => null); }}));
            found.scrollIntoView({{block: "center"}});
            const at = found.getClientRects()[0];
            return [at.x + at.width / 2, at.y + at.height / 2]; }})()"""
        place = self.value(script)
        if place is None:
            raise BrowserError(f"{self.address()} has nothing to click at {selector}")
        before = self._loaded
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0],
                y=place[1],
                button="left",
                clickCount=1,
            )
        self._wait(before)

    def point(self, x: float, y: float, kind: str = "mouseMoved") -> None:
        """Move the pointer to a place of the window, or press or release its button there."""
        button = {"button": "none" if kind == "mouseMoved" else "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def drag(self, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the button at one place, release it at another; wait for the page it leads to."""
        before = self._loaded
        self.point(*begin, "mousePressed")
        self.point(*end)
        self.point(*end, "mouseReleased")
        self._wait(before)

    def _wait(self, before: int) -> None:
        while self._loaded == before:
            self._browser.next()

    def value(self, script: str) -> Any:
        """What a script on the page answers; the test asks, the page itself has none."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def address(self) -> str:
        return str(self.value("location.pathname"))

    def heading(self) -> str:
        return str(self.value("document.querySelector('h1')?.innerText ?? ''"))

    def sized(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window.

        What scrolls inside of it does not count.
        """
        return int(
            self.value(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )

    def cut_off(self) -> list[str]:
        """Text and pictures that a reader does not see without scrolling sideways.

        What lies outside of its cell, of a box that clips or scrolls, or of the window. Only
        preformatted text may scroll. Folded parts are unfolded first.
        """
        return list(self.value(_CUT_OFF))

    def media(self, medium: str = "screen", scheme: str = "light") -> None:
        """Show pages as on paper ("print"), or to a person who prefers a "dark" scheme."""
        scheme_ = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=medium, features=[scheme_])

    def press(self, key: str, code: int) -> None:
        """Press and release a key: `press("Tab", 9)`."""
        names = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **names, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **names)

    def barriers(self) -> list[str]:
        """What axe has to say about the page: each rule that it breaks, and where."""
        if not AXE.exists():
            raise BrowserError(f"{AXE} is not here; `make browser` installs it")
        if self.value("typeof axe") == "undefined":
            self.value(AXE.read_text() + ";0")
        return list(self.value(_BARRIERS))

    def load_pictures(self) -> None:
        """Load the pictures that wait until they are scrolled into view. Raises BrowserError."""
        self.value(_PICTURES)

    def text_outside(self) -> list[str]:
        """Text of a plot (an SVG opened alone) that is cut off at the edge of the picture."""
        return list(self.value(_TEXT_OUTSIDE))

    def broken_pictures(self) -> list[str]:
        return list(
            self.value(
                "[...document.images].filter(i => !i.complete || i.naturalWidth === 0).map(i =>"
                " i.src)"
            )
        )

    def picture(self, file: Path) -> None:
        """The whole page as PNG, for a person to look at; without scroll bars, whose width would
        be missing at the right.
        """
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        width, height = self.value("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        self.call("Emulation.setScrollbarsHidden", hidden=False)
        file.write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """A page with cookies and a cache of its own, in the browser of this process."""
    if _chromium().child.poll() is not None:  # it died under another test
        _chromium.cache_clear()
    chromium = _chromium()
    context = chromium.call("Target.createBrowserContext")["browserContextId"]
    target = chromium.call("Target.createTarget", url="about:blank", browserContextId=context)
    session = chromium.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    page = Page(chromium, session["sessionId"])
    chromium.pages[page._session] = page
    for domain in ("Page", "Network", "Log", "Runtime"):
        page.call(f"{domain}.enable")
    try:
        yield page
    finally:
        del chromium.pages[page._session]
        with suppress(BrowserError, OSError):  # it may have died under the test
            chromium.call("Target.disposeBrowserContext", browserContextId=context)


@cache
def _chromium() -> Chromium:
    """Start the browser; it ends with this process, whose end closes the pipe."""
    if shutil.which(PROGRAM) is None:
        raise BrowserError(f"{PROGRAM} is not here; `make browser` installs it")
    ours, theirs = os.pipe(), os.pipe()  # commands, answers
    profile = tempfile.TemporaryDirectory(prefix="swingbot-browser-", ignore_cleanup_errors=True)
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={profile.name}",
    ]
    moved = [
        sys.executable,
        "-c",
        _MOVE,
        str(ours[0]),
        str(theirs[1]),
        PROGRAM,
        *options,
        "--remote-debugging-pipe",
        "about:blank",
    ]
    child = subprocess.Popen(
        moved,
        pass_fds=(ours[0], theirs[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(ours[0])
    os.close(theirs[1])

    def end() -> None:
        child.kill()
        child.wait(20)
        profile.cleanup()

    atexit.register(end)
    return Chromium(child, ours[1], theirs[0])
