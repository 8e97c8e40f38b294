"""What "Ask privately" says of answers, of the noise, of abstentions and of thresholds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from dpicl_ui.ask.cards import answer, effect_card, history, percent, promise, questions_until_silent, reserved, verdict
from dpicl_ui.generate.state import Made
from mechanisms.accounting import PrivacyTarget, fingerprint
from mechanisms.answers.events import AnswerReleased, AnswersOpened
from mechanisms.answers.odds import ThresholdEffect
from mechanisms.answers.request import AnswerRequest
from mechanisms.answers.session import NO_AGREEMENT
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.queries import query_mechanism_class
from mechanisms.records import Dataset, PromptTemplate
from tests.ui.generate.recording import HOSTILE, demo_set, snapshot
from tests.ui.trees import text_of

OPENED = AnswersOpened("letters", "record", 4.0, 1e-5, 0.3, 5, 0, False, 2.0, True, (), (), snapshot())
VOTES = AnswerReleased(
    "Which one?", "Sport", "News", ("News", "Sport", "Art"), (-1.5, 9.0, 2.0), (), None, 0.3, 0.07, 0.0, 2, 5
)
WORDS = replace(VOTES, answer="by train", labels=(), votes=None, keywords=("rail", HOSTILE))


def find(tree: Any, kind: str) -> list[Any]:
    """All elements of a class, in order."""
    if isinstance(tree, str):
        return []
    if isinstance(tree, list):
        return [each for child in tree for each in find(child, kind)]
    own = [tree] if kind in tree.get("class", "").split() else []
    return own + find(tree["children"], kind)


def test_bars_start_at_zero_and_end_at_their_votes():
    shown = answer(OPENED, VOTES)
    zeros = {each["numbers"]["from"] for each in find(shown, "vote-zero")}
    [zero] = zeros
    ends = []
    for bar, vote in zip(find(shown, "vote-bar"), VOTES.votes, strict=True):
        start, span = bar["numbers"]["from"], bar["numbers"]["span"]
        assert 0 <= start <= start + span <= 1 + 1e-9
        assert (start if vote >= 0 else start + span) == pytest.approx(zero)
        ends.append((start + span if vote >= 0 else start) - zero)
    assert [end / ends[1] for end in ends] == pytest.approx([vote / 9.0 for vote in VOTES.votes])
    assert len(find(shown, "best")) == 1
    assert "Sport" in text_of(find(shown, "best")[0])


def test_the_noise_around_a_bar_is_two_deviations_wide():
    shown = answer(OPENED, VOTES)
    [bar, noise] = find(shown, "vote-bar")[1], find(shown, "vote-noise")[1]
    assert noise["numbers"]["span"] / bar["numbers"]["span"] == pytest.approx(2 * OPENED.noise / 9.0)


def test_votes_below_zero_can_be_drawn():
    for bar in find(answer(OPENED, replace(VOTES, votes=(-3.0, -1.0, -2.0))), "vote-bar"):
        assert 0 <= bar["numbers"]["from"] <= bar["numbers"]["from"] + bar["numbers"]["span"] <= 1


@pytest.mark.parametrize(("share", "said"), [(0.5, "may be chance"), (1.5, "not by much"), (2.5, "clear")])
def test_a_lead_is_compared_with_the_noise_on_a_difference(share: float, said: str):
    noise = 3.0
    assert said in verdict((1.0, 1.0 + share * math.sqrt(2) * noise, -4.0), noise)


def test_an_abstention_is_explained_and_is_not_passed_off_as_an_answer():
    shown = text_of(answer(OPENED, replace(WORDS, answer="by car", keywords=(), abstained=NO_AGREEMENT)))
    assert shown.index("No private answer") < shown.index("by car")
    assert NO_AGREEMENT in shown


def test_keywords_and_questions_stay_text():
    shown = history([(OPENED, replace(WORDS, query=HOSTILE))])
    assert [text_of(each) for each in find(shown, "chip")] == ["rail", HOSTILE]
    assert HOSTILE in text_of(shown)


def test_the_newest_answer_is_first_and_none_is_lost():
    asked = [(OPENED, replace(VOTES, query=f"question {i}", asked=i + 1)) for i in range(3)]
    text = text_of(history(asked))
    assert text.index("question 2") < text.index("question 1") < text.index("question 0")
    assert "0" not in text_of(history([]))


def test_what_is_left_is_public_and_never_below_zero():
    assert "3 questions left" in " ".join(text_of(reserved(OPENED, [VOTES])).split())
    beyond = text_of(reserved(OPENED, [replace(VOTES, asked=9)]))
    assert "0 questions left" in " ".join(beyond.split())
    assert "private" in beyond


def test_a_continued_reservation_counts_what_was_asked_before():
    assert "4 questions left" in " ".join(text_of(reserved(replace(OPENED, asked=1, continued=True), [])).split())


def test_notes_of_the_core_are_shown():
    assert "look out" in text_of(reserved(replace(OPENED, notes=("look out",)), []))


SCORE = Score({"demonstrations": ArmScore(0.75, (0.712, 0.779))}, held_out=True)


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (SCORE, True),
        (None, False),
        (replace(SCORE, arms={"demonstrations": ArmScore(0.5, (0.3, 0.7))}), False),  # too few rows to say it
        (replace(SCORE, arms={"zero-shot": ArmScore(0.75, (0.7, 0.8))}), False),
    ],
)
def test_labels_that_cost_nothing_more_are_pointed_out_where_they_were_scored(score: Score | None, said: bool):
    made = Made(replace(demo_set(), score=score), fingerprint(Dataset("letters", ("a", "b"), ())))
    for mechanism in ("knn-votes", "soft-votes", "keywords"):
        labels = () if mechanism == "keywords" else ("a", "b")
        asked = AnswerRequest(
            PromptTemplate("", "T", "L"), query_mechanism_class(mechanism)(), PrivacyTarget(4.0, 1e-5), 5, labels
        )
        shown = text_of(promise(asked, None, made))
        assert ("'letters' the set of step 3 finds the label of 71 to 78 of 100" in shown) == (said and bool(labels))


EFFECTS = tuple(ThresholdEffect(t / 10, 0.9 - t / 10, 0.8 - t / 10, t / 20) for t in range(1, 7))


def test_the_budget_lasts_longer_where_rows_are_reached_less_often():
    lasting = [questions_until_silent(effect, 5) for effect in EFFECTS]
    assert lasting == sorted(lasting)
    assert lasting[0] == 7  # 5 / 0.7
    assert questions_until_silent(replace(EFFECTS[0], busiest=1.0), 5) == 5


def test_the_chosen_threshold_is_the_one_that_is_marked():
    for effect in EFFECTS:
        [marked] = find(effect_card(EFFECTS, effect.threshold + 0.01, 5, "letters"), "chosen")
        assert f"from {effect.threshold:g}" in text_of(marked)


def test_a_threshold_that_reaches_nobody_has_words_too():
    nobody = [ThresholdEffect(0.6, 0.0, 0.0, 1.0)]
    assert "100% of the questions reach no row" in text_of(effect_card(nobody, 0.6, 5, "letters"))


def test_a_small_share_is_not_called_nothing():
    assert [percent(share) for share in (0.0, 0.004, 0.014, 1.0)] == ["0%", "under 1%", "1%", "100%"]
