"""Every format takes every kind of set or refuses it in one sentence, says the same, and loses no mark unsaid."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import replace

import pytest
import yaml

from mechanisms.demos.demo_set import ArmScore, Score, loads
from mechanisms.errors import UsageError
from mechanisms.exports.export_format import format_named, format_names, packed
from mechanisms.files import safe
from mechanisms.inference.prompts import one_line
from tests.exports.sets import HOSTILE, KINDS, SEEN, about, labelled, marked, not_private, pairs_of, released

REFUSED = {
    ("openai", "none"), ("csv", "none"), ("promptfoo", "none"), ("hugging-face", "none"),
    ("promptfoo", "labelled"), ("promptfoo", "worded"), ("promptfoo", "single"), ("promptfoo", "about"),
}  # fmt: skip


def text(name: str, kind: str) -> str:
    [written] = format_named(name).write(KINDS[kind]).values()
    return written


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", format_names())
def test_a_set_is_written_or_refused_in_one_sentence(name, kind):
    chosen = format_named(name)
    if chosen.refusal(KINDS[kind].demo_set):
        with pytest.raises(UsageError) as refused:
            chosen.write(KINDS[kind])
        assert str(refused.value).count(". ") == 0
        assert str(refused.value).endswith(".")
    else:
        files = chosen.write(KINDS[kind])
        assert all(files.values())
        assert packed(files) == packed(chosen.write(KINDS[kind]))  # no date, no chance


@pytest.mark.parametrize("name", sorted({name for name, _ in REFUSED}))
def test_what_has_no_place_in_a_format_is_refused(name):
    refused = {(name, kind) for kind in KINDS if format_named(name).refusal(KINDS[kind].demo_set)}
    assert refused == {each for each in REFUSED if each[0] == name}


@pytest.mark.parametrize("name", format_names())
def test_marks_are_kept_or_their_loss_is_said(name):
    chosen, made = format_named(name), marked(labelled("x"))
    written = "".join(chosen.write(released(made)).values())
    assert (SEEN in written) == chosen.keeps_disclosures == (chosen.caution(made) is None)


@pytest.mark.parametrize("name", format_names())
def test_a_measured_correction_is_kept_or_its_loss_is_said(name):
    chosen, made = format_named(name), replace(labelled("x"), prior={"News": 0.625, "Sport": -0.625})
    assert chosen.reading(labelled("x")) is None
    if chosen.correction == "":
        assert chosen.reading(made) is None  # no model reads it
        return
    written = "".join(chosen.write(released(made)).values())
    assert ("0.625" in written) == (chosen.correction is not None)
    assert ("no place" in chosen.reading(made)) == (chosen.correction is None)


@pytest.mark.parametrize("name", format_names())
def test_a_set_that_is_not_private_says_so_or_is_refused(name):
    chosen, made = format_named(name), not_private(labelled("x"))
    if not chosen.keeps_disclosures:
        with pytest.raises(UsageError, match="not private"):
            chosen.write(released(made))
    else:
        written = "".join(chosen.write(released(made)).values())
        assert "a test seed" in written
        assert '"private": true' not in written


@pytest.mark.parametrize("kind", ["labelled", "single", "staged", "worded", "about"])
def test_conversations_and_programs_hold_every_pair(kind):
    lines = text("openai", kind).splitlines()  # at every separator that Unicode has
    said = [[each["content"] for each in json.loads(line)["messages"][1:]] for line in lines]
    assert [tuple(each) for each in said] == pairs_of(kind)
    state = json.loads(text("dspy", kind))
    assert [tuple(each.values()) for each in state["demos"]] == pairs_of(kind)


def test_a_set_of_one_label_is_no_set_to_classify():
    cards = {kind: format_named("hugging-face").write(KINDS[kind])["README.md"] for kind in ("single", "labelled")}
    assert "text-generation" in cards["single"]
    assert "text-classification" not in cards["single"]
    assert "text-classification" in cards["labelled"]


def test_tests_of_promptfoo_have_the_documented_shape():
    made = released(labelled("one", "two\u2028"))
    [written] = format_named("promptfoo").write(made).values()
    for line, each in zip(written.splitlines(), made.demo_set.demonstrations, strict=True):
        test = json.loads(line)
        assert test["vars"] == {"text": each.text}
        assert test["assert"] == [{"type": "equals", "value": each.label}]
        assert set(test) == {"vars", "assert", "metadata"}


@pytest.mark.parametrize("trap", ["{{ 7 * 7 }}", "{% for x in y %}", "{# x #}", "file:///tmp/x.js", "package:x:y"])
def test_what_promptfoo_would_run_is_refused(trap):
    with pytest.raises(UsageError, match="would run"):
        format_named("promptfoo").write(released(labelled("fine", f"a {trap}")))


@pytest.mark.parametrize("kind", ["labelled", "single", "worded", "none", "about"])
def test_a_plain_prompt_is_the_one_that_this_app_asks_with(kind):
    template = KINDS[kind].demo_set.template
    prompt, answer = text("prompt", kind), template.label
    assert prompt.startswith(template.instruction)
    assert prompt.endswith(f"]\n{answer}:\n")
    for question, said in pairs_of(kind):
        assert f"{template.text}: {one_line(question)}\n{answer}: {one_line(said)}\n\n" in prompt
    # no text begins a demonstration of its own
    assert prompt.count(f"\n{template.text}: ") == len(pairs_of(kind)) + 1


@pytest.mark.parametrize("name", ["openai", "prompt", "dspy", "langchain"])
def test_a_prompt_says_the_words_of_a_label_where_a_set_has_them(name):
    made = labelled("one", "two")
    told = about(made, "goal", "match", "ball")
    said, silent = ("".join(format_named(name).write(released(each)).values()) for each in (told, made))
    assert "News: texts about goal, match, ball" in said
    assert "Sport: texts about" not in said
    assert "about" not in silent


def test_directions_belong_to_the_labels_in_their_order_however_a_file_orders_them():
    made = about(labelled("one", "two"), "goal", "match", "ball")
    document = json.loads(made.dumps())
    vectors = document["directions"]["vectors"]
    document["directions"]["vectors"] = dict(reversed(vectors.items()))
    assert released(made).demo_set.directions == loads(json.dumps(document)).directions
    assert [*loads(json.dumps(document)).directions.vectors] == [*made.labels]
    for others in ({"Weather": [1.0, 0.0], **vectors}, {"News": vectors["News"], "Weather": vectors["Sport"]}):
        document["directions"]["vectors"] = others
        with pytest.raises(UsageError, match="not those of its labels"):
            loads(json.dumps(document))


def test_a_row_of_a_spreadsheet_has_the_words_of_its_label():
    made = about(labelled("one", "two"), "=goal", "match", "ball")
    [written] = format_named("csv").write(released(made)).values()
    head, *rows = csv.reader(io.StringIO(written, newline=""))
    assert head == ["text", "label", "privacy", "label_words"]
    assert [(label, words) for _, label, _, words in rows] == [("News", "'=goal, match, ball"), ("Sport", "")]


def test_no_cell_begins_a_formula_and_none_is_lost():
    rows = list(csv.reader(io.StringIO(text("csv", "labelled"), newline="")))
    assert rows[0] == ["text", "label", "privacy"]
    assert [row[0].removeprefix("'") for row in rows[1:]] == list(HOSTILE)
    for row in rows[1:]:
        assert row[0][0] not in "=+-@\t\r\n＝"
    assert safe("a=1") == "a=1"


def test_an_arm_of_a_score_begins_no_line_of_a_card():
    arm = ArmScore(0.5, (0.4, 0.6))
    score = Score({"x\n\n<img src=y>\n\n# Epsilon 0.001": arm, "zero-shot": arm}, held_out=True)
    card = format_named("hugging-face").write(released(replace(labelled("x"), score=score)))["README.md"]
    stated = card.split("What the certificate states:\n\n")[1].splitlines()
    assert all(line.startswith("    ") for line in stated)
    assert sum("50.0% (95% interval" in line for line in stated) == 2


@pytest.mark.parametrize(("epsilon", "stated"), [(1.00049, "1.001"), (2.718249, "2.719"), (0.1, "0.1"), (3.0, "3")])
def test_no_export_states_an_epsilon_below_the_certificate_s(epsilon, stated):
    made = labelled("x")
    claim = replace(made.certificate.claim, epsilon=epsilon, delta=1.049e-5)
    made = replace(made, certificate=replace(made.certificate, claim=claim, spent_before=(epsilon, 1.049e-5)))
    written = {name: format_named(name).write(released(made)) for name in ("csv", "hugging-face", "certificate")}
    assert f"epsilon {stated}, delta 1.1e-05 for" in written["csv"]["demonstrations.csv"]
    card, page = written["hugging-face"]["README.md"], written["certificate"]["certificate.html"]
    assert f"Epsilon: {stated} (" in card
    assert "Delta: 1.1e-05" in card
    assert f"Spent before: epsilon {stated}, delta 1.1e-05" in card
    assert f"(epsilon {stated})" in page
    assert "1.1e-05 (delta)" in page


def test_a_card_is_valid_and_holds_hostile_names_as_code():
    files = format_named("hugging-face").write(KINDS["labelled"])
    rows = [json.loads(line) for line in files["data.jsonl"].splitlines()]
    assert [row["text"] for row in rows] == list(HOSTILE)
    _, header, body = files["README.md"].split("---\n", 2)
    assert yaml.safe_load(header)["configs"][0]["data_files"] == [{"split": "train", "path": "data.jsonl"}]
    assert KINDS["labelled"].digest in body
    assert files["demos.dpicl.json"] == KINDS["labelled"].text
    with zipfile.ZipFile(io.BytesIO(packed(files))) as archive:
        assert archive.namelist() == list(files)
        assert archive.testzip() is None
