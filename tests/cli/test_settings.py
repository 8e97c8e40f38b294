"""Where options come from: settings of the app, a file, and the parameters of mechanisms."""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpicl_ui.data.state import Columns, DataState, Records
from dpicl_ui.frame.sessions import Session
from dpicl_ui.privacy.form import PrivacyForm, RecipeForm, Stages, described, private_mechanisms
from mechanisms.accounting import fingerprint
from mechanisms.cli import synthesize as command
from mechanisms.cli.answer import add_answer_options
from mechanisms.cli.main import parser
from mechanisms.cli.options import add_plan_options
from mechanisms.cli.synthesis_options import check_staged, outputs_of, schema_of
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.label_names import read_labels, read_pairs
from mechanisms.data.reading import Reading
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.data.sources import KIND, read_table
from mechanisms.discovery import parameters
from mechanisms.errors import StudioError, UsageError
from mechanisms.queries import query_mechanism_class, query_mechanism_names
from mechanisms.records import Dataset
from mechanisms.runs import settings as written
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names
from tests.cli.command import check_refusal
from tests.ui.privacy.test_form import VALUES

# The settings that the app writes describe, on the command line, the request that the app would run.


SECRET = "the private text"
SCHEMA = RecordSchema(
    {
        "type": "object",
        "properties": {"the text": {"type": "string", "maxLength": 30}, "answer": {"enum": ["yes: no", "#"]}},
        "required": ["the text", "answer"],
    }
)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda text: text.strip())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "notes.csv"
    rows = [(f"{SECRET} {i}", "Yes" if i % 2 else "2020-01-01", f"p{i % 37}", f"{SECRET}'s answer") for i in range(74)]
    pd.DataFrame(rows, columns=["the text", "null", "who", "answer"]).to_csv(path, index=False)
    return path


def columns_of(
    file: Path,
    mapping: ColumnMapping,
    kind: str | None = None,
    records: Records | None = None,
    session: Session | None = None,
) -> Columns:
    state = (session or Session()).of(DataState)
    state.open(read_table(file), ("Text", "Label"))
    if records:
        return state.read_records(records, mapping.unit, mapping.drop_duplicates)
    if kind and mapping.label == KIND:
        return state.read_alone(kind, mapping)
    return state.read_answered(kind, mapping) if kind else state.read(mapping)


def dataset_of(columns: Columns, *labels: str) -> Dataset:
    return to_dataset(columns.table, columns.mapping, "my notes", labels)


def request_of(
    dataset: Dataset, measured: MeasuredSizes | None = None, form: PrivacyForm | None = None
) -> SynthesisRequest:
    """What a form asks to be written token by token."""
    return (form or PrivacyForm.read(*VALUES)).spec(dataset, measured).writing(dataset)


def from_command_line(
    text: str, file: Path, measured: MeasuredSizes | None = None
) -> tuple[SynthesisRequest | RecipeRequest, Dataset]:
    """The request of `synthesize FILE --config`, and the data set that it is of."""
    config = file.with_name("settings.yaml")
    config.write_text(text, encoding="utf-8")
    options = parser().parse_args(["synthesize", str(file), "--config", str(config)])
    schema, outputs = schema_of(options), outputs_of(options)
    command._check(options)
    dataset = command._dataset(options, schema, outputs)
    spec = command.spec_of(options, schema, outputs)
    check_staged(options, spec.in_stages(len(dataset.labels)))
    if measured:
        assert options.count_epsilon == measured.epsilon
        spec = replace(spec, sizes=measured)
    return spec.request(dataset), dataset


def unsolved(request: SynthesisRequest | RecipeRequest) -> SynthesisRequest | RecipeRequest:
    """The request before calibration: what it solves for is no setting."""
    if isinstance(request, RecipeRequest):
        return replace(request, written=unsolved(request.written)) if request.written else request
    mechanism = request.mechanism
    return replace(request, mechanism=replace(mechanism, **{mechanism.calibrated: 1.0}))


@st.composite
def stages(draw: st.DrawFn) -> Stages:
    shares = tuple(draw(st.integers(1, 20)) / 100 for _ in Stage)
    numbers = (draw(st.integers(1, 16)), draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(5, 99)))
    return Stages(draw(st.sampled_from(["roles", "epsilon"])), *numbers, shares)


@st.composite
def forms(draw: st.DrawFn) -> PrivacyForm:
    changes = {
        "epsilon": draw(st.floats(0.5, 20)),
        "delta": draw(st.floats(1e-9, 1e-3)),
        "mechanism": draw(st.sampled_from([each.name for each in private_mechanisms()])),
        "scheme": draw(st.sampled_from(["per-demonstration", "per-token", "disjoint"])),
        "unit_rows": draw(st.booleans()),
        "subsets": draw(st.integers(4, 30)),
        "tokens": draw(st.integers(9, 40)),
        "shots": draw(st.integers(1, 4)),
        "best_of": draw(st.integers(1, 3)),
        "candidates": draw(st.integers(2, 99)),
        "max_record_tokens": draw(st.integers(8, 200)),
        "instruction": draw(st.one_of(st.just(""), WORDS)).strip(),
        "text_name": draw(WORDS),
        "label_name": draw(WORDS),
        "answers": draw(st.sampled_from(["private", "model"])),
        "transform": draw(st.sampled_from(["none", "pta"])),
        "recipe": RecipeForm(
            draw(st.sampled_from(["tokens", "vote", "both"])), draw(st.booleans()), draw(st.none() | stages())
        ),
    }
    return replace(PrivacyForm.read(*VALUES), **changes)


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(forms(), st.booleans(), st.booleans(), st.booleans())
def test_labelled_texts(file, form, by_user, drop, measure):
    mapping = ColumnMapping("the text", "null", "who" if by_user else None, drop)
    columns = columns_of(file, mapping)
    dataset = dataset_of(columns, "Yes", "2020-01-01")
    sizes = {"Yes": 40, "2020-01-01": 50}
    measured = MeasuredSizes(sizes, 0.25, 1e-9, fingerprint(dataset).content) if measure else None
    try:
        staged = form.recipe.in_stages
        asked = form.spec(dataset, measured).request(dataset)
        assert isinstance(asked, RecipeRequest) is staged
    except StudioError:
        return  # the app shows why, and offers no file
    text = written.settings(asked, columns.mapping, dataset.name)
    same, read = from_command_line(text, file, measured)
    assert unsolved(same) == unsolved(asked)
    assert (read.name, read.unit) == (dataset.name, dataset.unit)
    assert SECRET not in text
    assert yaml.safe_load(text).get("sizes") == (None if measure else "counted")


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(forms())
def test_texts_with_answers_records_and_texts_alone(file, form):
    form = replace(form, recipe=RecipeForm("tokens", True), best_of=1, tokens=40)
    answered = columns_of(file, ColumnMapping("the text", "answer", "who"), kind="Question")
    records = columns_of(file, ColumnMapping("the text", "answer", "who"), records=Records("Yes", SCHEMA))
    alone = columns_of(file, ColumnMapping("the text", KIND, "who"), kind="Letter")
    for columns, kind in ((answered, "Question"), (records, "Yes"), (alone, "Letter")):
        dataset = dataset_of(columns, kind)
        try:
            asked = form.spec(dataset, schema=columns.records and columns.records.schema).writing(dataset)
        except StudioError:
            continue
        text = written.settings(asked, columns.mapping, dataset.name)
        same, read = from_command_line(text, file)
        if asked.answered_by_model:  # the command line reads no column, and counts no tokens, that nobody writes
            assert same.outputs.parameters() == asked.outputs.parameters()
            same = replace(same, content=asked.content, outputs=asked.outputs)
        assert unsolved(same) == unsolved(asked)
        assert (read.name, read.unit) == (dataset.name, dataset.unit)
        assert SECRET not in text


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\r", "\ufeff"])
def test_what_yaml_takes_for_another_line_break_comes_back_as_it_was(file, odd):
    columns = columns_of(file, ColumnMapping("the text", "null"))
    form = replace(PrivacyForm.read(*VALUES), instruction=f"one{odd}two", label_name=f"a{odd}b")
    asked = request_of(dataset_of(columns, "Yes", "2020-01-01"), form=form)
    same, _ = from_command_line(written.settings(asked, columns.mapping, "my notes"), file)
    assert unsolved(same) == unsolved(asked)


@pytest.mark.slow
def test_what_calibration_solves_for_is_no_setting(file):
    """Else the command line would refuse the file of a plan, which is calibrated."""
    columns = columns_of(file, ColumnMapping("the text", "null"))
    request = (
        PrivacyForm.read(*VALUES)
        .spec(dataset_of(columns, "Yes", "2020-01-01"))
        .writing(dataset_of(columns, "Yes", "2020-01-01"))
    )
    text = written.settings(request.calibrated(), columns.mapping, "my notes")
    same, _ = from_command_line(text, file)
    assert same.calibrated() == request.calibrated()
    assert request.mechanism.calibrated.replace("_", "-") not in yaml.safe_load(text)


def test_no_flag_belongs_to_a_mechanism_and_to_a_transform():
    """The form asks each for its own value; one flag would have to be both."""
    flags = [each.flag for owner, each in described() if owner.name in ("none", "pta")]
    assert not set(flags) & {each.flag for owner, each in described() if owner.name not in ("none", "pta")}


def test_sizes_that_were_measured_are_not_written_but_measured_again(file):
    columns = columns_of(file, ColumnMapping("the text", "null"))
    dataset = dataset_of(columns, "Yes", "2020-01-01")
    measured = MeasuredSizes({"Yes": 4711, "2020-01-01": 4712}, 0.25, 1e-9, fingerprint(dataset).content)
    text = written.settings(request_of(dataset, measured), columns.mapping, "my notes")
    assert "471" not in text
    assert "paid for again" in text
    assert math.isclose(yaml.safe_load(text)["count-epsilon"], 0.25)


def test_a_label_that_the_command_line_cannot_name_is_refused(file):
    columns = columns_of(file, ColumnMapping("the text", "null"))
    request = replace(
        PrivacyForm.read(*VALUES)
        .spec(dataset_of(columns, "Yes", "2020-01-01"))
        .writing(dataset_of(columns, "Yes", "2020-01-01")),
        labels=("Yes", " No"),
        sizes={"Yes": 3, " No": 3},
    )
    with pytest.raises(UsageError, match="' No'"):
        written.settings(request, columns.mapping, "my notes")


ODD = ('Billing, "urgent"', "\U0001f642 \u05e9\u05dc\u05d5\u05dd", "a=b", "[x", "two\nlines")


def test_any_label_comes_back_from_the_settings_as_it_was(tmp_path):
    path = tmp_path / "odd.csv"
    rows = [(f"a text {i}", ODD[i % len(ODD)]) for i in range(60)]
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(path, index=False)
    names = ((ODD[2], "A, named = 1"),)
    columns = columns_of(path, ColumnMapping("text", "label", label_names=names))
    called = tuple(dict(names).get(each, each) for each in ODD)
    asked = request_of(dataset_of(columns, *called))
    reading = Reading(header=True, encoding="utf-8", separator=",")
    text = written.settings(asked, replace(columns.mapping, merge_labels=True), "my notes", reading=reading)
    same, dataset = from_command_line(text, path)
    assert dataset.labels == called
    assert unsolved(same) == unsolved(asked)
    options = parser().parse_args(["synthesize", str(path), "--config", str(path.with_name("settings.yaml"))])
    assert (options.header, options.encoding, options.separator) == (True, "utf-8", ",")
    assert options.merge_labels


def test_a_model_without_a_name_is_left_to_say(file):
    columns = columns_of(file, ColumnMapping("the text", "null"))
    request = (
        PrivacyForm.read(*VALUES)
        .spec(dataset_of(columns, "Yes", "2020-01-01"))
        .writing(dataset_of(columns, "Yes", "2020-01-01"))
    )
    assert "--model" in written.settings(request, columns.mapping, "d", None)
    assert yaml.safe_load(written.settings(request, columns.mapping, "d"))["model"] == "embedded"


def test_labels_that_were_renamed_are_renamed_again(file):
    names = (("Yes", "Agreed"), ("2020-01-01", "New Year"))
    columns = columns_of(file, ColumnMapping("the text", "null", label_names=names))
    asked = (
        PrivacyForm.read(*VALUES)
        .spec(dataset_of(columns, "Agreed", "New Year"))
        .writing(dataset_of(columns, "Agreed", "New Year"))
    )
    text = written.settings(asked, columns.mapping, "my notes")
    same, _ = from_command_line(text, file)
    assert unsolved(same) == unsolved(asked)


# Options from a file: the same as on the command line, which overrides them.

REQUIRED = "labels: [A, B]\nepsilon: 1\ndelta: 1e-5\n"


@pytest.fixture
def parsed(tmp_path):
    def parse(text: str, *line: str):
        path = tmp_path / "run.yaml"
        path.write_text(text)
        return vars(parser().parse_args(["synthesize", "data.csv", "--config", str(path), *line]))

    return parse


def test_a_file_says_what_flags_say(parsed):
    text = (
        "labels: [A, B]\nepsilon: 1.5\ndelta: 1e-5\nsizes: {A: 2000, B: 300}\nrecipe: both\ndrop-duplicates: true\n"
        "shares:\n  vote: 0.5\n  write: .25\nbase: false\njson: false\ntest-seed: -1\nname: 7\n"
    )
    flags = (
        "synthesize data.csv --labels A,B --epsilon 1.5 --delta 1e-5 --sizes A=2000,B=300 --recipe both "
        "--drop-duplicates --shares vote=0.5,write=0.25 --no-base --test-seed -1 --name 7"
    )
    from_file, from_line = parsed(text), vars(parser().parse_args(flags.split()))
    assert {name for name in from_line if from_file[name] != from_line[name]} == {"config", "labels", "sizes"}
    for each in (from_file, from_line):
        assert read_labels(each["labels"]) == ("A", "B")
        assert read_pairs(each["sizes"]) == [("A", "2000"), ("B", "300")]


def test_the_command_line_overrides_the_file_wherever_it_stands(parsed, tmp_path):
    assert parsed(REQUIRED)["epsilon"] == 1
    assert parsed(REQUIRED, "--epsilon", "3")["epsilon"] == 3
    line = ["synthesize", "data.csv", "--epsilon", "3", f"--config={tmp_path / 'run.yaml'}"]
    assert parser().parse_args(line).epsilon == 3
    # A value that is the default overrides as well.
    assert parsed(f"{REQUIRED}tokens: 12\n", "--tokens", "30")["tokens"] == 30


def test_what_the_file_leaves_out_is_still_required(capsys, parsed):
    with pytest.raises(SystemExit):
        parsed("labels: A,B\nepsilon: 1\n")
    assert "--delta" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epsilonn: 1", "no option 'epsilonn'"),
        ("eps: 1", "no option 'eps'"),  # no abbreviations
        ("config: other.yaml", "no option 'config'"),
        ("help: true", "no option 'help'"),
        ("csv: other.csv", "no option 'csv'"),
        ("1: 2", "no option '1'"),
        ("labels: [Yes, No]", "put it in quotes"),
        ("name: 2020-01-01", "put it in quotes"),
        ("name:", "put it in quotes"),
        ("drop-duplicates: 1", "true or false"),
        ("epsilon: many", "--epsilon"),
        ('labels: ["\\ud83d", B]', "half a character"),
        ("labels: &all [A, *all]", "write out"),
        ("labels: [&one [A, A], &two [*one, *one], [*two, *two]]", "write out"),
        pytest.param(f"epsilon: 0x{'f' * 5000}", "too long", id="a long number"),
        pytest.param(f"? 0x{'f' * 5000}\n: 1", "too long", id="a long name"),
        ("- epsilon", "has no options"),
        ("", "has no options"),
        ("a: [", "not YAML"),
        ("!!python/object/apply:os.getcwd []", "not YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(capsys, tmp_path, text, message):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    check_refusal(capsys, f"synthesize data.csv --config {path}", 2, message)


def test_a_file_that_is_not_there(capsys):
    check_refusal(capsys, "synthesize data.csv --config nowhere.yaml", 2, "nowhere.yaml")
    check_refusal(capsys, "synthesize data.csv --config", 2, "--config")


def test_a_key_cannot_bring_escapes_to_a_terminal(capsys, tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text('"\\e[31mred": 1')
    check_refusal(capsys, f"synthesize data.csv --config {path}", 2, "no option '?[31mred'")


# Flags of parameters say what they mean to each mechanism that has them.

PLAN = [mechanism_class(name) for name in mechanism_names()] + [transform_class(name) for name in transform_names()]
ANSWER = [query_mechanism_class(name) for name in query_mechanism_names()]


def sections(add) -> dict[str, str]:
    """The help by the titles of its groups, each on one line."""
    parser = argparse.ArgumentParser(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=10**5))
    add(parser)
    parts = re.split(r"^([^\s].*):\n", parser.format_help(), flags=re.MULTILINE)
    return {title: re.sub(r"\s+", " ", text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize(("add", "users"), [(add_plan_options, PLAN), (add_answer_options, ANSWER)])
def test_every_owner_has_a_group_and_every_meaning_is_told(add, users):
    told = sections(add)
    owners = {}
    for user in users:
        for each in parameters(user):
            owners.setdefault(each.flag, []).append(user)
    for flag, sharing in owners.items():
        if add is add_answer_options and flag == "noise":  # it follows from epsilon
            continue
        for user in sharing:
            [each] = [each for each in parameters(user) if each.flag == flag]
            title = f"parameters of {user.name}" if len(sharing) == 1 else "parameters of several mechanisms"
            prefix = "" if len(sharing) == 1 else f"{user.name}: "
            assert f"{prefix}{each.help} ({each.citation})" in told[title]
            assert f"--{flag}" in told[title]
    assert "PARAMETER_" not in "".join(told.values())


def test_a_shared_flag_does_not_tell_one_mechanism_what_holds_for_another():
    shared = sections(add_plan_options)["parameters of several mechanisms"]
    [temperature] = re.findall(r"--temperature X (.*?)(?= --|$)", shared)
    own = re.split(r"(?:^| )([a-z-]+): ", temperature)
    meanings = dict(zip(own[1::2], own[2::2], strict=True))
    assert "the more private" in meanings["blended-logits"]
    assert "the more private" not in meanings["gaussian"] + meanings["svt-public"]
