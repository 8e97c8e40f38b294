"""The Python face: what it writes is what the command line would, and what it refuses costs nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mechanisms import programs
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.demos.signature import Signature, check_signature
from mechanisms.errors import BudgetRefused, ModelUnavailable, UsageError
from mechanisms.records import Dataset
from mechanisms.runs.events import VotesReleased
from mechanisms.runs.request import DECLARED_COUNTS, DECLARED_SIZES
from mechanisms.runs.run import synthesize
from mechanisms.runs.verification import verify
from tests.recipes.test_drafts import Speaking
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

pytestmark = pytest.mark.slow

CHEAP = {"recipe": "tokens", "epsilon": 2.0, "delta": 1e-5, "tokens": 3, "subsets": 4, "model": ToyModel()}


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    path = tmp_path / "notes.csv"
    path.write_text("text,label\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(60)), encoding="utf-8")
    return programs.read_csv(path, ["a", "b"])


def spent() -> float:
    return PrivacyLedger().snapshot("notes", "record").epsilon


@pytest.mark.parametrize(("sizes", "stated"), [("counted", DECLARED_COUNTS), ({"a": 40, "b": 50}, DECLARED_SIZES)])
def test_what_is_written_is_charged_signed_and_checks(data, tmp_path, sizes, stated):
    out = tmp_path / "demos.json"
    demos = programs.write(data, out, sizes=sizes, **CHEAP)
    assert spent() == pytest.approx(demos.certificate.claim.epsilon)
    assert stated in demos.certificate.public_inputs
    assert check_signature(out.read_text(encoding="utf-8")) is Signature.VALID
    assert verify(programs.load(out)).problems == ()
    assert set(programs.classify(programs.load(out), ["one", "two"], CHEAP["model"])) <= {"a", "b"}


def test_what_is_refused_is_not_charged_and_leaves_no_file(data, tmp_path):
    out = tmp_path / "demos.json"
    for sizes, place in (("all", out), ({"a": 3}, out), ("counted", tmp_path)):
        with pytest.raises(UsageError):
            programs.write(data, place, sizes=sizes, **CHEAP)
    PrivacyLedger().set_cap("notes", "record", Cap(1.0, 1e-4))
    with pytest.raises(BudgetRefused):
        programs.write(data, out, sizes="counted", **CHEAP)
    assert spent() == 0
    assert not out.exists()


def test_a_set_that_can_no_longer_be_written_is_not_lost(data, tmp_path, monkeypatch):
    folder, run = tmp_path / "folder", programs._run
    folder.mkdir()

    def removing(*arguments):
        made = run(*arguments)
        shutil.rmtree(folder)
        return made

    monkeypatch.setattr(programs, "_run", removing)
    with pytest.raises(UsageError, match="Cannot write") as lost:
        programs.write(data, folder / "demos.json", sizes="counted", **CHEAP)
    assert spent() > 0
    (tmp_path / "demos.json").write_text(lost.value.text, encoding="utf-8")
    assert check_signature(lost.value.text) is Signature.VALID
    assert verify(programs.load(tmp_path / "demos.json")).problems == ()


@pytest.fixture
def staged(monkeypatch) -> dict[str, object]:
    """A run in stages, on toys."""
    monkeypatch.setattr(programs, "load_embedder", ToyEmbedder)
    left_out = {name: value for name, value in CHEAP.items() if name != "recipe"}
    return {**left_out, "model": Speaking(sharpness=1.0, busy=10**6), "sizes": {"a": 900, "b": 1500}}


def test_rows_with_labels_are_written_in_stages_where_nothing_else_is_asked_for(data, tmp_path, staged):
    demos = programs.write(data, tmp_path / "demos.json", **staged)
    assert [stage.name for stage in demos.stages] == ["write", "vote", "calibrate", "choose", "score"]
    assert spent() == pytest.approx(demos.certificate.claim.epsilon)
    assert verify(programs.load(tmp_path / "demos.json")).problems == ()
    with pytest.raises(UsageError, match="no recipe 'votes'"):
        programs.write(data, tmp_path / "more.json", **staged, recipe="votes")


def test_what_a_run_in_stages_had_released_when_it_failed_is_in_the_file(data, tmp_path, staged, monkeypatch):
    def failing(*arguments, **named):
        for event in synthesize(*arguments, **named):
            yield event
            if isinstance(event, VotesReleased):
                raise ModelUnavailable("The model is gone.")

    monkeypatch.setattr(programs, "synthesize", failing)
    with pytest.raises(ModelUnavailable):
        programs.write(data, tmp_path / "demos.json", **staged)
    assert programs.load(tmp_path / "demos.json").demonstrations
    assert check_signature((tmp_path / "demos.json").read_text(encoding="utf-8")) is Signature.VALID


def test_one_text_in_place_of_a_list_is_refused(data, tmp_path):
    with pytest.raises(UsageError, match="labels as a list"):
        programs.read_csv(tmp_path / "notes.csv", "ab")
    demos = programs.write(data, tmp_path / "demos.json", sizes="counted", **CHEAP)
    with pytest.raises(UsageError, match="texts as a list"):
        programs.classify(demos, "one", CHEAP["model"])


def test_texts_alone_are_of_the_one_kind_that_is_named(data, tmp_path):
    alone = programs.read_csv(tmp_path / "notes.csv", ["Note"], label=None)
    assert alone.counted_sizes() == {"Note": sum(data.counted_sizes().values())}
    with pytest.raises(UsageError, match="one name"):
        programs.read_csv(tmp_path / "notes.csv", ["a", "b"], label=None)


def test_a_file_that_was_used_under_another_name_is_warned_of(data, tmp_path):
    programs.write(data, tmp_path / "demos.json", sizes="counted", **CHEAP)
    again = programs.read_csv(tmp_path / "notes.csv", ["a", "b"], name="other")
    with pytest.warns(UserWarning, match="notes"):
        programs.write(again, tmp_path / "demos.json", sizes="counted", **CHEAP)
