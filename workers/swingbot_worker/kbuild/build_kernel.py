"""One kernel build from order to outcome."""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swingbot_jobs import code_layout, kernel_diff
from swingbot_jobs.contract.build_key import build_key
from swingbot_jobs.contract.deadline import BUSY, UNTRUSTED_BUSY
from swingbot_jobs.contract.trust import key_at
from swingbot_worker import InfraError, lease
from swingbot_worker.digest import sha256
from swingbot_worker.kbuild import (
    build_output,
    configure,
    recipe,
    source,
    toolchain,
    tree_objects,
)
from swingbot_worker.kbuild.build_cache import FILES, BuildCache, CachedBuild
from swingbot_worker.kbuild.lock import locked
from swingbot_worker.kbuild.make import BuildFailed, Make
from swingbot_worker.kbuild.progress import BuildProgress, FullBuild, Progress
from swingbot_worker.kbuild.sandboxed import SandboxedBuild, walls_for
from swingbot_worker.kbuild.untrusted_reader import BuildReader, WantedParts
from swingbot_worker.kbuild.worktree import WorkTree
from swingbot_worker.order import BuildOrder, Spec
from swingbot_worker.outcome import Outcome, outcome
from swingbot_worker.site import Site
from swingbot_worker.walls import sandbox
from swingbot_worker.walls.sandbox import Sandbox

DEADLINE_SECONDS = 3600.0  # of an order that names none


def build(order: BuildOrder, out: Path, site: Site, *, progress: Progress | None = None) -> Outcome:
    """Build the kernel of `order` and return the outcome (outcome-1 schema).

    Writes those of bzImage, config, System.map, build.log, objects.json and functions.json.gz that
    exist to `out`. A commit that is missing or does not build gives the status `failed`; an
    infrastructure failure gives `infra`.
    """
    started = time.monotonic()

    def ended(status: str, reason: str | None) -> Outcome:
        files = [out / name for name in FILES]
        return outcome(order, status, reason, time.monotonic() - started, files)

    try:
        _empty(out)
        allowed = DEADLINE_SECONDS if order.deadline is None else order.deadline
        result, cached = _build(order.spec, out, site, progress, allowed)
    except InfraError as error:
        return ended("infra", str(error)) | error.of_outcome
    except OSError as error:
        return ended(
            "infra",
            f"The worker's disk failed or is full ({error}); check {site.cache} and {out}.",
        )
    about = _kernel_build(order, result, cached)
    return ended(result.status, result.reason) | {"kernel_build": about}


def configured(order: BuildOrder, out: Path, site: Site, progress: Progress) -> str:
    """Configure the kernel of a trusted `order` without building it, and return its .config, also
    if it lacks lines of the order's configuration.

    Writes build.log to `out`. Raises InfraError, also for a commit that is not a kernel or cannot
    be configured.
    """
    _empty(out)
    try:
        one = _inputs(order.spec, out, site, progress, DEADLINE_SECONDS)
    except source.NotAKernel as error:
        raise InfraError(str(error)) from None
    tree = _work_tree(one)
    with (
        locked(tree.lock_file, one.allowed, progress) as lock,
        lease.shared(site.cache, tell=progress, patience=one.allowed),
    ):
        tree.switch(one.commit)
        with tree.objects(order.spec.object_directory) as directory:
            try:
                with contextlib.suppress(configure.NotAccepted):
                    _configure(one, tree, directory, lock)
                return build_output.content(directory, ".config").decode(errors="replace")
            except BuildFailed as failure:
                raise InfraError(failure.reason) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build:
    """The checked inputs of one build."""

    spec: Spec
    commit: source.KernelSource
    kconfig: configure.Configuration
    compiler_version: str
    out: Path
    site: Site
    allowed: float  # seconds
    progress: Progress | None
    sandbox: Sandbox | None  # None: trusted, and this host has no walls

    @property
    def ccache(self) -> Path:
        """The compiler cache of the tree."""
        return tree_objects.compiler_cache(self.site.cache, self.spec.tree)

    @property
    def walls(self) -> list[str]:
        """Names of the walls around the build; all of them around an untrusted one."""
        return sorted(self.sandbox.walls) if self.sandbox else []


def _build(
    spec: Spec, out: Path, site: Site, progress: Progress | None, allowed: float
) -> tuple[CachedBuild, bool]:
    """Return the result and whether it came from the cache. `allowed` is in seconds."""
    try:
        one = _inputs(spec, out, site, progress, allowed)
    except source.NotAKernel as error:
        version = toolchain.compiler_version(spec.compiler)
        return _failed(out, version, BuildFailed(str(error), []), []), False
    return _cached_or_built(one)


def _inputs(spec: Spec, out: Path, site: Site, progress: Progress | None, allowed: float) -> _Build:
    """Return the checked inputs. Raises NotAKernel, and InfraError for what this host lacks."""
    kconfig = configure.configuration_of(site, spec.kconfig)
    version = toolchain.compiler_version(spec.compiler)
    return _Build(
        spec=spec,
        commit=source.find(spec.repo, spec.commit, site.cache),
        kconfig=kconfig,
        compiler_version=version,
        out=out,
        site=site,
        allowed=allowed,
        progress=progress,
        sandbox=walls_for(spec.trust),
    )


def _work_tree(one: _Build) -> WorkTree:
    # The sandbox shows paths with links resolved, so the same paths are used outside.
    root = (one.site.cache / "work").resolve() / f"linux-{one.commit.version}"
    return WorkTree(root, one.spec.tree)


def _cached_or_built(one: _Build) -> tuple[CachedBuild, bool]:
    # The key is computed and not taken from the order, so that no order can return another kernel.
    key = key_at(
        build_key(
            one.commit.tree, one.spec.kconfig, one.kconfig.text, one.spec.compiler, one.spec.layout
        ),
        one.spec.trust,
    )
    name = recipe.kept_name(key, one.compiler_version, one.spec.layout, one.spec.compiler)
    build_cache = BuildCache(one.site.cache)
    if cached := build_cache.fetch(name, one.out):
        return cached, True
    tree = _work_tree(one)
    with locked(tree.lock_file, one.allowed, one.progress) as lock:
        if cached := build_cache.fetch(name, one.out):  # built by the process that held the lock
            return cached, True
        # A build disturbs wall-clock measurements, so builds and boots that need the host
        # exclusively wait for each other.
        with lease.shared(one.site.cache, tell=one.progress or _quiet, patience=one.allowed):
            result = _build_in_tree(one, tree, lock)
    build_cache.keep(name, result, one.out)
    return result, False


def _quiet(line: str) -> None:
    """Discard progress lines."""


def _build_in_tree(one: _Build, tree: WorkTree, lock: int) -> CachedBuild:
    """Build in the work tree. Raises InfraError."""
    apart = one.sandbox if one.spec.trust == "untrusted" else None
    if apart:
        build_output.refuse_huge(source.total_bytes(one.commit))
    tree.switch(one.commit)
    name = one.spec.object_directory
    with tree.objects_apart(name, apart) if apart else tree.objects(name) as directory:
        try:
            with build_output.spoilt(directory):
                return _compile(one, tree, directory, lock)
        except BuildFailed as failure:
            return _failed(one.out, one.compiler_version, failure, one.walls)


def _configure(
    one: _Build, tree: WorkTree, directory: Path, lock: int
) -> tuple[Make, BuildProgress, BuildReader]:
    """Configure the kernel in `directory`, and return what the build goes on with."""
    progress = BuildProgress(
        objects=directory,
        ceiling=one.allowed * one.site.make_jobs,
        past=FullBuild.read(_full_build(one, tree)),
        full=next(directory.rglob("*.o"), None) is None,
        tell=one.progress,
    )
    make = Make(
        spec=one.spec,
        source=tree.source,
        environment=recipe.environment(tree.root, one.ccache, one.spec.trust),
        log=one.out / "build.log",
        jobs=one.site.make_jobs,
        ccache=toolchain.has_ccache(),
        seconds=(BUSY if one.spec.trust == "trusted" else UNTRUSTED_BUSY) * one.allowed,
        lock=lock,
        progress=progress,
        walled=_walled(one, tree, directory),
    )
    make.note(
        f"commit {one.spec.commit}, kconfig {one.spec.kconfig}, layout {one.spec.layout}, "
        f"{one.compiler_version}"
    )
    make.note(
        f"{one.spec.trust}, "
        + (f"behind walls: {', '.join(one.walls)}" if one.walls else "without walls")
    )
    reader = _reader(one, tree, directory)
    configure.configure(tree, make, directory, one.kconfig, one.compiler_version, reader)
    build_output.take(directory, ".config", one.out / "config")
    return make, progress, reader


def _compile(one: _Build, tree: WorkTree, directory: Path, lock: int) -> CachedBuild:
    make, progress, reader = _configure(one, tree, directory, lock)
    # All layouts have the objects of layout 0. They must be complete before they can be linked in
    # another order.
    make.run("vmlinux" if one.spec.layout else "bzImage")
    configure.sealed(tree, directory, one.kconfig, one.compiler_version)
    if progress.full and one.spec.trust == "trusted":
        progress.full_build().write(_full_build(one, tree))
    if one.spec.layout == 0:
        return _collect(one, directory, reader)
    # rows that are cached within the detour would be lost
    _permute(one, directory, reader)
    with tree.detour(directory, "vmlinux"):
        shutil.move(one.out / code_layout.SCRIPT, directory / code_layout.SCRIPT)
        make.run("bzImage", f"KBUILD_LDS={code_layout.SCRIPT}")
        return _collect(one, directory, reader)


def _reader(one: _Build, tree: WorkTree, directory: Path) -> BuildReader:
    return BuildReader(
        source=tree.source, objects=directory, sandbox=one.sandbox, trust=one.spec.trust
    )


def _walled(one: _Build, tree: WorkTree, directory: Path) -> SandboxedBuild | None:
    if one.spec.trust == "trusted":
        tree_objects.use_compiler_cache(one.ccache)
    if one.sandbox is None:
        for shared in (directory, one.ccache):
            sandbox.disowned(shared)
        return None
    return SandboxedBuild.around(
        one.sandbox,
        one.spec.trust,
        tree,
        directory,
        one.spec.object_directory,
        one.kconfig.files,
        one.ccache,
    )


def _permute(one: _Build, directory: Path, reader: BuildReader) -> None:
    """Write the linker script of this layout, and the hashes of the objects that it moves."""
    wanted = WantedParts(
        hashes=one.out / "objects.json",
        script=one.out / code_layout.SCRIPT,
        layout=one.spec.layout,
        remember=True,
    )
    name = "arch/x86/kernel/vmlinux.lds"
    with contextlib.ExitStack() as stack:
        script = None
        if (directory / name).exists():
            script = stack.enter_context(build_output.opened(directory, name))
        parts = reader.read(wanted, script=script)
    if parts.no_layout:
        raise BuildFailed(parts.no_layout, [])


def _collect(one: _Build, directory: Path, reader: BuildReader) -> CachedBuild:
    for name, file in (
        ("arch/x86/boot/bzImage", "bzImage"),
        ("System.map", "System.map"),
        (".config", "config"),
    ):
        build_output.take(directory, name, one.out / file)
    parts = reader.read(
        WantedParts(
            hashes=one.out / "objects.json" if one.spec.layout == 0 else None,
            record=one.out / kernel_diff.FILE,
            compiler_version=one.compiler_version,
            remember=one.spec.layout == 0,
            sizes=True,
        )
    )
    if parts.no_record:  # the kernel is still usable
        with (one.out / "build.log").open("a") as log:
            log.write(f"swingbot: no {kernel_diff.FILE}: {parts.no_record}\n")
    return CachedBuild(
        status="built",
        reason=None,
        compiler_version=one.compiler_version,
        sizes=parts.sizes,
        errors=[],
        files=_digests(one.out),
        walls=one.walls,
    )


def _failed(
    out: Path, compiler_version: str, failure: BuildFailed, walls: list[str]
) -> CachedBuild:
    log = out / "build.log"
    with log.open("a") as file:
        file.write(f"swingbot: {failure.reason}\n")
    lost = len(not_accepted(log))
    hint = (
        f" (this kernel does not know {lost} lines of the kconfig, see build.log)" if lost else ""
    )
    return CachedBuild(
        status="failed",
        reason=f"{failure.reason}{hint}",
        compiler_version=compiler_version,
        sizes={},
        errors=failure.lines,
        files=_digests(out),
        walls=walls,
    )


def not_accepted(log: Path) -> list[str]:
    """Return the lines of the configuration that the kernel of a build.log did not take, each with
    its file.
    """
    if not log.is_file():
        return []
    begin, lines = b"swingbot: ", []
    with log.open("rb") as file:
        for line in iter(lambda: file.readline(65_536), b""):
            if line.startswith(begin) and b"this kernel does not accept: " in line:
                lines.append(line.removeprefix(begin).decode(errors="replace").strip())
    return lines


def _full_build(one: _Build, tree: WorkTree) -> Path:
    return tree.root / f"full-{one.spec.object_directory}.json"


def _digests(out: Path) -> dict[str, str]:
    return {name: sha256(out / name) for name in FILES if (out / name).exists()}


def _empty(out: Path) -> None:
    """Delete the files of a previous attempt from `out`."""
    out.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (out / name).unlink(missing_ok=True)


def _kernel_build(order: BuildOrder, result: CachedBuild, cached: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "build_key": order.build_key,
        "compiler_version": result.compiler_version,
        "cached": cached,
        "sizes": result.sizes,
        "errors": result.errors,
        "trust": order.spec.trust,
        "walls": result.walls,
    }
    if result.status == "built":
        fields["image_sha256"] = result.files["bzImage"]
    if "config" in result.files:
        fields["config_sha256"] = result.files["config"]
    return fields
