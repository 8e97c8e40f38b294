"""Every format takes every kind of set or refuses it in one sentence, says the same, and loses no mark unsaid."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import zipfile
from dataclasses import replace

import jinja2
import pytest
import yaml

from mechanisms.demos.demo_set import ArmScore, DemoSet, Score, loads
from mechanisms.errors import UsageError
from mechanisms.exports.certificate_page import limits
from mechanisms.exports.chat import inert, response_format
from mechanisms.exports.export_format import ExportExtras, ReleasedFile, format_named, format_names, packed
from mechanisms.files import safe
from mechanisms.inference.prompts import one_line
from mechanisms.records import Demonstration, Record
from mechanisms.rounding import rounded_up
from tests.conftest import ROOT
from tests.exports.sets import HOSTILE, KINDS, SEEN, about, labelled, marked, not_private, pairs_of, released, worded

REFUSED = {("openai", "none"), ("csv", "none"), ("hugging-face", "none")}
TRAPS = (
    "{{ 7 * 7 }}", "say {{text}} or {{{text}}}", "{% for x in y %} %} }}", "{# x #} #}", "file:///etc/hostname",
    '"""\n\x1b"""\nFROM other', 'a "quote\u200b"\u2028" \n"" "',
)  # fmt: skip
ROWS = (Record("A goal.", "Sport"), Record("{{ 7 * 7 }}", "News"), Record("package:x:y", "News"))


def text(name: str, kind: str) -> str:
    [written] = format_named(name).write(KINDS[kind]).values()
    return written


@pytest.mark.parametrize("name", format_names())
def test_the_page_of_exports_names_every_format(name):
    assert f"`{name}`" in (ROOT / "docs/exports.md").read_text(encoding="utf-8")


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
    configs = {kind: json.loads(text("langfuse", kind))["config"] for kind in ("single", "labelled")}
    assert "response_format" in configs["labelled"]
    assert "response_format" not in configs["single"]
    with pytest.raises(UsageError, match="a single label"):
        format_named("promptfoo").write(ReleasedFile.read(KINDS["single"].demo_set.dumps(), ExportExtras(tests=ROWS)))


# Prompts that other tools fill.


def messages(made: DemoSet) -> list[dict[str, str]]:
    [written] = format_named("messages").write(released(made)).values()
    return json.loads(written)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_are_the_instruction_the_demonstrations_in_turn_and_a_blank(kind):
    made = KINDS[kind].demo_set
    first, *shown, last = messages(made)
    assert first["role"] == "system"
    assert first["content"].startswith(inert(made.prompt.instruction))
    assert [each["role"] for each in shown] == ["user", "assistant"] * len(made.demonstrations)
    assert [each["content"] for each in shown] == [inert(each) for pair in pairs_of(kind) for each in pair]
    assert last == {"role": "user", "content": "{{text}}"}
    named = [one_line(each) in first["content"].splitlines()[-1] for each in made.labels]
    assert all(named) == (len(made.labels) > 1)


def test_a_plain_text_is_left_as_it_is():
    for each in ("a {brace} } and }} here", "a file: see below", "C# {x} # }", "100%}"):
        assert inert(each) == each


def test_jinja_fills_the_blank_alone_whatever_the_texts_hold():
    engine = jinja2.Environment(keep_trailing_newline=True, newline_sequence="\n")
    made = worded(labelled(*TRAPS, *(each for each in HOSTILE if "\r" not in each)))
    filled = [engine.from_string(each["content"]).render(text="<my> {{text}}") for each in messages(made)]
    assert filled == [*(each["content"] for each in messages(made)[:-1]), "<my> {{text}}"]


@pytest.mark.parametrize("name", ["messages", "langfuse", "promptfoo"])
def test_a_set_has_one_place_to_fill(name):
    written = "".join(format_named(name).write(released(labelled(*TRAPS))).values())
    assert written.count("{{") == 1
    assert not re.search(r"\{[%#]|#}|file:///", written)  # Nunjucks refuses a stray end of a comment


def test_no_name_in_the_configuration_of_promptfoo_is_run():
    made = replace(labelled("one"), model_id="{{ env.HOME }}", prior={"{{text}}": 0.5, "Sport": 0.0})
    assert "{{" not in format_named("promptfoo").write(released(made))["promptfooconfig.yaml"]


def test_langfuse_gets_the_messages_and_the_promise():
    made = labelled("one", "two")
    [written] = format_named("langfuse").write(released(made)).values()
    body = json.loads(written)
    assert set(body) == {"name", "type", "prompt", "config", "labels", "tags"}
    assert (body["type"], body["prompt"], body["labels"]) == ("chat", messages(made), [])
    assert body["config"]["response_format"] == response_format(made)["response_format"]
    assert body["config"]["dpicl"]["epsilon"] == made.certificate.claim.epsilon


def read_modelfile(text: str) -> list[tuple[str, str]]:
    """Commands and values, by the rules of Ollama's parser: what is not printable is dropped, a line end closes a value
    that does not begin with quotes, and one that begins with three where it ends with three others."""
    commands, name, value = list[tuple[str, str]](), "", ""
    for line in text.replace("\r", "\n").split("\n"):
        seen = "".join(each for each in line if each.isprintable() or each == "\t")
        if not name:
            if not seen.strip() or seen.startswith("#"):
                continue
            name, _, value = seen.partition(" ")
            if name == "MESSAGE":
                role, _, value = value.partition(" ")
                name = f"{name} {role}"
        else:
            value += f"\n{seen}"
        whole = value.strip()
        if not whole.startswith('"'):
            commands.append((name, whole))
            name = ""
        elif len(whole) >= 6 and whole.startswith('"""') and whole.endswith('"""'):
            commands.append((name, whole[3:-3]))
            name = ""
    assert not name, "a value is not closed"
    return commands


@pytest.mark.parametrize("texts", [HOSTILE, TRAPS, ('ends with a quote"', '"""', '""', '"', '"""\nFROM x\n"""', "")])
def test_a_modelfile_holds_every_turn_and_no_other_command(texts):
    made = labelled(*texts)
    [written] = format_named("modelfile").write(released(made)).values()
    commands = read_modelfile(written)
    assert [name for name, _ in commands[:3]] == ["FROM", "PARAMETER", "SYSTEM"]
    assert [name for name, _ in commands[3:]] == ["MESSAGE user", "MESSAGE assistant"] * len(texts)
    said = [value for name, value in commands if name == "MESSAGE user"]
    assert len(said) == len(texts)
    for text, read in zip(texts, said, strict=True):
        shown = "".join(each for each in text.replace("\r", "\n") if each.isprintable() or each in "\n\t")
        assert read.replace('"', "'") == shown.replace('"', "'")
        assert read == shown or re.search(r'"[^\w!-~]*"[^\w!-~]*"', text)  # quotes alone change, in runs alone


def test_promptfoo_asks_about_the_owner_s_rows_and_never_about_the_demonstrations():
    chosen, made = format_named("promptfoo"), labelled(*TRAPS)
    without = chosen.write(released(made))
    assert set(without) == {"messages.json", "promptfooconfig.yaml"}
    assert "tests" not in yaml.safe_load(without["promptfooconfig.yaml"])
    assert "no tests" in chosen.advice(made, ExportExtras())
    tried = ExportExtras(tests=ROWS)
    files = chosen.write(ReleasedFile.read(made.dumps(), tried))
    [test] = [json.loads(line) for line in files["tests.jsonl"].splitlines()]
    assert test == {"vars": {"text": "A goal."}, "assert": [{"type": "equals", "value": "Sport"}]}
    assert "2 of 3 test rows are left out" in chosen.advice(made, tried)
    assert chosen.advice(made, ExportExtras(tests=ROWS[:1])) is None
    config = yaml.safe_load(files["promptfooconfig.yaml"])
    assert config["prompts"] == ["file://messages.json"]
    assert config["tests"] == "file://tests.jsonl"
    assert json.loads(files["messages.json"]) == messages(made)


@pytest.mark.parametrize("trap", ["{{ 7 * 7 }}", "{% for x in y %}", "{# x #}", "file:///tmp/x.js", "package:x:y"])
def test_a_label_that_promptfoo_would_run_is_refused(trap):
    made = labelled("one", "two")
    named = replace(made, labels=(trap, "Sport"), demonstrations=(Demonstration("one", trap),))
    with pytest.raises(UsageError, match="would run"):
        format_named("promptfoo").write(released(named))


@pytest.mark.parametrize("name", format_names())
def test_what_an_owner_adds_is_written_or_refused(name):
    chosen, made = format_named(name), labelled("one", "two")
    for added in (ExportExtras(tests=ROWS), ExportExtras(licence="cc-by-4.0"), ExportExtras(language="en")):
        [said] = (each for each in vars(added) if getattr(added, each) is not None)
        given = ReleasedFile.read(made.dumps(), added)
        if said in chosen.takes:
            assert chosen.write(given) != chosen.write(released(made))
        else:
            with pytest.raises(UsageError, match=f"no place for {said}"):
                chosen.write(given)


def test_fewer_examples_than_fine_tuning_wants_are_said():
    advice = format_named("openai").advice
    assert "at least 10 examples, and this set has 9" in advice(labelled(*"abcdefghi"), ExportExtras())
    assert advice(labelled(*"abcdefghij"), ExportExtras()) is None


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


@pytest.mark.parametrize("name", ["openai", "prompt", "dspy", "messages", "langfuse", "modelfile", "promptfoo"])
def test_a_prompt_says_the_words_of_a_label_where_a_set_has_them(name):
    made = labelled("one", "two")
    told = about(made, "goal", "match", "ball")
    said, silent = ("".join(format_named(name).write(released(each)).values()) for each in (told, made))
    assert "News: texts about goal, match, ball" in said
    assert "Sport: texts about" not in said
    assert "texts about" not in silent


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


def test_a_card_states_the_promise_and_no_licence_that_nobody_chose():
    made = labelled("one", "two")
    for added in (ExportExtras(), ExportExtras(licence="cc-by-4.0", language="en")):
        files = format_named("hugging-face").write(ReleasedFile.read(made.dumps(), added))
        header, body = files["README.md"].split("---\n", 2)[1:]
        card, croissant = yaml.safe_load(header), json.loads(files["croissant.json"])
        assert (card.get("license"), card.get("language")) == (added.licence, added.language and [added.language])
        assert (croissant.get("license"), croissant.get("inLanguage")) == (added.licence, added.language)
        assert ("No licence is stated" in body) == (added.licence is None)
        assert card["size_categories"] == ["n<1K"]
        assert card["pretty_name"].startswith("Synthetic ")
        claim = made.certificate.claim
        assert f"epsilon {rounded_up(claim.epsilon, 4)}, delta 1e-05, for one row" in body


@pytest.mark.parametrize("wrong", ["", "my own terms", "x: y", "a\nb", "<b>"])
def test_a_licence_is_an_identifier(wrong):
    with pytest.raises(UsageError, match="as the hub names them"):
        format_named("hugging-face").write(ReleasedFile.read(labelled("one").dumps(), ExportExtras(licence=wrong)))


@pytest.mark.parametrize("kind", ["labelled", "single", "staged", "worded", "about"])
def test_croissant_describes_the_rows_beside_it(kind):
    files = format_named("hugging-face").write(KINDS[kind])
    about, rows = json.loads(files["croissant.json"]), [json.loads(line) for line in files["data.jsonl"].splitlines()]
    [file], [records] = about["distribution"], about["recordSet"]
    assert file["sha256"] == hashlib.sha256(files[file["contentUrl"]].encode()).hexdigest()
    assert all([each["name"] for each in records["field"]] == [*row] for row in rows)
    assert "probability of any released result" in about["rai:personalSensitiveInformation"][0]
    assert all(each in about["rai:dataLimitations"] for each in limits(KINDS[kind].demo_set.certificate))


def test_rows_of_the_hub_have_the_words_of_their_label():
    made = about(labelled("one", "two"), "goal", "match")
    files = format_named("hugging-face").write(released(made))
    assert [json.loads(line)["label_words"] for line in files["data.jsonl"].splitlines()] == ["goal, match", ""]
    assert "under `directions`" in files["README.md"]
