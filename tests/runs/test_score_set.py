"""The private accuracy of a set: who is asked, what is released, and that nobody is asked before it was charged."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.accounting import Claim, PrivacyLedger, fingerprint
from mechanisms.demos.demo_set import DIRECTIONS, PROTOTYPES
from mechanisms.demos.directions import Directions
from mechanisms.errors import UsageError
from mechanisms.files import data_folder
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Composed, Pure
from mechanisms.public_inputs import LABEL_WEIGHTS, WHETHER_VERBATIM
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from mechanisms.runs.run import TEST_SEED
from mechanisms.runs.score import ScoredSet, score_set
from mechanisms.runs.spec import RunSpec
from mechanisms.tallies import ScoreTally
from tests.runs.running import CAP, LABELS, Embedding, Log, Reading, data, ledger, rows

pytestmark = pytest.mark.slow

DEMONSTRATIONS = (Demonstration("a rose", "red"), Demonstration("the sky", "blue"))
SET = ScoredSet(DEMONSTRATIONS, LABELS, PromptTemplate("Sort.", "Note", "Topic"), draft_tokens=12)


def scored(dataset, what=SET, log=None, account=None, share=1.0, prototypes=None, embedder=None, **settings):
    spec = RunSpec(**{"epsilon": 50.0, "max_unit_records": 3} | settings)
    account = account or ledger(dataset.by_user)
    return score_set(dataset, what, spec, Reading(log), account, share, prototypes, embedder, SeededRandomness(1))


def test_the_figures_are_those_of_the_rows():
    found = scored(data(rows(400, wrong=100)))
    arms = found.score.arms
    assert list(arms) == ["zero-shot", "public-only", "demonstrations"]
    for arm in arms.values():
        assert arm.accuracy == pytest.approx(0.75, abs=0.01)
        assert arm.interval[0] < 0.75 < arm.interval[1]
    assert [*found.score.gains] == ["zero-shot", "public-only"]
    assert all(abs(gain.accuracy) < 0.01 for gain in found.score.gains.values())


def test_a_set_without_demonstrations_is_zero_shot_with_its_own_correction():
    empty = ScoredSet((), LABELS, SET.template, prior={"red": 100.0, "blue": 0.0}, model_sha256=Reading.sha256)
    found = scored(data(rows(200)), empty)
    assert list(found.score.arms) == ["zero-shot"]
    assert found.score.arms["zero-shot"].accuracy == pytest.approx(0.5, abs=0.02)  # everything is called red
    assert found.score.gains == {}


def test_a_measured_correction_is_used_where_it_was_measured():
    prior = {"red": 100.0, "blue": 0.0}
    biased = replace(SET, prior=prior, model_sha256=Reading.sha256)
    arms = scored(data(rows(200)), biased).score.arms
    assert arms["demonstrations"].accuracy == pytest.approx(0.5, abs=0.02)
    assert arms["zero-shot"].accuracy == pytest.approx(1, abs=0.02)


def test_a_correction_that_was_measured_with_another_model_is_not_used():
    prior = {"red": 100.0, "blue": 0.0}
    for sha256 in ("1" * 64, None):
        others = replace(SET, prior=prior, zero_shot=prior, model_sha256=sha256)
        arms = scored(data(rows(200)), others).score.arms
        assert [arms[each].accuracy for each in ("demonstrations", "zero-shot")] == pytest.approx([1, 1], abs=0.02)


class Counting(Embedding):
    """Counts how often each text is embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded = Counter[str]()

    def embed(self, texts):
        self.embedded.update(texts)
        return super().embed(texts)


def test_a_row_is_embedded_once_for_directions_and_prototypes():
    embedder, records = Counting(), rows(40)
    directions = Directions.of(embedder, LABELS, embedder.embed(LABELS).astype(float))
    found = scored(data(records), replace(SET, directions=directions), share=0.5, prototypes=50.0, embedder=embedder)
    assert {DIRECTIONS, PROTOTYPES} <= {*found.score.arms}
    assert found.score.arms[DIRECTIONS].accuracy == pytest.approx(1, abs=0.3)  # every row names its label
    assert {embedder.embedded[each.text] for each in records} == {1}


@pytest.mark.parametrize("prototypes", [None, 1.0])
def test_nothing_is_read_before_it_was_charged(monkeypatch, prototypes):
    log = Log()
    log.watch(monkeypatch)
    scored(data(rows(40)), log=log, share=0.5, prototypes=prototypes, embedder=Embedding(log))
    lists = ["score", *(["prototypes"] if prototypes else [])]
    assert [name for _, name, _ in log[: len(lists)]] == lists
    assert {kind for kind, *_ in log[len(lists) :]} == {"read"}


def test_a_prompt_that_does_not_fit_is_found_before_anybody_has_paid(monkeypatch):
    def small(*_):
        raise UsageError("too long")

    monkeypatch.setattr(Reading, "open", small)
    account = ledger()
    with pytest.raises(UsageError, match="too long"):
        scored(data(rows(40)), account=account)
    assert account.history("d") == []


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_a_share_that_means_nothing_is_refused(share):
    with pytest.raises(UsageError, match="share"):
        scored(data(rows(4)), share=share)


def test_prototypes_need_somebody_who_does_not_score():
    with pytest.raises(UsageError, match="below 1"):
        scored(data(rows(4)), prototypes=1.0)
    with pytest.raises(UsageError, match="embedding"):
        scored(data(rows(4)), share=0.5, prototypes=1.0)


def test_a_user_is_one_contribution_of_one_row(monkeypatch):
    cast: list[np.ndarray] = []
    release = ScoreTally.release

    def kept(self, contributions, randomness):
        cast.append(contributions)
        return release(self, contributions, randomness)

    monkeypatch.setattr(ScoreTally, "release", kept)
    loud = [Record(f"red secret {100 + i}", LABELS[i % 2], "loud") for i in range(50)]
    quiet = [Record(f"blue secret {i}", "blue", f"user {i}") for i in range(8)]
    log = Log()
    scored(data([*quiet, *loud], True), log=log)
    scored(data(quiet, True))
    scored(data([*quiet, *reversed(loud)], True))
    read = set().union(*(numbers for _, numbers in log))
    assert len([number for number in read if number >= 100]) == 1
    many, few, turned = (each.sum(axis=0) for each in cast)
    assert [len(each) for each in cast] == [9, 8, 9]
    assert np.abs(many - few).sum() <= 1
    assert (many == turned).all()  # which rows of a user are taken does not follow from their place in the file


def test_the_run_is_in_the_ledger_under_its_name():
    made = ledger()
    found = scored(data(rows(30)), account=made, epsilon=2.0)
    assert found.event == Composed("role", (("score", (Pure(2.0),)),))
    assert found.claim.epsilon == pytest.approx(2.0)
    [run] = made.history("d")
    assert (run["mechanism"], run["status"]) == ("score with a test seed", "finished")
    assert made.snapshot("d", "record").epsilon == pytest.approx(2.0)
    assert found.reason == TEST_SEED


@pytest.mark.parametrize("reason", [None, "there is no noise"])
def test_what_follows_from_a_set_that_is_not_private_is_not_private(reason, monkeypatch):
    """A row can turn which labels such a set makes likely, and with them every scorer's answer."""
    monkeypatch.setattr(SeededRandomness, "private", True)
    assert scored(data(rows(30)), replace(SET, reason=reason), share=0.1).reason == reason


def _run(per: str, *lists: str) -> Composed:
    return Composed(per, tuple((name, (Pure(0.1),)) for name in lists))


def _after(folder, per: str, *lists: str) -> PrivacyLedger:
    """A ledger of its own in which one run was on the data set."""
    folder.mkdir()
    made, event = PrivacyLedger(folder), _run(per, *lists)
    made.set_cap("d", "record", CAP)
    run = made.begin(fingerprint(data(rows(30))), "recipe vote", event, Claim(0.1, 1e-5, "", 0.1, ""))
    for name in lists:
        run.charge(name, (Pure(0.1),))
    run.finish()
    return made


ROLES = ("role", "openings", "vote red", "vote blue")
SPARED = replace(SET, spare=0.3, event=_run(*ROLES))


@pytest.mark.parametrize("counted", [False, True])
def test_rows_are_called_untouched_once(tmp_path, counted):
    made, what = _after(tmp_path / "one", *ROLES), SPARED
    if counted:  # the certificate has a measurement of sizes before each list, which the ledger knows as its own run
        what = replace(SPARED, event=Composed("role", tuple((name, (Pure(0.5), *own)) for name, own in _run(*ROLES))))
    found = [scored(data(rows(30)), what, account=made, share=0.3) for _ in range(2)]
    assert [each.score.held_out for each in found] == [True, False]


def test_rows_are_called_untouched_only_where_roles_kept_them_apart(tmp_path):

    def held_out(what=SPARED, account=None, share=0.3) -> bool:
        return scored(data(rows(30)), what, account=account, share=share).score.held_out

    for i, lists in enumerate((("label", *LABELS), ("role", "vote red", "score"))):
        own = replace(SPARED, event=_run(*lists))
        assert not held_out(own, _after(tmp_path / str(i), *lists))
    assert not held_out()  # the ledger knows nothing of how it was made
    assert not held_out(account=_after(tmp_path / "wide", *ROLES), share=0.4)
    assert not held_out(SET, _after(tmp_path / "unknown", *ROLES))
    assert not held_out(account=_after(tmp_path / "other", "role", "vote red", "vote blue"))  # not the set's own run


@pytest.mark.parametrize("edit", ["full stop", "joined columns", "another key"])
def test_rows_of_an_edited_file_are_not_called_untouched(edit, tmp_path, monkeypatch):
    """Roles follow from the texts and the key: of an edited file nobody knows who had which."""
    made = _after(tmp_path / "one", *ROLES)
    records = rows(30)
    if edit == "full stop":
        records = [replace(each, text=f"{each.text}.") for each in records]
    elif edit == "joined columns":
        records = [replace(each, text=f"{each.text}\nand more of it") for each in records]
    else:
        (data_folder() / "key").unlink()
    assert not scored(data(records), SPARED, account=made, share=0.3).score.held_out


def test_a_set_made_of_rows_is_marked_unless_this_installation_signed_it(monkeypatch):
    dataset = data(rows(30))
    own = replace(SET, demonstrations=(Demonstration("The red: secret 0!", "red"), Demonstration("the sky", "blue")))
    monkeypatch.setattr(SeededRandomness, "private", True)
    assert "is a text of the file" in scored(dataset, own).reason
    found = scored(dataset)
    assert (found.reason, WHETHER_VERBATIM in found.public_inputs) == (None, True)
    assert LABEL_WEIGHTS not in found.public_inputs
    found = scored(dataset, replace(own, signed_here=True))
    assert (found.reason, WHETHER_VERBATIM in found.public_inputs) == (None, False)
    found = scored(dataset, replace(SET, sizes={"red": 20, "blue": 10}))
    assert LABEL_WEIGHTS in found.public_inputs


def test_a_set_for_other_labels_is_refused():
    with pytest.raises(UsageError, match="labels"):
        scored(Dataset("d", ("red", "green"), ()))
