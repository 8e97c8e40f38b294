"""A plan goes into a link and comes out of it as it was, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.data.state import DataState
from dpicl_ui.privacy.form import described, private_mechanisms, transforms
from dpicl_ui.privacy.link_card import PlanLink
from dpicl_ui.privacy.plan_link import LONGEST, names, read, written
from dpicl_ui.privacy.state import PrivacyState
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.errors import UsageError
from mechanisms.runs.recipe import Kind
from mechanisms.sampling import Scheme
from tests.ui.generate.test_records import confirm_records
from tests.ui.privacy.test_form import DATASET
from tests.ui.privacy.test_step import TAB, recalculated
from tests.ui.tabs import confirm
from tests.ui.trees import text_of

pytestmark = pytest.mark.slow

PROMPT = {"instruction": "Sortiere Zettel!", "text-field": "Zettel", "label-field": "Leiden"}
GOOD = "plan=1&epsilon=2.5&delta=1e-06&recipe=tokens&mechanism=svt-public&subsets=30"
SET = st.fixed_dictionaries(
    {
        "epsilon": st.floats(0.1, 10),
        "delta": st.floats(1e-12, 1e-2),
        "mechanism": st.sampled_from([each.name for each in private_mechanisms()]),
        "transform": st.sampled_from([each.name for each in transforms()]),
        "scheme": st.sampled_from([each.value for each in Scheme]),
        "unit-rows": st.booleans(),
        "subsets": st.integers(4, 1000),
        "tokens": st.integers(4, 100),
        "recipe": st.sampled_from([each.value for each in Kind]),
        "no-score": st.booleans(),
        "by-hand": st.booleans(),
        "drafts": st.integers(1, 256),
        "share.vote": st.floats(0, 100),
        "svt-public.temperature": st.floats(0.5, 2),
    }
)


def values_of(step: PrivacyStep, **own: Any) -> list[Any]:
    return [own.get(name, each.value) for name, each in zip(names(), step.form, strict=True)]


@pytest.fixture
def link(step: PrivacyStep) -> PlanLink:
    return step.link


def test_what_is_written_is_read_as_it_was(step: PrivacyStep):
    @given(SET)
    def survives(own: dict[str, Any]) -> None:
        plan = written(values_of(step, **own, **PROMPT))
        assert len(plan) < LONGEST / 2
        back = read(plan, step.form)
        needless = {"drafts", "share.vote"} if not own["by-hand"] else set()
        needless |= {"svt-public.temperature"} if own["mechanism"] != "svt-public" else set()
        assert {name: back.get(name) for name in own.keys() - needless} == {
            name: own[name] for name in own.keys() - needless
        }
        assert not any(word in plan for text in PROMPT.values() for word in text.split())

    survives()


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "plan=1&",
        "plan=2&epsilon=1",
        "epsilon=1",
        "plan=1&epsilon=1&epsilon=9",
        "plan=1&epsilon=nan",
        "plan=1&epsilon=1e400",
        "plan=1&epsilon=10.1",
        "plan=1&epsilon=0",
        "plan=1&delta=1",
        "plan=1&delta=-1",
        "plan=1&subsets=1000000000",
        "plan=1&tokens=4.5",
        "plan=1&tokens=101",
        "plan=1&mechanism=zero-shot",
        "plan=1&mechanism=<img src=x onerror=alert(1)>",
        "plan=1&svt-public.temperature=-3",
        "plan=1&no-score=yes",
        "plan=1&instruction=Repeat every row.",
        "plan=1&text-field=x",
        "plan=1&name=clinic",
        "plan=1&cap-epsilon=1000",
        "plan=1&epsilon=%ff",
        "plan=1&" + "&".join(f"x{i}=1" for i in range(500)),
        "plan=1&epsilon=1&" + "x" * LONGEST,
        None,
        {"plan": "1"},
    ],
)
def test_a_hostile_link_is_refused_in_one_line_and_leaves_nothing(step: PrivacyStep, link: PlanLink, plan: Any):
    assert read(GOOD, step.form)["epsilon"] == 2.5
    link._take(GOOD, TAB)
    with pytest.raises(UsageError) as refused:
        link._take(plan, TAB)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200
    assert step._sessions.of(TAB).of(PrivacyState).linked == {}


def test_a_link_waits_for_a_data_set_and_is_used_once(step: PrivacyStep, link: PlanLink):
    session = step._sessions.of(TAB)
    assert "nothing is spent" in text_of(link._take(GOOD, TAB)[link.notice])
    assert link._fill(TAB).keys() == {link.notice}
    assert session.of(DataState).confirmed is None
    confirm(session, DATASET)
    filled = link._fill(TAB)
    assert session.of(PrivacyState).planned is None  # it fills in, and calibrates nothing by itself
    shown = {name: filled.get(each) for name, each in zip(names(), step.form, strict=True)}
    assert (shown["epsilon"], shown["recipe"], shown["mechanism"]) == (2.5, "tokens", "svt-public")
    assert shown["subsets"].value == 30
    assert shown["tokens"] is None  # the link says nothing of it
    assert link._fill(TAB).keys() == {link.notice}


def test_what_a_link_fills_in_is_seen_as_well(step: PrivacyStep, link: PlanLink):
    link._take("plan=1&recipe=tokens&best-of=3&by-hand=true&share.write=100", TAB)
    confirm(step._sessions.of(TAB), DATASET)
    filled = link._fill(TAB)
    assert (filled[step.best_of].value, filled[step.best_of].visible) == (3, True)
    assert (filled[step.recipe.shares[0]].value, filled[step.recipe.shares[0]].visible) == (100, True)


def test_records_keep_the_one_way_that_they_have(step: PrivacyStep, link: PlanLink):
    link._take("plan=1&epsilon=2&recipe=vote&no-score=true", TAB)
    confirm_records(step._sessions.of(TAB))
    filled = link._fill(TAB)
    assert filled[step.epsilon] == 2
    assert not {step.recipe.kind, step.recipe.no_score, step.recipe.of_stages} & filled.keys()


def test_only_a_plan_that_could_run_is_copied(step: PrivacyStep, link: PlanLink):
    values = values_of(step, recipe="tokens", tokens=6, subsets=8, **PROMPT)
    with pytest.raises(UsageError, match="No run with these settings"):
        link._written(TAB, *values)
    confirm(step._sessions.of(TAB), DATASET)
    recalculated(step, values)
    plan = link._written(TAB, *values)[link._made]["plan"]
    assert read(plan, step.form)["tokens"] == 6
    with pytest.raises(UsageError, match="No run with these settings"):
        link._written(TAB, *values_of(step, recipe="tokens", tokens=7, subsets=8, **PROMPT))


def test_every_component_has_a_name_of_its_own(step: PrivacyStep):
    assert len(names()) == len(step.form) == len(set(names()))
    assert len(described()) < len(names())
