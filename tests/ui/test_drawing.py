"""What a text could become on the page: the app's scripts and components hold no place where it is markup or code.

Browser tests try a hostile text in some fields; this looks at the one way that every field takes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from dpicl_ui.frame.tree import el
from dpicl_ui.generate.cards import MANY, unfolded
from tests.conftest import ROOT
from tests.ui.visit import ARGUMENTS, CHROMIUM

SCRIPTS = sorted(path for path in (ROOT / "dpicl_ui").rglob("*.js"))
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|srcdoc|DOMParser"
    r"|\beval\(|new Function|setTimeout\(\s*[\"'`]|javascript:"
)
TEMPLATES = {
    """f'<h2>{self._places[number - 1].title}</h2><p class="gate-why"></p>'""": "the titles of the steps are the app's",
    "_TEMPLATE.replace('NAME', name)": "so are the names of its sliders",
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
VISIBLE = (
    "() => [...document.querySelectorAll('.demo')].filter((each) => each.checkVisibility()).map((e) => e.textContent)"
)


@pytest.mark.slow
def test_a_long_list_is_searched_in_the_page():
    script = "".join((ROOT / f"dpicl_ui/assets/{name}.js").read_text("utf-8") for name in ("make", "tree"))
    texts = [f"{word} {number}" for number in range(MANY) for word in ("Card", "Loan")]
    shown = unfolded(*(el("div.demo", text) for text in texts))
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
        page.evaluate("(value) => window.show(value)", [unfolded(el("div.demo", "alone"))])
        assert page.locator("input").count() == 0
        browser.close()
