"""Random cases until the time is up: what is wrong is printed as scripts."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from threadpoolctl import threadpool_limits

import fuzz
from fuzz.base import Case, RefusedError

LONGEST = 120  # seconds that a case may take
SHOWN = 3  # scripts per kind of failure
REFUSALS = 8  # sentences that are shown


class TooLongError(BaseException):
    """A case has not ended; no handler of errors swallows it."""


@dataclass
class Tally:
    """What became of the cases of all kinds."""

    run: Counter[str] = field(default_factory=Counter)
    refused: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failed: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    seconds: Counter[str] = field(default_factory=Counter)

    def table(self) -> str:
        """The counts by kind, what was refused, and what failed."""
        lines = [f"{'kind':<24}{'cases':>8}{'refused':>9}{'failed':>8}{'seconds':>9}"]
        for kind in sorted(self.run):
            refused, failed = sum(self.refused[kind].values()), sum(self.failed[kind].values())
            lines.append(f"{kind:<24}{self.run[kind]:>8}{refused:>9}{failed:>8}{self.seconds[kind]:>9.1f}")
        sentences: Counter[str] = sum(self.refused.values(), Counter())
        if sentences:
            share = sum(sentences.values()) / sum(self.run.values())
            lines.append(f"\nrefused: {share:.1%} of all, most often")
            lines += [f"{count:>8}  {sentence[:150]}" for sentence, count in sentences.most_common(REFUSALS)]
        if self.wrong:
            lines.append("\nfailed:")
            lines += [
                f"{n:>8}  {kind}: {name}" for kind in sorted(self.failed) for name, n in self.failed[kind].items()
            ]
        return "\n".join(lines)

    @property
    def wrong(self) -> bool:
        """Whether anything failed."""
        return any(self.failed.values())


def modules() -> list[ModuleType]:
    """All modules of this package that have cases."""
    names = [found.name for found in pkgutil.iter_modules(fuzz.__path__) if not found.name.startswith("_")]
    return [m for m in (importlib.import_module(f"fuzz.{name}") for name in names) if hasattr(m, "cases")]


def run(
    sources: list[ModuleType],
    seed: int,
    seconds: float,
    kind: str = "",
    most: int | None = None,
    start: int = 0,
) -> Tally:
    """Run cases of modules in turn, those that have had the least time first, until the time or the cases are up."""
    tally, end = Tally(), time.monotonic() + seconds
    streams = {m.__name__: _chosen(m, seed, kind, most, start) for m in sources}
    spent = dict.fromkeys(streams, 0.0)
    while streams and time.monotonic() < end:
        name = min(streams, key=spent.__getitem__)
        case = next(streams[name], None)
        if case is None:
            del streams[name]
            continue
        with threadpool_limits(1):  # cases are small, and threads only get in each other's way
            spent[name] += _judge(case, tally)
    return tally


def _chosen(module: ModuleType, seed: int, kind: str, most: int | None, start: int) -> Iterator[Case]:
    """Cases of kinds whose names begin with a word; of each kind so many, or a part of that, after the first few."""
    seen: Counter[str] = Counter()
    dear: dict[str, int] = getattr(module, "DEAR", {})
    idle = 0
    for case in module.cases(seed):
        seen[case.kind] += 1
        i = seen[case.kind] - 1
        last = None if most is None else start + max(1, most // dear.get(case.kind, 1))
        wanted = case.kind.startswith(kind) and i >= start and (last is None or i < last)
        idle = 0 if wanted or i < start else idle + 1
        if wanted:
            yield case
        elif idle > 200:  # all kinds of the module have come by
            return


def _judge(case: Case, tally: Tally) -> float:
    """Run a case and print what is wrong; the seconds that it took, without those for its script."""
    began = time.monotonic()
    wrong = _verdict(case, tally)
    taken = time.monotonic() - began
    tally.seconds[case.kind] += taken
    if wrong is not None:
        _show(case, tally, wrong)
    return taken


def _verdict(case: Case, tally: Tally) -> str | None:
    tally.run[case.kind] += 1
    try:
        with _limited(LONGEST):
            return case.run()
    except RefusedError as refusal:
        tally.refused[case.kind][str(refusal)] += 1
        return None
    except TooLongError:
        return f"does not end\nnot within {LONGEST} seconds"
    except Exception as error:  # noqa: BLE001 - whatever a case lets through is a failure
        return f"raises {type(error).__name__}\n{error}"


def _show(case: Case, tally: Tally, wrong: str) -> None:
    name, _, rest = wrong.partition("\n")
    tally.failed[case.kind][name] += 1
    print(f"\n# FAILED, case {tally.run[case.kind]} of {case.kind}: {name}", flush=True)
    if tally.failed[case.kind][name] > SHOWN:
        print(f"# {rest[:300]}", flush=True)
        return
    try:
        with _limited(LONGEST):
            print(case.script(), flush=True)
    except TooLongError:
        print(f"# {rest}\n# Its script was not found in {LONGEST} seconds.", flush=True)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, where signals can do that."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases (default: 0)")
    parser.add_argument("--kind", default="", help="only kinds whose names begin like this")
    parser.add_argument("--cases", type=int, help="how many of each kind at most")
    parser.add_argument("--start", type=int, default=0, help="how many of each kind to leave out first")
    options = parser.parse_args(arguments)
    sources = modules()
    began = time.monotonic()
    tally = run(sources, options.seed, options.seconds, options.kind, options.cases, options.start)
    if not tally.run:
        print(f"There is no kind that begins with {options.kind!r}.")
        return 2
    print(f"\nseed {options.seed}, {time.monotonic() - began:.0f} seconds\n\n{tally.table()}")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
