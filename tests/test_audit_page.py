"""The page of an audit, in a real browser."""

from __future__ import annotations

import copy
import json
import math
import re

import jsonschema
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from audit_content import HOSTILE, audit_content
from browser import complaints, on_paper, opened, printed, requests, too_wide, undrawn
from evenhand import HighDensity, audit
from evenhand.auditing.document import Document, GateResult, plain, typed
from evenhand.auditing.errors import AuditError
from evenhand.auditing.loans import loans
from evenhand.auditing.report.page import flags
from evenhand.auditing.report.placing import Label, place
from evenhand.auditing.report.section import main_perturbation
from evenhand.auditing.report.wording import Wording
from evenhand.auditing.result import Audit
from evenhand.pages.template import text_of
from evenhand.stats import Interval

pytestmark = pytest.mark.slow  # pages are opened in a browser

FIGURES = {"amplification", "certificates", "pairs", "groups-cost", "groups-amplification", "remedies", "cloud"}
SECTIONS = ["verdict", "audited", "coverage", "stability", "people", "pairs", "groups", "remedies", "lookup"]
SECTIONS += ["limits", "rules", "reproduce"]
SAY = Wording("SD")


@pytest.fixture(scope="module")
def content():
    return audit_content()


@pytest.mark.parametrize("kind", ["empty", "hostile", "redacted", None])
def test_the_example_is_like_a_real_one(kind) -> None:
    schema = json.loads(text_of("evenhand.auditing", "audit.schema.json"))
    jsonschema.validate(audit_content(**({kind: True} if kind else {})), schema)


@pytest.mark.parametrize("kind", ["empty", "hostile", "redacted", None])
def test_what_audit_json_holds_is_read_back_whole(kind) -> None:
    content = audit_content(**({kind: True} if kind else {}))
    document = typed(Document, json.loads(json.dumps(content)))
    assert plain(document) == content
    assert plain(typed(Document, plain(document))) == content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"notes": None}, r"Document\.notes must be list; got None"),
        ({"notes": [1]}, r"Document\.notes\[0\] must be str; got 1"),
        ({"schema": "evenhand-audit/0"}, r"Document\.schema must be 'evenhand-audit/1'; got 'evenhand-audit/0'"),
        ({"extra": 1}, r"Document has the key 'extra', which is none of schema, verdict"),
        ({"pairs": {}}, r"Document\.pairs has no key 'people'"),
        ({"comparisons": [3]}, r"Document\.comparisons\[0\] must be an object; got 3"),
    ],
)
def test_what_is_no_audit_json_is_refused(content, change, message) -> None:
    with pytest.raises(AuditError, match=f"{message}.* audit.json of the schema evenhand-audit/1 can be read"):
        _render(content | change)


def test_a_limit_has_to_be_a_number(content) -> None:
    wrong = copy.deepcopy(content)
    wrong["gates"][1] |= {"limit": None}
    with pytest.raises(AuditError, match=r"Document\.gates\[1\]\.limit must be float; got None"):
        _render(wrong)
    wrong["gates"][1] |= {"limit": True}
    with pytest.raises(AuditError, match=r"Document\.gates\[1\]\.limit must be float; got True"):
        _render(wrong)


@pytest.fixture(scope="module")
def page(content, tmp_path_factory):
    return _written(content, tmp_path_factory.mktemp("audit"))


def _render(content):
    """The page of what audit.json holds, as somebody who has only the file makes it."""
    return Audit(content).to_html()


def _written(content, folder):
    file = folder / "report.html"
    file.write_text(_render(content), encoding="utf-8")
    return file


def _look_up(driver, name):
    box = driver.find_element(By.ID, "look-id")
    box.clear()
    box.send_keys(name, Keys.ENTER)
    # The address changes first, and the page follows it.
    WebDriverWait(driver, 10).until(lambda _: f" {name}" in driver.find_element(By.ID, "look-status").text)


def _drawn(driver):
    WebDriverWait(driver, 20).until(lambda _: not undrawn(driver))


@pytest.mark.parametrize(("width", "dark"), [(320, False), (390, True), (900, True), (1280, False), (1280, True)])
def test_it_opens_whole_and_alone(page, width, dark) -> None:
    with opened(page, width, dark=dark) as driver:
        assert complaints(driver) == []
        assert requests(driver) == []
        assert too_wide(driver) == []
        figures = driver.find_elements(By.CSS_SELECTOR, "[id^=figure-]")
        assert {figure.get_attribute("id").removeprefix("figure-") for figure in figures} == FIGURES
        assert all(figure.size["width"] > 120 and figure.size["height"] > 100 for figure in figures)
        labels = [figure.get_attribute("aria-label") for figure in figures]
        assert all(
            re.search(r"\d", label) and figure.get_attribute("role") == "img"
            for label, figure in zip(labels, figures, strict=True)
        )
        # Text is never scaled: a figure is as wide as the place it is drawn in.
        widths = driver.execute_script(
            "return [...document.querySelectorAll('[id^=figure-] svg.marks')]"
            ".map(s => [s.getBoundingClientRect().width, +s.getAttribute('width'), s.closest('.plot').clientWidth])"
        )
        assert all(shown == drawn and drawn <= place for shown, drawn, place in widths)
        sizes = driver.execute_script(
            "return [...document.querySelectorAll('main *')].filter(e => e.innerText || e.tagName === 'text')"
            ".filter(e => e.checkVisibility() && !e.closest('.vh')).map(e => parseFloat(getComputedStyle(e).fontSize))"
        )
        assert min(sizes) >= (11.9 if width >= 390 else 11)


def test_colours_follow_the_screen_without_a_second_drawing(page) -> None:
    outline = "return getComputedStyle(document.querySelector('#figure-amplification [stroke=\"#C04A00\"]')).stroke"
    with opened(page) as driver:
        assert driver.execute_script(outline) == "rgb(192, 74, 0)"
        scheme = {"name": "prefers-color-scheme", "value": "dark"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        assert driver.execute_script(outline) == "rgb(255, 155, 94)"
        with on_paper(driver, 688):
            assert driver.execute_script(outline) == "rgb(192, 74, 0)"


def test_gates_are_those_of_the_content(page, content) -> None:
    with opened(page) as driver:
        rows = driver.find_elements(By.CSS_SELECTOR, "#gates tbody tr")
        assert [row.get_attribute("data-gate") for row in rows] == [gate["gate"] for gate in content["gates"]]
        for row, gate in zip(rows, typed(Document, content).gates, strict=True):
            assert {"pass": "Pass", "fail": "Fail", "undecided": "Undecided"}[gate.result] in row.text
            assert gate.title in row.text
            assert SAY.value(gate.interval, gate.unit, gate.limit) in row.text
            assert SAY.span(gate.interval, gate.unit, gate.limit) in row.text
            assert SAY.limit(gate) in row.text
        marked = driver.find_elements(By.CSS_SELECTOR, "nav.side .flag")
        assert len(marked) == 2
        assert all("a gate fails here" in mark.get_attribute("textContent") for mark in marked)
        verdict = driver.find_element(By.ID, "verdict").text
        assert "Not passed: 2 of 6 gates fail, 1 undecided" in verdict
        for text in [content["verdict"]["title"], *content["verdict"]["sentences"]]:
            assert text in " ".join(verdict.split())


def test_sections_headings_and_tables_are_in_order(page, content) -> None:
    with opened(page) as driver:
        sections = driver.execute_script("return [...document.querySelectorAll('main > section')].map(s => s.id)")
        assert sections == SECTIONS
        levels = driver.execute_script("return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in zip([0, *levels], levels, strict=False))
        naked = driver.execute_script(
            "return [...document.querySelectorAll('main table')]"
            ".filter(t => !t.caption || [...t.querySelectorAll('th')].some(h => !h.scope)).length"
        )
        assert naked == 0
        cards = driver.find_elements(By.CSS_SELECTOR, ".card")
        for card, row in zip(cards, content["least_stable"], strict=True):
            assert f"row {row['id']}" in card.text
            assert SAY.number(row["amplification"], "times") in card.text
            marked = [mark.text for mark in card.find_elements(By.CSS_SELECTOR, "ul.told mark")]
            differing = [told for told in row["told"] + row["variation_told"] if told["tag"] != "same for both"]
            assert len(marked) == len(differing)
            for told in differing:
                assert any(f"{told['column']} {told['before']} → {told['after']}" in text for text in marked)
        assert len(driver.find_elements(By.CSS_SELECTOR, "#worst-pairs tbody tr")) == len(content["pairs"]["worst"])
        numbers = driver.find_element(By.ID, "groups-numbers").get_attribute("textContent")
        assert "housing: other (few)" in numbers
        options = driver.find_element(By.ID, "remedies-numbers").text
        assert "The model has no convex set for this label." in options


def test_looking_somebody_up(page, content) -> None:
    person = content["lookup"][7]
    with opened(page) as driver:
        _look_up(driver, person["id"])
        panel = driver.find_element(By.CSS_SELECTOR, ".person")
        assert f"Row {person['id']}" in panel.text
        assert person["title"] in panel.text
        assert driver.switch_to.active_element == panel
        assert driver.find_element(By.ID, "look-status").text == f"Showing row {person['id']}."
        for name, value in person["facts"]:
            assert f"{name}\n{value}" in panel.text
        rows = panel.find_elements(By.CSS_SELECTOR, "#says tbody tr")
        for row, said in zip(rows, person["methods"], strict=True):
            assert said["method"] in row.text
            for told in said["told"]:
                assert f"{told['column']} {told['before']} → {told['after']}" in " ".join(row.text.split())
            if said["amplification"] is not None:
                assert SAY.number(said["amplification"], "times") in row.text
                assert SAY.number(said["cost"], "cost") in row.text
            else:
                assert said["reason"] in row.text
            if said["certificate"]:
                assert said["certificate"]["text"] in row.text
        _drawn(driver)
        dots = driver.find_elements(By.CSS_SELECTOR, "#figure-cloud .mark-symbol.role-mark path")
        points = person["cloud"]["points"].values()
        assert len(dots) == sum(1 + len(cloud["draws"]) for cloud in points)
        assert driver.current_url.endswith(f"#row-{person['id']}")
        assert complaints(driver) == []


def test_a_link_leads_to_a_person_and_an_unknown_one_is_said_to_be(page, content) -> None:
    person = content["lookup"][3]
    with opened(page, 390, at=f"#row-{person['id']}") as driver:
        assert f"Row {person['id']}" in driver.find_element(By.CSS_SELECTOR, ".person").text
        assert driver.execute_script("return document.querySelector('.person').getBoundingClientRect().top") < 300
        _look_up(driver, "99999 <b>")
        status = driver.find_element(By.ID, "look-status").text
        assert "99999 <b> cannot be looked up" in status
        assert f"{len(content['lookup'])} people can" in status
        assert "“lookup” in audit.toml" in status
        assert driver.find_elements(By.CSS_SELECTOR, ".person") == []
        card = driver.find_element(By.CSS_SELECTOR, ".card .id a")
        driver.execute_script("arguments[0].click()", card)
        shown = driver.find_element(By.CSS_SELECTOR, ".person").text
        assert f"Row {content['least_stable'][0]['id']}" in shown
        _drawn(driver)
        assert complaints(driver) == []


def test_the_keyboard_is_enough(page) -> None:
    with opened(page) as driver:
        driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
        skip = driver.switch_to.active_element
        assert skip.text == "Skip to the report"
        assert skip.rect["x"] >= 0
        ring = driver.execute_script("return getComputedStyle(document.activeElement).outlineWidth")
        assert ring == "3px"
        skip.send_keys(Keys.ENTER)
        assert driver.switch_to.active_element.get_attribute("id") == "main"
        form = driver.find_element(By.ID, "look")
        assert form.find_element(By.TAG_NAME, "button").size["height"] >= 40


def test_names_that_are_markup_are_only_text(tmp_path) -> None:
    content = audit_content(hostile=True)
    content["lookup"][0]["id"] = content["least_stable"][0]["id"] = '"><img src=x onerror=alert(4)> &amp; %41'
    content["audited"]["model"]["name"] = "</title><script>alert(5)</script>"
    content["verdict"]["sentences"].append("<script>alert(6)</script>")
    file = _written(content, tmp_path)
    with opened(file) as driver:
        # An alert would have made the first of these raise.
        assert driver.execute_script("return document.querySelectorAll('main img, main script').length") == 0
        assert complaints(driver) == []
        assert too_wide(driver) == []
        _look_up(driver, content["lookup"][0]["id"])
        _drawn(driver)
        panel = driver.find_element(By.CSS_SELECTOR, ".person").get_attribute("textContent")
        whole = driver.find_element(By.TAG_NAME, "main").get_attribute("textContent")
        assert content["lookup"][0]["id"] in panel
        assert HOSTILE["savings"] in panel
        assert HOSTILE["loan"] in panel
        for name in HOSTILE.values():
            assert name in whole
        assert "<script>alert(6)</script>" in whole
        assert "</title><script>alert(5)</script>" in driver.title
        assert HOSTILE["woman"] in driver.find_element(By.ID, "figure-groups-cost").get_attribute("aria-label")
        drawn = driver.find_element(By.ID, "figure-groups-cost").get_attribute("textContent")
        assert HOSTILE["woman"][:8] in drawn
        link = driver.find_element(By.CSS_SELECTOR, ".card .id a")
        driver.execute_script("arguments[0].click()", link)
        assert complaints(driver) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_a_redacted_page_has_no_ids_and_no_values(tmp_path, width) -> None:
    full = audit_content()
    content = audit_content(redacted=True)
    # Even what should not be there any more is not shown.
    content["lookup"] = full["lookup"]
    for card, whole in zip(content["least_stable"], full["least_stable"], strict=True):
        card |= {key: copy.deepcopy(whole[key]) for key in ("id", "facts", "variation", "told", "sentence")}
    for pair, whole in zip(content["pairs"]["worst"], full["pairs"]["worst"], strict=True):
        pair |= {key: copy.deepcopy(whole[key]) for key in ("first", "second", "differ", "first_told")}
    file = _written(content, tmp_path)
    # Groups are not single people: their names stay.
    others = r"<script>.*?</script>|<style>.*?</style>|<section id=.groups.*?</section>"
    ours = re.sub(others, "", file.read_text(encoding="utf-8"), flags=re.S)
    for person in full["lookup"]:
        assert f"row {person['id']}" not in ours
        assert f'"{person["id"]}"' not in ours
    for card in full["least_stable"]:
        for name, value, _ in card["facts"]:
            assert f"{name} {value}" not in ours
        for told in card["told"]:
            assert f"{told['before']} → {told['after']}" not in ours
    for pair in full["pairs"]["worst"]:
        for name in (pair["first"], pair["second"]):
            assert re.search(rf"(?<![\d.]){name}(?!\d)", ours) is None
    with opened(file, width) as driver:
        assert complaints(driver) == []
        assert too_wide(driver) == []
        assert "left out" in driver.find_element(By.ID, "lookup").text
        assert driver.find_elements(By.ID, "look") == []
        first = driver.find_element(By.CSS_SELECTOR, ".card ul.told li")
        assert "▲ savings" in " ".join(first.text.split()).replace("increase ", "")


@pytest.mark.parametrize("width", [320, 1280])
def test_what_is_missing_is_said(tmp_path, width) -> None:
    with opened(_written(audit_content(empty=True), tmp_path), width) as driver:
        assert complaints(driver) == []
        assert too_wide(driver) == []
        assert driver.find_elements(By.CSS_SELECTOR, "[id^=figure-]") == []
        for section, words in {
            "verdict": "No gate was set",
            "coverage": "No comparison was planned",
            "stability": "stability was not measured",
            "people": "nobody is listed",
            "pairs": "No two people are similar enough",
            "groups": "No group was compared",
            "remedies": "No other method was tried",
            "lookup": "Nobody can be looked up",
        }.items():
            assert words in driver.find_element(By.ID, section).text


def test_parts_can_be_missing_one_by_one() -> None:
    nothing = {"value": None, "low": None, "high": None}
    content = audit_content()
    for row in content["stability"]:
        if row["method"] == "steady":
            row["amplification"] = dict.fromkeys(row["amplification"], nothing)
            row["histogram"]["counts"] = [0 for _ in row["histogram"]["counts"]]
    content["gates"][1]["interval"] = nothing
    content["pairs"]["different"] = nothing
    content["pairs"]["worst"] = []
    for group in content["groups"][0]["groups"]:
        group["amplification"] = None
        group["adjusted_difference"] = nothing
    content["remedies"] = content["remedies"][-1:]
    content["certificates"]["curves"] = []
    for person in content["lookup"]:
        person["cloud"] = None
    text = _render(content)
    assert "not measured" in text
    assert "No certificate is shown" in text
    assert 'id="figure-remedies"' not in text
    assert 'id="figure-groups-amplification"' in text


def test_it_prints_on_a4(page) -> None:
    with opened(page, dark=True) as driver:
        pdf = printed(driver)
        assert pdf.startswith(b"%PDF")
        boxes = {tuple(float(side) for side in box.split()) for box in re.findall(rb"/MediaBox \[([^\]]+)\]", pdf)}
        assert all(box[2:] == pytest.approx((595, 842), abs=1) for box in boxes)
        assert 5 < len(re.findall(rb"/Type /Page\b", pdf)) < 40
        with on_paper(driver, 688):
            hidden = driver.execute_script(
                "return [...document.querySelectorAll('nav, button, .skip, #look')]"
                ".filter(e => e.checkVisibility()).length"
            )
            assert hidden == 0
            cut = driver.execute_script(
                "return [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().right > 689)"
                ".map(s => s.getAttribute('class'))"
            )
            assert cut == []
            kept = driver.execute_script(
                "return [...document.querySelectorAll('[id^=figure-]')].map(f => getComputedStyle(f).breakInside)"
            )
            assert set(kept) == {"avoid"}
            assert (
                driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
            )


def test_without_scripts_it_says_so(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<noscript>" in text
    assert "needs JavaScript" in text


def test_the_gate_can_be_decided_by_another_perturbation_than_the_one_shown(content) -> None:
    other = copy.deepcopy(content)
    assert main_perturbation(typed(Document, other)) == "noise"
    row = next(row for row in other["stability"] if (row["method"], row["perturbation"]) == ("closest", "missing"))
    other["gates"][1] |= {"of": "missing", "interval": row["amplification"]["median"]}
    assert "The gate is decided by missing: 4.6 times" in _render(other)
    assert "The gate is decided by" not in _render(content)


def test_remedies_are_judged_by_the_gate_of_their_statistic(content) -> None:
    assert "passes the gate “Typical stability”" in _render(content)
    other = copy.deepcopy(content)
    for row in other["remedies"]:
        row["statistic"] = "p95"
    text = _render(other)
    assert "passes the gate “Worst-case stability”" in text
    assert "95th percentile of amplification" in text
    other["gates"] = []
    for row in other["remedies"]:
        row["passes"] = None
    assert "No gate judges these 7 ways" in _render(other)


def test_a_failing_gate_marks_its_section_before_an_undecided_one(content) -> None:
    gates = [typed(GateResult, gate) for gate in content["gates"]]
    assert flags(gates) == {"stability": "fail", "pairs": "fail"}
    assert flags(gates[2:3]) == {"stability": "undecided"}


def test_one_more_digit_where_rounding_would_hide_the_limit() -> None:
    found = Interval(1.93, 1.84, 2.02)
    assert SAY.span(found, "times") == "1.8–2.0×"
    assert SAY.span(found, "times", limit=2.0) == "1.84–2.02×"
    assert SAY.value(found, "times", limit=2.0) == "1.93×"
    assert SAY.number(-0.04, "cost") == "−0.040 SD"
    assert SAY.number(0.0, "cost") == "0.00 SD"
    assert SAY.number(12345.6, "cost") == "12,346 SD"
    assert SAY.number(9.996, "times") == "10×"
    assert SAY.exact(0.05, "share") == "5%"
    assert SAY.exact(0.382913, "cost") == "0.38 SD"
    assert SAY.exact(0.125, "share") == "12.5%"


def test_intervals_are_readable_around_zero_and_over_many_sizes() -> None:
    assert SAY.span(Interval(-0.0067, -0.0801, 0.0663), "cost") == "−0.080 to 0.066 SD"
    assert SAY.value(Interval(-0.0067, -0.0801, 0.0663), "cost") == "−0.007 SD"
    assert SAY.span(Interval(6.9, 0.341, 102.6), "times") == "0.34–103×"
    assert SAY.span(Interval.unknown(1.0), "times") == ""
    assert SAY.span(Interval(1.0, 0.5, math.nan), "times") == "0.5–unbounded×"


def test_names_stand_beside_their_marks_and_not_on_each_other() -> None:
    labels = [Label(((100.0, 100.0),), 80.0), Label(((110.0, 104.0),), 80.0), Label(((270.0, 20.0),), 120.0)]
    spots = place(labels, [(100.0, 100.0), (110.0, 104.0), (270.0, 20.0)], (285.0, 200.0))
    boxes = []
    for label, spot in zip(labels, spots, strict=True):
        x, y = label.anchors[spot.anchor][0] + spot.dx, label.anchors[spot.anchor][1] - spot.dy
        left = x - {"left": 0.0, "right": label.width, "center": label.width / 2}[spot.align]
        boxes.append((left, y - 8, left + label.width, y + 8))
        assert 0 <= left <= left + label.width <= 285
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_of_groups_stay_inside(tmp_path, content, width) -> None:
    long = copy.deepcopy(content)
    for gate in long["gates"]:
        gate["of"] = "education: " + "a school of very many words, " * 5 + "everybody else"
    with opened(_written(long, tmp_path), width) as driver:
        assert too_wide(driver) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_an_audit_that_was_really_made(tmp_path, width) -> None:
    example = loans(people=500)
    options = example.options() | {"people": 80, "draws": 4, "lookup": 3, "density": HighDensity(components=[1])}
    found = audit(example.model, example.people, **options)
    with opened(_written(found.content, tmp_path), width) as driver:
        assert complaints(driver) == []
        assert requests(driver) == []
        assert too_wide(driver) == []
        _drawn(driver)
        person = found.content["lookup"][-1]
        _look_up(driver, person["id"])
        text = " ".join(driver.find_element(By.CSS_SELECTOR, ".person").text.split())
        for told in person["methods"][0]["told"]:
            assert f"{told['column']} {told['before']} → {told['after']}" in text
