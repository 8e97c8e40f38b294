"""What is a text: rules on public values alone, for the gate and for drafts, in any language with letters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.asking import Wording
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.runs.text import Gate, cleaned, whole_sentences

GIBBERISH = (
    "Adadavadafetamazdazdahiladabutanam,",
    "[Cardiology] This type 7.",
    "(A, 2), My son, is in Pediatric Medicine with your organization and will attend medical events every month (",
    "'Lux-Frobenz Azidoben Nick-Ozone'. How do we abbrev",
    "It doesn??mae's gone miss'en his car and we lost that memory",
    "The team racked aasketble against the World Champions - 00.5:8.4:",
)
"""As exported by version 0.2.0, or written where the signal was low."""
SETS = ("agnews", "dbpedia", "trec", "sst2", "mit_g", "mit_d")
LEAST_KEPT = 0.99
OFFERS_HELP = "it offers help, as a model does"
MOST_OFFERS = 0.001


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
    reasons = Counter(gate.reason(row.text) for row in real_data(name, "train")[:4000])
    assert reasons.total() > 1000
    assert reasons[None] >= LEAST_KEPT * reasons.total(), reasons
    assert reasons[OFFERS_HELP] <= MOST_OFFERS * reasons.total()


def test_office_workers_who_are_sorry_are_no_model(real_data):
    """Some of them offer help in the same words."""
    gate, rows = Gate(Words()), real_data("enron_aeslc", "train")
    offers = [row for row in rows if gate.reason(row.text) == OFFERS_HELP]
    assert len(offers) <= 3 * MOST_OFFERS * len(rows)
    assert not any("sorry" in row.text.casefold() for row in offers)


@pytest.mark.parametrize(
    "text",
    [
        "Meine Karte ist seit gestern gesperrt, und ich weiß nicht warum.",
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
    "it has no words": ("", "  ", "12 34", "?!"),
    "many strings are not words": ("abcdefghijkl mnopqrstuvwx",),
    "too few of its signs are letters": ("a 12 34 56 78 90", "so ... ... !!! ???"),
    "it has markup, or a blank to fill in": (
        "I am **bold** now", "my {name}", "Dear [Name] you", "a <b> tag", "it \ufffd is",
    ),
    "it breaks off": ("I was at the,", "it was (", "see it -", "I saw (the end", "as he said.'"),
    "it repeats syllables": ("it is lalala now", "an active activeactive one"),
    "it has signs inside words or numbers": ("it doesn??mae now", "at the end of the game it was 00.5:8.4: for us"),
    "it repeats itself": (
        "no no no", "we go to it we go to it we go to it we go to it", "I am ill. The bone of the bone is the bone.",
    ),
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
        "the man and the dog sat on the mat",
        "my knee, my hip and my bad knee ache",
        "My heart is bad. My heart. Is it the heart of a man?",
    ],
)
def test_what_only_looks_like_it_passes(text):
    assert Gate(Pieces()).reason(text) is None


A_PATIENT = Wording("message", "a patient", "a clinic")
OF_ANOTHER = [
    "The patient's skin is badly damaged.",
    "You've been told that your patient has a heart issue.",
    "I'm sorry, I'm not a clinic.",
    "You are a clinic, and I can not walk.",
    "As a clinic, we can not help you.",
    "Hello, I'm Dr. Lee and it hurts.",
    "I am so sorry, I am a doctor.",
    "I'm a medical professional and I saw your skin.",
]
OF_THE_WRITER = [
    "I'm a patient of yours, and it hurts.",
    "I have been a patient at your clinic for five years.",
    "The doctor at the clinic said that patients wait.",
    "As a patient I can not wait.",
    "Your clinic is a bank.",
    "I'm Andrea, and Dr. Lee is my doctor.",
    "I am at the doctor's.",
]


def judged(text: str, wording: Wording) -> str | None:
    return Gate(Words(), wording=wording).reason(text)


@pytest.mark.parametrize("text", OF_ANOTHER)
def test_a_message_that_its_writer_did_not_write_is_refused(text):
    assert judged(text, A_PATIENT) == "somebody else seems to write it"
    for asked in (ASKED, replace(A_PATIENT, reader=""), Wording("Nachricht", "ein Kunde", "eine Bank")):
        assert judged(text, asked) is None, "nobody says who writes it to whom, or not in English"


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry, but I am unable to provide a way to pay.",
        "I'm not equipped to assist with that.",
        "How can I help you?",
        "Can I get you a skin cream?",
        "The transfer went through. Is there anything else I can help you with?",
        "I'm sorry for the misunderstanding, but I am not a bank.",
        "I'm sorry, but I'm not an internet service provider.",
        "Sorry, but I am an assistant.",
        "I'm sorry, but I'm just a text of a computer.",
        "I am sorry for any inconvenience.",
        "I'm sorry for the inconvenience.",
        "I'm so sorry to hear that you're having a bad day.",
        "I'm sorry to hear that.",
        "I'm so sorry to hear about your heart health. My clinic has a program.",
        "My skin is dry, and I'm going to prescribe you some cream.",
        "I'm sorry to hear that your account was fraudulently accessed. Which number may I call?",
        "We will be happy to help with it.",
        "I can't assist with that request, but a nurse could.",
        "I am a large language model and have no account.",
        "As an AI I do not pay.",
    ],
)
def test_a_text_that_offers_help_is_the_models_own(text):
    """But where the owner's own sentence may ask for texts of people who help."""
    assert judged(text, A_PATIENT) == OFFERS_HELP
    assert judged(text, Wording(sentence="Write what an agent of a bank says about {label}:")) is None


@pytest.mark.parametrize(
    "text",
    [
        *OF_THE_WRITER,
        "I was unable to pay.",
        "They could not help me.",
        "Your nurse was unable to help me.",
        "I'm sorry but I'm unable to attend on Monday.",
        "Sorry, but I'm a bit late.",
        "Sorry but I am not an expert, so can I see a doctor?",
        "I'm sorry to hear you are closing my branch, and I want to know why.",
        "I'm sorry to hear that my appointment was moved.",
        "Can I get you to look at my knee?",
        "Can you prescribe me the cream that I had?",
        "Can I get you on the phone today?",
        "Can I offer your app to my employees?",
        "I was sorry to hear that your account manager is leaving.",
        "Is there anything else I can do to help?",
        "Can you help me, or is there somebody else who can?",
        "I'm sorry to hear that your branch closes, and I want to close my account.",
        "Sorry for the confusion, I meant my left knee.",
        "Sorry for any mistakes in how I write.",
        "The nurses are always happy to help, so why is nobody there today?",
        "Can you please contact the pharmacy about my pills?",
    ],
)
def test_a_writer_may_speak_of_itself(text):
    assert judged(text, A_PATIENT) is None


def test_signs_in_the_words_are_no_pattern():
    wording = Wording("note", "a user (new", "a desk [2")
    assert judged("I am the user (new one) of it.", wording) is None
    assert judged("The user (new) can not go.", wording) == "somebody else seems to write it"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path.stem)
def test_what_people_write_to_somebody_is_kept(embedded_model, example):
    gate, texts = Gate(embedded_model, wording=example.wording), read_table(example.path).frame[example.mapping.text]
    refused = [text for text in texts if gate.reason(text)]
    assert len(refused) <= (1 - LEAST_KEPT) * len(texts), f"{len(refused)} of {len(texts)}"


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


@pytest.mark.parametrize(
    ("texts", "foreign"),
    [
        (["My order has not arrived yet. Could you look?", "Where is it?", "I was charged twice this month."], False),
        (
            ["Meine Bestellung ist noch nicht angekommen.", "Wo bleibt sie?", "Der Betrag wurde zweimal abgebucht."],
            True,
        ),
        (["Hola, mi pedido todavía no ha llegado.", "Quiero devolver este artículo porque no es mi talla."], True),
        (["Wo bleibt meine Bestellung?", "Der Betrag wurde zweimal abgebucht.", *["The duty of honor."] * 3], True),
        (["Der Betrag wurde zweimal abgebucht.", *["The duty of honor."] * 3], False),
        (["注文した品物がまだ届きません。"], False),  # its words are not divided: nothing is known
        ([], False),
    ],
)
def test_a_language_in_many_pieces_is_one_that_the_model_hardly_knows(embedded_model, texts, foreign):
    assert Gate(embedded_model, texts).foreign is foreign


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_examples_are_no_foreign_language(embedded_model, example):
    texts = read_table(example.path).frame[example.mapping.text]
    assert not Gate(embedded_model, texts[:50].tolist()).foreign


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_public_texts_only_allow_more_pieces_a_word(text, usual):
    plain, known = Gate(Pieces()).reason(text), Gate(Pieces(), usual).reason(text)
    assert known == plain or plain == "many strings are not words"


ASKED = Wording(kind="article", writer="a reporter")
LABELS = ("World", "Sports")


class Words:
    """A tokenizer in whose language every word is one piece."""

    def encode(self, text: str) -> list[int]:
        return [0] * len(text.split())


def clean(text: str, wording: Wording = ASKED, label: str = "Sports", labels: tuple[str, ...] = LABELS) -> str | None:
    return cleaned(text, wording, label, labels, Gate(Words()))


WHOLE = [
    "The home side won after extra time.",
    "We went to Dr. Meyer's clinic, and J. Smith opened the door for 3.50 euros.",
    "'It isn't over,' the coach said after the match.",
    '"Will they win the cup this year?" asked the child.',
    "¿Quién ganó el partido de ayer por la noche?",
    "主队在加时赛之后赢得了比赛。",
    "「今日は本当にいい試合だった。」と監督は言った。",
    "टीम ने अतिरिक्त समय के बाद मैच जीत लिया।",
    "فاز الفريق بالمباراة بعد الوقت الإضافي.",
    "ทีมเจ้าบ้านชนะการแข่งขันหลังต่อเวลาพิเศษ",
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_whole_sentence_stays_as_it_is_and_is_clean_again(text):
    assert clean(f"  {text}\n") == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The home side won at last. Their coach, Mr. D", "The home side won at last."),
        ("टीम ने अतिरिक्त समय के बाद मैच जीत लिया। कप्तान ने", "टीम ने अतिरिक्त समय के बाद मैच जीत लिया।"),
        ("هل فاز الفريق في مباراة الأمس؟ قال المدرب إن", "هل فاز الفريق في مباراة الأمس؟"),
        ('She asked: "Who won the match then?" And no', 'She asked: "Who won the match then?"'),
    ],
)
def test_what_broke_off_is_cut_back_to_the_last_whole_sentence(text, kept):
    assert clean(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sports.",
        "Too short.",
        "How the home side won after extra time",
        "主队赢了。",
        "The home side won. Article: World.",
        "Article: The home side won after extra time.",
        "Write one article with the given topic please.",
        "Is there a side in one or two sentences that won?",
        "1. The home side won after extra time.",
        "• The home side won after extra time.",
        "The version that was sent is 1.1.2.175 now.",
        "There are two ways to win it: 1. score more goals. 2. concede fewer of them.",
        "See https://example.org for the whole match report.",
        "The **home side** won after extra time.",
        "[Insert the name of the side] won after extra time.",
        "The home side won. The home side won. The home side won.",
        '"The home side won after extra time.',
        "「今日は本当にいい試合だったと監督は言った。",
        "'It isn't over for the home side at all.",
        "The home side (from the north won after extra time.",
        "Win 12-3, 14-2, 18-9, 11-7, 23-5 and 31-8 at home.",
        "🏆 🏆 🏆 🏆 🏆 🏆 🏆 🏆 🏆 🏆 what a match it was!",
        "The home side won \ufffd after extra time.",
        "How can I help you with tickets for the match?",
        "I'm sorry for the inconvenience, but the match is over.",
        "I am unable to assist with tickets for the match.",
        "The match is over, so please contact us tomorrow.",
    ],
)
def test_what_is_no_text_of_the_label_is_refused(text):
    assert clean(text) is None


def test_what_a_text_is_called_and_who_writes_it_are_those_of_the_task():
    text = "We liked it, review: the food was good."
    assert clean(text, Wording(kind="review"), "Good", ("Good",)) is None
    assert clean(text) is not None
    assert clean("The guest writes a letter about the food.", Wording(kind="letter"), "Good", ("Good",)) is None
    assert clean("The guest writes an email about the food.", Wording(kind="email"), "Good", ("Good",)) is None


@pytest.mark.parametrize("text", ['"{}"', "“{}”", "„{}“", "«{}»"])
def test_quotation_marks_around_the_whole_go(text):
    plain = "The home side won after extra time."
    assert clean(text.format(plain)) == plain


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("He came. It was Mr. Smith.", "He came. It was Mr. Smith."),
        ("I saw it. There's no album quite like The.", "I saw it."),
        ("We met. At a newsstand, a company named Brandi and Co.", "We met."),
        ("Was it you? I sat in an.", "Was it you?"),
        ("It was late. Then and.", "It was late."),
    ],
)
def test_no_sentence_ends_behind_a_title_a_company_or_an_article(text, whole):
    assert whole_sentences(text) == whole
