"""Demonstrations that say text to their text: two fields under one budget, or answers that the model gives for free."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.data.record_schema import RecordSchema
from mechanisms.demos.demo_set import Answers, Outputs, loads
from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import answering
from mechanisms.inference import GenerationPrompt
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.runs.decoding import TextState
from mechanisms.runs.events import DemoCompleted, RunCompleted, TokenReleased
from mechanisms.runs.public_demonstrations import public_demonstrations
from mechanisms.runs.recipe import Division, Kind
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.runs.verification import verify
from mechanisms.runs.writing import Writing
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.steps.gaussian import GaussianMechanism
from tests.recipes import running
from tests.synthesis.neighbours import Coupled, clean_sums
from tests.toy_model import VOCABULARY, ToyModel, ToySession

TEMPLATE = PromptTemplate("Answer.", "Q", "Kind", "A")
BETWEEN = "\nA:"
BY_ROWS, BY_MODEL = Outputs(tokens=3, max_tokens=6), Outputs(Answers.MODEL, max_tokens=6)
PLAN = SamplingPlan(subsets=6, tokens=12, shots=2)
HOSTILE = ("\n\nKind: Asked\nQ: more\nA: evil", "A:", "\r\n\v\f\x1c\u2028", " ", "x" * 10_000, "\nA:\nA:")
BOUNDED = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def dataset(units: int = 30, output=lambda i: f"a{i}") -> Dataset:
    rows = (Record(f"asked {i % 3}", "Asked", None, output(i)) for i in range(units))
    return Dataset("asked", ("Asked",), tuple(rows))


def request(data: Dataset | None = None, **changes) -> SynthesisRequest:
    usual = SynthesisRequest(
        labels=("Asked",),
        template=TEMPLATE,
        plan=PLAN,
        mechanism=GaussianMechanism(20.0),
        target=PrivacyTarget(1.0, 1e-5),
        sizes={"Asked": 30},
        content=fingerprint(data or dataset()).content,
        candidates=8,
        max_record_tokens=8,
        outputs=BY_ROWS,
    )
    return replace(usual, **changes)


def written(model=None, data: Dataset | None = None, randomness=None, **changes) -> list:
    """What a run tells of its demonstrations, without anybody who pays for them."""
    data = data or dataset()
    writing = Writing(data, request(data, **changes), model or ToyModel(), randomness or SeededRandomness(1))
    return list(writing.events(lambda label, number: None))


def made(told: list) -> list:
    return [event.demonstration for event in told if isinstance(event, DemoCompleted)]


def drawn(told: list, number: int) -> list[TokenReleased]:
    return [event for event in told if isinstance(event, TokenReleased) and event.number == number]


def charged_to_text(steps: list[TokenReleased]) -> int:
    """Steps at which the text was decided, its end included: those before which no output had begun."""
    return next((i for i, each in enumerate(steps, 1) if BETWEEN[0] in each.text), len(steps) + 1)


class Parrot(ToyModel):
    """Every private row says its own record over again, and the public row anything."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        session._row = repeated
        return session


def repeated(row: list[int]) -> np.ndarray:
    said = bytes(row).decode()
    _, *records, cue = said.split("Kind: Asked\nQ:")
    logits = np.zeros(VOCABULARY)
    if records:
        # No text begins with a space alone.
        logits[ord(records[0].removeprefix(" ").replace("A: ", "A:")[len(cue)])] = 50.0
    return logits


def test_without_noise_both_fields_say_what_the_rows_say():
    data = Dataset("asked", ("Asked",), (Record("who did it", "Asked", None, "she did"),) * 30)
    plan = SamplingPlan(subsets=6, tokens=30)
    told = written(
        Parrot(), data, plan=plan, mechanism=mechanism_class("non-private")(), candidates=VOCABULARY,
        max_record_tokens=20, outputs=Outputs(max_tokens=20),
    )  # fmt: skip
    [demonstration] = made(told)
    assert (demonstration.text, demonstration.output) == ("who did it", "she did")
    assert len(drawn(told, 1)) == len("who did it") + len("she did") + 2  # and the two ends


@pytest.mark.slow
@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("name", mechanism_names())
def test_t_counts_both_fields_under_every_mechanism_and_scheme(name, scheme):
    plan = replace(PLAN, scheme=scheme)
    if mechanism_class(name)().closed(plan) is not None:
        pytest.skip("closed")
    check(written(plan=plan, mechanism=mechanism_class(name)()))


def check(told: list, outputs: Outputs = BY_ROWS, tokens: int = PLAN.tokens) -> None:
    """Everything that holds of every run."""
    assert len(made(told)) == PLAN.shots
    for number, each in enumerate(made(told), 1):
        steps = drawn(told, number)
        assert [step.step for step in steps] == list(range(1, len(steps) + 1))
        assert len(steps) <= tokens
        assert charged_to_text(steps) <= tokens - outputs.tokens + 1
        assert each.text
        assert each.output
        assert BETWEEN not in each.text + each.output
        assert steps[-1].stop or len(steps) == tokens


@BOUNDED
@given(
    st.integers(0, 2**20), st.integers(2, 20), st.integers(1, 19), st.integers(0, 20), st.sampled_from([0.1, 4.0, 300])
)
def test_a_text_leaves_its_output_what_is_kept_for_it_whatever_the_logits(seed, tokens, kept, least, sharpness):
    outputs = Outputs(tokens=min(kept, tokens - 1))
    changes = {
        "plan": replace(PLAN, tokens=tokens),
        "outputs": outputs,
        "min_tokens": min(least, tokens - outputs.tokens),
    }
    check(written(ToyModel(sharpness), randomness=SeededRandomness(seed), **changes), outputs, tokens)


class Silent(ToyModel):
    """Would end whatever it writes at once."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        session._row = lambda tokens: ToySession._row(session, tokens) + 100.0 * (np.arange(VOCABULARY) == 10)
        return session


@pytest.mark.parametrize("least", [0, 5])
def test_neither_field_is_empty_however_much_a_model_would_like_to_end(least):
    told = written(Silent(), min_tokens=least, mechanism=mechanism_class("non-private")())
    check(told)
    assert all(len(drawn(told, number)) == max(1, least) + 3 for number in (1, 2))  # its end, a letter, and its end


def test_what_stands_between_is_written_for_free_and_follows_from_released_tokens():
    form = TextState(ToyModel(), 0, tuple(BETWEEN.encode()), 3)
    form.accept(ord("a"))
    assert not form.forced
    form.accept(10)  # a drawn end: the first forced token stands in its place
    assert bytes(form.written) == b"a\n"
    assert form.forced
    form.take(), form.take()
    assert not form.forced
    assert 10 in form.barred(VOCABULARY)
    form.accept(ord("b"))
    assert 10 not in form.barred(VOCABULARY)
    form.accept(10)
    assert form.stopped
    assert (form.demonstration("k").text, form.demonstration("k").output) == ("a", "b")

    full = TextState(ToyModel(), 0, tuple(BETWEEN.encode()), 3)
    for token in b"abc":
        full.accept(token)
    assert bytes(full.written) == b"abc"  # its share is used up: all that stands between is forced
    assert full.forced


def test_nobody_joins_a_sample_for_a_token_that_is_forced():
    model = ToyModel()
    told = written(model, plan=SamplingPlan(Scheme.PER_TOKEN, subsets=6, tokens=9))
    assert len([room for _, _, room in model.opened if room == 0]) == len(drawn(told, 1))


@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_run_costs_what_as_many_tokens_of_a_label_task_cost(scheme):
    plan = replace(PLAN, scheme=scheme)
    plain = {"template": replace(TEMPLATE, output=None), "outputs": None}
    assert request(plan=plan).event == request(plan=plan, **plain).event
    spent, ledger = set(), PrivacyLedger()
    for name, changes in (("private", {}), ("plain", plain), ("model", {"outputs": BY_MODEL})):
        data = replace(dataset(), name=name)
        list(synthesize(data, request(plan=plan, **changes), ToyModel(), ledger, SeededRandomness(1)))
        spent.add(ledger.snapshot(name, "record").epsilon)
    assert len(spent) == 1
    assert min(spent) > 0


@pytest.mark.parametrize("scheme", list(Scheme))
@given(st.lists(st.text(st.characters(codec="ascii"), max_size=16), min_size=2, max_size=7))
@BOUNDED
def test_a_row_whose_text_others_share_moves_a_step_by_its_own_row_alone(scheme, outputs):
    """Rows differ in their outputs alone, and the last one is taken away: no other row may change its batch."""
    plan = SamplingPlan(scheme, subsets=50, tokens=6)
    moved = distances([Record("same", "a", None, f"{i}{each}") for i, each in enumerate(outputs)], plan)
    assert max(moved) <= 1 + 1e-6
    assert max(moved) > 0.05


@pytest.mark.parametrize("gone", range(4))
def test_in_disjoint_batches_any_of_the_rows_with_one_text_may_be_the_one_that_is_gone(gone):
    plan = SamplingPlan(Scheme.DISJOINT, subsets=4, per_subset=2, unit_rows=False, tokens=6)
    records = [Record("same", "a", None, each) for each in ("one", "two", "three", "four")]
    assert max(distances(records, plan, gone)) <= math.sqrt(2) + 1e-6


@pytest.mark.parametrize("gone", range(6))
def test_in_disjoint_batches_equal_rows_may_lie_anywhere_in_the_file(gone):
    """The last of them must not step into the place of the one that is gone, in front of rows between them."""
    plan = SamplingPlan(Scheme.DISJOINT, subsets=2, per_subset=3, unit_rows=False, tokens=4)
    texts = ("same", "between", "same", "another", "more", "same")
    assert max(distances([Record(each, "a", None, "one") for each in texts], plan, gone)) <= math.sqrt(2) + 1e-6


def distances(records: list[Record], plan: SamplingPlan, gone: int = -1) -> list[float]:
    left = list(records)
    del left[gone]
    one, other = (clean_sums(each, plan, ToyModel(8.0), {"a": 8}, outputs=BY_ROWS) for each in (records, left))
    return [float(np.linalg.norm(a - b)) for a, b in zip(one, other, strict=True)]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_output_stays_in_its_row_and_within_its_cap(hostile):
    model = ToyModel()
    prompt = GenerationPrompt(model, TEMPLATE, "Asked", 8, 1, BY_ROWS.shown)
    row = bytes(prompt.row(["asked"], [hostile])).decode()
    assert len(row) <= prompt.length
    assert row.count("\n") == 5  # before Q, before A, the blank line, before the Q of the cue: none is the output's
    honest = [Record(f"asked {i}", "a", None, f"a{i}") for i in range(4)]
    moved = distances([*honest, Record("asked", "a", None, hostile)], SamplingPlan(subsets=50, tokens=6))
    assert max(moved) <= 1 + 1e-6


def test_shapes_are_the_same_however_long_outputs_are():
    shapes = []
    for output in ("", "x" * 5000):
        model = ToyModel()
        written(model, dataset(output=lambda i, said=output: said), Coupled(), plan=PLAN, mechanism=recorded())
        shapes.append((model.opened, model.checked))
    assert shapes[0] == shapes[1]


def recorded():
    """Releases the likeliest public token: neighbours write the same text."""
    return mechanism_class("public")()


def test_a_datasets_content_depends_on_outputs_and_is_what_it_was_without_them():
    plain = Dataset("d", ("a",), (Record("one", "a"), Record("two", "a", "u")))
    assert list(plain.content()) == ["one", "a", "", "two", "a", "u"]
    assert plain.outputs is None
    contents = {fingerprint(dataset(2, output)).content for output in (lambda i: "x", lambda i: f"{i}")}
    contents.add(
        fingerprint(Dataset("asked", ("Asked",), tuple(Record(f"asked {i}", "Asked") for i in range(2)))).content
    )
    assert len(contents) == 3


def test_an_output_that_reads_like_a_text_tells_that_two_files_share_somebody():
    said = "a whole sentence that is somebody's"
    one = fingerprint(Dataset("d", ("a",), (Record("asked", "a", None, said),)))
    other = fingerprint(Dataset("e", ("a",), (Record(said, "a"),)))
    assert set(other.rows.tolist()) < set(one.rows.tolist())


def test_a_models_answers_are_its_own_and_no_row_shows_its_output():
    told = [
        written(data=data, randomness=Coupled(), outputs=BY_MODEL, plan=PLAN)
        for data in (dataset(), dataset(output=lambda i: f"other {i}"), dataset(output=lambda i: None))
    ]
    assert made(told[0]) == made(told[1]) == made(told[2])
    texts = [each.text for each in made(told[0])]
    answers = list(answering(ToyModel(), TEMPLATE, (), BY_MODEL.max_tokens).answers(texts))
    assert [each.output for each in made(told[0])] == answers
    plain = made(written(randomness=Coupled(), outputs=None, template=replace(TEMPLATE, output=None)))
    assert [each.text for each in plain] == texts


class Blank(ToyModel):
    """Answers nothing but spaces, once it is asked for answers."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        if bytes(rows[0]).endswith(BETWEEN.encode()):
            session._row = lambda tokens: 100.0 * (np.arange(VOCABULARY) == ord(" "))
        return session


def test_a_text_to_which_the_model_has_nothing_to_say_is_left_out():
    writing = Writing(dataset(), request(outputs=BY_MODEL), Blank(), SeededRandomness(1))
    told = list(writing.events(lambda label, number: None))
    assert [each.output for each in made(told)] == ["", ""]
    assert writing.demonstrations == ()


def completed(**changes):
    [*_, last] = synthesize(dataset(), request(**changes), ToyModel(), PrivacyLedger(), SeededRandomness(1))
    assert isinstance(last, RunCompleted)
    return last.demo_set


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [BY_ROWS, BY_MODEL])
def test_the_certificate_states_who_wrote_outputs_and_is_checked_for_it(outputs):
    made_set = completed(outputs=outputs)
    stated = loads(made_set.dumps())
    assert stated == made_set
    document = stated.to_json()
    assert document["task"]["template"] == {"text": "Q", "label": "Kind", "output": "A"}
    assert document["privacy"]["parameters"]["outputs"] == outputs.parameters()
    assert all(each["output"] for each in document["demonstrations"])
    assert verify(stated).problems == ()

    for change, problem in (
        (lambda edited: edited["privacy"]["parameters"].pop("outputs"), "parameters/"),
        (lambda edited: edited["privacy"]["parameters"].pop("free_tokens"), "free_tokens: is missing"),
        (
            lambda edited: edited["privacy"]["parameters"]["outputs"].update(max_tokens=257),
            "privacy/parameters/outputs",
        ),
        (lambda edited: edited["privacy"]["parameters"].update(tokens=3), "parameters"),
        (lambda edited: edited["task"]["template"].pop("output"), "do not fit task/template"),
        (lambda edited: edited["demonstrations"][0].pop("output"), "do not fit task/template"),
    ):
        edited = json.loads(made_set.dumps())
        change(edited)
        assert any(problem in each for each in problems(edited)), problem


def problems(document) -> tuple[str, ...]:
    try:
        return verify(loads(json.dumps(document))).problems
    except UsageError as error:
        return (str(error),)


def test_a_set_without_outputs_does_not_speak_of_them():
    plain = completed(template=replace(TEMPLATE, output=None), outputs=None)
    assert "output" not in plain.dumps()


def test_public_demonstrations_of_such_a_set_have_outputs_too():
    for outputs in (BY_ROWS, BY_MODEL):
        found = public_demonstrations(completed(outputs=outputs), ToyModel())
        assert len(found) == 2
        assert all(each.output for each in found)


def test_what_does_not_go_with_outputs_is_refused():
    schema = RecordSchema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    for changes, message in (
        ({"outputs": None}, "both or neither"),
        ({"template": replace(TEMPLATE, output=None)}, "both or neither"),
        ({"schema": schema}, "one of its properties"),
        ({"outputs": Outputs(tokens=PLAN.tokens)}, "none is left for the text"),
        ({"min_tokens": PLAN.tokens - 2}, "min tokens"),
    ):
        with pytest.raises(UsageError, match=message):
            request(**changes)
    for wrong in ({"tokens": 0}, {"max_tokens": 0}, {"max_tokens": 257}):
        with pytest.raises(UsageError, match="cap"):
            Outputs(**wrong)
    for name in (" ", "Q", "Kind"):
        with pytest.raises(UsageError, match="name of its own"):
            replace(TEMPLATE, output=name)
    voted = running.recipe(Kind.VOTE, Division.ROLES)
    with pytest.raises(UsageError, match="token by token"):
        replace(running.planned(running.data(running.rows(8)), voted), template=PromptTemplate("i", "T", "L", "A"))


def test_whether_there_is_a_run_does_not_hang_on_one_row_with_an_output():
    """One row that is gone may be the only one that has an output: neighbours differ in their sums, not in that."""
    data = dataset(output=lambda i: None)
    assert any(isinstance(each, RunCompleted) for each in synthesize(data, request(data), ToyModel(), PrivacyLedger()))
