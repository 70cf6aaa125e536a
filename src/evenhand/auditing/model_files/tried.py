"""Opening a file in another process, which may die of it, for kinds of files that compiled code of others reads.

What unpickles arrays or builds a graph relies on what it reads. In a file that is damaged, that may be a length or a
type that leads into foreign memory, to a loop without end, or to all the memory there is; often, but not each time, for
it depends on what the memory held before. So the bytes of such a file are never read here: the process that has read
them, and has asked the model for first labels, writes the model anew.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from multiprocessing.spawn import get_executable
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import joblib
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.model_files.registry import Reader
from evenhand.auditing.model_files.told import names_of, said, width_of
from evenhand.workers.processes import ONE_THREAD

SECONDS = 60.0  # until a file counts as one that never opens; imports are part of it
PER_MEGABYTE = 1.0  # and longer for large ones
ROWS, CELLS = 20, 10**6  # of people who are made up to ask for first labels
# How the process leaves. Whatever else ends it, also a plain 0, is the fault of the file; but Python's own 1 says that
# it did not come so far, as where evenhand cannot be imported anew, and proves nothing.
TRIED, NO_MEMORY, NOT_TRIED = 87, 88, 1
BEGIN = b"\0answer\0"  # what is said before is not of us
CODE = "import sys; sys.path[:] = sys.argv[1:]; from evenhand.auditing.model_files.tried import serve; serve()"


class Answer(NamedTuple):
    """What came of a file: a model as bytes, or why there is none."""

    content: bytes = b""
    notes: tuple[str, ...] = ()
    problem: str = ""
    unknown: str = ""  # a module that could not be imported there


def open_elsewhere(read: Reader, data: bytes, path: Path) -> Any:
    """Open a file where it does no harm.

    Parameters
    ----------
    read : callable
        What opens such files; see :class:`ModelFile`.
    data : bytes
        Of the file.
    path : Path
        For messages.

    Returns
    -------
    object
        What `read` returns; warnings that came with it are given here, too.

    Raises
    ------
    AuditError
        What `read` raises, or if the process is lost with the file, does not end, or takes more memory than there is.
    """
    answer = _asked(read, data, path)
    if answer is None or answer.unknown in sys.modules:  # made by hand, or run from a file that is on no path
        return read(data, path)
    if answer.problem:
        raise AuditError(answer.problem)
    for note in answer.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    try:
        return cloudpickle.loads(answer.content)
    except Exception as error:  # code of the model's own
        raise AuditError(f"{path} cannot be opened: {short(error)}. Save the model again.") from error


def _asked(read: Reader, data: bytes, path: Path) -> Answer | None:
    """What another process says of a file; None if it did not come so far."""
    seconds = SECONDS + PER_MEGABYTE * len(data) / 2**20
    with _process(path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        parts: list[bytes] = []
        listening = threading.Thread(target=_listen, args=(process.stdout, parts), daemon=True)
        listening.start()
        with contextlib.suppress(OSError):  # who is gone is noticed below
            pickle.dump((cloudpickle.dumps(read), str(path), seconds), process.stdin)
            pickle.dump(data, process.stdin, protocol=5)
            process.stdin.flush()
        listening.join(seconds)
        code = None if listening.is_alive() else process.wait()
    if code == NOT_TRIED:
        return None
    if code == TRIED and parts:
        about, _, content = parts[0].partition(BEGIN)[2].partition(b"\n")
        return Answer(**json.loads(about) | {"content": content})
    if code is None:
        why = f"did not come to an end in {seconds:.0f} seconds"
    elif code in (TRIED, NO_MEMORY):  # or not even for the answer
        why = "asked for more memory than there is"
    else:
        why = f"was ended by {_named(code)}"
    raise AuditError(
        f"{path} cannot be opened: a process in which that was tried, with a first prediction, {why}. The file is "
        "damaged, or was saved with other versions. Save the model again, if it can be with skops.io.dump(model, "
        "'model.skops'), which is checked part by part."
    )


def _listen(stream: Any, parts: list[bytes]) -> None:
    with contextlib.suppress(OSError, MemoryError):
        parts.append(stream.read())


@contextlib.contextmanager
def _process(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that finds the same modules, says nothing to users, and ends with this one; Ctrl-C is not for it."""
    places = [place for place in sys.path if isinstance(place, str)]  # others are not looked at
    try:
        process = subprocess.Popen(
            [os.fsdecode(get_executable()), "-c", CODE, *places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | ONE_THREAD,
            start_new_session=True,
        )
    except OSError as error:
        raise AuditError(
            f"{path} is opened in another process, and none can be started: {error.strerror or error}. Make room."
        ) from None
    try:
        yield process
    finally:
        _end(process)
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):  # of what it did not read
                stream.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Now, with whatever it has started itself."""
    if process.returncode is None:
        with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def _named(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"


def serve() -> None:
    """The life of the other process."""
    sys.argv[1:] = []
    sys.dont_write_bytecode = True  # beside a user's own modules
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a model prints is no answer
    reader, path, seconds = pickle.load(asked)
    data = pickle.load(asked)
    _end_with(asked)
    _bound(seconds)
    answer = _tried(cloudpickle.loads(reader), data, Path(path))
    if answer is not None:
        about = json.dumps(answer._asdict() | {"content": None})
        answers.write(BEGIN + about.encode() + b"\n")
        answers.write(answer.content)
        answers.flush()
    os._exit(NO_MEMORY if answer is None else TRIED)  # at once: what is left has nobody to say it to


def _end_with(asked: Any) -> None:
    """Leave when who has asked is gone, in the middle of it too."""
    threading.Thread(target=_leave_after, args=(asked,), daemon=True).start()
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl  # a signal: threads do not run while compiled code holds the interpreter

        fcntl.fcntl(asked, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(asked, fcntl.F_SETFL, fcntl.fcntl(asked, fcntl.F_GETFL) | os.O_ASYNC)


def _leave_after(asked: Any) -> None:
    asked.read(1)
    os._exit(NOT_TRIED)


def _bound(seconds: float) -> None:
    """Take no more time than was given, no more memory than is free, and leave no picture of it on the disk."""
    if hasattr(signal, "alarm"):  # in case that nobody looks at the clock any more
        signal.alarm(math.ceil(seconds))
    with contextlib.suppress(ImportError, OSError, ValueError, StopIteration):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Without a bound, the system would end some process, and not necessarily this one.
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (free if most < 0 else min(free, most), most))
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _tried(read: Reader, data: bytes, path: Path) -> Answer | None:
    """Open a file, and do with the model what an audit begins with; None if there is not enough memory."""
    try:
        with warnings.catch_warnings(record=True) as caught, joblib.parallel_config(backend="sequential"):
            warnings.simplefilter("always")
            model = read(data, path)
            notes = tuple(said(entry.message) for entry in caught if issubclass(entry.category, UserWarning))
            _ask(model, set())
            return Answer(cloudpickle.dumps(model), notes)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again by who asked
        if _cause(error, MemoryError) is not None:
            return None
        unknown = getattr(_cause(error, ModuleNotFoundError), "name", None) or ""
        again = f"{path} cannot be opened: {short(error)}. Save the model again."
        return Answer(problem=str(error) if isinstance(error, AuditError) else again, unknown=unknown)


def _cause(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """What of some kind made an error happen, if anything did."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def _ask(part: Any, seen: set[int]) -> None:
    """First answers; of a model that refuses people who are made up, as it knows levels, those of its parts."""
    seen.add(id(part))
    try:
        people = _people(part)
        if people is not None:
            (part.predict if hasattr(part, "predict") else part.transform)(people)
            return
    except MemoryError:
        raise
    except (Exception, SystemExit):  # noqa: BLE001 - people who are made up prove nothing else
        pass
    todo = list(getattr(part, "__dict__", {}).values())
    while todo:
        inner = todo.pop()
        if id(inner) in seen:
            continue
        if isinstance(inner, list | tuple | dict):
            seen.add(id(inner))
            todo += inner.values() if isinstance(inner, dict) else inner
        elif isinstance(inner, BaseEstimator):
            _ask(inner, seen)


def _people(part: Any) -> Any:
    """Nobody in particular, somebody far away and some in between, as wide as a model says that it is."""
    names, width = names_of(part), width_of(part)
    if width is None or width > CELLS:
        return None
    rows = np.random.default_rng(0).normal(size=(max(1, min(ROWS, CELLS // width)), width))
    rows *= np.geomspace(0.1, 1e4, len(rows))[:, None]
    rows[0] = 0.0
    return rows if names is None else pd.DataFrame(rows, columns=names)
