"""The certificate page and the label of facts."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from mechanisms.accounting import best_guess_in_percent, cost_in_words
from mechanisms.errors import printable
from mechanisms.exports.certificate_page import label_of_facts
from mechanisms.exports.export_format import ReleasedFile, format_named
from mechanisms.rounding import percent_up, rounded_up
from tests.exports.sets import (
    HOSTILE,
    KINDS,
    SEEN,
    about,
    labelled,
    marked,
    not_private,
    released,
    staged,
    worded,
)

# The page: everything that it must say, and hostile text as text.


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
        self.text += f"{data} "


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


def test_how_the_model_was_asked_and_what_was_refused_is_on_the_page():
    joined = words(staged())
    for each in (
        "You are a clinic. A patient writes you one note about {label}, in one or two sentences.",
        "a: acne",
        "3 written texts",
        "token by token: Gaussian noise on the sum of distributions",
        "no words: 2",
        "it breaks off: 1",
    ):
        assert each in joined
    plain = labelled("x")
    joined = words(released(plain))
    assert "Write one text about {label}, in one or two sentences." in joined
    assert "Refused" not in joined
    own = replace(plain, wording=replace(plain.wording, sentence="Say {label} aloud."))
    assert "Asked Say {label} aloud." in words(released(own))


def test_exemplars_are_told_of_a_set_whose_file_says_that_some_were_shown():
    made = labelled("x")
    shown = {"kind": "message", "exemplars": 3}, {"kind": "message", "exemplars": 0}, {"kind": "note", "exemplars": 3}
    told = [words(released(replace(made, wording=replace(made.wording, **asked)))) for asked in shown]
    assert "behind at most 3 public exemplars of the kind" in told[0]
    assert not any("exemplars" in each for each in told[1:])


def test_words_of_a_label_are_facts_beside_the_noise_that_may_have_put_them_there():
    made = labelled("x")
    told = words(released(about(made, "goal", "match", "ball")))
    for each in ("News goal, match, ball", "Sport no word clears the noise", "noise may have put a word here"):
        assert each in told
    assert "a vector a label, for the embedding model toy" in told
    assert "noise may have put a word here" not in words(released(made))


def test_hostile_words_of_a_label_are_text():
    hurt, plain = (page(released(about(labelled("x"), *each))) for each in (HOSTILE[-8:], ("goal", "match", "ball")))
    assert {(tag, *given) for tag, given in hurt.tags} == {(tag, *given) for tag, given in plain.tags}
    assert all(each.isprintable() or each == "\n" for each in hurt.text)


def test_marks_and_sets_without_a_promise_are_said_before_the_promise():
    seen, none = page(released(marked(labelled("x")))).text, page(released(not_private(labelled("x")))).text
    assert seen.index("Marked: ") < seen.index(SEEN) < seen.index("Whatever an attacker knows")
    assert "Not private: a test seed." in none
    assert "Whatever an attacker knows" not in none
    assert "Marked: " not in page(KINDS["labelled"]).text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_text(hostile):
    made = worded(labelled("x"))
    held = replace(
        made.certificate,
        unit=f"user:{hostile}",
        disclosures=(hostile,),
        reason=hostile,
        mechanism=hostile,
        scheme=hostile,
    )
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


# The label says what the certificate says.


def words(made: ReleasedFile) -> str:
    return " ".join(page(made).text.split())


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_every_fact(kind):
    made = KINDS[kind]
    shown = words(made)
    for section in label_of_facts(made.demo_set):
        for fact in section.facts:
            assert " ".join(printable(" ".join(filter(None, fact))).split()) in shown


def test_the_promise_is_the_certificates():
    made = KINDS["labelled"].demo_set
    claim, shown = made.certificate.claim, words(KINDS["labelled"])
    guess = f"at most {best_guess_in_percent(claim.epsilon, claim.delta)}%"
    for each in (rounded_up(claim.epsilon, 4), rounded_up(claim.check, 4), rounded_up(claim.delta, 2), guess):
        assert each in shown
    spent = replace(made, certificate=replace(made.certificate, spent_before=(0.5, 1e-6)))
    assert cost_in_words(0.5, 1e-6) in words(released(spent))


def test_what_each_stage_read_and_what_the_set_is_worth():
    made = staged()
    small = replace(made.demo_set.stages[0], role=0.0025)
    shown = words(replace(made, demo_set=replace(made.demo_set, stages=(small, *made.demo_set.stages[1:]))))
    assert f"{small.name.capitalize()} 0.25% of the rows" in shown
    for stage in made.demo_set.stages[1:]:
        assert f"{stage.name.capitalize()} {percent_up(stage.role)} of the rows" in shown
    assert "Zero-shot 61.0% 95% interval 57.0% to 66.0%" in shown


def test_a_set_without_a_promise_states_no_epsilon_and_marks_are_stated():
    none = words(released(not_private(labelled("x"))))
    assert "a test seed" in none
    assert "Epsilon" not in none
    assert "A guess is right" not in none
    assert f"Known without noise yes {SEEN}" in words(released(marked(labelled("x"))))


def test_a_parameter_of_another_kind_does_not_break_it():
    made = labelled("x")
    parameters = made.certificate.parameters | {"rate": "often"}
    odd = released(replace(made, certificate=replace(made.certificate, parameters=parameters)))
    assert "as its parameters state" in words(odd)
