"""What a recipe's request refuses, and what its stages are said to cost."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from mechanisms.accounting import claim
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed, Sequence
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_class
from mechanisms.studio.recipes.recipe import Division, Kind, Stage
from tests.studio.certificates.recipes import asked, recipe


@pytest.mark.parametrize("name", ["public", "non-private"])
def test_a_recipe_does_not_write_without_privacy(name):
    request = asked(recipe(Kind.TOKENS, Division.ROLES))
    with pytest.raises(UsageError, match="choose a private mechanism"):
        replace(request, written=replace(request.written, mechanism=mechanism_class(name)()))


@pytest.mark.parametrize(("kind", "division", "by_user"), list(product(Kind, Division, (False, True))))
def test_a_stage_is_shown_with_what_one_of_its_units_pays(kind, division, by_user):
    request = asked(recipe(kind, division), by_user)
    for shown in request.stages():
        lists = [events for _, events in request.charges(Stage(shown.name))]
        assert shown.event in [events[0] if len(events) == 1 else Sequence(events) for events in lists]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", Scheme)
def test_of_labels_that_are_written_at_different_rates_the_dearest_is_shown(scheme):
    request = asked(recipe(Kind.TOKENS, Division.ROLES), scheme=scheme)
    sizes = {"a": 520, "b": 90}
    request = replace(request, sizes=sizes, written=replace(request.written, sizes=sizes))
    [shown] = [each for each in request.stages() if each.name == Stage.WRITE]
    costs = [
        claim(Composed("all", (("all", events),)), request.target.delta).epsilon
        for _, events in request.charges(Stage.WRITE)
    ]
    found = claim(Composed("all", (("all", (shown.event,)),)), request.target.delta).epsilon
    assert found == pytest.approx(max(costs), rel=1e-3)
    assert scheme is Scheme.DISJOINT or min(costs) < 0.9 * max(costs)
