"""Commands end with an exit code that says why, whatever signals come and whoever listens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.app import app

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent")

# A process that imports nothing large.
START = """
import ctypes, errno, os, signal, sys, time
from evenhand.cli import ending
ending.GRACE = {grace}

def command():
{body}

ending.run(command)
"""


def start(body: str, grace: float = 0.2, **options: object) -> subprocess.Popen[str]:
    indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
    code = START.format(body=indented, grace=grace)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen([sys.executable, "-c", code], text=True, **pipes)  # type: ignore[call-overload]


def ended(body: str) -> tuple[int, str, str]:
    process = start(body)
    out, said = process.communicate(timeout=60)
    return process.returncode, out, said


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("pass", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('It needs rich.')", 2, "It needs rich."),
        ("raise MemoryError", 2, "not enough memory"),
        ("raise OSError(errno.ENOSPC, 'No space left', 'file')", 2, "No space left (file)"),
        ("raise OSError(errno.EROFS, 'Read-only file system')", 2, "Read-only file system."),
        ("raise KeyboardInterrupt", 130, "stopped by SIGINT"),
    ],
)
def test_an_end_that_is_no_defect(body: str, code: int, words: str) -> None:
    found, _, said = ended(body)
    assert (found, said.count("\n")) == (code, bool(words))
    assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize("error", ["RuntimeError('out of luck')", "FileNotFoundError(2, 'out of luck')"])
def test_a_defect_is_shown_and_is_no_gate_that_failed(error: str) -> None:
    code, _, said = ended(f"raise {error}")
    assert code == 4
    assert "Traceback" in said
    assert "out of luck" in said
    assert "a defect in evenhand or in the model" in said


SITUATIONS = {
    "asleep": "print('ready', flush=True); time.sleep(60)",
    "busy": "print('ready', flush=True)\nwhile True: pass",
    "swallowed": """
print('ready', flush=True)
while True:
    try:
        time.sleep(60)
    except:
        pass
""",
    "where nothing can be raised": """
class Slow:
    def __del__(self):
        print('ready', flush=True)
        time.sleep(60)
Slow()
time.sleep(60)
""",
    "in compiled code": """
mutex, lock = ctypes.create_string_buffer(256), ctypes.CDLL(None).pthread_mutex_lock
print('ready', flush=True)
lock(mutex), lock(mutex)
""",
    "with debris": """
class Half:
    def __del__(self):
        raise ValueError('half-made')
half = Half()
print('ready', flush=True)
time.sleep(60)
""",
}


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.slow)])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_signal_is_answered_with_one_line(situation: str, name: str) -> None:
    number = signal.Signals[name]
    process = start(SITUATIONS[situation])
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert said == f"evenhand: stopped by {name} before it had finished.\n"
    assert process.returncode == 128 + number


def test_a_signal_in_a_models_own_code_is_no_fault_of_the_model() -> None:
    """What catches everything that a model's code may raise lets a signal through."""
    body = """
import numpy as np
from evenhand.models import blackbox
class Slow:
    classes_, n_features_in_ = np.array([0, 1]), 2
    def predict(self, X):
        print('ready', flush=True)
        time.sleep(60)
blackbox(Slow()).predict(np.zeros((1, 2)))
"""
    process = start(body)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (143, "evenhand: stopped by SIGTERM before it had finished.\n")


def test_what_is_open_is_put_in_order(tmp_path: Path) -> None:
    body = f"""
from pathlib import Path
try:
    print('ready', flush=True)
    time.sleep(60)
finally:
    print('leaving', flush=True)
    sys.stdin.readline()
    Path({str(tmp_path)!r}, 'order').write_text('put')
"""
    process = start(body, grace=60.0, stdin=subprocess.PIPE)
    assert process.stdout is not None
    for said in ("ready", "leaving"):  # `timeout` asks twice, the process and its group
        assert process.stdout.readline().strip() == said
        process.terminate()
    process.communicate("go on\n", timeout=60)
    assert process.returncode == 143
    assert (tmp_path / "order").read_text() == "put"


def test_a_signal_that_is_ignored_from_the_beginning_still_is() -> None:
    body = "print('ready', flush=True); sys.stdin.readline(); sys.exit(3)"
    process = start(body, stdin=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate("go on\n", timeout=60)
    assert (process.returncode, said) == (3, "")


LOUD = "for i in range(20000): print('✓ 💶', i); print('✕', i, file=sys.stderr)\nsys.exit(3)"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("kind", ["gone", "full", "ascii"])
def test_the_work_goes_on_whoever_listens(monkeypatch: pytest.MonkeyPatch, kind: str, stream: str) -> None:
    if kind == "ascii":
        monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    other = "stderr" if stream == "stdout" else "stdout"
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        process = start(LOUD, **({stream: full} if kind == "full" else {}))
    if kind == "gone":
        getattr(process, stream).close()
        with getattr(process, other) as left:
            heard = left.read()
    else:
        heard = process.communicate(timeout=60)[other == "stderr"]
    assert process.wait(60) == 3
    assert heard.count("\n") == 20000
    if kind == "ascii":
        assert ("\\u2715" if other == "stderr" else "\\u2713") in heard


def test_streams_that_were_closed_are_nobody_elses(tmp_path: Path) -> None:
    """A file that is opened must not be what others take for their stream."""
    body = f"""
with open({str(tmp_path / "report")!r}, "w") as file:
    print("said"); print("said", file=sys.stderr); os.write(2, b"said")
    file.write(str(file.fileno()))
sys.exit(3)
"""
    code = START.format(body="\n".join(f"    {line}" for line in body.strip().splitlines()), grace=0.2)
    done = subprocess.run(["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, code], check=False, timeout=60)
    assert done.returncode == 3
    assert int((tmp_path / "report").read_text()) > 2


@pytest.mark.slow
@pytest.mark.parametrize(("width", "encoding"), [(1, "utf-8"), (20, "ascii")])
def test_an_audit_is_told_on_any_terminal(tmp_path: Path, width: int, encoding: str) -> None:
    around = os.environ | {"COLUMNS": str(width), "PYTHONIOENCODING": encoding, "LC_ALL": "C", "FORCE_COLOR": "1"}
    command = [sys.executable, "-m", "evenhand", "audit", "--demo", "--out", str(tmp_path / "out"), "--jobs", "1"]
    done = subprocess.run(command, env=around, capture_output=True, check=False, timeout=300)
    assert done.returncode == 1
    said = done.stderr.decode()
    assert "Traceback" not in said
    assert "median_amplification <= " in said  # no line is broken, and none is cut


def test_help_says_what_exit_codes_mean() -> None:
    said = CliRunner().invoke(app, ["audit", "--help"]).output
    for words in ("0 passed", "1 a gate failed", "2 wrong use", "3 undecided", "4 a defect"):
        assert words in " ".join(said.split())
