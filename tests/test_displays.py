"""Pictures: what they show, on which axes, and that nothing needs matplotlib until one is drawn."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import Actionable, Closest, Gaussian, certify, compare, instability
from evenhand.displays import WORDS, CertificateDisplay, ComparisonDisplay, CounterfactualDisplay, InstabilityDisplay

X, y = load_iris(return_X_y=True)
SOME = X[::7]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tree() -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def measured(tree) -> dict[str, Any]:
    return {
        cost: instability(Closest(cost).fit(tree), SOME, Gaussian(0.05), draws=4, random_state=0)
        for cost in ("l1", "l2")
    }


@pytest.fixture(scope="module")
def made(tree, measured) -> dict[str, Any]:
    """A way to make each display, given axes or not."""
    compared = compare(measured["l1"], measured["l2"], names=("first", "second"))
    proven = certify(Closest("l2").fit(tree), SOME)
    told = Closest().fit(tree).explain(SOME)
    return {
        "instability": lambda ax=None: InstabilityDisplay.from_instability(measured["l1"], ax=ax),
        "several": lambda ax=None: InstabilityDisplay.from_instability(measured, measure="amplification", ax=ax),
        "comparison": lambda ax=None: ComparisonDisplay.from_comparison(compared, ax=ax),
        "certificate": lambda ax=None: CertificateDisplay.from_certificates(proven, ax=ax),
        "certificates": lambda ax=None: CertificateDisplay.from_certificates({"a": proven, "b": proven}, ax=ax),
        "counterfactual": lambda ax=None: CounterfactualDisplay.from_explanations(told, 3, ax=ax),
    }


KINDS = ["instability", "several", "comparison", "certificate", "certificates", "counterfactual"]
every = pytest.mark.parametrize("kind", KINDS)


def words(display: Any) -> str:
    """All text of the picture."""
    return "\n".join(text.get_text() for text in display.figure_.findobj(mpl.text.Text))


# --- Axes and figures -------------------------------------------------------------------------------------------------


@every
def test_draws_on_a_new_figure(made, kind: str) -> None:
    display = made[kind]()
    assert isinstance(display.ax_, mpl.axes.Axes)
    assert display.figure_ is display.ax_.figure
    assert plt.get_fignums() == [display.figure_.number]
    display.figure_.canvas.draw()
    assert display.ax_.get_title(loc="left")
    assert display.ax_.get_xlabel()


@every
def test_draws_on_given_axes(made, kind: str) -> None:
    figure, (left, right) = plt.subplots(1, 2)
    display = made[kind](right)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert right.has_data()
    assert not left.has_data()
    assert plt.get_fignums() == [figure.number], "no second figure"
    figure.canvas.draw()


@every
def test_draws_twice(made, kind: str) -> None:
    display = made[kind]()
    first = display.ax_
    assert display.plot() is display
    second = display.ax_
    assert second is not first
    assert second.get_title(loc="left") == first.get_title(loc="left")
    assert len(second.lines) == len(first.lines)
    display.plot(ax=first)
    assert display.ax_ is first
    display.figure_.canvas.draw()


@every
def test_nothing_is_drawn_before_plot(made, kind: str) -> None:
    display = made[kind]()
    fields = {f.name: getattr(display, f.name) for f in dataclasses.fields(display) if f.init}
    fresh = type(display)(**fields)
    assert fresh.ax_ is None
    assert fresh.figure_ is None


# --- What is shown ----------------------------------------------------------------------------------------------------


def test_instability_curve_is_the_share_of_people(made, measured) -> None:
    display = made["instability"]()
    curve = display.ax_.lines[0]
    values = measured["l1"].people["distance"].to_numpy()
    assert_array_equal(np.sort(curve.get_xdata()), np.sort(values))
    for at, share in zip(curve.get_xdata(), curve.get_ydata(), strict=True):
        assert share >= (values < at).mean()
        assert share <= (values <= at).mean()
    assert f"median {np.median(values):.3g}" in words(display)


def test_several_measurements_have_a_legend_and_lines_of_their_own(made, measured) -> None:
    display = made["several"]()
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [label.split(",")[0] for label in labels] == ["l1", "l2"]
    curves = [line for line in display.ax_.lines if line.get_label() in labels]
    assert len({line.get_linestyle() for line in curves}) == 2, "told apart without colour"
    assert len({line.get_color() for line in curves}) == 2
    assert "amplification" in display.ax_.get_xlabel()


def test_more_measurements_than_styles(measured) -> None:
    display = InstabilityDisplay.from_instability({f"method {i}": measured["l1"] for i in range(6)})
    assert len(display.ax_.get_legend().get_texts()) == 6


def test_people_without_a_value_are_left_out(tree) -> None:
    people = SOME.copy()
    people[0] = np.nan
    found = instability(Closest().fit(tree), people, Gaussian(0.05), random_state=0)
    display = InstabilityDisplay.from_instability(found)
    assert len(display.values[""]) == len(people) - 1
    nobody = instability(Closest().fit(tree), people[:1], Gaussian(0.05), random_state=0)
    empty = InstabilityDisplay.from_instability(nobody)
    assert empty.ax_.get_legend() is None
    empty.figure_.canvas.draw()


@pytest.mark.parametrize(
    "measure", ["change_distance", "cost_gap", "jaccard", "input_distance", "distance_max", "floor"]
)
def test_every_measure_can_be_drawn(measured, measure: str) -> None:
    display = InstabilityDisplay.from_instability(measured, measure=measure)
    title, axis = WORDS.get(measure, (measure.replace("_", " "), measure.replace("_", " ")))
    assert axis in display.ax_.get_xlabel()
    assert display.ax_.get_title(loc="left") == title
    display.figure_.canvas.draw()


def test_comparison_counts_everybody_once(made, measured) -> None:
    display = made["comparison"]()
    bars = display.ax_.patches
    differences = display.comparison.differences
    same = int((differences == 0).sum())
    assert len(differences) == len(SOME)
    assert sum(bar.get_height() for bar in bars) == len(SOME) - same
    left = sum(bar.get_height() for bar in bars if bar.get_x() + bar.get_width() / 2 < 0)
    assert left == (differences < 0).sum()
    text = words(display)
    assert f"{(differences < 0).mean():.0%} better off\nwith second" in text
    assert f"{(differences > 0).mean():.0%} worse off\nwith second" in text
    assert f"second against first, {len(SOME)} people, of whom {same} are the same with both" in text


def test_more_jaccard_is_better(measured) -> None:
    compared = compare(measured["l1"], measured["l2"], measure="jaccard", names=("first", "second"))
    display = ComparisonDisplay.from_comparison(compared)
    right = next(text for text in display.ax_.texts if "better" in text.get_text())
    assert right.get_ha() == "right"
    assert f"{(compared.differences > 0).mean():.0%} better" in right.get_text()


def test_comparison_with_itself(measured) -> None:
    display = ComparisonDisplay.from_comparison(compare(measured["l1"], measured["l1"]))
    assert sum(bar.get_height() for bar in display.ax_.patches) == 0  # nobody is drawn as better or worse
    assert f"of whom {len(SOME)} are the same with both" in words(display)
    display.figure_.canvas.draw()


def test_certificate_curve_is_the_share_of_people(tree) -> None:
    proven = certify(Closest("l2").fit(tree), SOME)
    eps = np.array([0.0, 0.01, 0.05, 0.2])
    display = CertificateDisplay.from_certificates(proven, eps=eps)
    curve = display.ax_.lines[0]
    radius = np.minimum(proven.stability_radius, proven.label_radius)
    assert_array_equal(curve.get_xdata(), eps)
    assert_allclose(curve.get_ydata(), [(radius > size).mean() for size in eps])
    assert display.ax_.get_legend() is None
    chosen = CertificateDisplay.from_certificates({"tree": proven})
    assert (np.diff(chosen.shares["tree"]) <= 0).all()
    assert [text.get_text() for text in chosen.ax_.get_legend().get_texts()] == ["tree"]


@pytest.mark.parametrize("eps", [[], [0.1], 0.1, [-0.1, 0.1], [0.1, np.nan], [[0.1, 0.2]], [0.1, 0.1], [0.1, np.inf]])
def test_wrong_sizes(tree, eps) -> None:
    with pytest.raises(ValueError, match="eps must list at least two different sizes >= 0"):
        CertificateDisplay.from_certificates(certify(Closest("l2").fit(tree), SOME[:3]), eps=eps)


def test_counterfactual_in_units_of_the_spread() -> None:
    data = load_wine(as_frame=True)
    people = data.data.set_index(pd.Index([f"bottle {i}" for i in range(178)]))
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(people, data.target)
    told = Closest("l2").fit(model).explain(people, target=1)
    display = CounterfactualDisplay.from_explanations(told, 4)
    change = (told.counterfactual.iloc[4] - people.iloc[4]) / people.to_numpy().std(axis=0)
    largest = change.abs().sort_values(ascending=False).index[:12]
    assert display.names == list(largest)
    assert_allclose(display.changes, change[largest])
    assert display.left_out == 1
    text = words(display)
    assert "Person bottle 4" in text
    assert "for 1" in text
    assert "1 smaller left out" in text
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(largest)
    assert_allclose(display.ax_.get_yticks(), np.arange(12)[::-1], err_msg="the largest is on top")
    first = largest[0]
    assert f"{people[first].iloc[4]:.4g} → {told.counterfactual[first].iloc[4]:.4g}" in text


def test_unchanged_features_are_not_shown(tree) -> None:
    told = Closest(actionable=Actionable(immutable=[0, 1, 3])).fit(tree).explain(SOME, target=1)
    row = int(np.flatnonzero(told.valid & (told.status != "already"))[0])
    assert CounterfactualDisplay.from_explanations(told, row).names == ["x2"]


def test_nothing_has_to_change(tree) -> None:
    told = Closest().fit(tree).explain(SOME, target=0)
    row = int(np.flatnonzero(told.status == "already")[0])
    display = CounterfactualDisplay.from_explanations(told, row)
    assert display.names == []
    assert "Nothing has to change." in words(display)
    display.figure_.canvas.draw()


# --- Errors -----------------------------------------------------------------------------------------------------------


def test_person_without_counterfactual(tree) -> None:
    people = SOME.copy()
    people[1, 0] = np.nan
    told = Closest(actionable=Actionable(immutable=[0, 1, 2, 3])).fit(tree).explain(people, target=2)
    assert told.status[:2].tolist() == ["unreachable", "invalid"]
    with pytest.raises(ValueError, match=r"Person 0 has no counterfactual to draw\. No point of the target's region"):
        CounterfactualDisplay.from_explanations(told, 0)
    with pytest.raises(ValueError, match=r"Person 1 has no counterfactual to draw.*NaN"):
        CounterfactualDisplay.from_explanations(told, 1)
    assert plt.get_fignums() == [], "no empty figure is left behind"


def test_empty_comparison(tree) -> None:
    nobody = instability(Closest().fit(tree), np.full((2, 4), np.nan), Gaussian(0.1), random_state=0)
    with pytest.raises(ValueError, match="no pairs to draw: the comparison is empty"):
        ComparisonDisplay.from_comparison(compare(nobody, nobody))
    with pytest.raises(ValueError, match="no pairs to draw"):
        ComparisonDisplay().plot()
    assert plt.get_fignums() == []


def test_unknown_measure(measured) -> None:
    with pytest.raises(ValueError, match=r"There is no measure 'speed'; there are .*distance.*amplification"):
        InstabilityDisplay.from_instability(measured["l1"], measure="speed")
    with pytest.raises(ValueError, match="There is no measure 'speed'"):
        InstabilityDisplay.from_instability(measured, measure="speed")
    assert plt.get_fignums() == []


# --- Without matplotlib -----------------------------------------------------------------------------------------------


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_does_not_load_matplotlib() -> None:
    found = run("import sys, evenhand; print([name for name in sys.modules if name.startswith('matplotlib')])")
    assert found.strip() == "[]"


BLOCKED = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
import numpy as np
from evenhand.displays import {name}
try:
    {make}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("InstabilityDisplay", "InstabilityDisplay(values={'a': np.ones(3)}).plot()"),
        ("CounterfactualDisplay", "CounterfactualDisplay(names=['a'], changes=np.ones(1), words=['b']).plot()"),
    ],
)
def test_without_matplotlib_the_error_says_what_to_install(name: str, make: str) -> None:
    told = run(BLOCKED.format(name=name, make=make))
    assert "Drawing needs matplotlib" in told
    assert "pip install 'evenhand[plot]'" in told


def test_certificates_of_different_costs_are_not_drawn_together(tree) -> None:
    both = {cost: certify(Closest(cost).fit(tree), SOME[:5]) for cost in ("l1", "l2")}
    with pytest.raises(ValueError, match="draw them apart"):
        CertificateDisplay.from_certificates(both)


def test_one_person_alone_has_no_spread(tree) -> None:
    display = CounterfactualDisplay.from_explanations(Closest("l2").fit(tree).explain(SOME[:1]))
    assert "raw units" in display.ax_.get_xlabel()
    with pytest.raises(ValueError, match="no person at position 7"):
        CounterfactualDisplay.from_explanations(Closest("l2").fit(tree).explain(SOME[:1]), 7)
