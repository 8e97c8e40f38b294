"""The gate: what is no text is refused with a reason, what people write passes, and nothing else decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.runs.text import Gate

GIBBERISH = (
    "Adadavadafetamazdazdahiladabutanam,",
    "Orthoperodias, an active activeactive andaactive 53- 825",
    "DERM DINLEMAR",
    "[Cardiology] This type 7.",
    "(A, 2), My son, is in Pediatric Medicine with your organization and will attend medical events every month (",
    "I'm in Dr., 9-870, and I work primarily with doctors of Dr.'",
    "'Lux-Frobenz Azidoben Nick-Ozone'. How do we abbrev",
    "It doesn??mae's gone miss'en his car and we lost that memory",
    "Fiat - The 114899",
    "The team racked aasketble against the World Champions - 00.5:8.4:",
)
"""As exported by version 0.2.0, or written where the signal was low."""
SETS = ("agnews", "dbpedia", "trec", "sst2", "mit_g", "mit_d")
LEAST_KEPT = 0.99


class Pieces:
    """A tokenizer that writes a word in a piece for each three of its letters."""

    def encode(self, text: str) -> list[int]:
        return [0] * -(-len(text.strip()) // 3)


@pytest.fixture(scope="module")
def gate(embedded_model) -> Gate:
    return Gate(embedded_model)


@pytest.mark.parametrize("text", GIBBERISH)
def test_what_was_exported_and_is_no_text_is_refused(gate, text):
    assert gate.reason(text)


@pytest.mark.parametrize("name", SETS)
def test_what_people_write_is_kept(gate, real_data, name):
    texts = [row.text for row in real_data(name, "train")]
    refused = [text for text in texts if gate.reason(text)]
    assert len(texts) > 1000
    assert len(refused) <= (1 - LEAST_KEPT) * len(texts), f"{len(refused)} of {len(texts)}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_rows_of_the_examples_are_kept(gate, example):
    texts = read_table(example.path).frame[example.mapping.text].tolist()
    refused = [text for text in texts if gate.reason(text)]
    assert len(refused) <= (1 - LEAST_KEPT) * len(texts)


@pytest.mark.parametrize(
    "text",
    [
        "Meine Karte ist seit gestern gesperrt, und ich weiß nicht warum.",
        "Wie lange dauert es, bis die Überweisung ankommt?",
        "¿Dónde puedo ver el saldo de mi cuenta?",
        "Я потерял карту и не знаю, что делать.",
        "我昨天丢了我的银行卡，应该怎么办？",
        "カードをなくしました。どうすればいいですか？",
        "มีคนใช้บัตรของฉันโดยไม่ได้รับอนุญาต",
        "मेरा कार्ड खो गया है, मुझे क्या करना चाहिए?",
    ],
)
def test_sentences_of_other_languages_pass_once_public_texts_of_the_language_are_known(embedded_model, text):
    assert Gate(embedded_model, [text]).reason(text) is None


REASONS = {
    "no words": ("", "  ", "12 34", "?!"),
    "words that are none": ("abcdefghijkl mnopqrstuvwx",),
    "mostly other than letters": ("a 12 34 56 78 90", "so ... ... !!! ???"),
    "markup, or a blank to fill in": ("I am **bold** now", "my {name}", "Dear [Name] you", "a <b> tag", "it \ufffd is"),
    "it breaks off": ("I was at the,", "it was (", "see it -", "I saw (the end", "as he said.'"),
    "the same syllables again": ("it is lalala now", "an active activeactive one"),
    "signs inside words or numbers": ("it doesn??mae now", "at the end of the game it was 00.5:8.4: for us"),
    "it repeats itself": ("no no no", "we go to it we go to it we go to it we go to it"),
}  # fmt: skip


@pytest.mark.parametrize(("reason", "text"), [(reason, text) for reason, texts in REASONS.items() for text in texts])
def test_each_rule_refuses_with_its_reason(reason, text):
    assert Gate(Pieces()).reason(text) == reason


@pytest.mark.parametrize(
    "text",
    [
        "I can not pay.",
        "Is it ok to go at 10:30 or at 5 pm?",
        "he said 'no' to me.",
        "I had to go (to him).",
        "see www.abc.de/x?y=1 or ask me at a.b@c.de now",
        "it was the cup of the cup of the day",
        "no no, not me!",
    ],
)
def test_what_only_looks_like_it_passes(text):
    assert Gate(Pieces()).reason(text) is None


WORDS = st.lists(st.sampled_from(["the", "cat", "sat", "(", ",", "9", "a"]), max_size=12).map(" ".join)
TEXTS = st.one_of(st.text(max_size=60), WORDS)


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_a_verdict_is_the_texts_own_whatever_was_judged_before(text, others):
    gate = Gate(Pieces())
    alone = gate.reason(text)
    for each in others:
        gate.reason(each)
    assert gate.reason(text) == alone == Gate(Pieces()).reason(text)
    assert alone is None or alone in REASONS


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_public_texts_only_allow_more_pieces_a_word(text, usual):
    plain, known = Gate(Pieces()).reason(text), Gate(Pieces(), usual).reason(text)
    assert known == plain or plain == "words that are none"


def test_words_that_are_usual_in_a_language_are_words():
    long = "Krankenversicherungskarte verloren"
    assert Gate(Pieces()).reason(long) == "words that are none"
    assert Gate(Pieces(), ["Überweisungsauftrag abgelehnt"]).reason(long) is None
    assert Gate(Pieces(), ["I am at it."]).reason(long) == "words that are none"
