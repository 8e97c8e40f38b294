"""The gate: whether a released text is a text. Rules on public values alone, in any language that has letters.

What people write surprises a model as much as noise does, so that likelihood cannot tell them apart (measured:
research/docs/texts.md). Words can: how many pieces a tokenizer needs for them, signs and digits inside them, syllables
and words that come again at once, and how the text ends. The bounds keep 99% of the rows of six public sets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby

from mechanisms.inference import LanguageModel

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MOST_PIECES = 2.4
"""Pieces of a word, on average, in a language that the tokenizer was made for; see `Gate`."""
_TIMES_USUAL = 1.5
_MOST_SAMPLED = 64
"""Words that are looked at: a text has no more that tell something new."""
_LEAST_SHARE_OF_LETTERS = 0.6
_LEAST_SHARE_OF_NEW = 0.6
_FEWEST_RUNS = 6

_MARKUP = re.compile(r"\*\*|__|```|\[[A-Z][A-Za-z' /_-]*\]|[{}]|<\w+>|\ufffd")
"""Markup, and blanks to fill in: the web, not a text of the label."""
_ADDRESS = re.compile(r"\S+://\S+|\S*www\.\S+|\S+@\S+")
_BREAKS_OFF = re.compile(r"[,:(\[{<\-–—/&@#*=+][\s'\"”’]*$")
_GLUED = re.compile(r"[^\W\d_][!?]{1,3}[^\W\d_]{2,}|\d[.:]\d+[.:]\d+[.:](?!\d)")
"""Signs inside a word, and numbers that are none."""
_SYLLABLES = re.compile(r"([^\W\d_]{2,4})\1\1|([^\W\d_]{4,})\2")
_CLOSES_NOTHING = re.compile(r"[.!?]['’]$")
_OPENS = re.compile(r"(?<!\w)['‘’]")
_AT_THE_END = 60
_PAIRS = ("()", "（）", "[]", "«»")


class Gate:
    """Judges texts by the pieces in which a model's tokenizer writes their words.

    A language that the tokenizer was not made for needs more pieces a word. Public texts of the task say how many are
    usual.

    Args:
        usual: public texts of the task, as the model writes them.
    """

    def __init__(self, model: LanguageModel, usual: Sequence[str] = ()) -> None:
        self._model, self._most = model, _MOST_PIECES
        self._known: dict[str, int] = {}
        found = [pieces for text in usual if (pieces := self._pieces(text)) is not None]
        if found:
            self._most = max(_MOST_PIECES, _TIMES_USUAL * sorted(found)[len(found) // 2])

    def reason(self, text: str) -> str | None:
        """Why a text is none, in a few words; None where it is one."""
        text = _ADDRESS.sub(" ", text)
        words = _WORD.findall(text)
        lower = [word.casefold() for word in words]
        pieces = self._pieces(text)
        rules = {
            "no words": not words,
            "words that are none": pieces is not None and pieces > self._most,
            "mostly other than letters": _mostly_signs(text),
            "markup, or a blank to fill in": bool(_MARKUP.search(text)),
            "it breaks off": bool(_BREAKS_OFF.search(text)) or _unpaired(text),
            "the same syllables again": bool(_SYLLABLES.search(text)),
            "signs inside words or numbers": bool(_GLUED.search(text)),
            "it repeats itself": _loops(lower),
        }
        return next((reason for reason, holds in rules.items() if holds), None)

    def _pieces(self, text: str) -> float | None:
        """Pieces of a word, on average; None for a text without words that spaces divide."""
        words = _WORD.findall(text)[:_MOST_SAMPLED]
        if not words or _without_spaces(text):
            return None
        return sum(map(self._pieces_of, words)) / len(words)

    def _pieces_of(self, word: str) -> int:
        if word not in self._known:
            written = (len(self._model.encode(f" {each}")) for each in {word, word.lower()})
            self._known[word] = min(written)
        return self._known[word]


def is_letter(character: str) -> bool:
    """A letter, or a sign that belongs to one, as the vowels of Hindi and Thai."""
    return character.isalpha() or unicodedata.category(character).startswith("M")


def _without_spaces(text: str) -> bool:
    """Whether a text is mostly in a script without cases, whose words need no spaces between them."""
    letters = [each for each in text if is_letter(each)]
    return 2 * sum(each.upper() == each.lower() for each in letters) > len(letters)


def _mostly_signs(text: str) -> bool:
    visible = [each for each in text if not each.isspace()]
    return sum(map(is_letter, visible)) < _LEAST_SHARE_OF_LETTERS * len(visible)


def _unpaired(text: str) -> bool:
    """Whether a text ends inside brackets, or with a quote that nothing opened."""
    end = text[-_AT_THE_END:]
    if any(end.rfind(pair[0]) > end.rfind(pair[1]) for pair in _PAIRS):
        return True
    return bool(_CLOSES_NOTHING.search(text)) and not _OPENS.search(text[:-1])


def _loops(words: Sequence[str]) -> bool:
    """One word three times in a row, or runs of three words that come again and again."""
    if any(len([*run]) >= 3 for _, run in groupby(words)):
        return True
    runs = [tuple(words[i : i + 3]) for i in range(len(words) - 2)]
    return len(runs) >= _FEWEST_RUNS and len(set(runs)) < _LEAST_SHARE_OF_NEW * len(runs)
