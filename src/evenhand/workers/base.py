"""Tasks, what comes of them, and what every kind of workers can do."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import cloudpickle
import joblib


class WorkersError(RuntimeError):
    """Workers are not there, or are lost with the same work again and again; the message says with which."""


@dataclass(frozen=True)
class Task:
    """A call that any worker can do, and do again: its result does not depend on who does it, and how often.

    Attributes
    ----------
    function, arguments
        The call.
    name : str or callable
        What sentences call it; of a task of several parts, a function that says which of them is next.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    name: str | Callable[[], str]

    @property
    def at(self) -> str:
        """What it is at just now."""
        return self.name if isinstance(self.name, str) else self.name()

    def packed(self) -> bytes:
        """The call as bytes, for :func:`do`."""
        content: bytes = cloudpickle.dumps((self.function, self.arguments))
        return content


def do(packed: bytes) -> Any:
    """What a worker does with a task; a model that would start workers of its own works here instead."""
    with joblib.parallel_config(backend="sequential"):
        function, arguments = cloudpickle.loads(packed)
        return called(function, arguments)


def called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result of a call; what a user's own code does in it may fail, but not end the process."""
    try:
        return function(*arguments)
    except SystemExit as end:
        raise WorkersError(
            f"Code of the model, or of a perturbation or method, wants to end the process (SystemExit: {end.code})."
        ) from end


@dataclass(frozen=True)
class Finished:
    """A task has come to its end."""

    ticket: int
    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True)
class Lost:
    """The worker of a task is gone.

    Attributes
    ----------
    why : str
        How it ended.
    alone : bool
        Whether it had no other task, which could be what ended it.
    """

    ticket: int
    why: str
    alone: bool


class Crew(ABC):
    """Workers of one kind; tasks are told apart by tickets."""

    @abstractmethod
    def room(self) -> bool:
        """Whether another task would keep somebody busy."""

    @abstractmethod
    def give(self, ticket: int, task: Task) -> None:
        """Have a task done."""

    @abstractmethod
    def wait(self) -> list[Finished | Lost]:
        """What has come of tasks, once there is anything."""

    @abstractmethod
    def forget(self) -> None:
        """Nobody is interested any more in what was given."""

    @abstractmethod
    def close(self) -> None:
        """Send everybody home, finished or not."""


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=3)


_listener: ContextVar[Callable[[str], object]] = ContextVar("_listener", default=_warn)


def tell(text: str) -> None:
    """Say what users should know of workers: a warning, unless somebody listens."""
    _listener.get()(text)


@contextmanager
def telling(listener: Callable[[str], object]) -> Iterator[None]:
    """Inside of this context, sentences about workers go to `listener`."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
