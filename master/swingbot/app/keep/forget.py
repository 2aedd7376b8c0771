"""`swingbot forget`: remove everything that a boot or a kernel caused."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from swingbot.adapters import limits
from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.git import Mirror
from swingbot.app.keep.backup import alone
from swingbot.app.settings import Settings
from swingbot.service.ports import GitError, RequestError
from swingbot_db.engine import Engine
from swingbot_db.forget import Removal, foresee, needs_commit, remove


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
    during a backup, RequestError where something that stays counts it, or a request under way may
    need its objects.
    """
    mirror = Mirror(settings.mirror)
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
            if plan.commit:
                mirror.forget(plan.commit)
        store = ArtifactDirectory(settings.artifacts)
        note = f"{id} was removed by {who}"
        freed = sum(store.prune(sha256, note) for sha256 in files if store.has(sha256))
        for kept in plan.shown_on:
            for kit in settings.reproductions.glob(f"{kept}-*.tar.gz"):
                kit.unlink(missing_ok=True)
        try:
            objects = mirror.remove_forgotten(partial(needed, engine), limits.FORGET_SECONDS)
        except GitError as error:
            raise RequestError(
                f"rows and files of {id} are gone, and its git objects go with the daily"
                f" retention, because {error}"
            ) from None
    return Forgotten(plan=plan, freed=freed, objects=objects)


def needed(engine: Engine, commit: str) -> bool:
    """Return whether a kernel of a forgotten commit was asked for again."""
    with engine.connect() as conn:
        return needs_commit(conn, commit)
