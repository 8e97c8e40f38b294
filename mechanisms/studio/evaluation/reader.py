"""Who reads a set: the model that wrote it, or another one, for which nothing was measured."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.inference import LanguageModel
from mechanisms.studio.synthesis.demo_set import DemoSet

_OTHER = "Written with {writer}, read here by {reader}"
_SAME = "Written with {writer}, and read by it here too"
_DROPPED = (
    ": the measured prior is of the model that wrote the set, so contextual calibration corrects the answers instead"
)


def same_reader(demo_set: DemoSet, model: LanguageModel) -> bool:
    """Whether a model is the one that wrote a set: by its weights, not by its name."""
    return demo_set.model_sha256 == model.sha256


def as_read_by(demo_set: DemoSet, model: LanguageModel) -> DemoSet:
    """A set as a model may read it: another one than its writer reads it without the corrections measured for that."""
    return demo_set if same_reader(demo_set, model) else without_corrections(demo_set)


def without_corrections(demo_set: DemoSet) -> DemoSet:
    """A set as anything may read it that is not the model under which its corrections were measured."""
    choice = demo_set.choice
    if choice is not None:
        public = choice.public_only and replace(choice.public_only, prior=None)
        choice = replace(choice, zero_shot=None, public_only=public)
    return replace(demo_set, prior=None, choice=choice)


def readers_in_words(demo_set: DemoSet, model: LanguageModel) -> str:
    """One line: which model wrote a set, which one reads it, and what follows."""
    same = same_reader(demo_set, model)
    names = (_SAME if same else _OTHER).format(writer=demo_set.model_id, reader=model.name)
    measured = demo_set.prior is not None or (demo_set.choice is not None and demo_set.choice.zero_shot is not None)
    return f"{names}{_DROPPED if measured and not same else ''}."
