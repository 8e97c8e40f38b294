"""Rules that separate texts from other strings. They use public values only, and work in any language with letters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import chain, groupby

from mechanisms.asking import LENGTH, Wording
from mechanisms.inference import LanguageModel
from mechanisms.inference.prompts import one_line

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MOST_PIECES = 2.4
"""The most tokenizer pieces of a word, on average over a text; the model's own texts may raise it. See `Gate`."""
_FOREIGN_PIECES = 1.9
"""Above this average the model may hardly know the language: the embedded model's tokenizer writes an English word in
1.0 to 1.25 pieces, and a Spanish, Dutch or German one mostly in 2.0 to 2.4. Some models that speak these languages need
1.9 pieces."""
FOREIGN = (
    "The model writes the words of this language in many pieces. It may know the language little and write nonsense: "
    "read its texts, or choose a model that speaks the language."
)
_MOST_SAMPLED = 64
"""The number of words that are examined; further ones change little."""

_MARKUP = re.compile(r"\*\*|__|```|\[[A-Z][A-Za-z' /_-]*\]|[{}]|<\w+>|\ufffd")
"""Markup, and blanks to fill in: signs of a web page, not of a label's text."""
_ADDRESS = re.compile(r"\S+://\S+|\S*www\.\S+|\S+@\S+")
_BREAKS_OFF = re.compile(r"[,:(\[{<\-–—/&@#*=+][\s'\"”’]*$")
_GLUED = re.compile(r"[^\W\d_][!?]{1,3}[^\W\d_]{2,}|\d[.:]\d+[.:]\d+[.:](?!\d)")
"""Signs inside words, and malformed numbers."""
_SYLLABLES = re.compile(r"([^\W\d_]{2,4})\1\1|([^\W\d_]{4,})\2")
_WE = r"(i|we)(['’](m|re|ll be|d be)| am| are| will be| would be)( \w+)?"
_MISHAP = "(inconvenience|misunderstanding|confusion)"
_OFFERS = re.compile(
    r"\b({})".format(
        "|".join(
            (
                r"how (can|may) (i|we) (help|assist)|can i (help|offer) you\b|assist you",
                r"can i get you (an?|some|any)\b",
                r"(any|some)thing (else )?(that )?(i|we) (can|could|may) (help|assist|do for) you\b",
                rf"{_WE} (here|happy|glad|ready) to (help|assist)",
                rf"{_WE} (unable|not able|not equipped|not authori[sz]ed) to (help|assist|provide)",
                r"i (can(no|['’])t|could(n['’]t| not)) (assist|help you)\b",
                r"please contact (us|our|the (customer|support|help))\b|i hope this message finds you",
                r"feel free to (ask|reach)|don['’]t hesitate to (ask|contact|reach)",
                # Narrow patterns, since a customer may also write "sorry to hear that the branch closes".
                r"sorry to hear (that([.!]|, but )|about your (experience|issue|problem|loss))",
                r"sorry to hear about your (condition|health|heart|skin)|(i|we)\b[^.!?]{0,20} prescribe you\b",
                r"sorry to hear that your (account|card|loan|money|mortgage|order|payment|transfer) (is|was|has|had)\b",
                r"sorry to hear (that )?you(['’](re|ve)| are| have) (having|had|been|going|facing)\b",
                rf"sorry for (your\b|any {_MISHAP}|the inconvenience[.,]|the {_MISHAP},? but\b)",
                r"sorry,? but i(['’]m| am) (not )?an? (ai|assistant|chatbot|((internet|service) ){1,2}provider)\b",
                r"i(['’]m| am) just a (text|chatbot|(computer )?program)\b|as an ai\b",
                r"i(['’]m| am) (not |just )?(an?|your) ((large )?language model|(ai|virtual) (model|assistant))\b",
            )
        )
    ),
    re.IGNORECASE,
)
"""Phrases of an assistant, instead of the person in whose name the model was asked to write."""
_CLOSES_NOTHING = re.compile(r"[.!?]['’]$")
_OPENS = re.compile(r"(?<!\w)['‘’]")


class Gate:
    """Decides whether texts can be demonstrations: by the tokenizer pieces of their words, by their form, and by who
    seems to write them.

    A language that the tokenizer was not made for needs more pieces for each word.

    Args:
        usual: public texts of the task that the model wrote; they give the usual number of pieces.

    Attributes:
        foreign: whether more than a third of `usual` have so many pieces that the model may hardly know their language.
    """

    def __init__(self, model: LanguageModel, usual: Sequence[str] = (), wording: Wording | None = None) -> None:
        self._model = model
        self._wording = wording or Wording()
        self._shown = {each for _, text in self._wording.exemplar_pairs() for each in _sentences(text)}
        self._known: dict[str, int] = {}
        found = [pieces for text in usual if (pieces := self._pieces(text)) is not None]
        middle = sorted(found)[len(found) // 2] if found else 0.0
        self._most = max(_MOST_PIECES, 1.5 * middle)
        # A third is enough: a model that is prompted in such a language writes some texts in its own language.
        self.foreign = 3 * sum(each > _FOREIGN_PIECES for each in found) > len(found)

    def reason(self, text: str) -> str | None:
        """Why a text cannot be a demonstration, in a few words; None if it can."""
        text = _ADDRESS.sub(" ", text)
        pieces = self._pieces(text)
        rules = {
            "it has no words": not _WORD.search(text),
            "many strings are not words": pieces is not None and pieces > self._most,
            "too few of its signs are letters": _mostly_signs(text, 0.6),
            "it has markup, or a blank to fill in": bool(_MARKUP.search(text)),
            "it breaks off": bool(_BREAKS_OFF.search(text)) or _unpaired(text),
            "it repeats syllables": bool(_SYLLABLES.search(text)),
            "it has signs inside words or numbers": bool(_GLUED.search(text)),
            "it repeats itself": _loops(text),
            "somebody else seems to write it": self._wording.by_another_writer(text),
            # The owner's own sentence may ask for texts of people who offer help.
            "it offers help, as a model does": not self._wording.sentence and bool(_OFFERS.search(text)),
            "it repeats a public exemplar": not self._shown.isdisjoint(_sentences(text)),
        }
        return next((reason for reason, holds in rules.items() if holds), None)

    def _pieces(self, text: str) -> float | None:
        """The average number of pieces of a word; None for a text whose words are not separated by spaces."""
        words = _WORD.findall(text)[:_MOST_SAMPLED]
        letters = [each for each in text if is_letter(each)]
        # A script without letter case may have no spaces between words.
        if not words or 2 * sum(each.upper() == each.lower() for each in letters) > len(letters):
            return None
        return sum(map(self._pieces_of, words)) / len(words)

    def _pieces_of(self, word: str) -> int:
        if word not in self._known:
            written = (len(self._model.encode(f" {each}")) for each in {word, word.lower()})
            self._known[word] = min(written)
        return self._known[word]


def is_letter(character: str) -> bool:
    """Whether a character is a letter, or a mark that belongs to one, such as the vowels of Hindi and Thai."""
    return character.isalpha() or unicodedata.category(character).startswith("M")


def _mostly_signs(text: str, least: float) -> bool:
    visible = [each for each in text if not each.isspace()]
    return sum(map(is_letter, visible)) < least * len(visible)


def _unpaired(text: str) -> bool:
    """Whether a text ends inside brackets, or with a quote that nothing opened."""
    end = text[-60:]
    if any(end.rfind(pair[0]) > end.rfind(pair[1]) for pair in ("()", "（）", "[]", "«»")):
        return True
    return bool(_CLOSES_NOTHING.search(text)) and not _OPENS.search(text[:-1])


def _loops(text: str) -> bool:
    """Whether a word occurs three times in a row, a third of a sentence is one word, or the same runs of three words
    are repeated many times."""
    sentences = [[word.casefold() for word in _WORD.findall(each)] for each in _SENTENCE_END.split(text)]
    words = [*chain(*sentences)]
    if any(len([*run]) >= 3 for _, run in groupby(words)):
        return True
    for sentence in sentences:
        # Shorter words, such as articles, may well be a third of a sentence.
        often = max(Counter(word for word in sentence if len(word) > 3).values(), default=0)
        if often >= max(3, len(sentence) / 3):
            return True
    runs = [tuple(words[i : i + 3]) for i in range(len(words) - 2)]
    return len(runs) >= 6 and len(set(runs)) < 0.6 * len(runs)


# A text that stops inside a sentence can be cut back to the end of the previous one, in any script.
_WIDE = "。！？｡．"
"""Sentence ends of scripts that put no space after them."""
_NARROW = "!?…؟۔।॥።፧։။។"
_CLOSING = "\"'”’»«“›)）」』】"

# A period ends no sentence after a single letter, which is an initial or an abbreviation ("J. Smith", "e.g."), after a
# title, a form of company, an article or "and", and after a space.
_NOT_BEHIND = (
    r"(?<!\s)(?<!\b[^\W\d_])(?<!\b(?:[DMSJ]r|Ms|St|Co|[Aa]n))"
    r"(?<!\b(?:Mrs|Inc|Ltd|[Tt]he|[Aa]nd))(?<!\b(?:Prof|Corp))"
)
_END = re.compile(
    rf"(?:[{_WIDE}]|(?:{_NOT_BEHIND}\.|[{_NARROW}])(?=[.{_NARROW}{_CLOSING}]*(?:\s|$)))[.{_NARROW}{_CLOSING}]*"
)


def whole_sentences(text: str) -> str:
    """The text up to its last end of a sentence, including quotes and brackets after it; "" if it has none."""
    ends = [match.end() for match in _END.finditer(text)]
    return text[: ends[-1]].strip() if ends else ""


# The rules for drafts depend on public text only, and are for any language with letters.
_LEAST_WORDS, _LEAST_LETTERS = 4, 10
_RUN = 3
"""The length, in characters, of the runs that measure repetition; runs of words would need spaces between words."""
_LEAST_QUOTE = 12
"""The fewest letters of a sentence whose repetition is not a coincidence."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_ENDLESS = re.compile("[\u0e00-\u0eff]")
"""Letters of Thai and Lao, which do not mark the end of a sentence."""
_FIELD = re.compile(r"\W*\w+:")
_NUMBERED = re.compile(r"\W*(?:\d+(?:\.\d+)*[.):\]]|\d+\.\d|\d+\s[-–—]\s|\d{4,}-\d|[^\W\d_]\)|[-*•·‣▪–—+](?:\s|$))")
_ITEMS = re.compile(r"\d+(?:\.\d+){3,}|\s\d+[.)]\s.*\s\d+[.)](?!\S)")
_MARKUP_OF_DRAFT = re.compile(r"://|www\.|\S@\S|\*\*|__|`|#\w|&\w+;|[\[\]{}<>|\\]")
_QUOTES = {'"': '"', "“": "”", "„": "“”", "«": "»", "»": "«", "‘": "’", "'": "'", "「": "」", "『": "』"}


def cleaned(text: str, wording: Wording, label: str, labels: Sequence[str], gate: Gate) -> str | None:
    """The draft that the model wrote as `text`, cut back to its last whole sentence; None if it cannot be a
    demonstration."""
    line = one_line(text)
    kept = _unquoted(line if _ENDLESS.search(line) else whole_sentences(line))
    refused = (
        _too_short(kept, (label, *labels))
        or _repeats_prompt(kept, wording, labels)
        # Headings, items and versions ("3.1 ...", "a) ...", "1.1.2.175") come from documents about something else.
        or _NUMBERED.match(kept)
        or _ITEMS.search(kept)
        or _MARKUP_OF_DRAFT.search(kept)  # addresses, markup and blanks: a web page, not a label's text
        or _repeats_itself(kept)
        or _unbalanced(kept)
        or any(unicodedata.category(each) == "Cc" for each in kept)
        or _mostly_signs(kept, 0.7)  # tables, codes and rows of emoji
        or gate.reason(kept) is not None
    )
    return None if refused else kept


def _unquoted(text: str) -> str:
    closing = _QUOTES.get(text[:1], "")
    inner = text[1:-1]
    whole = len(text) > 1 and closing and text[-1] in closing and not any(mark in inner for mark in text[0] + closing)
    return inner.strip() if whole else text


def normalised_text(text: str) -> str:
    """A text in one case, without spaces, punctuation and control characters: a key to compare texts by."""
    return "".join(each for each in text.casefold() if unicodedata.category(each)[0] not in "PZC")


def quotes(text: str, sentence: str) -> bool:
    """Whether a whole sentence of a draft is in `sentence`, the `normalised_text` of the prompt's sentence."""
    return any(each in sentence for each in _sentences(text))


def _sentences(text: str) -> list[str]:
    """The sentences of a text, each as `normalised_text`, without those too short to be compared."""
    return [each for each in map(normalised_text, _SENTENCE_END.split(text)) if len(each) >= _LEAST_QUOTE]


def _too_short(text: str, labels: Sequence[str]) -> bool:
    rest = text.casefold()
    for each in sorted(labels, key=len, reverse=True):  # a label's name is not content
        rest = rest.replace(each.casefold(), " ")
    runs = "".join(each if is_letter(each) else " " for each in rest).split()
    # Letters without case may belong to a script without spaces, in which about two characters make a word.
    words = sum(1 if run.upper() != run.lower() else (len(run) + 1) // 2 for run in runs)
    return sum(map(len, runs)) < _LEAST_LETTERS or words < _LEAST_WORDS


def _repeats_prompt(text: str, wording: Wording, labels: Sequence[str]) -> bool:
    # A model that continues the prompt writes a field ("Question: ...") or repeats the request, instead of a text.
    fields = [f"{each.strip()}:" for each in (wording.kind, wording.writer, *labels, "Label", "Text")]
    spoken = text.casefold()
    told = [f"the {wording.kind} is", LENGTH]
    told += [f"{which} {wording.kind}" for which in ("one", "this", "that", "short")]  # the text describes itself
    told += [f"{article} {wording.kind} {wording.relation}" for article in ("a", "an", "the")]
    named = any(each.strip(": ") and each.casefold() in spoken for each in fields + told)
    return named or bool(_FIELD.match(text))


def _repeats_itself(text: str) -> bool:
    # Small models fall into loops.
    plain = text.casefold()
    runs = [plain[i : i + _RUN] for i in range(len(plain) - _RUN + 1)]
    return len(set(runs)) < 0.7 * len(runs)


def _unbalanced(text: str) -> bool:
    # A quote or bracket is left open if its end was cut off. An apostrophe inside a word closes no quote.
    if text.count("(") != text.count(")") or text.count("（") != text.count("）") or text.count('"') % 2:
        return True
    closing = _QUOTES.get(text[:1], "")
    behind = r"(?!\w)" if closing in "'’" else ""
    return bool(closing) and not re.search(f"[{closing}]{behind}", text[1:])
