"""Outputs that a model gives to released texts: what it answers to each without being shown any demonstration."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.inference import LanguageModel
from mechanisms.studio.evaluation.responder import Responder, answering
from mechanisms.studio.synthesis.request import SynthesisRequest
from mechanisms.studio.synthesis.writer import DemonstrationWriter


def _responder(request: SynthesisRequest, model: LanguageModel) -> Responder:
    assert request.outputs is not None
    return answering(model, request.template, (), request.outputs.max_tokens)


def check_answers(request: SynthesisRequest, model: LanguageModel) -> None:
    """Refuse a prompt that is too long for the model, before anybody has paid.

    Raises:
        UsageError: see there.
    """
    _responder(request, model).check()


def write_answers(writers: Sequence[DemonstrationWriter], request: SynthesisRequest, model: LanguageModel) -> None:
    """Give demonstrations whose text is released their outputs."""
    texts = [writer.demonstration.text for writer in writers]
    for writer, answer in zip(writers, _responder(request, model).answers(texts), strict=True):
        writer.output = answer
