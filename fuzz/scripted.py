"""Cases that are scripts: what is run is what is printed.

A question is a text that makes a table, a model and explanations; it is executed, and what comes out is checked.  What
is wrong is a claim: a text as well, that ends in an assertion about the same names.  The two make the script of a
failure, without a line of the oracle that found it.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from fuzz.base import RefusedError

HEADER = """
import warnings

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer, KBinsDiscretizer, MaxAbsScaler, MinMaxScaler, OneHotEncoder, OrdinalEncoder, RobustScaler,
    StandardScaler, TargetEncoder,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from evenhand import *

warnings.simplefilter("ignore")
nan, inf = np.nan, np.inf
""".lstrip()

SHRINKING = 10.0  # seconds at most, and how many smaller questions are tried
TRIED = 60


class Claim(NamedTuple):
    """What is wrong: its name, a sentence, and lines of which the last asserts that it is not so."""

    name: str
    sentence: str
    source: str


class Question(Protocol):
    """Something to ask the package, as a text."""

    def source(self) -> str:
        """Lines that make the names which `check` looks at."""

    def check(self, names: dict[str, Any]) -> Claim | None:
        """What is wrong with them."""

    def smaller(self) -> Iterator[Question]:
        """Questions like this one with less in them, the smallest first."""


_COMMON: dict[str, Any] = {}


def executed(source: str) -> dict[str, Any]:
    """The names that a text makes, after the header."""
    if not _COMMON:
        exec(compile(HEADER, "<header>", "exec"), _COMMON)
    names = dict(_COMMON)
    exec(compile(source, "<case>", "exec"), names)
    return names


def asked(question: Question) -> Claim | None:
    """What is wrong with the answer to a question, if anything.

    Refusals are sentences of type TypeError or ValueError from the package itself.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that are what they are
        return _asked(question)


def _asked(question: Question) -> Claim | None:
    try:
        names = executed(question.source())
    except Exception as error:
        packages = _packages(error)
        if "evenhand" not in packages:
            raise RefusedError(f"(the model itself) {type(error).__name__}: {error}") from error
        said = str(error).rstrip()
        if isinstance(error, TypeError | ValueError) and packages[-1] == "evenhand" and said.endswith((".", "?", ")")):
            raise RefusedError(str(error)) from error
        raise
    return question.check(names)


def _packages(error: BaseException) -> list[str]:
    """The packages that an error came through, where it was raised at last."""
    found = [frame.f_globals.get("__name__", "").split(".")[0] for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [name for name in found if name]


@dataclass
class ScriptedCase:
    """A case made of a question, which is drawn when it is run."""

    kind: str
    draw: Callable[[], Question]
    _failed: tuple[Question, Claim | None, str] | None = field(default=None, repr=False)

    def run(self) -> str | None:
        """What is wrong with the answer, if anything."""
        question = self.draw()
        try:
            claim = asked(question)
        except RefusedError:
            raise
        except Exception as error:  # noqa: BLE001 - any other exception is what is looked for
            self._failed = (question, None, f"{type(error).__name__}: {error}")
            where = "".join(traceback.format_tb(error.__traceback__)[-3:])
            return f"raises {type(error).__name__}\n{error}\n{where}"
        if claim is None:
            return None
        self._failed = (question, claim, "")
        return f"{claim.name}\n{claim.sentence}"

    def script(self) -> str:
        """The failure with as little in it as was found in a while."""
        if self._failed is None and self.run() is None:
            return ""
        assert self._failed is not None
        question, claim, error = shrunk(*self._failed)
        said = (claim.sentence if claim is not None else error).splitlines()
        comment = "\n".join(f"# {line}" for line in (f"{self.kind}: {claim.name if claim else 'raises'}", *said))
        return f"{comment}\n{HEADER}\n{question.source()}\n{claim.source if claim is not None else ''}"


def shrunk(question: Question, claim: Claim | None, error: str) -> tuple[Question, Claim | None, str]:
    """A smaller question that fails in the same way."""
    end, tried, found = time.monotonic() + SHRINKING, 0, True
    while found and tried < TRIED and time.monotonic() < end:
        found = False
        for other in question.smaller():
            tried += 1
            if tried > TRIED or time.monotonic() > end:
                break
            now, message = None, ""
            try:
                now = asked(other)
            except RefusedError:
                continue
            except Exception as raised:  # noqa: BLE001 - it is compared with the failure that is looked for
                message = f"{type(raised).__name__}: {raised}"
            same = message.split(":")[0] == error.split(":")[0] if claim is None else now is not None
            if same and (claim is None or (now is not None and now.name == claim.name)):
                question, claim, error, found = other, now, message, True
                break
    return question, claim, error


# --- Texts of tables ----------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """A value as Python writes it; numbers to the last bit."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is pd.NA:
        return "pd.NA"
    return repr(value)


def listed(values: Any) -> str:
    """Values as a list."""
    return "[" + ", ".join(text(value) for value in values) + "]"


def array_text(values: np.ndarray) -> str:
    """An array of one or two dimensions."""
    rows = values.tolist()
    body = listed(rows) if values.ndim == 1 else "[\n" + "".join(f"    {row!r},\n" for row in rows) + "]"
    kind = (
        ""
        if values.dtype in (np.float64, np.int64, bool) or values.dtype.kind in "OU"
        else f", dtype={values.dtype.name!r}"
    )
    return f"np.array({body}{kind})"


def series_text(values: pd.Series) -> str:
    """A column with its type."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        items = [None if pd.isna(v) else v for v in values]
        return f"pd.Categorical({listed(items)}, categories={listed(dtype.categories)}, ordered={bool(dtype.ordered)})"
    return f"pd.Series({listed(values.tolist())}, dtype={str(dtype)!r})"


def frame_text(table: pd.DataFrame) -> str:
    """A DataFrame with the types of its columns, and its index unless that only counts."""
    body = "".join(f"    {name!r}: {series_text(table[name].reset_index(drop=True))},\n" for name in table.columns)
    made = f"pd.DataFrame({{\n{body}}})"
    if table.index.equals(pd.RangeIndex(len(table))):
        return made
    return f"{made}.set_axis({listed(table.index)})"
