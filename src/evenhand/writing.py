"""Files that appear together and whole, or not at all.

Renames are atomic one by one, not together.  So files are first written beside those that they replace, then the old
ones are moved out of the way, and then the new ones in: at every moment the files in the folder are of one run, and if
all of them are there, none is missing and none is torn.  For the few renames in between some are missing, the last one
in any case, which goes first and comes last.  Who is killed just then has the old files put back by whoever writes, or
checks, the folder next.

All of that happens in a hidden folder inside of the one that is written, so that no file has to cross from one disk to
another, under a lock that the system takes away from who dies: what is in there while nobody holds it was left behind.
Where the file system has no locks, two runs at once may stop each other with an error, and nothing else is lost.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

STAGE = ".evenhand.part"
PAUSE, WAITS = 0.05, 1200  # seconds between two looks at a folder that another run is writing, and how many
RETRIES = 20  # for what another run may remove under one's hands

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class WritingError(ValueError):
    """A folder that cannot be written; the message says why, and what is there now."""


def write_together(folder: Path, contents: Mapping[str, str | bytes], former: Iterable[str] = ()) -> list[Path]:
    """Write files so that all of them appear, or none; other files in the folder are left alone.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    contents : mapping from name to str or bytes
        What is to be in which file, by its path inside of the folder; text is written as UTF-8, line ends as they are.
        The last one is there only if all others are.
    former : iterable of str
        More files that earlier runs may have left, and that go when these appear.

    Returns
    -------
    list of Path
        The files, in their order.

    Raises
    ------
    WritingError
        If they cannot be written, and then what was there before is there still.
    """
    data = {name: text.encode() if isinstance(text, str) else text for name, text in contents.items()}
    with _alone(folder, data) as stage:
        new, old = stage / "new", stage / "old"
        for name, content in data.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            _write(new / name, content)
        _write(stage / "names", json.dumps(list(data)).encode())
        _sync(stage)
        old.mkdir()  # from here on, files are moved
        _sync(stage)
        for name in reversed([*(one for one in former if one not in data), *data]):
            if (folder / name).exists():
                _move(folder / name, old / name)
        _sync(folder)
        for name in data:
            if name == list(data)[-1]:
                _sync(folder)
            _move(new / name, folder / name)
    return [folder / name for name in data]


def check_writable(folder: Path, names: Iterable[str] = ()) -> None:
    """Refuse a folder, or files in it, that could not be written, before anything runs.

    What a killed run left there is put in order; nothing else is left behind.
    """
    with _alone(folder, names) as stage:
        _write(stage / "names", b"[]")


def write_whole(path: Path, content: bytes) -> None:
    """Write one file: who reads at the same time, or after a kill, sees the old one or the new one, whole.

    Raises
    ------
    OSError
        If it cannot be written; an old one is there still.
    """
    for left in reversed(range(RETRIES)):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".evenhand-{secrets.token_hex(8)}.part")
        try:
            _write(part, content, lock=True)
            part.replace(path)
        except FileNotFoundError:  # swept away before it was locked, or after
            if not left:
                raise
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        else:
            return


def sweep(folder: Path) -> None:
    """Remove what :func:`write_whole` left unfinished in a folder when it was killed; not what is being written."""
    for part in folder.glob(".evenhand-*.part"):
        with suppress(FileNotFoundError, PermissionError), part.open("r+b") as file:
            if _locked(file.fileno()):
                part.unlink()


@contextmanager
def _alone(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """A hidden folder inside of the folder, which nobody else has; afterwards it is gone.

    Folders that had to be made are removed again if nothing is in them in the end.
    """
    made: list[Path] = []
    names = list(names)
    where = f"{folder / names[0]}" if len(names) == 1 else f"The output folder {folder}"
    if "\0" in where:
        raise WritingError(f"{where!r} cannot be written: no name has a zero byte in it.")
    try:
        made = [one for one in (folder, *folder.parents) if not one.exists()]
        for name in names:
            if (folder / name).exists() and not (folder / name).is_file():
                kind = "a folder" if (folder / name).is_dir() else "no regular file"
                raise WritingError(f"{folder / name} cannot be written: it is {kind}. Name another folder (--out).")
        stage = folder / STAGE
        handle = _claim(stage)
        try:
            _settle(folder, stage)
            try:
                yield stage
            finally:
                _settle(folder, stage)
                _leave(stage)
        finally:
            os.close(handle)
            if sys.platform == "win32":  # where what is open cannot be removed, neither here nor under others' hands
                _leave(stage)
    except OSError as error:
        raise WritingError(
            f"{where} cannot be written: {_reason(error)}. What was there before is there still. Mend that, or name "
            "another folder (--out)."
        ) from None
    finally:
        if made:
            _remove_empty(folder, made[-1].parent)


def _claim(stage: Path) -> int:
    """Lock the stage, when nobody else has it."""
    waits, retries = WAITS, RETRIES
    while waits and retries:
        try:
            stage.mkdir(parents=True, exist_ok=True)
            handle = os.open(stage / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except (FileNotFoundError, FileExistsError):  # removed by who had it, before or after it was seen
            retries -= 1
            if not retries:
                raise
            continue
        try:
            mine = _locked(handle)
            # Not if who had it has removed it meanwhile: the next one would lock another.
            if mine is not False and os.path.samestat(os.fstat(handle), (stage / "lock").stat()):
                return handle
        except FileNotFoundError:
            retries -= 1
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if mine is False:
            waits -= 1
            time.sleep(PAUSE)
    raise WritingError(
        f"The output folder {stage.parent} is being written by another run. Wait until it has ended, or name "
        "another folder (--out)."
    )


def _locked(handle: int) -> bool | None:
    """Whether the lock is ours, or another's; None where the file system knows no locks."""
    try:
        _take(handle)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True


def _settle(folder: Path, stage: Path) -> None:
    """Put the old files back unless all new ones are there, and clear the stage.

    It may be interrupted anywhere and begun again.
    """
    new, old = stage / "new", stage / "old"
    try:
        if old.exists():  # then the names are whole, too
            names = json.loads((stage / "names").read_text(encoding="utf-8"))
            if any((new / name).exists() for name in names):
                for name in reversed(names):
                    if not (new / name).exists() and (folder / name).exists():
                        _move(folder / name, new / name)
                    _remove_empty((folder / name).parent, folder)
                back = [path.relative_to(old).as_posix() for path in old.rglob("*") if not path.is_dir()]
                for name in sorted(back, key=lambda name: (name == names[-1], name)):
                    _move(old / name, folder / name)
            _sync(folder)
        # The old ones go first: without them there is nothing that could be put back.
        for part in (old, new):
            if part.exists():
                shutil.rmtree(part)
        (stage / "names").unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise WritingError(
            f"The output folder {folder} cannot be written: {_reason(error)}. What is unfinished is in {stage}; the "
            "next run puts it in order."
        ) from None


def _remove_empty(folder: Path, until: Path) -> None:
    """Remove a folder with nothing in it, and those above that have nothing else."""
    for one in (folder, *folder.parents):
        if one == until:
            return
        try:
            one.rmdir()
        except OSError:  # something is in it, or it was never made
            return


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _leave(stage: Path) -> None:
    """Remove the stage, with its lock; another run may be waiting for it, and finds it gone."""
    with suppress(OSError):
        (stage / "lock").unlink()
        stage.rmdir()


def _write(path: Path, content: bytes, *, lock: bool = False) -> None:
    """Write a new file, down to the disk; `lock` says to others that it is being written."""
    with path.open("xb") as file:
        if lock:
            _locked(file.fileno())
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    path.replace(to)


def _sync(folder: Path) -> None:
    """Have the names in a folder written to the disk, where that can be asked for."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without
            raise
    finally:
        os.close(handle)
