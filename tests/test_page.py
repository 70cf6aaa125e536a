"""The page of the reproduction, in a real browser."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

import evenhand
from browser import complaints, opened, requests, too_wide
from evenhand.reproduce.paper import paper_study, reproduce
from evenhand.study import run_study

pytestmark = pytest.mark.slow  # pages are opened in a browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The paper's study with every experiment and model, on one small data set."""
    study = paper_study()
    experiments = tuple(
        replace(spec, data=tuple(name for name in spec.data if name in ("wine", "blobs"))) for spec in study.experiments
    )
    data = {"wine": study.data["wine"], "blobs": replace(study.data["blobs"], dim=(2, 4), samples=100)}
    methods = study.methods | {"plausible": replace(study.methods["plausible"], components=(2,))}
    small = replace(study, folds=2, experiments=experiments, data=data, methods=methods)
    out = tmp_path_factory.mktemp("paper")
    summary = reproduce(small, run_study(small, out, version=evenhand.__version__, jobs=1), out)
    return out / "report.html", summary


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_whole_and_alone(page, width, dark) -> None:
    with opened(page[0], width, dark=dark) as driver:
        assert complaints(driver) == []
        assert requests(driver) == []
        assert too_wide(driver) == []
        figures = driver.find_elements(By.CSS_SELECTOR, "[id^=figure-]")
        assert len(figures) == 6  # curse, three of masking, sensitivity, theorems
        assert all(figure.size["width"] > 200 and figure.size["height"] > 100 for figure in figures)
        assert all(figure.get_attribute("aria-label") for figure in figures)


def test_it_says_what_the_tables_say(page) -> None:
    file, summary = page
    table = pd.read_csv(file.parent / "table1.csv")
    with opened(file) as driver:
        cells = driver.find_elements(By.CSS_SELECTOR, "[data-cell]")
        assert [cell.get_attribute("data-cell") for cell in cells] == [
            f"{row.data}-{row.model}" for row in table.itertuples()
        ]
        for cell, row in zip(cells, table.itertuples(), strict=True):
            for name in ("closest", "plausible"):
                paper, ours, low, high = (getattr(row, name + end) for end in ("_paper", "", "_low", "_high"))
                assert f"{name} {paper:.2f} {ours:.2f} {low:.2f}–{high:.2f}" in cell.text
            assert ("same order" in cell.text) == row.same_order
        assert len(driver.find_elements(By.CSS_SELECTOR, "#table1-more tbody tr")) == len(table)
        verdict = driver.find_element(By.ID, "verdict").text
        assert f"{summary['table1']['same_order']} of {summary['table1']['cells']}" in verdict
        run = driver.find_element(By.ID, "run").text
        assert summary["run"]["configuration"] in run
        assert evenhand.__version__ in run


def test_hovering_shows_values_and_the_legend_picks_a_curve(page) -> None:
    with opened(page[0]) as driver:
        figure = driver.find_element(By.ID, "figure-masking-wine-softmax")
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", figure)
        mark = figure.find_elements(By.CSS_SELECTOR, ".mark-symbol.role-mark path")[2]
        ActionChains(driver).move_to_element(mark).perform()
        tip = driver.find_element(By.ID, "vg-tooltip-element")
        assert "masked features" in tip.text
        entry = figure.find_element(By.CSS_SELECTOR, ".role-legend-symbol path")
        ActionChains(driver).move_to_element(entry).click().perform()
        faded = driver.execute_script(
            "return [...document.querySelectorAll('#figure-masking-wine-softmax .mark-symbol.role-mark path')]"
            ".map(p => +getComputedStyle(p).opacity)"
        )
        assert {round(value, 2) for value in faded} == {1.0, 0.12}


def test_the_masking_sentence_follows_one_model(page) -> None:
    file, summary = page
    table = pd.read_csv(file.parent / "masking.csv")
    mine = table[(table["model"] == "softmax") & (table["method"] == "closest")]["median"]
    assert summary["masking"]["closest_softmax"]["wine"] == pytest.approx([mine.iloc[0], mine.iloc[-1]])
