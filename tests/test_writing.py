"""Files of a run appear together or not at all, whenever the process ends and whatever the disk says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand import writing
from evenhand.cli.app import app
from evenhand.writing import WritingError, check_writable, sweep, write_together, write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed")

LAST = "all.json"
OLD = {"a.html": "old page", "figures/b.svg": b"old \xff figure", LAST: "old content"}
NEW = {"c.csv": "new table", "figures/b.svg": b"new \xff figure", "a.html": "new page", LAST: "new content"}
MINE = {"notes.txt": b"mine", "figures/mine.svg": b"mine too"}

# A process that imports nothing large forks once for every call to the system, and has that call disturbed.
SCRIPT = """
import errno, json, os, shutil, signal, sys
from pathlib import Path
from evenhand.writing import WritingError, check_writable, write_together, write_whole

CALLS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "os.scandir", "os.listdir"}
OLD, NEW, MINE = ({name: text.encode("latin-1") for name, text in one.items()} for one in json.loads(sys.argv[2]))
folder, how, old_there = Path(sys.argv[1]) / "out", sys.argv[3], sys.argv[4] == "old"
whole = sys.argv[5:] == ["whole"]
os.fsync = lambda handle: None  # the system keeps what processes wrote that die
former = list(OLD)


def begin():
    shutil.rmtree(folder.parent)
    for name, content in MINE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    if old_there:
        write()


def write(files=OLD):
    if whole:
        write_whole(folder / "one", files["all.json"])
    else:
        write_together(folder, files, former)


def disturbed(number, action):
    # Runs the action in a child; the number-th call on the disk is disturbed. How many there were, or -1.
    heard, told = os.pipe()
    child = os.fork()
    if not child:
        calls = [0]

        def hook(event, arguments):
            if event in CALLS:
                calls[0] += 1
                if calls[0] == number or (how == "full" and calls[0] > number and event in ("open", "os.mkdir")):
                    if how == "kill":
                        os.kill(os.getpid(), signal.SIGKILL)
                    raise KeyboardInterrupt if how == "interrupt" else OSError(errno.ENOSPC, "No space left on device")

        sys.addaudithook(hook)
        code = 0
        try:
            action()
        except (WritingError, OSError) as error:
            code = 2 if "No space left" in str(error) else 9
        except KeyboardInterrupt:
            code = 3
        os.write(told, str(calls[0]).encode())
        os._exit(code)
    os.close(told)
    said = os.read(heard, 10).decode()
    os.close(heard)
    status = os.waitpid(child, 0)[1]
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)), int(said or -1)


def files():
    paths = [path for path in folder.rglob("*") if path.is_file()]
    names = [(path.relative_to(folder).as_posix(), path) for path in paths]
    return {name: path.read_bytes().decode("latin-1") for name, path in names if not name.startswith(".evenhand")}


def left():
    return [path.name for path in folder.rglob(".evenhand*")]


found, number = [], 0
while number < 400:
    number += 1
    begin()
    code, calls = disturbed(number, lambda: write(NEW))
    if calls >= 0 and calls < number:
        break
    first, after = files(), left()
    if not whole:
        check_writable(folder)
    second = files()
    rest = left()
    write({**NEW, "all.json": b"third"})
    found.append([code, first, after, second, rest, files(), left()])
print(json.dumps(found))
"""


def texts(files: dict[str, str | bytes]) -> dict[str, str]:
    return {name: content if isinstance(content, str) else content.decode("latin-1") for name, content in files.items()}


def disturbed(tmp_path: Path, how: str, old: bool, *more: str) -> list[list]:
    """What is there after every call to the system was disturbed, one at a time."""
    (tmp_path / "place").mkdir()
    contents = json.dumps([texts(OLD), texts(NEW), texts(MINE)])
    arguments = [str(tmp_path / "place"), contents, how, "old" if old else "none", *more]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("how", "old"),
    [
        ("kill", True),
        pytest.param("kill", False, marks=pytest.mark.slow),
        pytest.param("interrupt", True, marks=pytest.mark.slow),
        pytest.param("interrupt", False, marks=pytest.mark.slow),
        ("error", True),
        pytest.param("error", False, marks=pytest.mark.slow),
        pytest.param("full", True, marks=pytest.mark.slow),
        pytest.param("full", False, marks=pytest.mark.slow),
    ],
)
def test_all_or_nothing_whichever_call_is_disturbed(tmp_path: Path, how: str, old: bool) -> None:
    before, mine = texts(OLD) if old else {}, texts(MINE)
    found = disturbed(tmp_path, how, old)
    assert len(found) > 40
    for code, first, left, second, rest, third, nothing in found:
        assert code in {"kill": (9,), "interrupt": (3,)}.get(how, (0, 2)), code
        seen = {name: text for name, text in first.items() if name not in mine}
        # Files of one run only; if some are missing, the last one is.
        run = next(run for run in (before, texts(NEW)) if seen.items() <= run.items())
        assert seen == run or LAST not in seen
        if code == 2 and not left:
            assert seen in (before, texts(NEW))
        if code == 0:
            assert seen == texts(NEW)
        assert second in ({**before, **mine}, {**texts(NEW), **mine})
        assert seen != texts(NEW) or second == {**texts(NEW), **mine}
        assert third == {**texts(NEW), LAST: "third", **mine}
        assert rest == nothing == []
    assert {second == {**texts(NEW), **mine} for _, _, _, second, *_ in found} == {True, False}


@pytest.mark.parametrize("how", ["kill", "interrupt", "error"])
def test_one_file_is_whole_whichever_call_is_disturbed(tmp_path: Path, how: str) -> None:
    found = disturbed(tmp_path, how, True, "whole")
    assert len(found) >= 3
    for code, first, left, *_ in found:
        assert first["one"] in ("old content", "new content")
        assert how == "kill" or not left
        assert code != 0 or first["one"] == "new content"


# --- What a second one does while the first one is at it --------------------------------------------------------------

HOLD = """
import os, signal, sys
from pathlib import Path
from evenhand.writing import write_together, write_whole

def hook(event, arguments):
    if event == "os.rename":
        os.kill(os.getpid(), signal.SIGSTOP)

sys.addaudithook(hook)
folder = Path(sys.argv[1])
if sys.argv[2] == "together":
    write_together(folder, {"a": "first", "b": "first"})
else:
    write_whole(folder / "a", b"first")
"""


def held(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    """A process that has stopped before its first rename."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder), kind])
    for _ in range(600):
        if os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError("it did not stop")


def test_who_is_writing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = held(tmp_path, "together")
    try:
        monkeypatch.setattr(writing, "WAITS", 2)
        with pytest.raises(WritingError, match="being written by another run"):
            write_together(tmp_path, {"a": "second", "b": "second"})
        assert not (tmp_path / "a").exists()
        process.send_signal(signal.SIGCONT)
        deadline = 600
        while (tmp_path / writing.STAGE).exists() and deadline:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
            deadline -= 1
        assert (tmp_path / "b").read_text() == "first"
        monkeypatch.undo()
        write_together(tmp_path, {"a": "second", "b": "second"})
        assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "second"
    finally:
        process.kill()
        process.wait()


def test_what_was_left_is_swept_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    left, busy = held(tmp_path, "whole"), held(tmp_path, "whole")
    try:
        assert len(list(tmp_path.glob(".evenhand-*.part"))) == 2
        left.kill()
        left.wait()
        sweep(tmp_path)
        # The file of who is busy is closed before it is renamed, and made again if it is gone then.
        for _ in range(600):
            busy.send_signal(signal.SIGCONT)
            if busy.poll() is not None:
                break
            time.sleep(0.05)
        assert busy.returncode == 0
        assert (tmp_path / "a").read_text() == "first"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
    finally:
        for process in (left, busy):
            process.kill()
            process.wait()


MANY = """
import sys
from pathlib import Path
from evenhand.writing import check_writable, write_together
folder, name = Path(sys.argv[1]), sys.argv[2]
for round in range(15):
    check_writable(folder / "deep" / "out", ["a", "b", "c/d"])
    write_together(folder / "deep" / "out", {part: f"{name} {round} {part}" for part in ("a", "b", "c/d")})
"""


def test_several_at_once_leave_the_files_of_one(tmp_path: Path) -> None:
    several = [subprocess.Popen([sys.executable, "-c", MANY, str(tmp_path), str(number)]) for number in range(4)]
    assert [process.wait(120) for process in several] == [0] * 4
    out = tmp_path / "deep" / "out"
    assert len({(out / part).read_text().rsplit(" ", 1)[0] for part in ("a", "b", "c/d")}) == 1
    assert sorted(path.name for path in out.rglob("*")) == ["a", "b", "c", "d"]


# --- Sentences --------------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "out" / "a").mkdir(parents=True)
    cases = [
        (tmp_path / "file", "Not a directory|File exists"),
        (tmp_path / "file" / "below", "Not a directory"),
        (tmp_path / "out", "it is a folder"),
        (Path("/proc/nowhere"), "No such file"),
        (tmp_path / ("x" * 300), "name too long"),
        (tmp_path / "zero\0byte", "zero byte"),
    ]
    before = sorted(tmp_path.rglob("*"))
    for folder, reason in cases:
        for action in (write_together, check_writable):
            with pytest.raises(WritingError, match=rf"cannot be written: .*({reason})"):
                action(folder, {"a": "text", "b": "text"})
    assert sorted(tmp_path.rglob("*")) == before


def test_checking_leaves_nothing(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "deep", ["a", "b/c"])
    assert list(tmp_path.iterdir()) == []


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    assert write_together(tmp_path, {"b": "a\r\nb\n💶", "a": b"\0\xff"}) == [tmp_path / "b", tmp_path / "a"]
    assert (tmp_path / "b").read_bytes() == "a\r\nb\n💶".encode()
    assert (tmp_path / "a").read_bytes() == b"\0\xff"
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~umask


def test_locks_that_a_file_system_does_not_have_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(handle: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(writing, "_take", none)
    write_together(tmp_path, {"a": "text"})
    write_whole(tmp_path / "b", b"text")
    (tmp_path / ".evenhand-0.part").write_text("perhaps somebody's")
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".evenhand-0.part", "a", "b"]


# --- The paper --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_paper_leaves_the_files_of_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(code: int) -> dict[str, bytes]:
        found = CliRunner().invoke(app, ["reproduce", "--only", "theorems", "--out", str(tmp_path)])
        assert found.exit_code == code, found.output
        assert code == 0 or "cannot be written: No space left on device" in found.output
        return {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*.*")}

    (tmp_path / "figures").mkdir()
    for name in ("masking.csv", "figures/curse.svg", "report.html", "notes.txt", "figures/mine.svg"):
        (tmp_path / name).write_text("of another run, or mine")
    first = run(0)
    figures = ["figures/mine.svg", "figures/theorems.png", "figures/theorems.svg"]
    assert sorted(first) == [*figures, "notes.txt", "report.html", "summary.json", "theorems.csv"]
    assert first["notes.txt"] == first["figures/mine.svg"] == b"of another run, or mine"
    assert run(0) == first  # no time, and nothing else that differs the next time
    (tmp_path / "curse.csv").write_text("of another run")
    before = {**first, "curse.csv": b"of another run"}
    monkeypatch.setattr("os.fsync", full)
    assert run(2) == before


def full(handle: int) -> None:
    raise OSError(28, "No space left on device")
