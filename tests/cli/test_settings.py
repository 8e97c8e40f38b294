"""The settings that the app writes describe, on the command line, the request that the app would run."""

from __future__ import annotations

import math
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
from mechanisms.cli.main import parser
from mechanisms.cli.synthesis_options import check_staged, outputs_of, schema_of
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.data.sources import KIND, read_table
from mechanisms.errors import StudioError, UsageError
from mechanisms.records import Dataset
from mechanisms.runs import settings as written
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from tests.ui.privacy.test_form import VALUES

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
    dataset, _ = command._dataset(options, schema, outputs)
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
        labels=("Yes", "No, thanks"),
        sizes={"Yes": 3, "No, thanks": 3},
    )
    with pytest.raises(UsageError, match="'No, thanks'"):
        written.settings(request, columns.mapping, "my notes")


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
    with pytest.raises(UsageError, match="'a=b'"):
        written.settings(asked, replace(columns.mapping, label_names=(("a=b", "Agreed"),)), "my notes")
