"""What the command line says while it works: bars on a terminal, sentences elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from evenhand.study import Done

COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[rate]}"),
    TimeRemainingColumn(),
)
STAGE_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


def say(console: Console, text: str, style: str | None = None) -> None:
    """A sentence as it is: no markup in it, and no line broken inside of a path."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def stages(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A bar per stage of an audit; without a terminal a line when a stage begins, and when a worker is lost."""
    from evenhand.workers import telling

    def warn(text: str) -> None:
        say(console, text, "yellow")

    with (
        telling(warn),
        Progress(*STAGE_COLUMNS, console=console, disable=not console.is_terminal, transient=True) as bar,
    ):
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                if not console.is_terminal:
                    say(console, f"{stage} ...")
                for task in tasks.values():
                    bar.update(task, visible=False)
                tasks[stage] = bar.add_task(stage, total=total or None)
            bar.update(tasks[stage], completed=done, total=total or None)

        yield report


class Watch:
    """Keeps the bar alive between reports: workers report in groups, but every finished cell is a file at once."""

    def __init__(self, bar: Progress, folder: Path) -> None:
        self.bar, self.folder = bar, folder
        self.task = bar.add_task("compiling solvers, fitting densities", total=None, rate="")
        self.began, self.before = time.perf_counter(), len(list(folder.glob("*.parquet")))
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._poll, daemon=True)

    def report(self, done: Done, number: int, total: int) -> None:
        """A cell is finished."""
        self.bar.update(self.task, description=str(done.cell), completed=number, total=total)

    def _poll(self) -> None:
        while not self.stopped.wait(0.5):
            try:
                files = sorted(self.folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
            except FileNotFoundError:  # somebody removes them; the study itself says so
                continue
            new = len(files) - self.before
            if new > 0:
                rate = f"{new / (time.perf_counter() - self.began):.1f} cells/s"
                self.bar.update(self.task, description=files[-1].stem.rsplit("-", 1)[0], rate=rate)

    def __enter__(self) -> Watch:
        if not self.bar.disable:
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        if self.thread.is_alive():
            self.thread.join()
