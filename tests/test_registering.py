"""Every registry has the same rule: what comes again replaces itself, and a name that another has is refused."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evenhand.auditing.gates import GATES
from evenhand.auditing.model_files import FORMATS
from evenhand.costs import COSTS, named_cost
from evenhand.methods import METHODS
from evenhand.perturbations import PERTURBATIONS
from evenhand.projection.solver import SOLVERS
from evenhand.study import StudyError
from evenhand.study.models import MODELS
from evenhand.study.modules import import_modules


class Kind(NamedTuple):
    """A registry: a file that adds something to it, who is found there, and what it has of its own."""

    registry: Any
    head: str
    added: str  # with the fields {name}, {object} and {value}
    found: Callable[[str], Any]
    builtin: str
    remedy: str


KINDS = {
    "perturbation": Kind(
        PERTURBATIONS,
        "from dataclasses import dataclass\nfrom evenhand.perturbations import register\n",
        '@register(name="{name}")\n@dataclass(frozen=True)\nclass {object}:\n    value: int = {value}\n'
        "    def __call__(self, X, rng):\n        return X\n",
        lambda name: PERTURBATIONS[name],
        "gaussian",
        r'choose another name with @register\(name="\.\.\."\), or remove that one from PERTURBATIONS first',
    ),
    "method": Kind(
        METHODS,
        "from dataclasses import dataclass\nfrom evenhand.methods import method\n",
        '@method("{name}")\n@dataclass(frozen=True)\nclass {object}:\n    value: int = {value}\n',
        lambda name: METHODS[name],
        "closest",
        r'choose another name with @method\("\.\.\."\), or remove that one from METHODS first',
    ),
    "cost": Kind(
        COSTS,
        "from evenhand.costs import L1, named_cost\n",
        '@named_cost("{name}")\ndef {object}(schema):\n    return L1()\n{object}.value = {value}\n',
        lambda name: COSTS[name],
        "l1",
        r'choose another name with @named_cost\("\.\.\."\), or remove that one from COSTS first',
    ),
    "gate": Kind(
        GATES,
        "from evenhand.auditing.gates import gate\n",
        '@gate("{name}", title="", question="", section="coverage", unit="share")\n'
        "def {object}(condition, evidence):\n    return []\n{object}.value = {value}\n",
        lambda name: GATES[name].measure,
        "flip_rate",
        r'choose another name with @gate\("\.\.\."\), or remove that one from GATES first',
    ),
    "reader of model files": Kind(
        FORMATS,
        "from evenhand.auditing.model_files import model_file\n",
        '@model_file(".{name}")\ndef {object}(data, path):\n    return None\n{object}.value = {value}\n',
        lambda name: FORMATS[f".{name}"].read,
        "skops",
        r'choose another suffix with @model_file\("\.suffix"\), or remove that one from FORMATS first',
    ),
    "model of studies": Kind(
        MODELS,
        "from sklearn.tree import DecisionTreeClassifier\nfrom evenhand.study import study_model\n",
        '@study_model("{name}")\ndef {object}():\n    return DecisionTreeClassifier()\n{object}.value = {value}\n',
        lambda name: MODELS[name],
        "tree",
        r'choose another name with @study_model\("\.\.\."\), or remove that one from MODELS first',
    ),
    "solver": Kind(  # its name is that of the class
        SOLVERS,
        "from evenhand.projection import Projector, register_solver\n",
        "class Of{object}:\n    @register_solver\n    class {name}(Projector):\n        value = {value}\n",
        lambda name: next(solver for solver in SOLVERS if solver.__name__ == name),
        SOLVERS[0].__name__,
        r"give the class another name, or remove that one from SOLVERS first",
    ),
}


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    """What a test adds is gone after it."""
    before = {name: kind.registry.copy() for name, kind in KINDS.items()}
    modules = set(sys.modules)
    yield
    for name, kind in KINDS.items():
        kind.registry.clear()
        (kind.registry.extend if isinstance(kind.registry, list) else kind.registry.update)(before[name])
    for added in set(sys.modules) - modules:
        if "mine" in added:
            del sys.modules[added]


@pytest.fixture(params=KINDS)
def what(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def run(
    what: str, folder: Path, file: str = "mine.py", name: str = "mine", object: str = "Mine", value: int = 1
) -> int:
    """Write a file that registers something, run it as studies and audits do, and say what is found under its name."""
    kind = KINDS[what]
    text = kind.head + kind.added.format(name=name, object=object, value=value)
    (folder / file).write_text(text, encoding="utf-8")
    import_modules((file,), folder)
    found: int = kind.found(name).value
    return found


def test_the_same_file_again_replaces_it(what: str, tmp_path: Path) -> None:
    known = len(KINDS[what].registry)
    assert [run(what, tmp_path, value=value) for value in (1, 1, 2)] == [1, 1, 2]
    assert len(KINDS[what].registry) == known + 1


def test_the_same_file_with_another_class_replaces_it(what: str, tmp_path: Path) -> None:
    run(what, tmp_path)
    assert run(what, tmp_path, object="Better", value=2) == 2


def test_a_module_that_is_loaded_anew_replaces_it(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine_too.py").write_text(
        KINDS[what].head + KINDS[what].added.format(name="mine", object="Mine", value=1)
    )
    module = importlib.import_module("mine_too")
    first = KINDS[what].found("mine")
    importlib.reload(module)
    assert KINDS[what].found("mine") is not first
    import_modules(("mine_too.py",), tmp_path)  # now it has another module name, and is the same file
    assert KINDS[what].found("mine").__module__ == "evenhand_study_mine_too"


def test_another_file_is_refused(what: str, tmp_path: Path) -> None:
    run(what, tmp_path)
    got, has = (
        r"evenhand_study_\S+ in \S+other\.py cannot be the",
        r"evenhand_study_mine\.\S+ in \S+mine\.py has this name",
    )
    with pytest.raises(StudyError, match=rf"{got} {what} '\.?mine': {has}; {KINDS[what].remedy}"):
        run(what, tmp_path, "other.py", value=2)
    assert KINDS[what].found("mine").value == 1


def test_another_in_the_same_file_is_refused(what: str, tmp_path: Path) -> None:
    kind = KINDS[what]
    twice = [kind.added.format(name="mine", object=object, value=1) for object in ("One", "Two")]
    (tmp_path / "mine.py").write_text("\n".join([kind.head, *twice]), encoding="utf-8")
    with pytest.raises(StudyError, match=r"Two\S* in .* cannot be .*One\S* in .* has this name"):
        import_modules(("mine.py",), tmp_path)


def test_ours_is_refused(what: str, tmp_path: Path) -> None:
    kind = KINDS[what]
    ours = kind.found(kind.builtin)
    with pytest.raises(StudyError, match=rf"cannot be the {what} '\.?{kind.builtin}': evenhand\.\S+ has this name; "):
        run(what, tmp_path, name=kind.builtin)
    assert kind.found(kind.builtin) is ours


def test_a_solver_that_is_replaced_is_asked_in_its_turn(tmp_path: Path) -> None:
    run("solver", tmp_path)
    run("solver", tmp_path, "theirs.py", name="theirs")
    order = [solver.__name__ for solver in SOLVERS]
    run("solver", tmp_path, value=2)
    assert [solver.__name__ for solver in SOLVERS] == order


def test_what_has_no_name_of_its_own_has_that_of_its_function(tmp_path: Path) -> None:
    def flat(schema: Any, price: float) -> Any:
        return None

    for price in (1.0, 2.0):
        named_cost("mine")(functools.partial(flat, price=price))
    assert COSTS["mine"].keywords == {"price": 2.0}
    with pytest.raises(ValueError, match=r"flat in .*test_registering.py has this name"):
        named_cost("mine")(functools.partial(sorted))


def test_suffixes_are_taken_together_or_not_at_all() -> None:
    from evenhand.auditing.model_files import model_file

    with pytest.raises(ValueError, match=r"cannot be the reader of model files '\.skops'"):
        model_file(".mine", ".skops")(lambda data, path: None)
    assert ".mine" not in FORMATS
