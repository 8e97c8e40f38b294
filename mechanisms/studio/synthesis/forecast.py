"""How long a run will take on this machine, from a short measurement of the model."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from mechanisms.inference import LanguageModel
from mechanisms.sampling import Scheme
from mechanisms.studio.synthesis.request import SynthesisRequest

_ROWS, _LENGTH, _STEPS = 32, 64, 4
_FRAME = 40
"""Tokens of instruction, cue and separators in a prompt, roughly."""
_BYTES = 3
"""Of a token that a schema or a separator forces, roughly: names, quotes and brackets are short ones."""


@dataclass(frozen=True)
class ModelSpeed:
    """Seconds a prompt position, seconds a decoded row, seconds an almost empty step."""

    position: float
    row: float
    step: float

    def scaled(self, factor: float) -> ModelSpeed:
        """Guessed for a model of so many times the parameters, from which its work follows."""
        return ModelSpeed(factor * self.position, factor * self.row, factor * self.step)

    def least(self, other: ModelSpeed) -> ModelSpeed:
        """Of two measurements of a model: what computes beside it makes it look slower, and nothing faster."""
        return ModelSpeed(min(self.position, other.position), min(self.row, other.row), min(self.step, other.step))


def measure_speed(model: LanguageModel) -> ModelSpeed:
    """Measure a model on public text; takes about four seconds on a small CPU."""
    words = (model.encode("the model is measured on public text ") * _LENGTH)[:_LENGTH]
    # The first pass of a shape takes memory, and an engine may look whether rows are computed alike in it.
    for rows in (_ROWS, 1):
        model.open([], [words] * rows, _LENGTH, _STEPS).advance([words[0]] * rows)
    started = time.perf_counter()
    many = model.open([], [words] * _ROWS, _LENGTH, _STEPS)
    prefilled = time.perf_counter()
    for _ in range(_STEPS):
        many.advance([words[0]] * _ROWS)
    decoded = time.perf_counter()
    one = model.open([], [words], _LENGTH, _STEPS)
    begun = time.perf_counter()
    for _ in range(_STEPS):
        one.advance([words[0]])
    step = (time.perf_counter() - begun) / _STEPS
    row = max(1e-5, (decoded - prefilled) / _STEPS - step) / _ROWS
    return ModelSpeed((prefilled - started) / (_ROWS * _LENGTH), row, step)


def forced(request: SynthesisRequest) -> int:
    """Tokens of a demonstration that nothing is drawn for, roughly: what a schema or a separator forces."""
    return math.ceil((request.room - request.plan.tokens) / _BYTES)


def positions(request: SynthesisRequest) -> tuple[int, int]:
    """Prompt positions, and decoded rows, that go through the model for one run; public."""
    plan, prompts, rows = request.plan, 0, 0
    for label in request.labels:
        capacity = request.capacity(label) if request.mechanism.uses_private_rows else 0
        shown = request.max_record_tokens + (request.outputs.shown if request.outputs else 0)
        length = request.records_per_row * (shown + _FRAME // 2) + _FRAME
        if plan.scheme is Scheme.PER_TOKEN:
            prompts += plan.shots * sum(capacity * (length + step) for step in range(plan.tokens))
        else:
            prompts += plan.shots * capacity * length
            rows += plan.shots * capacity * (plan.tokens + forced(request))
    return prompts, rows


def predicted_seconds(request: SynthesisRequest, speed: ModelSpeed) -> float:
    """Seconds that a whole run takes, within a factor of about two.

    Not in it: what a model writes for free once all charged tokens are used up, the end of a record or an answer.
    """
    prompts, rows = positions(request)
    steps = len(request.labels) * request.plan.shots * (request.plan.tokens + forced(request))
    return prompts * speed.position + rows * speed.row + 2 * steps * speed.step
