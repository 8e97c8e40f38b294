"""The page: everything that it must say, and hostile text as text."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from mechanisms.accounting import rounded_up
from mechanisms.exports.export_format import format_named
from tests.exports.sets import (
    HOSTILE,
    KINDS,
    SEEN,
    labelled,
    marked,
    none_chosen,
    not_private,
    released,
    worded,
)


class Page(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page(made) -> Page:
    [written] = format_named("certificate").write(made).values()
    return Page(written)


def test_it_says_what_a_certificate_has_to():
    made = KINDS["labelled"]
    shown, held = page(made).text, made.demo_set.certificate
    for each in (
        rounded_up(held.claim.epsilon, 4),
        rounded_up(held.claim.delta, 2),
        held.claim.accountant,
        made.digest,
    ):
        assert each in shown
    for each in (held.claim.check_accountant, "one row", "add or remove", "Gaussian", *held.public_inputs, "toy"):
        assert each in shown
    assert "What is not promised" in shown
    assert "not measured" in shown


def test_stages_and_the_private_score_are_on_it():
    shown, made = page(none_chosen()).text, none_chosen().demo_set
    for stage in made.stages:
        assert stage.name.capitalize() in shown
    assert "61.0%" in shown
    assert "57.0% to 66.0%" in shown
    assert "the model does best without any" in shown


def test_marks_and_sets_without_a_promise_are_said_before_the_promise():
    seen, none = page(released(marked(labelled("x")))).text, page(released(not_private(labelled("x")))).text
    assert seen.index("Marked: ") < seen.index(SEEN) < seen.index("Whatever an attacker knows")
    assert "Not private: a test seed." in none
    assert "Whatever an attacker knows" not in none
    assert "Marked: " not in page(KINDS["labelled"]).text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_text(hostile):
    made = worded(labelled("x"))
    held = replace(made.certificate, unit=f"user:{hostile}", disclosures=(hostile,), reason=hostile, mechanism=hostile)
    hurt = page(released(replace(made, model_id=hostile, created=hostile, certificate=held)))
    plain = page(released(marked(labelled("x"))))
    assert {(tag, *given) for tag, given in hurt.tags} <= {(tag, *given) for tag, given in plain.tags}
    assert not {"script", "img", "link", "iframe", "a"} & {tag for tag, _ in hurt.tags}
    assert all(each.isprintable() or each == "\n" for each in hurt.text)
    assert not any(name.startswith(("on", "href", "style")) for _, given in hurt.tags for name in given)


def test_it_may_load_nothing_and_run_nothing():
    policies = [given["content"] or "" for tag, given in page(KINDS["labelled"]).tags if "http-equiv" in given]
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    assert "script" not in policies[0]
