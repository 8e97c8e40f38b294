"""A recipe's request: what its stages cost, and that its writing is that of the recipe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyLedger, claim, fingerprint
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed
from mechanisms.records import Dataset
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.run import synthesize
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_class
from tests.certificates.recipes import LABELS, MEASURED, asked, recipe
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel


def price(events) -> float:
    return claim(Composed("role", (("one", events),)), 1e-5).epsilon


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("sizes", [{"a": 200, "b": 30}, {"a": 5, "b": 200}])
def test_a_stage_is_told_by_its_dearest_list(division, by_user, sizes):
    """Labels of unequal sizes are sampled at unequal rates; the smallest may be sampled whole, with fewer events."""
    planned = asked(recipe(Kind.BOTH, division), by_user)
    request = replace(planned, sizes=sizes, written=replace(planned.written, sizes=sizes))
    told = {each.name: price((each.event,)) for each in request.stage_records()}
    for stage in (Stage.WRITE, Stage.VOTE, Stage.CALIBRATE):
        dearest = max(price(events) for _, events in request.charges(stage))
        if stage is Stage.WRITE or division is Division.ROLES:
            assert told[stage] == pytest.approx(dearest, rel=1e-3)


@pytest.mark.parametrize("kind", [Kind.TOKENS, Kind.BOTH])
def test_stages_keep_all_that_is_written(kind):
    planned = asked(recipe(kind, Division.ROLES))
    with pytest.raises(UsageError, match="keep all of it"):
        replace(planned, written=planned.written.best_of(2))


BIGGER = {"a": 4500, "b": 5200}
OTHERS = {
    "a smaller role": lambda written: replace(written, plan=replace(written.plan, share=0.01)),
    "other sizes": lambda written: replace(written, sizes=BIGGER),
    "sizes that were declared": lambda written: replace(written, measured=None),
    "users": lambda written: replace(written, by_user=True),
    "other labels": lambda written: replace(written, labels=LABELS[::-1]),
}


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_recipe_whose_writing_was_calibrated_for_another_is_refused(other, division):
    data = Dataset("d", LABELS, ())
    content = fingerprint(data).content
    planned = asked(recipe(Kind.TOKENS, division, shares={Stage.WRITE: 0.5}))
    planned = replace(planned, content=content, written=replace(planned.written, content=content))
    request = planned.with_measured_sizes(replace(MEASURED, content=content))
    edited = replace(request, written=other(request.written))
    with pytest.raises(UsageError, match="calibrate it again"):
        next(synthesize(data, edited, ToyModel(), PrivacyLedger(), embedder=ToyEmbedder()))
    assert PrivacyLedger().history("d") == []


def test_every_scheme_has_a_list_for_the_dearest_label():
    for scheme in Scheme:
        assert asked(recipe(Kind.TOKENS, Division.ROLES), scheme=scheme).stage_records()[0].name == Stage.WRITE


@pytest.mark.parametrize("name", ["public", "non-private"])
def test_a_recipe_does_not_write_without_privacy(name):
    request = asked(recipe(Kind.TOKENS, Division.ROLES))
    with pytest.raises(UsageError, match="choose a private mechanism"):
        replace(request, written=replace(request.written, mechanism=mechanism_class(name)()))
