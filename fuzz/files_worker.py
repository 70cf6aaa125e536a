"""A process in which files are opened: it lives as long as they let it, and is replaced when one ends it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO, Any

LIMIT = 90.0  # seconds for an audit of a few people, whose model may be given a minute to open
START = 120.0  # and for the first one, which may have to compile
TAIL = 1500  # letters of what was said


class Worker:
    """Runs commands in a process of its own; the first answer says that it is ready."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def audit(self, folder: Path, words: list[str]) -> tuple[str | None, str | None]:
        """What is wrong with how a command ends, if anything; and its sentence, if it refuses."""
        fresh = self._process is None or self._process.poll() is not None
        if fresh:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from fuzz.files_worker import serve; serve()"],
                cwd=Path(__file__).parents[1],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "10000"},
            )
        assert self._process is not None
        ask, answer = self._process.stdin, self._process.stdout
        assert ask is not None
        assert answer is not None
        ask.write(json.dumps({"folder": str(folder), "words": words}) + "\n")
        ask.flush()
        try:
            line = self._line(answer, START if fresh else LIMIT)
        except BaseException:  # who waits is interrupted
            self._end()
            raise
        if line is None:
            self._end()
            return f"does not end\nnot within {LIMIT:g} seconds", None
        if not line:
            code = self._process.wait()
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return f"ends the process with {name}", None
        return _judged(json.loads(line))

    def _line(self, answer: IO[str], seconds: float) -> str | None:
        ready, _, _ = select.select([answer], [], [], seconds)
        return answer.readline() if ready else None

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@cache
def worker() -> Worker:
    """The one of this process."""
    return Worker()


def _judged(found: dict[str, Any]) -> tuple[str | None, str | None]:
    said = found["said"].strip()
    if found["raised"]:
        return f"raises {found['raised']}\n{said[-TAIL:]}", None
    if found["code"] not in (0, 1, 2, 3):
        last = [line for line in said.splitlines() if "Error" in line]
        return f"exit code {found['code']}: {last[-1].strip()[:100] if last else ''}\n{said[-TAIL:]}", None
    if "Traceback" in said:
        return f"a traceback\n{said[-TAIL:]}", None
    if found["code"] == 2:
        sentence = said.partition("evenhand audit: ")[2] or said.splitlines()[-1]
        return (None, sentence) if len(sentence.split()) > 2 else ("refused without a sentence", None)
    lost = {"report.html", "audit.json"} - set(found["written"])
    return (f"exit code {found['code']} without a report\n{said[-TAIL:]}" if lost else None), None


def serve() -> None:
    """Answer until nobody asks any more."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a model prints is no answer
    from typer.testing import CliRunner

    from evenhand.cli.app import app

    for line in sys.stdin:
        asked = json.loads(line)
        os.chdir(asked["folder"])
        done = CliRunner().invoke(app, asked["words"])
        raised = done.exception if not isinstance(done.exception, SystemExit | type(None)) else None
        written = []
        with contextlib.suppress(OSError):
            written = [path.name for path in Path(asked["folder"]).rglob("*")]  # where, the file may say otherwise
        os.chdir("/")
        answer = {
            "code": done.exit_code,
            "raised": "" if raised is None else f"{type(raised).__name__}: {raised}"[:300],
            "said": done.output[-20_000:],
            "written": written,
        }
        out.write(json.dumps(answer) + "\n")
        out.flush()
