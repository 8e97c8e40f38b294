"""What a text could become on the page: the app's scripts and components hold no place where it is markup or code.

Browser tests try a hostile text in some fields; this looks at the one way that every field takes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

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
