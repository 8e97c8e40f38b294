"""Drafts that may stand in a ballot, in any language with letters, and those that may not."""

from __future__ import annotations

import pytest

from mechanisms.asking import Asked
from mechanisms.runs.text import Gate, cleaned

ASKED = Asked(kind="article", writer="a reporter")
LABELS = ("World", "Sports")


class Words:
    """A tokenizer in whose language every word is one piece."""

    def encode(self, text: str) -> list[int]:
        return [0] * len(text.split())


def clean(text: str, asked: Asked = ASKED, label: str = "Sports", labels: tuple[str, ...] = LABELS) -> str | None:
    return cleaned(text, asked, label, labels, Gate(Words()))


WHOLE = [
    "The home side won after extra time.",
    "We went to Dr. Meyer's clinic, and J. Smith opened the door for 3.50 euros.",
    "'It isn't over,' the coach said after the match.",
    '"Will they win the cup this year?" asked the child.',
    "Die Mannschaft gewann nach der Verlängerung mit 3:2!",
    "„Das war knapp“, sagte der Trainer nach dem Spiel.",
    "« Quel beau match ! » dit le gardien.",
    "¿Quién ganó el partido de ayer por la noche?",
    "Команда выиграла матч после дополнительного времени.",
    "Η ομάδα κέρδισε τον αγώνα μετά την παράταση.",
    "主队在加时赛之后赢得了比赛。",
    "彼は昨日の試合で三つのゴールを決めた。",
    "「今日は本当にいい試合だった。」と監督は言った。",
    "우리 팀이 연장전 끝에 경기를 이겼습니다.",
    "टीम ने अतिरिक्त समय के बाद मैच जीत लिया।",
    "فاز الفريق بالمباراة بعد الوقت الإضافي.",
    "הקבוצה ניצחה במשחק אחרי הארכה.",
    "ቡድኑ ጨዋታውን ከጭማሪ ሰዓት በኋላ አሸነፈ።",
    "ทีมเจ้าบ้านชนะการแข่งขันหลังต่อเวลาพิเศษ",
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_whole_sentence_stays_as_it_is_and_is_clean_again(text):
    assert clean(f"  {text}\n") == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The home side won at last. Their coach was", "The home side won at last."),
        ("He paid 3.50 for the ticket to it. It was 4.2", "He paid 3.50 for the ticket to it."),
        ("The home side won at last. Their coach, Mr. D", "The home side won at last."),
        ("主队在加时赛之后赢得了比赛。教练非常", "主队在加时赛之后赢得了比赛。"),
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
        "   ",
        "Sports.",
        "Sports, World, Sports, World.",
        "Too short.",
        "A b c d e.",
        "How the home side won after extra time",
        "主队赢了。",
        "The home side won. Article: World.",
        "Article: The home side won after extra time.",
        "World: The home side won after extra time.",
        "Question: Which side won after extra time?",
        "Write one article with the given topic please.",
        "This is an article about sports for you.",
        "Is there a side in one or two sentences that won?",
        "1. The home side won after extra time.",
        "3.1 The home side won after extra time.",
        "(2) The home side won after extra time.",
        "a) The home side won after extra time.",
        "- The home side won after extra time.",
        "• The home side won after extra time.",
        "The version that was sent is 1.1.2.175 now.",
        "There are two ways to win it: 1. score more goals. 2. concede fewer of them.",
        "See https://example.org for the whole match report.",
        "See www.example.org for the whole match report.",
        "Write to me@example.org for the whole match report.",
        "The **home side** won after extra time.",
        "The <b>home side</b> won after extra time.",
        "[Insert the name of the side] won after extra time.",
        "The home side won after extra time #winning.",
        "The home side won. The home side won. The home side won.",
        "主队赢得了比赛。主队赢得了比赛。主队赢得了比赛。",
        '"The home side won after extra time.',
        '"The home side won" after "extra time.',
        "“The home side won after extra time.",
        "„Die Mannschaft gewann nach der Verlängerung.",
        "「今日は本当にいい試合だったと監督は言った。",
        "'It isn't over for the home side at all.",
        "The home side (from the north won after extra time.",
        "Win 12-3, 14-2, 18-9, 11-7, 23-5 and 31-8 at home.",
        "🏆 🏆 🏆 🏆 🏆 🏆 🏆 🏆 🏆 🏆 what a match it was!",
        "The home side won \ufffd after extra time.",
        "How can I help you with tickets for the match?",
        "I'm so sorry to hear that the home side lost.",
        "I am sorry for your loss in the last match.",
        "The match is sold out. Can I help you?",
    ],
)
def test_what_is_no_text_of_the_label_is_refused(text):
    assert clean(text) is None


def test_what_a_text_is_called_and_who_writes_it_are_those_of_the_task():
    text = "We liked it, review: the food was good."
    assert clean(text, Asked(kind="review"), "Good", ("Good",)) is None
    assert clean(text) is not None
    assert clean("The guest writes a letter about the food.", Asked(kind="letter"), "Good", ("Good",)) is None
    assert clean("The guest writes an email about the food.", Asked(kind="email"), "Good", ("Good",)) is None


@pytest.mark.parametrize("text", ['"{}"', "“{}”", "„{}“", "«{}»"])
def test_quotation_marks_around_the_whole_go(text):
    plain = "The home side won after extra time."
    assert clean(text.format(plain)) == plain
