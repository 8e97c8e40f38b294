"""Texts of newer systems beside this program's, from the same rows at the same epsilon: a table of
research/docs/newer.md.

    python -m research.benchmarks.newer run DATA agnews --unnamed --out newer.jsonl
    python -m research.benchmarks.newer table newer.jsonl

Each arm writes a few texts of every label after one release, or after one in each round. `vote` and `words` are the
program's own. `rounds` is the loop of Aug-PE (Xie et al. 2024): in each round rows vote, and the model varies the
winners. `words` asks with released words and judges by released class means, so that its rounds cost nothing more.
`steered` is our form of EPSVec (Banayeeanzade et al. 2026): a noisy mean of hidden states is added while the model
writes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mechanisms import api
from mechanisms.accounting import PrivacyTarget
from mechanisms.asking import NO_HINT, Hint, Wording
from mechanisms.errors import UsageError
from mechanisms.noise import Floats, SecureRandomness
from mechanisms.records import Demonstration, Record
from mechanisms.runs.drafts import DraftRequest, Margins, Nearness, write_drafts, write_samples
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.stages.vote import VoteCollector, winners
from mechanisms.runs.state import RunState
from mechanisms.runs.text import Gate
from mechanisms.tallies import Prototypes, Votes
from research.benchmarks.words import measured, released
from research.benchmarks.worth import DELTA, TASKS, Bench
from research.lines import cell, done, keep, lines, markdown, run_and_table

_TOKENS = 30
_KEPT, _ROUNDS = 2, 3
"""Texts of a label that go on to the next round, and that are left in the end; and rounds."""
_FIRST, _VARIED = 4, 3
"""Drafts of a label in the first round, and variations in each later one. A single round has as many drafts as all."""
Texts = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Varying(Wording):
    """Words that ask for another text like those that were kept: the model sees them behind the public exemplars."""

    kept: tuple[str, ...] = ()
    label: str = ""

    @classmethod
    def of_kept(cls, wording: Wording, label: str, kept: Sequence[str]) -> Varying:
        own = {each.name: getattr(wording, each.name) for each in fields(wording)}
        return cls(**own, kept=tuple(kept), label=label)

    def exemplar_pairs(self, hint: Hint = NO_HINT) -> tuple[tuple[str, str], ...]:
        sentence = self.sentence_for(self.label, hint)
        return (*super().exemplar_pairs(hint), *((sentence, text) for text in self.kept))


class Writer:
    """Writes texts of a label for one run.

    Attributes:
        state: of a run that has released words; None: labels are asked for by their names alone.
    """

    def __init__(self, bench: Bench, state: RunState | None = None) -> None:
        self._bench, self._state = bench, state
        self.wording = RunSpec.of(**bench.task.asked).wording
        self.randomness = SecureRandomness()
        self._samples = write_samples(bench.model, self.wording, bench.labels[0], 24, self.randomness)
        self._names = Nearness(bench.embedder, self.wording, bench.labels)

    def drafts(self, count: int, kept: Texts | None = None) -> dict[str, list[str]]:
        """So many texts of each label, which vary what was kept."""
        found: dict[str, list[str]] = {}
        for label in self._bench.labels:
            taken = [text for texts in found.values() for text in texts]
            found[label] = self.of_label(label, count, taken, kept[label] if kept else ())
        return found

    def of_label(self, label: str, count: int, taken: Sequence[str] = (), kept: Sequence[str] = ()) -> list[str]:
        """So many texts of a label. Names alone order them where nothing was released, and nothing was kept."""
        wording = Varying.of_kept(self.wording, label, kept) if kept else self.wording
        words = self._state.words.get(label, ()) if self._state else ()
        named = self._state.says(label) if self._state and words else True
        request = DraftRequest(wording, label, self._bench.labels, count, _TOKENS, {}, words, named)
        gate, order = Gate(self._bench.model, self._samples, wording), None if kept or words else self._names
        try:
            return [*write_drafts(self._bench.model, request, gate, self.randomness, taken, order)]
        except UsageError:  # the gate refuses all variations, as those that copy what was kept
            if not kept:
                raise
            return []

    def kept(self, rounds: int, judged: Callable[[Texts], dict[str, list[str]]]) -> dict[str, list[str]]:
        """The texts that are left after so many rounds, each of which varies what the round before has kept."""
        if rounds == 1:
            return judged(self.drafts(_FIRST + (_ROUNDS - 1) * _VARIED))
        kept = judged(self.drafts(_FIRST))
        for _ in range(rounds - 1):
            kept = judged(_both(kept, self.drafts(_VARIED, kept)))
        return kept

    def by_votes(self, texts: Texts, rows: Sequence[Record], epsilon: float) -> dict[str, list[str]]:
        """The texts that most rows are like, from one noisy ballot."""
        polls = VoteCollector(self._bench.embedder, texts)
        cast = np.array([*polls.contributions([(each,) for each in rows])])
        votes = polls.by_label(Votes(epsilon, False).release(cast, self.randomness))
        return self._best(texts, votes)

    def by_directions(self, texts: Texts, order: Margins) -> dict[str, list[str]]:
        """The texts that lie furthest along the released direction of their label."""
        votes = {}
        for label, each in texts.items():
            ranked = order.best(label, each)
            votes[label] = np.array([-ranked.index(text) if text in ranked else -len(each) for text in each], float)
        return self._best(texts, votes)

    def _best(self, texts: Texts, votes: Mapping[str, Floats]) -> dict[str, list[str]]:
        embedded = {label: self._bench.embedder.embed(each) for label, each in texts.items()}
        best = winners(texts, votes, _KEPT, embedded)
        return {label: [texts[label][i] for i in places] for label, places in best.items()}


class Arms:
    """The arms on one set. Rows are the same in every run; drafts and noise are drawn anew.

    Args:
        units: rows of each label that vote, or add to a mean.
        steered: rows of each label whose hidden states are read.
    """

    def __init__(self, bench: Bench, epsilon: float, units: int, steered: int) -> None:
        self._bench, self._epsilon, self._units = bench, epsilon, units
        self._rows = [each for label in bench.labels for each in _of(bench.rows, label)[:units]]
        self._steered = steered

    def vote(self) -> Texts:
        return self._by_votes(1)

    def rounds(self) -> Texts:
        return self._by_votes(_ROUNDS)

    def words(self) -> Texts:
        return self._by_directions(1)

    def words_rounds(self) -> Texts:
        return self._by_directions(_ROUNDS)

    def _by_votes(self, rounds: int) -> Texts:
        writer = Writer(self._bench)
        return writer.kept(rounds, lambda texts: writer.by_votes(texts, self._rows, self._epsilon / rounds))

    def _by_directions(self, rounds: int) -> Texts:
        _, state = released(self._bench, self._epsilon, self._units)
        order = state.margins
        assert order is not None
        writer = Writer(self._bench, state)
        return writer.kept(rounds, lambda texts: writer.by_directions(texts, order))

    def steered(self) -> Texts:
        writer = Writer(self._bench)
        with self._steering.at(self._steering.released(self._epsilon, SecureRandomness())) as steer:
            found = {}
            for label in self._bench.labels:
                steer(label)
                found[label] = writer.of_label(label, _FIRST)[:_KEPT]
        return found

    def public(self) -> Texts:
        return {label: texts[:_KEPT] for label, texts in Writer(self._bench).drafts(_FIRST).items()}

    @cached_property
    def _steering(self) -> Steering:
        return Steering(self._bench, {y: _of(self._bench.rows, y)[: self._steered] for y in self._bench.labels})


def _of(rows: Sequence[Record], label: str) -> list[Record]:
    return [each for each in rows if each.label == label]


def _both(kept: Texts, varied: Texts) -> dict[str, list[str]]:
    return {label: [*dict.fromkeys([*texts, *varied[label]])] for label, texts in kept.items()}


class Steering:
    """Means of hidden states in the middle of the model: those of a label's rows less those of the model's own texts.

    A row's difference is cut to a length that follows from the model's own texts, which are public. Each row adds one
    vector to its label's sum, which is released as class means are (docs/tallies.md#prototypes).
    """

    def __init__(self, bench: Bench, rows: Mapping[str, Sequence[Record]]) -> None:
        self._bench, self._model = bench, bench.model.model  # type: ignore[attr-defined]
        layers = self._model.model.layers
        self._number = len(layers) // 2
        self._layer = layers[self._number]
        own = Writer(bench).drafts(3 * _FIRST)
        public = {label: np.array([self._state(each) for each in texts]) for label, texts in own.items()}
        self._middle = {label: each.mean(axis=0) for label, each in public.items()}
        apart = [np.linalg.norm(each - self._middle[label], axis=1) for label, each in public.items()]
        self._clip = float(np.median(np.concatenate(apart)))
        self._counts = np.array([len(each) for each in rows.values()])
        self._places = np.repeat(np.arange(len(rows)), self._counts)
        states = [self._state(each.text) - self._middle[label] for label, of in rows.items() for each in of]
        self._vectors = np.array(states) / self._clip

    @torch.inference_mode()
    def _state(self, text: str) -> Floats:
        """The mean over a text's tokens, as the model's own answer."""
        model = self._bench.model
        before, after = model.writing_turn[:2]
        tokens = [*before, *after, *model.encode(text)[:_TOKENS]]
        seen = self._model.model(input_ids=torch.tensor([tokens]), use_cache=False, output_hidden_states=True)
        states = seen.hidden_states[self._number + 1][0, len(before) + len(after) :]
        return np.asarray(states.mean(dim=0).double().numpy())

    def released(self, epsilon: float, randomness: SecureRandomness) -> dict[str, Floats]:
        """The noisy mean difference of each label."""
        tally = Prototypes.costing(PrivacyTarget(epsilon, DELTA), len(self._counts))
        sums = tally.sums(Prototypes.contributions(self._places, self._vectors), randomness)
        return dict(zip(self._middle, sums / self._counts[:, None] * self._clip, strict=True))

    @contextmanager
    def at(self, vectors: Mapping[str, Floats]) -> Iterator[Callable[[str], None]]:
        """While the context is open, the vector of the label that its value has chosen is added at every position."""
        added = {label: torch.from_numpy(each).to(self._model.dtype) for label, each in vectors.items()}
        chosen = [torch.zeros(())]

        def choose(label: str) -> None:
            self._bench.model._prefixes.clear()  # type: ignore[attr-defined]
            chosen[0] = added[label]

        def hook(_: object, __: object, output: Any) -> Any:
            moved = _hidden(output) + chosen[0]
            return (moved, *output[1:]) if isinstance(output, tuple) else moved

        handle = self._layer.register_forward_hook(hook)
        try:
            yield choose
        finally:
            handle.remove()
            self._bench.model._prefixes.clear()  # type: ignore[attr-defined]


def _hidden(output: Any) -> torch.Tensor:
    found: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return found


ARMS = (
    "public",
    "vote",
    "rounds",
    "words",
    "words_rounds",
    "steered",
)
COLUMNS = ("own", "coverage", "tstr")


def run(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, api.load_model(options.model), 1, options.unnamed)
    arms = Arms(bench, options.epsilon, options.units, options.steered)
    shared = {"task": options.task, "unnamed": options.unnamed, "model": options.model, "epsilon": options.epsilon}
    for number in range(options.runs):
        for arm in options.arms:
            key = shared | {"arm": arm, "units": options.units}
            if done(options.out, key) <= number:
                texts = getattr(arms, arm)()
                made = [Demonstration(text, label) for label, each in texts.items() for text in each]
                keep(options.out, key | measured(bench, made))


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    read = lines(options.file)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for each in read:
        key = tuple(each[name] for name in ("task", "unnamed", "model", "epsilon", "arm"))
        groups.setdefault(key, []).append(each)
    order = sorted(groups, key=lambda key: (*map(str, key[:4]), ARMS.index(key[4])))
    rows = [[*key, len(groups[key]), *(cell(each[name] for each in groups[key]) for name in COLUMNS)] for key in order]
    print(markdown(["set", "names hidden", "model", "epsilon", "arm", "runs", *COLUMNS], rows))


def main() -> None:
    parser, one, _ = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("task", choices=TASKS)
    one.add_argument("--unnamed", action="store_true", help="call the labels Q1, Q2, ...")
    one.add_argument("--model", default="embedded")
    one.add_argument("--epsilon", type=float, default=1.0)
    one.add_argument("--units", type=int, default=480, help="rows of each label that vote, or add to a mean")
    one.add_argument("--steered", type=int, default=240, help="rows of each label whose hidden states are read")
    one.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    one.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
