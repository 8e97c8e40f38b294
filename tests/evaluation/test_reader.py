"""Who reads a set, and what another model than its writer must not take over."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.demos.findings import Choice
from mechanisms.evaluation.reader import as_read_by, readers_in_words
from mechanisms.records import Demonstration
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set

PRIOR = {"News": 0.5, "Sport": -0.5}
PLAIN = demo_set(Demonstration("one", "News"))
MEASURED = replace(PLAIN, prior=PRIOR, choice=Choice(4, "voted", "prior", PRIOR))


class Namesake(ToyModel):
    """Another model by the name of the writer."""

    sha256 = "1" * 64


def test_the_writer_reads_all_of_it():
    assert as_read_by(MEASURED, ToyModel()) is MEASURED
    assert "measured prior" not in readers_in_words(MEASURED, ToyModel())


def test_weights_decide_and_not_the_name():
    read = as_read_by(MEASURED, Namesake())
    assert (read.prior, read.choice) == (None, Choice(4, "voted", "prior"))
    assert read == replace(MEASURED, prior=None, choice=read.choice)
    assert "contextual calibration" in readers_in_words(MEASURED, Namesake())


def test_where_nothing_was_measured_only_the_models_are_named():
    assert as_read_by(PLAIN, Namesake()) == PLAIN
    assert readers_in_words(PLAIN, Namesake()) == "Written with toy, read here by toy."
    zero_shot = replace(PLAIN, choice=Choice(4, "none", "prior", PRIOR))
    assert "contextual calibration" in readers_in_words(zero_shot, Namesake())
