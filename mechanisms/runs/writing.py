"""Writing demonstrations token by token: the text so far, the sample of rows, and batches of several demonstrations.

Released tokens determine which demonstrations are still being written, so the shapes of the batches are public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, islice, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.asking import NO_HINT, Hint
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import LanguageModel, Session, WritingPrompt
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import Demonstration, Record
from mechanisms.runs.drafts import NO_LOGITS
from mechanisms.runs.events import DemoCompleted, Key, PrivateDiagnostics, TokenReleased, WritingEvent
from mechanisms.runs.terms import RunTerms
from mechanisms.runs.text import whole_sentences
from mechanisms.sampling import Scheme, seat_in_slots, seat_in_subsets
from mechanisms.steps import TokenDistributions

_LENGTHS = 8
"""The public length of a private row, in positions, is a multiple of this."""
_WHOLE = 1.5
"""A row has room for at most this many of a user's texts at their full length; two texts of a usual length fit, too. In
the clinic's example, 3% of the tokens do not fit."""
REST = 24
"""The most tokens of public text that complete a text's last sentence after its last charged token."""


class TextState:
    """The text of a demonstration so far: its tokens, the tokens that may not come next, and whether it has ended.

    It depends only on public values and on the tokens so far, which are released. So the tokens that may come next are
    public, as the candidates are.
    """

    def __init__(self, model: LanguageModel, least: int, opening: Sequence[int] = ()) -> None:
        """Begin with the tokens of a public opening. The text does not end before it has `least` further tokens."""
        self.written: list[int] = []  # without the opening
        self.stopped = False
        self._model, self._least, self._opening = model, least, list(opening)

    def accept(self, token: int) -> None:
        """Append a token that may come next. Only the token itself decides whether the text ends."""
        self.stopped = token in self._model.stop_tokens
        if not self.stopped:
            self.written.append(token)

    def barred(self) -> Integers:
        """The tokens that may not come next, because they would end the text too early or continue a repetition."""
        ends = self._model.stop_tokens if len(self.written) < max(1, self._least) else frozenset()
        return np.array(sorted(set(ends) | repeating_tokens(self.written)), dtype=np.int64)

    def visible(self, order: Iterable[int]) -> Iterator[int]:
        """The tokens of `order`, in that order, after which the text is not blank: it must begin with something
        visible."""
        shows = _shows(self.text)
        return (token for token in order if shows or _shows(self._model.decode([*self.written, token])))

    @property
    def text(self) -> str:
        return self._model.decode([*self._opening, *self.written])

    @property
    def may_end(self) -> bool:
        """Whether the text may end here: at a stop token, or at the end of a sentence."""
        return self.stopped or whole_sentences(self.text) == self.text.strip() != ""

    @property
    def finished(self) -> str:
        """The text as a demonstration, cut back to whole sentences.

        A text without a whole sentence, such as a title, is kept if the model ended it, and is empty otherwise.
        """
        text = " ".join(self.text.split())
        return whole_sentences(text) or (text if self.stopped else "")


def repeating_tokens(written: Sequence[int]) -> set[int]:
    """The tokens that would repeat any earlier run of three tokens, or the last two to eight tokens immediately."""
    last = tuple(written[-2:])
    found = {written[i + 2] for i in range(len(written) - 2) if tuple(written[i : i + 2]) == last}
    for period in range(2, 9):
        behind = written[-(2 * period - 1) :]
        if len(behind) == 2 * period - 1 and behind[: period - 1] == behind[period:]:
            found.add(behind[period - 1])
    return found


def _shows(text: str) -> bool:
    return any(each.isprintable() and not each.isspace() for each in text)


@dataclass(frozen=True, repr=False)
class PrivateRows:
    """The prompts of a sample of units: all rows of the batch, and which of them are occupied.

    If more units are sampled than fit (`overflow`), the rows are blank and the step is released from public text.

    Attributes:
        prompts: the tokens of each row.
        occupied: whether each row takes part in the release, shape (rows,).
    """

    prompts: list[list[int]]
    occupied: NDArray[np.bool_]
    overflow: bool


class DemonstrationWriter:
    """Writes one demonstration from the private `units` of one label. The caller charges it, and runs the model.

    Args:
        units: the label's units, each a tuple of its rows; private.
        key: the demonstration's label and number.
        opening: the public opening of the text.
        curator: also yield the sums without noise, for the curator's screen.
        hint: the public hint in the prompt.
    """

    def __init__(
        self,
        units: Sequence[tuple[Record, ...]],
        plan: RunTerms,
        model: LanguageModel,
        randomness: Randomness,
        key: Key,
        opening: str = "",
        curator: bool = False,
        hint: Hint = NO_HINT,
    ) -> None:
        self.key, self.opening, self.hint = key, opening, hint
        self._plan, self._units, self._model, self._randomness = plan, units, model, randomness
        spec = plan.spec
        texts = (min(spec.max_unit_records, _WHOLE) if plan.by_user else 1) * plan.sampling.per_subset
        self.prompt = WritingPrompt(model, spec.wording, key[0], spec.max_record_tokens, texts, hint)
        first_tokens = self.prompt.opening(opening)
        self.cue = [*self.prompt.cue, *first_tokens]
        self.state = TextState(model, spec.min_tokens or 0, first_tokens)
        self.charged = 0
        self._releaser = plan.mechanism.begin(plan.sampling, randomness)
        self._curator = curator

    @property
    def label(self) -> str:
        return self.key[0]

    @property
    def written(self) -> list[int]:
        """The tokens so far, without the cue and the opening."""
        return self.state.written

    @property
    def length(self) -> int:
        """The number of positions of a private row before any token is written."""
        return self.prompt.length - len(self.prompt.cue) + len(self.cue)

    @property
    def completed(self) -> DemoCompleted:
        return DemoCompleted(Demonstration(self.state.finished, self.label), self.key[1])

    @property
    def ended(self) -> bool:
        """Whether no further token is charged: the text has ended, or its tokens are used up."""
        return self.state.stopped or self.charged >= self._plan.sampling.tokens

    def restore(self, released: Sequence[TokenReleased]) -> None:
        """Restore the tokens that were released before the interruption. Raises a UsageError if this model could not
        have written them."""
        try:
            for event in released:
                same = event.token is not None and self._model.decode([event.token]) == event.candidates[event.chosen]
                if self.ended or not same or event.token in self.state.barred():
                    raise ValueError("this token may not come next")
                self.state.accept(event.token or 0)
                self.charged += 1
        except (ValueError, IndexError, OverflowError, TypeError) as error:
            raise UsageError("The run's tokens are not those of this model: give the model that it had.") from error

    def join(self) -> PrivateRows:
        """Draw a sample of units, and make their prompts with the tokens so far."""
        sampling, capacity = self._plan.sampling, self._plan.capacity(self.label)
        sampled = self._randomness.poisson_sample(len(self._units), sampling.rate(self._plan.sizes[self.label]))
        if sampling.unit_rows:
            seating = seat_in_slots(sampled, capacity, self._randomness)
        else:
            seating = seat_in_subsets(sampled, sampling.rows_per_token, self._randomness)
        rows: Sequence[tuple[int, ...]] = [()] * capacity if seating.overflow else seating.rows
        occupied = np.array([bool(row) or not sampling.unit_rows for row in rows])
        cap, behind = self._plan.spec.max_unit_records, [*self.cue[len(self.prompt.cue) :], *self.written]
        texts = ([record.text for seat in seats for record in self._units[seat][:cap]] for seats in rows)
        return PrivateRows([[*self.prompt.row(each), *behind] for each in texts], occupied, seating.overflow)

    def candidates(self, logits: Floats) -> Integers:
        """The candidates S: at most K of the public distribution's likeliest tokens that the text's state allows.

        If only a token's index is released, without its noisy values, the candidates are also cut to a nucleus of
        probability `candidate_top_p`.

        Args:
            logits: the public row's logits, shape (vocabulary,).

        Returns:
            The candidates' numbers in the vocabulary, likeliest first, shape (K,) or shorter.

        Raises a ModelUnavailable if no token has a finite logit.
        """
        spec = self._plan.spec
        usable = np.where(np.isfinite(logits), logits, -np.inf)
        usable[self.state.barred()] = -np.inf
        likeliest = self.state.visible(each for each in descending(usable) if np.isfinite(usable[each]))
        columns = np.array(list(islice(likeliest, spec.candidates)), dtype=np.int64)
        if not len(columns):
            raise ModelUnavailable(NO_LOGITS)
        if (top_p := spec.candidate_top_p or 1.0) < 1:
            shares = softmax(usable[np.isfinite(usable)])
            held = np.cumsum(np.exp(usable[columns] - usable.max()) * shares.max())
            columns = columns[: max(2, int(np.searchsorted(held, top_p)) + 1)]
        return columns[self._plan.transform.narrow(logits[columns])]

    def distributions(
        self, private: PrivateRows | None, rows: Floats, public: Floats, base: Floats | None
    ) -> TokenDistributions:
        """The mechanism's input: the distributions of one step over the K candidates.

        Args:
            private: the sample; None if no private row takes part.
            rows: the logits of the private rows, shape (rows, K); empty if no private row takes part.
            public: the logits of the public row, shape (K,).
            base: the logits of the base row, shape (K,); None if the transform needs none.
        """
        sampling = self._plan.sampling
        occupied = private.occupied if private and not private.overflow else np.empty(0, dtype=np.bool_)
        seen = TokenDistributions(
            rows[: len(occupied)], occupied, public, sampling.rows_per_token, sampling.unit_rows, base
        )
        return self._plan.transform.apply(seen.public_step() if private and private.overflow else seen)

    def release(self, columns: Integers, distributions: TokenDistributions) -> Iterator[WritingEvent]:
        """Release one token of the candidates `columns`. Only the token itself decides whether it is the last one."""
        release = self._releaser(distributions)
        self.charged += 1
        self.state.accept(int(columns[release.index]))
        rows = self._plan.sampling.rows_per_token
        yield TokenReleased(
            label=self.label,
            number=self.key[1],
            step=self.charged,
            text=self.state.text,
            candidates=tuple(self._model.decode([int(column)]) for column in columns),
            chosen=release.index,
            scores=None if release.scores is None else tuple(release.scores.tolist()),
            public=tuple((distributions.public_probabilities * rows).tolist()),
            stop=self.state.stopped,
            values=None if release.values is None else tuple((release.values * rows).tolist()),
            free=release.free,
            trail=release.trail,
            token=int(columns[release.index]),
        )
        if self._curator and self._plan.mechanism.uses_private_rows:
            clean = distributions.probabilities().sum(axis=0)
            yield PrivateDiagnostics(self.label, self.key[1], self.charged, tuple(clean.tolist()))


def groups(
    writers: Sequence[DemonstrationWriter], plan: RunTerms, model: LanguageModel
) -> Iterator[Sequence[DemonstrationWriter]]:
    """Groups of demonstrations to write together. A group has one label and one hint, and is as large as the model's
    batch allows. Raises a UsageError if not even a single demonstration fits."""
    anew = plan.sampling.scheme is Scheme.PER_TOKEN
    for (label, _), alike in groupby(writers, lambda writer: (writer.label, writer.hint)):
        mine = list(alike)
        prefix, (length, room) = mine[0].prompt.prefix, _shape(mine, plan, plan.sampling.tokens - 1 if anew else 0)
        held = len(prefix) + length + room
        rows = plan.capacity(label) if plan.mechanism.uses_private_rows else 1
        size = max(1, model.rows_at_once(held if room == 0 else 1, held) // rows)
        model.check(prefix, min(size, len(mine)) * rows, length, room + REST)
        for start in range(0, len(mine), size):
            yield mine[start : start + size]


def _shape(writers: Sequence[DemonstrationWriter], plan: RunTerms, more: int = 0) -> tuple[int, int]:
    """The number of positions of a private row, and the number of tokens to append to it.

    `more` positions are for tokens yet to be written. No tokens are appended if each token has a new sample and rows.
    """
    length = max(writer.length + len(writer.written) for writer in writers) + more
    room = 0 if plan.sampling.scheme is Scheme.PER_TOKEN else plan.sampling.tokens
    # A device prepares its kernels, and the engine checks its batches, once for each length: few lengths save time.
    return math.ceil(length / _LENGTHS) * _LENGTHS, room


def write_together(
    writers: Sequence[DemonstrationWriter], plan: RunTerms, model: LanguageModel
) -> Iterator[WritingEvent]:
    """Write demonstrations to their end. Each step adds one token to each of them."""
    batch = _Batch(writers, plan, model)
    while batch.writers:
        yield from batch.release()
        ended = [writer for writer in batch.writers if writer.ended]
        yield from finish_publicly(ended, model)
        batch.go_on()


def finish_publicly(writers: Sequence[DemonstrationWriter], model: LanguageModel) -> Iterator[WritingEvent]:
    """Finish demonstrations that get no more private tokens: public text completes the last sentence of each.

    This text depends on public values and released tokens only, so it costs nothing.
    """
    going = [writer for writer in writers if not writer.state.may_end]
    if going:
        rows = [[*writer.cue, *writer.written] for writer in going]
        session = model.open(going[0].prompt.prefix, rows, max(map(len, rows)), REST)
        for _ in range(REST):
            for writer, logits in zip(going, session.logits(), strict=True):
                columns = writer.candidates(logits)
                writer.state.accept(int(columns[np.argmax(logits[columns])]))
            kept = [i for i, writer in enumerate(going) if not writer.state.may_end]
            if not kept:
                break
            if len(kept) < len(going):
                session.keep(kept)
                going = [going[i] for i in kept]
            session.advance([writer.written[-1] for writer in going])
    yield from (writer.completed for writer in writers)


class _Batch:
    """The model's sessions for demonstrations in progress: public rows, base distribution rows and private rows."""

    def __init__(self, writers: Sequence[DemonstrationWriter], plan: RunTerms, model: LanguageModel) -> None:
        self.writers = list(writers)
        self._plan, self._model, self._prefix = plan, model, writers[0].prompt.prefix
        tokens = plan.sampling.tokens
        rows = [[*writer.cue, *writer.written] for writer in writers]
        self._public = model.open(self._prefix, rows, max(map(len, rows)), tokens)
        self._base: Session | None = None
        if plan.transform.needs_base and plan.mechanism.uses_private_rows:
            # The base row has only the tokens so far. They follow a line break, because a row cannot be empty.
            rows = [
                [*model.encode("\n"), *writer.prompt.opening(writer.opening), *writer.written] for writer in writers
            ]
            self._base = model.open([], rows, max(map(len, rows)), tokens)
        self._drawn: list[PrivateRows] = []
        self._private = self._join()

    @property
    def _slices(self) -> list[slice]:
        """The slice of the batch that has each demonstration's private rows."""
        return [slice(*ends) for ends in pairwise(accumulate((len(d.prompts) for d in self._drawn), initial=0))]

    def _join(self) -> Session | None:
        if not self._plan.mechanism.uses_private_rows:
            return None
        self._drawn = [writer.join() for writer in self.writers]
        rows = [row for drawn in self._drawn for row in drawn.prompts]
        return self._model.open(self._prefix, rows, *_shape(self.writers, self._plan))

    def release(self) -> Iterator[WritingEvent]:
        slices, everything = self._slices, self._public.logits()
        for i, writer in enumerate(self.writers):
            row = slice(i, i + 1)
            columns = writer.candidates(everything[i])
            drawn = self._drawn[i] if self._private else None
            rows = self._private.logits(columns, slices[i]) if self._private else np.empty((0, len(columns)))
            base = self._base.logits(columns, row)[0] if self._base else None
            public = self._public.logits(columns, row)[0]
            yield from writer.release(columns, writer.distributions(drawn, rows, public, base))

    def go_on(self) -> None:
        """Drop finished demonstrations, and append the released tokens to the rows of the others."""
        going = [i for i, writer in enumerate(self.writers) if not writer.ended]
        anew = self._plan.sampling.scheme is Scheme.PER_TOKEN
        public = [session for session in (self._public, self._base) if session is not None]
        if going and len(going) < len(self.writers):
            for session in public:
                session.keep(going)
            if self._private is not None and not anew:
                slices = self._slices
                self._private.keep([row for i in going for row in range(slices[i].start, slices[i].stop)])
            self._drawn = [self._drawn[i] for i in going] if self._drawn else []
        self.writers = [self.writers[i] for i in going]
        if not going:
            return
        tokens = [writer.written[-1] for writer in self.writers]
        for session in public:
            session.advance(tokens)
        if anew:
            self._private = self._join()
        elif self._private is not None:
            counts = [len(drawn.prompts) for drawn in self._drawn]
            self._private.advance([token for token, count in zip(tokens, counts, strict=True) for _ in range(count)])


def descending(values: Floats, first: int = 256) -> Iterator[int]:
    """Positions in descending order of the values; among equal values the earlier position comes first.

    The largest `first` values are sorted first, and further ones only on demand: sorting a whole vocabulary takes as
    long as a model's step on a GPU.
    """
    begun = 0
    while begun < len(values):
        place = max(0, len(values) - first)
        top = np.flatnonzero(values >= np.partition(values, place)[place])
        yield from top[np.argsort(-values[top], kind="stable")][begun:].tolist()
        begun, first = len(top), 16 * first
