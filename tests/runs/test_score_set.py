"""The private accuracy of a set: who is asked, what is released, and that nobody is asked before it was charged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mechanisms.accounting import Cap, Claim, PrivacyLedger, fingerprint
from mechanisms.accounting.ledger import LedgerRun
from mechanisms.data.sizes import LABEL_WEIGHTS, WHETHER_VERBATIM
from mechanisms.errors import UsageError
from mechanisms.files import data_folder
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Composed, Pure
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from mechanisms.runs.run import TEST_SEED
from mechanisms.runs.score import ScoredSet, ScoreRequest, score_set
from mechanisms.runs.spec import RunSpec
from mechanisms.tallies import Score
from tests.runs.running import Speaking
from tests.toy_embedder import ToyEmbedder

pytestmark = pytest.mark.slow

LABELS = ("red", "blue")
DEMONSTRATIONS = (Demonstration("a rose", "red"), Demonstration("the sky", "blue"))
SET = ScoredSet(DEMONSTRATIONS, LABELS, PromptTemplate("Sort.", "Note", "Topic"), draft_tokens=12)


class HonestSession:
    """A label is likely where it stands in the query."""

    def __init__(self, rows) -> None:
        self.rows = rows

    def score(self, continuation):
        label = bytes(continuation).decode().strip()
        return np.array([0.0 if label in bytes(row).decode() else -9.0 for row in self.rows])


class Honest(Speaking):
    """Finds the label in the text; remembers every text that it was asked to label."""

    def __init__(self) -> None:
        super().__init__(sharpness=1.0)
        self.texts: list[str] = []

    def open(self, prefix, rows, length, room):
        if not bytes(prefix).decode().startswith("Sort."):
            return super().open(prefix, rows, length, room)
        shown = [bytes(row).decode() for row in rows]
        self.texts += [text.removeprefix("Note: ").split("\n")[0] for text in shown]
        return HonestSession(rows)


class Watched(ToyEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[list[str]] = []

    def embed(self, texts):
        self.texts.append(list(texts))
        return super().embed(texts)


def rows(count: int, wrong: int = 0) -> list[Record]:
    """Texts that name their label, but for the first `wrong`, which name the other."""
    return [Record(f"{LABELS[(i + (i < wrong)) % 2]} secret {i}", LABELS[i % 2]) for i in range(count)]


def data(records, user_column=None, name="d") -> Dataset:
    return Dataset(name, LABELS, tuple(records), user_column)


def request(epsilon=50.0, max_unit_records=3, **rest) -> ScoreRequest:
    return ScoreRequest(RunSpec(epsilon=epsilon, max_unit_records=max_unit_records), **rest)


def ledger(cap: float = 1000.0, unit: str = "record", folder=None) -> PrivacyLedger:
    made = PrivacyLedger(folder)
    made.set_cap("d", unit, Cap(cap, 0.01))
    return made


def scored(dataset, wanted, model=None, embedder=None, made=None, what=SET):
    return score_set(dataset, what, wanted, model or Honest(), made or ledger(), embedder, SeededRandomness(1))


def test_the_figures_are_those_of_the_rows():
    found = scored(data(rows(400, wrong=100)), request(share=1.0))
    arms = found.score.arms
    assert list(arms) == ["zero-shot", "public-only", "demonstrations"]
    for arm in arms.values():
        assert arm.accuracy == pytest.approx(0.75, abs=0.01)
        assert arm.interval[0] < 0.75 < arm.interval[1]
    assert [*found.score.gains] == ["zero-shot", "public-only"]
    assert all(abs(gain.accuracy) < 0.01 for gain in found.score.gains.values())


def test_a_set_without_demonstrations_is_zero_shot_with_its_own_correction():
    empty = ScoredSet((), LABELS, SET.template, prior={"red": 100.0, "blue": 0.0}, model_sha256=Honest.sha256)
    found = scored(data(rows(200)), request(share=1.0), what=empty)
    assert list(found.score.arms) == ["zero-shot"]
    assert found.score.arms["zero-shot"].accuracy == pytest.approx(0.5, abs=0.02)  # everything is called red
    assert found.score.gains == {}


def test_a_measured_correction_is_used_where_it_was_measured():
    prior = {"red": 100.0, "blue": 0.0}
    biased = ScoredSet(DEMONSTRATIONS, LABELS, SET.template, draft_tokens=12, prior=prior, model_sha256=Honest.sha256)
    arms = scored(data(rows(200)), request(share=1.0), what=biased).score.arms
    assert arms["demonstrations"].accuracy == pytest.approx(0.5, abs=0.02)
    assert arms["zero-shot"].accuracy == pytest.approx(1, abs=0.02)


def test_a_correction_that_was_measured_with_another_model_is_not_used():
    prior = {"red": 100.0, "blue": 0.0}
    for sha256 in ("1" * 64, None):
        others = ScoredSet(
            DEMONSTRATIONS, LABELS, SET.template, draft_tokens=12, prior=prior, zero_shot=prior, model_sha256=sha256
        )
        arms = scored(data(rows(200)), request(share=1.0), what=others).score.arms
        assert [arms[each].accuracy for each in ("demonstrations", "zero-shot")] == pytest.approx([1, 1], abs=0.02)


@pytest.mark.parametrize("prototypes", [None, 1.0])
def test_nothing_is_read_before_it_was_charged(monkeypatch, prototypes):
    model, embedder, dataset = Honest(), Watched(), data(rows(40))
    seen: list[str] = []

    def charge(self, name, events):
        assert not any("secret" in text for text in model.texts)
        assert embedder.texts == []
        seen.append(name)

    monkeypatch.setattr(LedgerRun, "charge", charge)
    scored(dataset, request(share=0.5, prototypes_epsilon=prototypes), model, embedder)
    assert seen == ["score", *(["prototypes"] if prototypes else [])]
    assert any("secret" in text for text in model.texts)


def test_a_prompt_that_does_not_fit_is_found_before_anybody_has_paid():
    class Small(Honest):
        def check(self, prefix, rows, length, room):
            raise UsageError("too long")

        def open(self, prefix, rows, length, room):
            self.check(prefix, rows, length, room)

    made = ledger()
    with pytest.raises(UsageError, match="too long"):
        scored(data(rows(40)), request(share=1.0), Small(), made=made)
    assert made.history("d") == []


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_a_share_that_means_nothing_is_refused(share):
    with pytest.raises(UsageError, match="share"):
        request(share=share)


def test_prototypes_need_somebody_who_does_not_score():
    with pytest.raises(UsageError, match="below 1"):
        request(share=1.0, prototypes_epsilon=1.0)
    with pytest.raises(UsageError, match="embedding"):
        scored(data(rows(4)), request(share=0.5, prototypes_epsilon=1.0))


def test_a_user_is_one_contribution_of_at_most_so_many_rows(monkeypatch):
    cast: list[np.ndarray] = []
    release = Score.release

    def kept(self, contributions, randomness):
        cast.append(contributions)
        return release(self, contributions, randomness)

    monkeypatch.setattr(Score, "release", kept)
    loud = [Record(f"red secret {i}", LABELS[i % 2], "loud") for i in range(50)]
    quiet = [Record(f"blue secret {i}", "blue", f"user {i}") for i in range(8)]
    wanted, made = request(share=1.0, max_unit_records=4), ledger(unit="user:who")
    model = Honest()
    scored(data([*quiet, *loud], "who"), wanted, model, made=made)
    scored(data(quiet, "who"), wanted, made=made)
    scored(data([*quiet, *reversed(loud)], "who"), wanted, made=made)
    assert len({text for text in model.texts if "red secret" in text}) == 4
    many, few, turned = (each.sum(axis=0) for each in cast)
    assert [len(each) for each in cast] == [9, 8, 9]
    assert np.abs(many - few).sum() <= 1
    assert (many == turned).all()  # which rows of a user are taken does not follow from their place in the file


def test_the_run_is_in_the_ledger_under_its_name():
    made = ledger()
    found = scored(data(rows(30)), request(epsilon=2.0, share=1.0), made=made)
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
    assert scored(data(rows(30)), request(epsilon=2.0), what=replace(SET, reason=reason)).reason == reason


def _run(per: str, *lists: str) -> Composed:
    return Composed(per, tuple((name, (Pure(0.1),)) for name in lists))


def _after(folder, per: str, *lists: str) -> PrivacyLedger:
    """A ledger of its own in which one run was on the data set."""
    folder.mkdir()
    made, event = ledger(folder=folder), _run(per, *lists)
    run = made.begin(fingerprint(data(rows(30))), "recipe vote", event, Claim(0.1, 1e-5, "", 0.1, ""))
    for name in lists:
        run.charge(name, (Pure(0.1),))
    run.finish()
    return made


ROLES = ("role", "openings", "vote red", "vote blue")
SPARED = ScoredSet(DEMONSTRATIONS, LABELS, SET.template, draft_tokens=12, spare=0.3, event=_run(*ROLES))


@pytest.mark.parametrize("counted", [False, True])
def test_rows_are_called_untouched_once(tmp_path, counted):
    made, what = _after(tmp_path / "one", *ROLES), SPARED
    if counted:  # the certificate has a measurement of sizes before each list, which the ledger knows as its own run
        what = replace(SPARED, event=Composed("role", tuple((name, (Pure(0.5), *own)) for name, own in _run(*ROLES))))
    found = [scored(data(rows(30)), request(epsilon=1.0, share=0.3), made=made, what=what) for _ in range(2)]
    assert [each.score.held_out for each in found] == [True, False]


def test_rows_are_called_untouched_only_where_roles_kept_them_apart(tmp_path):
    dataset, wanted = data(rows(30)), request(epsilon=1.0, share=0.3)
    for i, lists in enumerate((("label", *LABELS), ("role", "vote red", "score"))):
        own = replace(SPARED, event=_run(*lists))
        assert not scored(dataset, wanted, made=_after(tmp_path / str(i), *lists), what=own).score.held_out
    assert not scored(dataset, wanted, what=SPARED).score.held_out  # the ledger knows nothing of how it was made
    made = _after(tmp_path / "wide", *ROLES)
    assert not scored(dataset, request(epsilon=1.0, share=0.4), made=made, what=SPARED).score.held_out
    made = _after(tmp_path / "unknown", *ROLES)
    assert not scored(dataset, wanted, made=made, what=SET).score.held_out
    made = _after(tmp_path / "other", "role", "vote red", "vote blue")  # another run than the set's own
    assert not scored(dataset, wanted, made=made, what=SPARED).score.held_out


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
    assert not scored(data(records), request(epsilon=1.0, share=0.3), made=made, what=SPARED).score.held_out


def test_a_set_made_of_rows_is_marked_unless_this_installation_signed_it(monkeypatch):
    dataset = data(rows(30))
    own = replace(SET, demonstrations=(Demonstration("Red: secret 0!", "red"), Demonstration("the sky", "blue")))
    monkeypatch.setattr(SeededRandomness, "private", True)
    assert "word for word" in scored(dataset, request(epsilon=1.0), what=own).reason
    found = scored(dataset, request(epsilon=1.0))
    assert (found.reason, WHETHER_VERBATIM in found.public_inputs) == (None, True)
    assert LABEL_WEIGHTS not in found.public_inputs
    found = scored(dataset, request(epsilon=1.0), what=replace(own, signed_here=True))
    assert (found.reason, WHETHER_VERBATIM in found.public_inputs) == (None, False)
    found = scored(dataset, request(epsilon=1.0), what=replace(SET, sizes={"red": 20, "blue": 10}))
    assert LABEL_WEIGHTS in found.public_inputs


def test_a_set_for_other_labels_is_refused():
    with pytest.raises(UsageError, match="labels"):
        scored(Dataset("d", ("red", "green"), ()), request())
