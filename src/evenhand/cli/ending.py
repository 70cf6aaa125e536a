"""How commands end, whatever happens: exit codes, signals, and streams that nobody reads.

Nothing is imported here that takes time: from the first moment on, who presses Ctrl-C is answered with a sentence.
"""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

# 0 says that every gate passed, 1 that one failed, 3 that one is undecided, 128 and more that a signal came.
WRONG_USE, BROKEN = 2, 4
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
GRACE = 5.0  # seconds to put things in order after a signal
# What the machine does not have, and no command can make up for.
SURROUNDINGS = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EROFS", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ESTALE", "EFBIG")
    if hasattr(errno, name)
}
_stopping, _told = threading.Event(), threading.Event()


class Stopped(BaseException):
    """A signal asked the process to end; whatever it is at is put in order on the way out.

    No SystemExit: that is what a model's own code may raise, and then it is the model's fault.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.code = number, 128 + number


def run(command: Callable[[], object]) -> NoReturn:
    """Run a command and end the process: with its exit code, or with a sentence and one that says why.

    What nobody expected is shown with its traceback, exit code 4: 1 is a gate that failed.
    """
    mend_streams()
    heed_signals()
    code: Any = 0
    try:
        command()
    except Stopped as stopped:
        code = stopped.code
        _told.set()
        _say(_last_words(stopped.number))
    except KeyboardInterrupt:  # raised by somebody who was told in another way
        code = 128 + signal.SIGINT
        _say(_last_words(signal.SIGINT))
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):  # a sentence, of a command that cannot run here
            _say(code)
            code = WRONG_USE
    except MemoryError:
        code = WRONG_USE
        _say("evenhand: there is not enough memory. Use fewer --jobs, fewer people, or another machine.")
    except OSError as error:
        code = WRONG_USE if error.errno in SURROUNDINGS else BROKEN
        if code == WRONG_USE:
            name = f" ({error.filename})" if error.filename else ""
            _say(f"evenhand: the machine gave up: {error.strerror}{name}. Mend that, and run the command again.")
        else:
            _show_defect()
    except Exception:  # noqa: BLE001 - shown in full
        code = BROKEN
        _show_defect()
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    sys.exit(code)


def mend_streams() -> None:
    """Have everything that is said go somewhere: what cannot be is left out, and the work goes on.

    A reader may go away, a disk that keeps what is said may be full, and a stream may have been closed from the
    beginning; a file that is opened then must not take its number, and with it what others say.  Characters that a
    terminal does not have are written in another way.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if number:
            stream: Any = getattr(sys, name)
            encoding = getattr(stream, "encoding", None) or "utf-8"
            setattr(sys, name, _open_stream(number, encoding))


def _open_stream(number: int, encoding: str) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w", closefd=False)
    return _Stream(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=number == 2 or raw.isatty())


class _Stream(io.TextIOWrapper):
    """A stream that takes everything; once that cannot be, nobody is told anything any more."""

    def write(self, text: str) -> int:
        """Write what can be written."""
        try:
            return super().write(text)
        except OSError:
            self._leave()
            return len(text)

    def flush(self) -> None:
        """The same with what waits."""
        try:
            super().flush()
        except OSError:
            self._leave()

    def _leave(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        super().flush()


def heed_signals() -> None:
    """End with a sentence when a signal says so; a signal that is ignored from the beginning still is."""
    sys.unraisablehook = _unraisable
    threading.excepthook = _in_thread
    heeded = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    for number in heeded:
        signal.signal(number, _stop)
    if sys.platform != "win32":
        heard, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(heard, heeded), daemon=True).start()


def _stop(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    for other in SIGNALS:  # they may come twice, as from `timeout`; who presses Ctrl-C again has no patience
        if signal.getsignal(other) is _stop:
            signal.signal(other, signal.SIG_DFL if other == signal.SIGINT else signal.SIG_IGN)
    _stopping.set()
    raise Stopped(number)


def _watch(heard: int, heeded: list[int]) -> None:
    """End the process if it does not itself: compiled code may keep it busy, or somebody have caught `Stopped`."""
    while (number := os.read(heard, 1)[0]) not in heeded:
        pass
    time.sleep(GRACE)
    _end_at_once(number)


def _unraisable(unraisable: Any) -> None:
    """Of what nobody can catch, such as in callbacks of compiled code, a signal at least must not be lost.

    What then complains was interrupted half-way, and nobody needs to know.
    """
    if isinstance(unraisable.exc_value, Stopped):
        _end_at_once(unraisable.exc_value.number)
    if not _stopping.is_set():
        sys.__unraisablehook__(unraisable)


def _in_thread(error: Any) -> None:
    if not _stopping.is_set():
        threading.__excepthook__(error)


def _end_at_once(number: int) -> None:
    """As after a kill: workers notice, and the next run removes what is left."""
    # Not through the stream, whose lock another thread may hold, and not into a pipe that nobody empties.
    if not _told.is_set() and select.select([], [2], [], 0)[1]:
        os.write(2, f"{_last_words(number)}\n".encode())
    os._exit(128 + number)


def _last_words(number: int) -> str:
    return f"evenhand: stopped by {signal.Signals(number).name} before it had finished."


def _say(text: str) -> None:
    stream: Any = sys.stderr
    if stream.isatty():
        stream.write("\x1b[?25h")  # a bar may have hidden the cursor
    stream.write(f"{text}\n")
    stream.flush()


def _show_defect() -> None:
    traceback.print_exc()
    _say("evenhand: this is a defect in evenhand or in the model. Nothing that is incomplete was written.")
