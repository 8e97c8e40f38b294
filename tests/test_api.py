"""The Python face: what it writes is what the command line would, and what it refuses costs nothing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from mechanisms import api
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.data.columns import MOST_LABELS
from mechanisms.data.table import Reading
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.signature import Signature, check_signature
from mechanisms.errors import AccountingError, BudgetRefused, ModelUnavailable, UsageError
from mechanisms.inference import LanguageModel
from mechanisms.public_inputs import DECLARED_COUNTS, DECLARED_SIZES
from mechanisms.records import Dataset, Record
from mechanisms.rounding import rounded_up
from mechanisms.runs.run import run
from mechanisms.runs.verification import verify
from tests.runs.running import Speaking
from tests.toy_embedder import ToyEmbedder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("any_text_passes")]

CHEAP = {"recipe": "tokens", "epsilon": 2.0, "delta": 1e-5, "tokens": 3, "subsets": 4, "shots": 1}
MODEL = Speaking(sharpness=1.0, busy=10**6)


def write(data: Dataset, out: Path, model: LanguageModel = MODEL, journal: Path | None = None, **asked: Any) -> DemoSet:
    """Plan and run."""
    return api.write(api.plan(data, **CHEAP | asked), data, out, model, journal=journal)


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    path = tmp_path / "notes.csv"
    path.write_text("text,label\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(60)), encoding="utf-8")
    return api.load(path, ["a", "b"])


def spent() -> float:
    return PrivacyLedger().snapshot("notes", "record").epsilon


@pytest.mark.parametrize(("sizes", "stated"), [("counted", DECLARED_COUNTS), ({"a": 40, "b": 50}, DECLARED_SIZES)])
def test_what_is_written_is_charged_signed_and_checks(data, tmp_path, sizes, stated):
    out = tmp_path / "demos.json"
    demos = write(data, out, sizes=sizes)
    assert spent() == pytest.approx(demos.certificate.claim.epsilon)
    assert stated in demos.certificate.public_inputs
    assert check_signature(out.read_text(encoding="utf-8")) is Signature.VALID
    assert verify(api.read(out)).problems == ()
    assert set(api.classify(api.read(out), ["one", "two"], MODEL)) <= {"a", "b"}


def test_what_is_refused_is_not_charged_and_leaves_no_file(data, tmp_path):
    out = tmp_path / "demos.json"
    for sizes, place in (("all", out), ({"a": 3}, out), ("counted", tmp_path)):
        with pytest.raises(UsageError):
            write(data, place, sizes=sizes)
    PrivacyLedger().set_cap("notes", "record", Cap(1.0, 1e-4))
    with pytest.raises(BudgetRefused):
        write(data, out, sizes="counted")
    assert spent() == 0
    assert not out.exists()


def test_more_labels_than_a_certificate_holds_are_refused_before_anything_is_paid():
    labels = tuple(f"label {i}" for i in range(MOST_LABELS + 1))
    most = Dataset("most", labels[:-1], [Record("a text", each) for each in labels[:-1]])
    api.plan(most, sizes="counted", **CHEAP)
    more = Dataset("more", labels, [*most.records, Record("a text", labels[-1])])
    with pytest.raises(UsageError, match=f"At most {MOST_LABELS} labels"):
        api.plan(more, sizes="counted", **CHEAP)


def test_a_set_that_can_no_longer_be_written_is_not_lost(data, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()

    def removing(*arguments, **named):
        yield from run(*arguments, **named)
        shutil.rmtree(folder)

    monkeypatch.setattr("mechanisms.runs.driver.run", removing)
    with pytest.raises(UsageError, match="Cannot write") as lost:
        write(data, folder / "demos.json", sizes="counted")
    assert spent() > 0
    (tmp_path / "demos.json").write_text(lost.value.text, encoding="utf-8")
    assert check_signature(lost.value.text) is Signature.VALID
    assert verify(api.read(tmp_path / "demos.json")).problems == ()


def test_a_run_that_was_cut_off_goes_on_and_is_charged_once(data, tmp_path):
    class Breaking(Speaking):
        def open(self, *arguments: Any) -> Any:
            if len(self.opened) == 3:  # the second group of demonstrations
                raise ModelUnavailable("The model is gone.")
            return super().open(*arguments)

        def rows_at_once(self, *sizes: int) -> int:
            return 1

    journal, out = tmp_path / "run.jsonl", tmp_path / "demos.json"
    with pytest.raises(ModelUnavailable):
        write(data, out, Breaking(sharpness=1.0), journal, sizes="counted")
    demos = api.resume(journal, data, out, MODEL)
    assert demos == api.read(out)
    assert {each.label for each in demos.demonstrations} == {"a", "b"}
    assert spent() == pytest.approx(demos.certificate.claim.epsilon)
    with pytest.raises(UsageError, match="ended"):
        api.resume(journal, data, out, MODEL)
    assert spent() == pytest.approx(demos.certificate.claim.epsilon)


def test_a_plan_says_what_its_run_then_costs_and_reads_nothing(data, tmp_path):
    planned = api.plan(data, sizes="counted", **CHEAP)
    assert spent() == 0
    assert f"epsilon {rounded_up(planned.claim().epsilon, 4)}" in planned.guarantee
    assert 0 < planned.claim().epsilon <= CHEAP["epsilon"]
    assert api.write(planned, data, tmp_path / "demos.json", MODEL).certificate.claim == planned.claim()


def test_measured_sizes_are_paid_for_when_they_are_measured_and_the_plan_has_the_rest(data, tmp_path):
    with pytest.raises(UsageError, match="measure the sizes first"):
        api.plan(data, count_epsilon=0.5, **CHEAP)
    assert spent() == 0
    measured = api.measure(data, 0.5, CHEAP["delta"])
    assert spent() == pytest.approx(0.5)
    planned = api.plan(data, measured=measured, **CHEAP)
    assert planned.sizes == measured.sizes != data.counted_sizes()
    assert CHEAP["epsilon"] - 0.5 >= planned.release_claim().epsilon > 0
    assert planned.claim().epsilon <= CHEAP["epsilon"]
    demos = api.write(planned, data, tmp_path / "demos.json", MODEL)
    assert verify(api.read(tmp_path / "demos.json")).problems == ()
    assert demos.certificate.parameters["measured"]["epsilon"] == 0.5
    assert spent() == pytest.approx(planned.claim().epsilon)


def test_a_set_is_evaluated_scored_and_exported(data, tmp_path):
    out = tmp_path / "demos.json"
    demos = write(data, out, sizes="counted")
    found = api.evaluate(demos, data, MODEL)
    assert [*found] == ["zero-shot", "public-only", "private demonstrations"]
    assert all(each.raw.total == len(data.records) for each in found.values())
    before = spent()
    scored = api.score(demos, data, epsilon=0.5, delta=1e-5, share=0.5, model=MODEL)
    assert scored.claim.epsilon == pytest.approx(0.5)
    assert before < spent() <= before + 0.5 + 1e-9
    [page] = api.export(out.read_text(encoding="utf-8"), "certificate", tmp_path / "certificate.html")
    assert "epsilon" in page.read_text(encoding="utf-8")
    forged = json.loads(out.read_text(encoding="utf-8"))
    stated = forged["privacy"]["accountants"]["claimed"]
    forged["privacy"]["epsilon"] = stated["epsilon"] = stated["epsilon"] / 2
    with pytest.raises(AccountingError, match="refused"):
        api.export(json.dumps(forged), "certificate", tmp_path / "forged.html")
    assert not (tmp_path / "forged.html").exists()
    with pytest.raises(UsageError, match="private rows never leave"):
        api.export(out.read_text(encoding="utf-8"), "promptfoo", tmp_path / "promptfoo", test=data)
    assert not (tmp_path / "promptfoo").exists()
    rows = tuple(Record(f"a text that took no part {i}", "ab"[i % 2]) for i in range(8))
    tests = Dataset("tests", ("a", "b"), rows)
    with pytest.raises(AccountingError, match="refused"):
        api.export(json.dumps(forged), "promptfoo", tmp_path / "promptfoo", test=tests)
    (in_the_way := tmp_path / "a file").touch()
    with pytest.raises(UsageError, match="Cannot make the folder"):
        api.export(out.read_text(encoding="utf-8"), "promptfoo", in_the_way, test=tests)
    assert not api.disclosures(tests)
    api.export(out.read_text(encoding="utf-8"), "promptfoo", tmp_path / "promptfoo", test=tests)
    assert api.disclosures(tests)


def test_answers_are_paid_for_by_a_reservation(data, monkeypatch):
    monkeypatch.setattr(api, "load_embedder", ToyEmbedder)
    session = api.ask(data, queries=5, epsilon=1.0, delta=1e-5, model=MODEL)
    assert spent() == pytest.approx(session.opened.claim.epsilon) == pytest.approx(1.0, rel=0.01)
    assert session.ask("text 7").answer in ("a", "b", "")
    assert spent() == pytest.approx(session.opened.claim.epsilon)


def test_one_text_in_place_of_a_list_is_refused(data, tmp_path):
    with pytest.raises(UsageError, match="labels as a list"):
        api.load(tmp_path / "notes.csv", "ab")
    demos = write(data, tmp_path / "demos.json", sizes="counted")
    with pytest.raises(UsageError, match="texts as a list"):
        api.classify(demos, "one", MODEL)


def test_settings_that_there_are_not_are_refused_in_a_line(data, tmp_path):
    for call in (
        lambda: api.load(tmp_path / "notes.csv", ["a", "b"], sheets="first"),
        lambda: api.plan(data, sizes="counted", rounds=2),
    ):
        with pytest.raises(UsageError, match=r"no setting '(sheets|rounds)'") as refused:
            call()
        assert "\n" not in str(refused.value)


def test_editors_are_told_how_a_file_may_be_read():
    known = get_type_hints(Reading)
    del known["labels"]  # an argument of its own
    assert get_type_hints(api.HowRead) == known
    assert api.HowRead.__required_keys__ == frozenset()


def test_what_is_odd_about_a_file_is_told_to_whom_it_is_asked(tmp_path):
    path, told = tmp_path / "notes.csv", []
    path.write_text("body,label\none,x\none,x\ntwo,y\n", encoding="latin-1")
    data = api.load(
        path,
        ["First", "y"],
        text="body",
        drop_duplicates=True,
        label_names=(("x", "First"),),
        tell=told.append,
    )
    assert [(each.text, each.label) for each in data.records] == [("one", "First"), ("two", "y")]
    assert told == ["Rows that repeat an earlier one, dropped as requested: 1."]
    told.clear()
    rows = "".join(f"caf\u00e9 {i},x\n" for i in range(30))
    path.write_text(f"text,label\n{rows},x\n", encoding="utf-16")
    api.load(path, ["x"], tell=told.append)
    assert told == ["Read as UTF-16.", "1 of 31 rows is left out: 1 with an empty text."]
    with pytest.warns(UserWarning, match=re.escape(told[0])), pytest.warns(UserWarning, match=re.escape(told[1])):
        api.load(path, ["x"])
