"""A text in the making, token by token: which tokens may not come next, and when it ends.

All of it follows from public values and from the tokens so far, which are released. So what may come next is as public
as the candidates always were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mechanisms.inference import LanguageModel
from mechanisms.noise import Integers
from mechanisms.runs.text import whole_sentences


class TextState:
    """A text, ended by a stop token or by its room.

    Attributes:
        written: its tokens so far, without its opening.
        stopped: whether it has come to its end by itself.
    """

    def __init__(self, model: LanguageModel, least: int, opening: Sequence[int] = ()) -> None:
        """Begin.

        Args:
            model: in whose tokens.
            least: tokens before the text may end.
            opening: public tokens that it begins with.
        """
        self.written: list[int] = []
        self.stopped = False
        self._model, self._least, self._opening = model, least, list(opening)

    def accept(self, token: int) -> None:
        """Go on with a token that may come next; whether it ends the text is decided on the token itself."""
        self.stopped = token in self._model.stop_tokens
        if not self.stopped:
            self.written.append(token)

    def barred(self) -> Integers:
        """Tokens that would end a text too early, or write words again that it has just fallen into."""
        ends = self._model.stop_tokens if len(self.written) < max(1, self._least) else frozenset()
        return np.array(sorted(set(ends) | again(self.written)), dtype=np.int64)

    def visible(self, order: Integers) -> Iterator[int]:
        """Those of `order` after which the text is not blank, in that order: it has to begin with something to see."""
        begun = _shows(self.text)
        return (token for token in map(int, order) if begun or _shows(self._model.decode([*self.written, token])))

    @property
    def text(self) -> str:
        """All of it so far, as it is shown while it is written."""
        return self._model.decode([*self._opening, *self.written])

    @property
    def whole(self) -> bool:
        """Whether it may end here: it has ended by itself, or with a sentence."""
        return self.stopped or whole_sentences(self.text) == self.text.strip() != ""

    @property
    def finished(self) -> str:
        """The text as a demonstration: cut back to whole sentences.

        One without any stays as it is if the model ended it: a question, a title.
        """
        text = " ".join(self.text.split())
        return whole_sentences(text) or (text if self.stopped else "")


_LONGEST_LOOP = 8


def again(written: Sequence[int]) -> set[int]:
    """Tokens that would write a run of three tokens once more, or the last two to eight tokens at once again."""
    last = tuple(written[-2:])
    found = {written[i + 2] for i in range(len(written) - 2) if tuple(written[i : i + 2]) == last}
    for period in range(2, _LONGEST_LOOP + 1):
        behind = written[-(2 * period - 1) :]
        if len(behind) == 2 * period - 1 and behind[: period - 1] == behind[period:]:
            found.add(behind[period - 1])
    return found


def _shows(text: str) -> bool:
    return any(each.isprintable() and not each.isspace() for each in text)
