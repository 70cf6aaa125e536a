"""Where work is done: in this process, in several, or on a Dask cluster; the result is the same."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import joblib


class WorkersError(ValueError):
    """The workers that were asked for are not there."""


def backend(jobs: int | None, cluster: str | None) -> AbstractContextManager[Any]:
    """What joblib.Parallel uses inside of this context.

    Parameters
    ----------
    jobs : int or None
        Processes; None leaves it to a surrounding ``joblib.parallel_config``.
    cluster : str or None
        Address of a Dask scheduler, which goes before `jobs`.
    """
    if cluster is not None:
        from dask import distributed

        connect: Any = distributed.Client
        try:
            client = connect(cluster)
        except (OSError, ValueError, TypeError) as error:
            raise WorkersError(
                f"--cluster: no Dask scheduler answers at {cluster!r} ({error}). An address looks like tcp://host:8786."
            ) from None
        return _Both(client, joblib.parallel_config(backend="dask"))
    if jobs is None:
        return nullcontext()
    one, many = {"backend": "sequential"}, {"backend": "loky", "n_jobs": jobs, "inner_max_num_threads": 1}
    config: AbstractContextManager[Any] = joblib.parallel_config(**(one if jobs == 1 else many))
    return config


class _Both(AbstractContextManager[None]):
    """A Dask client and the configuration that uses it."""

    def __init__(self, client: Any, config: Any) -> None:
        self.client, self.config = client, config

    def __enter__(self) -> None:
        self.config.__enter__()

    def __exit__(self, *error: object) -> None:
        self.config.__exit__(*error)
        self.client.close()
