"""The loop of a newer system: what was kept is shown to the model, and a copy of it is refused."""

from __future__ import annotations

from mechanisms.asking import Hint, Wording
from mechanisms.runs.text import Gate
from research.benchmarks.newer import Varying
from tests.toy_model import ToyModel

KEPT = ("My heart has been racing since the morning.", "The new pills make me feel dizzy at night.")


def test_what_was_kept_stands_behind_the_public_exemplars_and_is_asked_for_as_the_text_is():
    wording = Wording("message", "a patient", "a clinic", words={"Q1": "the heart"})
    varying, hint = Varying.of_kept(wording, "Q1", KEPT), Hint(("pulse", "pills"))
    public, shown = wording.exemplar_pairs(hint), varying.exemplar_pairs(hint)
    assert public
    assert shown == (*public, *((wording.sentence_for("Q1", hint), text) for text in KEPT))


def test_a_copy_of_what_was_kept_is_refused():
    wording = Wording("message", "a patient", "a clinic")
    gate, varied = (Gate(ToyModel(), KEPT, each) for each in (wording, Varying.of_kept(wording, "Q1", KEPT)))
    assert gate.reason(KEPT[0]) is None
    assert varied.reason(KEPT[0]) == "it repeats a public exemplar"
