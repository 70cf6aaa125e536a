"""Studies on a disk that is full, with files that may not be long, and in a folder that somebody removes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from faults.base import WRONG, Command, Outcome, contents, judged, until
from faults.studies import RESULTS, Folder, cells_in

PAGE = 4096  # bytes


def campaign(short: bool) -> Iterator[Outcome]:
    """Less room than it takes, by much or by little; `short` has one of each kind."""
    with tempfile.TemporaryDirectory(prefix="evenhand-faults-") as name:
        folder = Path(name)
        study = Folder(folder / "study")
        for share in (0.5,) if short else (0.02, 0.3, 0.9, 0.99):
            yield from _full(study, Path(tempfile.mkdtemp(dir=folder)), share, 1 if short else 2)
        for limit in (8_000,) if short else (2_000, 8_000, 60_000):
            yield _limited(study, folder / f"limited-{limit}", limit)
        yield _removed(study, folder / "removed", 1 if short else 2)


def _full(study: Folder, folder: Path, share: float, jobs: int) -> Iterator[Outcome]:
    """A disk with room for a part of the files, and then for all of them."""
    pages = sum(-(-len(content) // PAGE) for content in study.reference.values())
    with _disk(folder, max(2, int(share * pages)) * PAGE) as larger:
        if larger is None:
            return  # not permitted here
        out = folder / "out"
        code, said = study.finish(out, jobs)
        yield study.judge("full disk", out, code, said)
        before = cells_in(out)
        larger()
        code, said = study.finish(out)
        outcome = study.judge("full disk, then room", out, code, said, refusals=())
        if before and f"{before} of them found finished" not in said:
            outcome = Outcome(outcome.kind, WRONG, f"{before} cells were finished, and it said: {said}")
        yield outcome


@contextmanager
def _disk(folder: Path, size: int) -> Iterator[Callable[[], object] | None]:
    """A small disk, and what makes it larger; None if this user may not have one."""

    def mount(option: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    try:
        mounted = mount(f"size={size}")
    except FileNotFoundError:
        mounted = False
    try:
        yield (lambda: mount("remount,size=100m")) if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _limited(study: Folder, out: Path, limit: int) -> Outcome:
    """No file may be longer than the limit, which looks to a program as a full disk does."""
    code = "import os, resource, sys; n = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)); "
    code += "os.execv(sys.argv[2], sys.argv[2:])"
    command = Command("study", study.file, "--out", out, "--jobs", "1", prefix=(sys.executable, "-c", code, str(limit)))
    first = study.judge("file size limited, then not", out, command.wait(), command.said)
    last = study.judge("file size limited, then not", out, *study.finish(out))
    return last if first.result != WRONG else first


def _removed(study: Folder, out: Path, jobs: int) -> Outcome:
    """Somebody removes the folder on the way; what is in memory is not lost, and the next run is as any other."""
    command = study.start(out, jobs)
    until(lambda: cells_in(out) >= 4, command)
    with suppress(FileNotFoundError, OSError):
        shutil.rmtree(out)
    code, said = command.wait(), command.said
    found = contents(out, RESULTS)
    wanted = {name: study.reference[name] for name in RESULTS}
    first = judged("folder removed on the way", code, said, found, wanted)
    if jobs == 1:
        return first
    last = study.judge("folder removed on the way", out, *study.finish(out))
    return last if first.result != WRONG else first
