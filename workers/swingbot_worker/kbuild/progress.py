"""Follow a build by the objects that it finishes and the processor time that it takes.

Wall time tells how busy the host is, and output tells what a makefile prints; neither ends a build.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from swingbot_jobs import codec
from swingbot_worker import LimitReached, limits, process

Progress = Callable[[str], None]
PROGRESS_SECONDS = 10.0
_COUNT_SECONDS = 60.0
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FullBuild:
    """What the last full build of a configuration took: objects, and seconds of processor time."""

    objects: int
    processor_seconds: float

    @classmethod
    def read(cls, file: Path) -> FullBuild | None:
        """Return the record in `file`; None if there is none."""
        with suppress(OSError, ValueError):
            return codec.typed(cls, json.loads(file.read_text()))
        return None

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(codec.plain(self)))


@dataclass(slots=True)
class BuildProgress:
    """Measures one build; called about every PROGRESS_SECONDS while a command of it runs.

    `ceiling` is the processor time that it may take, in seconds. `past` is None if no full build of
    its configuration is remembered, `full` says that this one starts without objects.
    """

    objects: Path
    ceiling: float
    past: FullBuild | None
    full: bool
    tell: Progress | None = None
    finished: int = 0  # objects
    processor: float = 0.0  # seconds
    # time stamps of files are behind the clock by up to a tick
    _began: float = field(default_factory=lambda: time.time() - 1.0)
    _before: float = field(default_factory=process.processor_seconds)
    _at_object: float = 0.0  # `processor` when the last object was finished
    _busy: tuple[float, float] = (0.0, 0.0)  # wall and processor time when it last took some

    def command(self) -> None:
        """Note that the next command begins."""
        self._busy = (0.0, self.processor)

    def __call__(self, seconds: float) -> None:
        """Raise LimitReached if the build must be stopped, `seconds` after its command began."""
        self.measure()
        if self.processor >= self._busy[1] + 1.0:
            self._busy = (seconds, self.processor)
        if why := self._wrong(seconds - self._busy[0]):
            raise LimitReached(
                f"The build was stopped: it {why}. It had taken {self.processor:.0f} s of processor"
                f" time and finished {self.finished} objects."
            )
        if self.tell is not None:
            self.tell(self._line(seconds))

    def full_build(self) -> FullBuild:
        """Return what this build has taken."""
        self.measure()
        return FullBuild(objects=self.finished, processor_seconds=round(self.processor, 1))

    def measure(self) -> None:
        """Take the processor time and count the finished objects."""
        self.processor = max(self.processor, process.processor_seconds() - self._before)
        began = f"@{self._began}"
        counting = process.past_processor_seconds()
        # a hostile makefile can touch files, but cannot make one file count twice
        done = process.output(
            ["find", self.objects, "-xdev", "-name", "*.o", "-newermt", began, "-printf", "."],
            timeout=_COUNT_SECONDS,
            env=_ENVIRONMENT,
        )
        # The build did not do the counting.
        self._before += process.past_processor_seconds() - counting
        count = done.text.count(".") if done.rc == 0 else 0
        if count > self.finished:
            self.finished, self._at_object = count, self.processor

    def _wrong(self, idle: float) -> str | None:
        fruitless = self.processor - self._at_object
        usual = self.past.processor_seconds if self.past else 0.0
        if fruitless > max(limits.BUILD_SPIN_CPU_SECONDS, usual):
            return f"spun, {fruitless:.0f} s of processor time without finishing an object"
        if self.processor > self.ceiling:
            return (
                f"needed more than the {self.ceiling:.0f} s of processor time that it may take"
                " (build.deadline_seconds for each job of make)"
            )
        if idle > limits.BUILD_IDLE_SECONDS:
            return f"slept, {idle:.0f} s without taking processor time"
        return None

    def _line(self, seconds: float) -> str:
        """Return progress, and how much of the host's processors the build gets."""
        share = self.processor / max(seconds, 1.0)
        line = f"{seconds:.0f} s: {self.finished} objects built, {self.processor:.0f} s of"
        line += f" processor time ({share:.1f} processors; load {os.getloadavg()[0]:.0f})"
        if self.full and self.past and 0 < self.finished < self.past.objects:
            left = seconds * (self.past.objects - self.finished) / self.finished
            line += f", about {self.past.objects} in all, {left:.0f} s left at this rate"
        return line
