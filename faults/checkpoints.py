"""Checkpoints with a bit flipped, cut off, or in each other's place: each is run again, and that is said."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evenhand.study import checkpoints
from faults.base import NONE, WRONG, Outcome
from faults.studies import Folder

FLIPS = 1000  # bits, each in a file that is whole otherwise
RUNS = 2  # whole studies with damaged files in their folder


def campaign(short: bool) -> Iterator[Outcome]:
    """Flipped bits one by one, and then damage of all kinds before whole studies run again."""
    chance = random.Random(2)
    with tempfile.TemporaryDirectory(prefix="evenhand-faults-") as name:
        study = Folder(Path(name) / "study")
        wanted = [path for path in study.reference if path.endswith(".parquet") and path.startswith("cells/")]
        keys = {Path(path).stem.rsplit("-", 1)[1]: path for path in wanted}
        for _ in range(50 if short else FLIPS):
            key, path = chance.choice(sorted(keys.items()))
            yield _flipped(study.reference[path], key, Path(name) / Path(path).name, chance)
        for i in range(1 if short else RUNS):
            yield _run_again(study, Path(name) / f"out-{i}", wanted, chance)


def _flipped(content: bytes, key: str, path: Path, chance: random.Random) -> Outcome:
    kind = "flipped bit in a checkpoint"
    place, bit = chance.randrange(len(content)), chance.randrange(8)
    path.write_bytes(_with_flip(content, place, bit))
    try:
        checkpoints.read(path, key)
    except checkpoints.DamagedError:
        return Outcome(kind, NONE)
    except Exception as error:  # noqa: BLE001 - whatever else is raised is what is looked for
        return Outcome(kind, WRONG, f"bit {bit} of byte {place}: {error!r}")
    return Outcome(kind, WRONG, f"bit {bit} of byte {place} was accepted")


def _with_flip(content: bytes, place: int, bit: int) -> bytes:
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def _run_again(study: Folder, out: Path, cells: list[str], chance: random.Random) -> Outcome:
    """Damage every third checkpoint of a finished study in one way or another, and run it again."""
    kind = "study with damaged checkpoints"
    for path, content in study.reference.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(content)
    damaged = chance.sample(cells, len(cells) // 3)
    for i, path in enumerate(damaged):
        content = study.reference[path]
        others = [other for other in cells if other != path]
        ways = (
            _with_flip(content, chance.randrange(len(content)), chance.randrange(8)),
            content[: chance.randrange(len(content))],
            study.reference[chance.choice(others)],
            b"",
            content + b"\0",
        )
        (out / path).write_bytes(ways[i % len(ways)])
    code, said = study.finish(out)
    if said.count("It is computed again.") != len(damaged):
        return Outcome(kind, WRONG, f"{len(damaged)} files were damaged, and it said: {said}")
    return study.judge(kind, out, code, said)
