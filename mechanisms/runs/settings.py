"""A run's settings as a file that `synthesize --config` reads as it stands: public values and names, no row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mechanisms.data.columns import ColumnMapping
from mechanisms.data.label_names import names_of
from mechanisms.data.reading import FLAGS, USUAL, Reading
from mechanisms.data.sources import KIND
from mechanisms.demos.demo_set import Outputs
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.runs.recipe import Kind, Stage
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest, has_stages
from mechanisms.runs.request import SynthesisRequest
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import TokenMechanism, Transform

Option = tuple[str, Any]
"""A flag without its dashes, and its value for YAML."""

_HEAD = """\
# Settings of a run of DP-ICL Studio, for the file that they were chosen on:
#     python -m mechanisms synthesize FILE --config SETTINGS --out demos.json
# Names of columns and labels are in here, and no row. It is charged as a run of its own.
"""
_MEASURED = "# The sizes of the labels are measured again, and paid for again: plan as if epsilon were spent twice.\n"
_NO_MODEL = "# Its model has no name of its own here: say which with --model.\n"


def settings(
    request: RunRequest, mapping: ColumnMapping, name: str, model: str | None = "embedded", reading: Reading = USUAL
) -> str:
    """The file's text, with every setting that fixes the request but the data set itself.

    Args:
        request: its sizes are those counted in the file and declared public, or measured; never written out.
        mapping: the columns that it is planned on.
        name: the data set's, in the ledger.
        model: as `--model` takes it; None where that is a place on one machine.
        reading: what the file's owner said of it.

    Raises:
        UsageError: a label has spaces around it, which the command line strips.
    """
    if broken := [label for label in request.labels if label != label.strip()]:
        raise UsageError(f"The command line cannot name the label '{broken[0]}': it strips labels.")
    options = {FLAGS[each].removeprefix("--"): getattr(reading, each) for each in reading.said}
    options |= dict(_of_data(request, mapping, name))
    if model is not None:
        options["model"] = model
    options |= dict(_of_recipe(request) if has_stages(request) else _of_writing(request))
    head = _HEAD + (_MEASURED if request.measured else "") + (_NO_MODEL if model is None else "")
    return head + yaml.dump(options, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Escapes the line break that a reader of YAML takes for another one: as it stands, U+0085 comes back as a space or
    as a line feed. In double quotes it is escaped."""


def _of_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if "\x85" in text else None)


_Dumper.add_representer(str, _of_text)


def _of_data(request: RunRequest, mapping: ColumnMapping, name: str) -> Iterator[Option]:
    one_kind = request.schema or request.outputs
    yield "name", name
    yield "labels", list(request.labels)
    if names := names_of(request.labels, mapping.label_names):
        yield "label-names", dict(names)
    if not request.schema:
        yield "text-column", mapping.text
    if not one_kind:
        yield "label-column", "" if mapping.label == KIND else mapping.label
    if request.outputs and request.outputs.charged:
        yield "output-column", mapping.output
    if mapping.unit is not None:
        yield "unit-column", mapping.unit
    yield from ((flag, True) for flag, on in _switches(mapping) if on)
    yield ("count-epsilon", request.measured.epsilon) if request.measured else ("sizes", "counted")
    yield "epsilon", request.target.epsilon
    yield "delta", request.target.delta
    yield "instruction", request.template.instruction
    yield "text-field", request.template.text
    yield "label-field", request.template.label
    yield "max-record-tokens", request.max_record_tokens
    yield "max-unit-records", request.max_unit_records


def _switches(mapping: ColumnMapping) -> Iterator[tuple[str, bool]]:
    yield "drop-duplicates", mapping.drop_duplicates
    yield "merge-labels", mapping.merge_labels


def _of_writing(request: SynthesisRequest) -> Iterator[Option]:
    yield "recipe", Kind.TOKENS.value
    yield "shots-per-label", request.exported
    if request.kept is not None:
        yield "best-of", request.plan.shots // request.kept
    yield from _of_tokens(request)
    if request.schema:
        yield "schema", request.schema.document
    elif request.outputs:
        yield from _of_outputs(request.outputs, request.template.output)


def _of_tokens(request: SynthesisRequest) -> Iterator[Option]:
    yield from _of_plan(request.plan)
    if not request.schema:
        yield "min-tokens", request.min_tokens
    yield "candidates", request.candidates
    yield "mechanism", request.mechanism.name
    yield "transform", request.transform.name
    yield from _of_parameters(request.mechanism, request.mechanism.calibrated)
    yield from _of_parameters(request.transform)


def _of_plan(plan: SamplingPlan) -> Iterator[Option]:
    yield "scheme", plan.scheme.value
    yield ("unit-rows", True) if plan.unit_rows else ("per-subset", plan.per_subset)
    yield "subsets", plan.subsets
    yield "tokens", plan.tokens


def _of_parameters(used: TokenMechanism | Transform, solved: str | None = None) -> Iterator[Option]:
    return ((each.flag, getattr(used, each.name)) for each in parameters(used) if each.name != solved)


def _of_outputs(outputs: Outputs, field: str | None) -> Iterator[Option]:
    yield "output-field", field
    yield "answers", outputs.answers.value
    if outputs.charged:
        yield "output-tokens", outputs.tokens
    yield "max-output-tokens", outputs.max_tokens


def _of_recipe(request: RecipeRequest) -> Iterator[Option]:
    recipe = request.recipe
    yield "recipe", recipe.kind.value
    yield "split", recipe.division.value
    yield "shares", {stage.value: recipe.shares[stage] for stage in recipe.stages}
    yield "score", "private" if Stage.SCORE in recipe.shares else "none"
    if Stage.VOTE in recipe.shares:
        yield from (("drafts", recipe.drafts), ("rounds", recipe.rounds))
    yield "sets", recipe.sets
    yield "draft-tokens", request.tokens
    yield "shots-per-label", request.shots
    if request.written:
        yield from _of_tokens(request.written)
