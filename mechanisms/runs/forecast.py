"""The time that a run will take on this machine: work counted from public numbers, times measured speeds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields, replace

from mechanisms.inference import Embedder, LanguageModel
from mechanisms.runs.request import SynthesisRequest
from mechanisms.sampling import Scheme

_ROWS, _LENGTH, _STEPS = 16, 64, 4
_BEHIND = 512
"""Length of the prefix behind which rows are measured, in tokens."""
_HEAD, _CUE = 8, 8
"""Approximate tokens around a record, and at the end of a prompt, its label included."""
_BYTES = 3
"""Approximate bytes of a token that a schema or a separator forces: names, quotes and brackets are short."""
_PAIR, _WORD, _EMBEDDED = 1 / 1600, 1 / 3, 1 / 12
"""Costs that were not measured, in prompt positions: typical of the embedded models on a CPU."""
_SORTED = 5
"""Cost of the candidates of a released token, in vocabularies of a row: computed, sorted, and decoded."""
_TEXTS = 4
"""Texts with which embedding is measured."""


@dataclass(frozen=True)
class Work:
    """Work for the models, counted from public values.

    Attributes:
        positions: of prompts that are computed.
        pairs: of a prompt's position, or a token, with a position of the prefix that it stands behind.
        rows: decoded tokens of rows.
        steps: passes over however few rows.
        words: rows whose whole vocabulary is asked for.
        embedded: tokens of texts that the embedding model reads.
    """

    positions: float = 0.0
    pairs: float = 0.0
    rows: float = 0.0
    steps: float = 0.0
    words: float = 0.0
    embedded: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, factor: float) -> Work:
        return Work(*(factor * each for each in astuple(self)))

    def seconds(self, speed: ModelSpeed) -> float:
        """The seconds that it takes at a speed."""
        return (
            self.positions * speed.position
            + self.pairs * speed.pair
            + self.rows * speed.row
            + self.steps * speed.step
            + self.words * speed.word
            + self.embedded * speed.embedded
        )


@dataclass(frozen=True)
class ModelSpeed:
    """Seconds of each kind of `Work`; a 0 (not measured) is estimated from a prompt's position.

    Attributes:
        position: of a prompt.
        row: a decoded row.
        step: an almost empty step.
        pair: see `Work.pairs`.
        word: see `Work.words`.
        embedded: see `Work.embedded`.
        together: rows of a decoding step that keep the device busy, as the model groups demonstrations.
    """

    position: float
    row: float
    step: float
    pair: float = 0.0
    word: float = 0.0
    embedded: float = 0.0
    together: int = 1

    def __post_init__(self) -> None:
        for name, share in (("pair", _PAIR), ("word", _WORD), ("embedded", _EMBEDDED)):
            if not getattr(self, name):
                object.__setattr__(self, name, share * self.position)

    def scaled(self, factor: float) -> ModelSpeed:
        """An estimate for a model with `factor` times the parameters; embedding, which is another model's, stays."""
        own = {name: factor * getattr(self, name) for name in ("position", "row", "step", "pair", "word")}
        return replace(self, **own)

    def least(self, other: ModelSpeed) -> ModelSpeed:
        """The smaller of two measurements: other load makes a model look slower, and nothing makes it look faster."""
        names = (each.name for each in fields(self) if each.name != "together")
        return replace(self, **{name: min(getattr(self, name), getattr(other, name)) for name in names})


def measure_speed(model: LanguageModel, clock: Callable[[], float] = time.perf_counter) -> ModelSpeed:
    """Measure a model on public text; takes about four seconds on a small CPU."""
    words = (model.encode("the model is measured on public text ") * _BEHIND)[:_BEHIND]
    own = words[:_LENGTH]
    # The first pass of a shape takes memory, and an engine may look whether rows are computed alike in it.
    for rows in (_ROWS, 1):
        model.open([], [own] * rows, _LENGTH, _STEPS).advance([words[0]] * rows)
    _ = model.open(words, [own[:1]], 1, 1)  # an engine keeps what it has computed of a prefix
    started = clock()
    many = model.open([], [own] * _ROWS, _LENGTH, _STEPS)
    prefilled = clock()
    for _ in range(_STEPS):
        many.advance([words[0]] * _ROWS)
    decoded = clock()
    _ = many.logits().max()
    told = clock()
    one = model.open([], [own], _LENGTH, _STEPS)
    begun = clock()
    for _ in range(_STEPS):
        one.advance([words[0]])
    stepped = clock()
    _ = model.open(words, [own] * _ROWS, _LENGTH, _STEPS)
    behind = clock() - stepped
    step, position = (stepped - begun) / _STEPS, (prefilled - started) / (_ROWS * _LENGTH)
    row = max(1e-5, (decoded - prefilled) / _STEPS - step) / _ROWS
    pair = max(0.0, behind - (prefilled - started)) / (_ROWS * _LENGTH * _BEHIND)
    # Next to nothing is more than the noise of a measurement tells.
    pair = min(max(pair, _PAIR * position / 4), _PAIR * position * 4)
    together = model.rows_at_once(1, 2 * _LENGTH)
    return ModelSpeed(position, row, step, pair, (told - decoded) / _ROWS, together=together)


def measure_embedding(embedder: Embedder, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds per token of a text of usual length."""
    text = "the model is measured on public text " * (_LENGTH // 8)
    embedder.embed([text])
    started = clock()
    embedder.embed([text] * _TEXTS)
    return (clock() - started) / (_TEXTS * _LENGTH)


def forced(request: SynthesisRequest) -> int:
    """Approximate tokens of a demonstration that a schema or a separator forces; none of them is drawn."""
    return math.ceil((request.room - request.plan.tokens) / _BYTES)


def positions(request: SynthesisRequest) -> tuple[int, int]:
    """Prompt positions, and decoded rows, that go through the model for one run; public."""
    plan, prompts, rows = request.plan, 0, 0
    for label in request.labels:
        capacity = request.capacity(label) if request.mechanism.uses_private_rows else 0
        shown = request.max_record_tokens + (request.outputs.shown if request.outputs else 0)
        length = request.records_per_row * (shown + _HEAD) + _CUE
        if plan.scheme is Scheme.PER_TOKEN:
            prompts += plan.shots * sum(capacity * (length + step) for step in range(plan.tokens))
        else:
            prompts += plan.shots * capacity * length
            rows += plan.shots * capacity * (plan.tokens + forced(request))
    return prompts, rows


def written_work(request: SynthesisRequest, together: int) -> Work:
    """What writing token by token asks of the model, at most: a demonstration may end before its last token.

    Not in it: what a model writes for free once all charged tokens are used up, the end of a record or an answer.
    """
    prompts, rows = positions(request)
    plan, private = request.plan, request.mechanism.uses_private_rows
    most = max(map(request.capacity, request.labels)) if private else 1
    demonstrations = len(request.labels) * plan.shots
    # A pass over the private rows of a group, one over its public ones, and one over those of the base distribution.
    passes = 1 + private + (private and request.transform.needs_base)
    groups = math.ceil(demonstrations / max(1, together // most))
    steps = groups * passes * (plan.tokens + forced(request))
    words = demonstrations * _SORTED * plan.tokens
    return Work(positions=prompts, rows=rows, steps=steps, words=words)
