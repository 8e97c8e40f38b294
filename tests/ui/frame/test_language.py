"""German beside English: what the catalogue holds, and what a browser makes of it."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

import dpicl_ui
from dpicl_ui.languages import german
from tests.ui.accessible import beyond_their_boxes
from tests.ui.frame.catalogue import HOLDER, Lookup, holders, renumbered, texts
from tests.ui.visit import HOSTILE, SLOW, browser, serving

PACKAGE = Path(dpicl_ui.__file__).parent
FILES = sorted((PACKAGE / "languages" / "german").glob("*.json"))
FEWEST_LETTERS = 6
"""Fixed letters of a template that takes words: fewer would fit a sentence that it is not meant for."""
FEWEST_WORDS = 4
"""A text of fewer words may be a name, a class or a key."""
NO_WORDS = ("default-src ", "=>", "%{")
"""A policy, scripts, and what Plotly fills."""
NOT_ON_THE_PAGE = ("dpicl_ui/server/", "dpicl_ui/frame/choosable.py")
"""What foreign requests are answered, what is told on a terminal, and what only the program tells apart."""
CHOICES = {"(every row stands for itself)", "The model that this server started with"}
"""They stand among names that people brought, and are left alone with these."""
GRADIOS = {"Drop File Here", "- or -", "Click to Upload", "Radio", "Plot"}
"""Gradio's own words, in which it follows the browser and no button."""
EXAMPLE = "The run of step 2 is planned on '{x}': choose it here."
MANY = "x: a is stated, " * 800

EVERYTHING = """() => {
  const said = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.data.trim() && !node.parentElement.closest('script, style')) said.push(node.data);
    } else for (const name of ['aria-label', 'title', 'placeholder', 'alt'])
      if (node.hasAttribute(name)) said.push(node.getAttribute(name));
  return said; }"""
ADD = """([id, name, words]) => { const made = document.createElement('p'); made.id = id; made.className = name;
  made.append(words); document.body.append(made); }"""
CHANGE = "([id, words]) => { document.getElementById(id).firstChild.data = words; }"
HELD = "(id) => [...document.getElementById(id).childNodes].map((each) => [each.nodeType, each.textContent])"


def entries(path: Path) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=list)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_entry_has_words_and_the_same_placeholders_on_both_sides(path: Path):
    found = entries(path)
    assert [english for english, words in found if not (english.strip() and words.strip())] == []
    assert [
        english for english, _ in found if english != english.strip()
    ] == []  # what is looked up has no blanks there
    assert [english for english, words in found if set(holders(english)) != set(holders(words))] == []
    assert [english for english, _ in found if len(set(holders(english))) != len(holders(english))] == []


def test_nothing_is_translated_twice():
    said = Counter(renumbered(*entry)[0] for path in FILES for entry in entries(path))
    assert [english for english, count in said.items() if count > 1] == []


def test_a_template_that_takes_words_is_unmistakable():
    short = [
        english
        for english in german()
        if {each[1] for each in holders(english)} - {"n"}
        and sum(map(str.isalpha, HOLDER.sub("", english))) < FEWEST_LETTERS
    ]
    assert short == []


def test_every_text_of_the_page_is_translated():
    """Of constant texts alone: what is put together out of pieces, a browser has to show."""
    lookup = Lookup(german())
    long = [(place, text) for place, text in texts(PACKAGE) if len(text.split()) >= FEWEST_WORDS]
    said = [(place, text) for place, text in long if not any(each in text for each in NO_WORDS) and text not in CHOICES]
    said = [(place, text) for place, text in said if not place.startswith(NOT_ON_THE_PAGE)]
    assert [f"{place}: {text}" for place, text in said if not lookup.knows(text)] == []


@dataclass
class Seen:
    """What an English browser showed, and a German one: by itself, after the button, and after the button again."""

    folder: Path
    english: list[str] = field(default_factory=list)
    german: list[list[str]] = field(default_factory=list)
    languages: list[str | None] = field(default_factory=list)
    translate: list[str | None] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    played: dict[str, Any] = field(default_factory=dict)
    beyond: list[str] = field(default_factory=list)
    overflow: int = 0
    hacked: object = None
    stored: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    seen = Seen(tmp_path_factory.mktemp("language"))
    with serving(seen.folder) as port, sync_playwright() as playwright:
        for locale, look in (("en-US", look_in_english), ("de-DE", look_in_german)):
            context = browser(playwright, seen.folder / locale, locale)
            page = context.pages[0]
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector(".status.good", timeout=SLOW)  # what is said of the model changes until then
            seen.translate.append(page.get_attribute("html", "translate"))
            look(page, seen)
            context.close()
    return seen


def look_in_english(page: Page, seen: Seen) -> None:
    seen.languages.append(page.get_attribute("html", "lang"))
    seen.english = page.evaluate(EVERYTHING)


def look_in_german(page: Page, seen: Seen) -> None:
    page.wait_for_selector("html[lang=de]")
    for pressed in range(3):
        if pressed:
            page.click("#language button")
        seen.languages.append(page.get_attribute("html", "lang"))
        seen.german.append(page.evaluate(EVERYTHING))
    page.set_viewport_size({"width": 390, "height": 844})
    seen.beyond, seen.overflow = (
        beyond_their_boxes(page),
        page.evaluate("document.documentElement.scrollWidth - innerWidth"),
    )
    bring_rows(page, seen)
    play(page, seen)
    seen.hacked = page.evaluate("window.hacked || null")
    come_back(page, seen)


def come_back(page: Page, seen: Seen) -> None:
    """The button said English last, in a German browser; then German."""
    page.reload()
    page.wait_for_selector(".status.good", timeout=SLOW)
    seen.languages.append(page.get_attribute("html", "lang"))
    page.click("#language button")
    page.wait_for_selector("html[lang=de]")
    page.reload()
    page.wait_for_selector("html[lang=de]", timeout=SLOW)
    seen.stored = page.evaluate("({...localStorage})")


def bring_rows(page: Page, seen: Seen) -> None:
    """Rows and labels that say what the app says, too."""
    path = seen.folder / "rows.csv"
    rows = [("Only on your screen", "done"), ("Nothing is left on the server.", "open")] * 4
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("Download", "Privacy"), *rows])
    page.set_input_files("#upload-data input[type=file]", path)
    page.wait_for_selector("#data-preview table")
    seen.cells = page.locator("#data-preview th, #data-preview td").all_text_contents()


def play(page: Page, seen: Seen) -> None:
    """New words on a page that is German already."""
    places = {
        "word": ("", "Privacy"),
        "theirs": ("notranslate", "Privacy"),
        "sentence": ("", EXAMPLE.format(x="Privacy")),
        "hostile": ("", EXAMPLE.replace("{x}", HOSTILE)),
    }
    for name, (kind, words) in places.items():
        page.evaluate(ADD, [name, kind, words])
    seen.played = {name: page.evaluate(HELD, name) for name in places}
    page.evaluate(CHANGE, ["word", "Budget of the ledger"])  # no entry
    page.evaluate(CHANGE, ["sentence", "done"])
    seen.played["changed"] = page.evaluate(HELD, "sentence")
    page.evaluate(CHANGE, ["sentence", EXAMPLE.format(x="done")])
    seen.played["changed back"] = page.evaluate(HELD, "sentence")
    seen.played["no entry"] = page.evaluate(HELD, "word")
    page.evaluate(ADD, ["late", "", "Privacy"])
    page.evaluate("document.getElementById('late').className = 'notranslate'")
    page.evaluate(ADD, ["long", "", MANY])
    seen.played["long"] = page.evaluate(HELD, "long")
    page.click("#language button")
    seen.played["late"] = page.evaluate(HELD, "late")


def text_node(words: str) -> list[list[object]]:
    """The only thing in a place."""
    return [[3, words]]


@pytest.mark.slow
def test_a_german_browser_has_a_german_page_and_the_button_changes_it_back_and_forth(seen: Seen):
    assert seen.languages[:4] == ["en", "de", "en", "de"]
    by_itself, by_button, again = seen.german
    differ = {one.strip(): other for one, other in zip(seen.english, by_button, strict=True) if one != other}
    assert differ.keys() <= GRADIOS, differ
    assert by_itself == again
    for english in ("Data", "Only on your screen", "Examples for a language model, without the people in them"):
        assert english in seen.english
        assert english not in by_itself
        assert german()[english] in by_itself


@pytest.mark.slow
def test_what_the_button_said_last_holds_when_the_page_is_opened_again(seen: Seen):
    assert seen.languages[4:] == ["en"]
    assert seen.stored["dpicl-language"] == "de"


@pytest.mark.slow
def test_longer_words_have_room_on_a_phone(seen: Seen):
    assert seen.beyond == []
    assert seen.overflow <= 0


@pytest.mark.slow
def test_the_browsers_own_translator_is_told_to_stay_away(seen: Seen):
    """It would send the page, private rows included, to whoever made the browser."""
    assert seen.translate == ["no", "no"]


@pytest.mark.slow
def test_what_people_brought_stays_though_the_app_says_the_same_words(seen: Seen):
    theirs = {"Only on your screen", "Nothing is left on the server.", "done", "open", "Download", "Privacy"}
    assert theirs <= german().keys()
    assert theirs <= set(seen.cells)
    assert not {german()[each] for each in theirs} & set(seen.cells)
    assert seen.played["word"] == text_node(german()["Privacy"])
    assert seen.played["theirs"] == text_node("Privacy")


@pytest.mark.slow
def test_words_that_change_are_translated_again(seen: Seen):
    assert seen.played["sentence"] == text_node(german()[EXAMPLE].format(x="Privacy"))
    assert seen.played["changed"] == text_node(german()["done"])
    assert seen.played["changed back"] == text_node(german()[EXAMPLE].format(x="done"))
    assert seen.played["no entry"] == text_node("Budget of the ledger")


@pytest.mark.slow
def test_all_that_was_translated_is_english_again(seen: Seen):
    assert seen.played["late"] == text_node("Privacy")


@pytest.mark.slow
def test_a_long_text_of_many_sentences_is_left_alone(seen: Seen):
    """To try every part of it with every entry would take minutes."""
    assert seen.played["long"] == text_node(MANY)


@pytest.mark.slow
def test_a_hostile_text_among_the_words_stays_a_text(seen: Seen):
    assert seen.played["hostile"] == text_node(german()[EXAMPLE].replace("{x}", HOSTILE))
    assert seen.hacked is None
