"""`swingbot forget`: remove everything that a boot or a kernel caused."""

from __future__ import annotations

from dataclasses import dataclass

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.git import Mirror
from swingbot.app.keep.backup import alone
from swingbot.app.settings import Settings
from swingbot.service.ports import RequestError
from swingbot_db.engine import Engine
from swingbot_db.forget import Removal, foresee, remove


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What goes (or went), the freed bytes, and the number of git objects (0: only foreseen)."""

    plan: Removal
    freed: int = 0
    objects: int = 0


def forget(
    settings: Settings, engine: Engine, id: str, who: str, why: str, *, really: bool, force: bool
) -> Forgotten:
    """Foresee the removal of the boot or kernel `id`, and with `really` carry it out.

    Rows go in one transaction, and files and objects after it. Raises BadId, NotFound, KeepError
    during a backup, RequestError where something that stays counts it.
    """
    with alone(settings):
        with engine.begin() as conn:
            plan = foresee(conn, id)
            if not really:
                return Forgotten(plan=plan)
            if plan.open:
                raise RequestError(
                    f"{id} is needed by {', '.join(plan.open)}, which is under way: cancel it first"
                )
            if plan.counted_by and not force:
                raise RequestError(
                    f"{id} is counted by {', '.join(plan.counted_by)}; with --force they say that"
                    " it was removed"
                )
            files = remove(conn, plan, who, why)
        store = ArtifactDirectory(settings.artifacts)
        note = f"{id} was removed by {who}"
        freed = sum(store.prune(sha256, note) for sha256 in files if store.has(sha256))
        for kept in plan.shown_on:
            for kit in settings.reproductions.glob(f"{kept}-*.tar.gz"):
                kit.unlink(missing_ok=True)
        objects = Mirror(settings.mirror).forget(plan.commit) if plan.commit else 0
    return Forgotten(plan=plan, freed=freed, objects=objects)
