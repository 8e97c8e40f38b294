"""What a text could become on the page: the app's scripts and components hold no place where it is markup or code.

Browser tests try a hostile text in some fields; this looks at the one way that every field takes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright

from dpicl_ui.data.cards import counted, label_counts, preview_table
from dpicl_ui.evaluation.cards import confusion_figure, subject
from dpicl_ui.export import certificate
from dpicl_ui.frame.services import Session
from dpicl_ui.generate.cards import MANY, finished, listed
from mechanisms.data.columns import Breakdown, Inspection
from mechanisms.data.table import Table
from mechanisms.evaluation.evaluate import PRIVATE, Accuracy, Scorecard
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.runs.events import DemoCompleted
from mechanisms.runs.view import RunView
from tests.conftest import ROOT
from tests.ui.generate.recording import HOSTILE, demo_set
from tests.ui.tabs import confirm, tags, text_of
from tests.ui.visit import ARGUMENTS, CHROMIUM

SCRIPTS = sorted(path for path in (ROOT / "dpicl_ui").rglob("*.js"))
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|srcdoc|DOMParser"
    r"|\beval\(|new Function|setTimeout\(\s*[\"'`]|javascript:"
)
TEMPLATES = {
    """f'<h2>{self._items[number - 1].title}</h2><p class="gate-why"></p>'""": "the titles of the steps are the app's",
    "_TEMPLATE": "the slider of epsilon",
}
"""Templates that are not the empty element, as they stand in the source, and why no text of a user is in them."""
ATTRIBUTE = re.compile(r"setAttribute\(\s*([^,]+),")
TAG = re.compile(r"createElement(?:NS)?\((.+)\)")


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call in the user interface, with what it calls."""
    for path in (ROOT / "dpicl_ui").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func), node


def settings(call: ast.Call) -> dict[str, ast.expr]:
    return {each.arg: each.value for each in call.keywords if each.arg}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_of_the_page_makes_markup_or_code_of_a_text(script: Path):
    assert MARKUP.findall(script.read_text(encoding="utf-8")) == []


def test_a_tree_has_harmless_elements_and_attributes_alone():
    tree = (ROOT / "dpicl_ui/assets/tree.js").read_text(encoding="utf-8")
    tags, attributes = (
        set(re.findall(r'"([\w-]+)"', re.search(rf"const {name} = new Set\(\[(.*?)\]\)", tree, re.DOTALL)[1]))
        for name in ("TAGS", "ATTRIBUTES")
    )
    assert len(tags) > 10
    assert tags.isdisjoint({"script", "style", "iframe", "object", "embed", "link", "a", "form", "svg", "img", "base"})
    assert attributes.isdisjoint({"href", "src", "style", "srcdoc", "action", "id", "name"})
    assert not any(name.startswith("on") for name in attributes)
    assert ATTRIBUTE.findall(tree) == ["name"]  # one place, behind the list
    assert TAG.findall(tree) == ['TAGS.has(node.tag) ? node.tag : "span"']


def test_whatever_is_drawn_is_drawn_by_a_script_of_the_app():
    made = list(calls())
    drawings = [settings(call) for name, call in made if name == "gr.HTML"]
    assert len(drawings) > 3
    for given in drawings:
        template = given.get("html_template", ast.Constant("<div></div>"))  # Gradio evaluates what stands in it
        assert ast.unparse(template) in {repr("<div></div>"), *TEMPLATES}
        script = ast.unparse(given.get("js_on_load", ast.Constant(None)))
        assert script == "None" or script.startswith("asset(")
    assert not {name for name, _ in made} & {"gr.Markdown", "gr.Chatbot", "gr.Info", "gr.Warning", "gr.Dataframe"}


HARNESS = """(script) => {
  const element = document.body.appendChild(document.createElement("div")), props = {value: []};
  let redraw;
  new Function("element", "props", "watch", script)(element, props, (_, then) => { redraw = then; });
  window.show = (value) => { props.value = value; redraw(); };
}"""
VISIBLE = """() => [...document.querySelectorAll(".demo")].filter((each) => each.checkVisibility())
  .map((each) => each.querySelector("p").textContent)"""


@pytest.mark.slow
def test_a_long_list_is_searched_in_the_page():
    script = "".join((ROOT / f"dpicl_ui/assets/{name}.js").read_text("utf-8") for name in ("make", "tree"))
    texts = [f"{word} {number}" for number in range(MANY) for word in ("Card", "Loan")]
    shown = listed([Demonstration(text, "a") for text in texts])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM if CHROMIUM.exists() else None, args=ARGUMENTS)
        page = browser.new_page()
        page.evaluate(HARNESS, script)
        page.evaluate("(value) => window.show(value)", [shown])
        page.click("summary")
        assert page.evaluate(VISIBLE) == texts
        page.fill("input[type=search]", " card 1")
        assert page.evaluate(VISIBLE) == ["Card 1", "Card 10", "Card 11"]
        page.evaluate("(value) => window.show(value)", [shown])  # what is drawn anew is searched still
        assert page.evaluate(VISIBLE) == ["Card 1", "Card 10", "Card 11"]
        page.evaluate("(value) => window.show(value)", [listed([Demonstration("alone", "a")])])
        assert page.locator("input").count() == 0
        browser.close()


# Cards are trees of plain text: hostile text stays text, and each says what it must.


def test_hostile_cells_stay_text():
    table = Table(pd.DataFrame({HOSTILE: [HOSTILE], "label": ["x"]}))
    shown = preview_table(table)
    assert HOSTILE in text_of(shown)
    assert "img" not in tags(shown)


def test_many_small_labels_are_counted_and_not_said_one_by_one():
    counts = {f"label {i}": 10 if i < 20 else 50 for i in range(40)}
    shown = text_of(label_counts(Inspection(counts, (), False, 0, Breakdown({}, {})), list(counts)))
    assert "20 of the 40 labels have fewer than 30 rows" in shown
    assert shown.count("much noise") == 1


@pytest.mark.parametrize(("words", "said"), [(20, False), (500, True)])
def test_who_brings_long_texts_reads_that_they_are_cut(words: int, said: bool):
    session = Session()
    confirmed = confirm(session, Dataset("d", ("a", "b"), tuple(Record("word " * words, each) for each in "ab")))
    assert ("first 35 words" in text_of(counted(confirmed.inspected, ["a", "b"]))) is said


def test_the_certificate_says_what_is_claimed_and_on_what_it_rests():
    made = demo_set(curator=True)
    shown, claim = text_of(certificate(made)), made.certificate.claim
    for words in ("1e-05", "label counts declared public", "one row", "Gaussian", "clean values"):
        assert words in shown
    assert f"claimed by {claim.accountant}; second accountant, {claim.check_accountant}" in shown


@pytest.mark.parametrize(("count", "folded"), [(12, False), (77, True)])
@pytest.mark.parametrize("phase", ["running", "stopped"])
def test_many_demonstrations_are_unfolded_on_demand(phase, count, folded):
    done = tuple(DemoCompleted(Demonstration(f"text {i}", f"label {i}"), 1) for i in range(count))
    made = demo_set(*(each.demonstration for each in done))
    shown = finished(RunView(phase=phase, completed=done, demo_set=made))
    assert ("Show the demonstrations" in text_of(shown)) is folded
    assert f"text {count - 1}" in text_of(shown)
    assert "details" in tags(subject(made, False))


def scorecard(name: str, corrected: Accuracy | None = None) -> Scorecard:
    return Scorecard(name, Accuracy(3, 10), Accuracy(7, 10), corrected, np.array([[4, 1], [2, 3]]))


def test_the_confusion_matrix_holds_every_count_and_no_markup():
    figure = confusion_figure(scorecard(PRIVATE), (HOSTILE, "b")).to_plotly_json()
    assert figure["data"][0]["z"] == [[4, 1], [2, 3]]
    assert not any("<" in name for name in figure["data"][0]["y"])
    assert figure["data"][0]["texttemplate"] == "%{z}"
