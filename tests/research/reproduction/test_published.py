"""The papers' figures: complete, possible, and those of the tables that they name."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from mechanisms.steps import mechanism_names, transform_names
from research.reproduction.cells import EPSILONS, PUBLIC, REAL, ZERO_SHOT
from research.reproduction.published import published
from research.reproduction.tasks import TASKS

METHODS = {ZERO_SHOT, PUBLIC, REAL, *mechanism_names()}


def found(source: str, method: str, task: str) -> dict[float, tuple[float, float | None]]:
    return {
        each.epsilon: (each.accuracy, each.deviation)
        for each in published()
        if (each.source, each.method, each.task) == (source, method, task)
    }


def test_every_figure_belongs_to_a_cell_that_the_grid_knows():
    for each in published():
        name, _, transform = each.method.partition("+")
        assert each.task in TASKS
        assert each.epsilon in EPSILONS
        assert name in METHODS
        assert transform in {"", *transform_names()}
        assert 0 < each.accuracy < 1
        assert each.deviation is None or 0 <= each.deviation < 0.2
        assert each.source
        assert each.table.startswith("table")
        assert each.model
        assert (each.epsilon == 0) == (each.method in (ZERO_SHOT, PUBLIC))


def test_no_figure_stands_twice():
    keys = Counter((e.source, e.table, e.model, e.task, e.method, e.epsilon) for e in published())
    assert max(keys.values()) == 1


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("source", "methods"),
    [
        ("Tang et al. 2024", ("gaussian",)),
        ("Gao et al. 2025", ("gaussian", "adadpsyn")),
        ("Yamasaki et al. 2025", ("gaussian", "gaussian+pta")),
    ],
)
def test_a_paper_with_a_row_for_each_epsilon_has_all_of_them(source, methods, task):
    for method in methods:
        assert set(found(source, method, task)) == {1, 2, 4, 8}
    assert set(found(source, "non-private", task)) == {math.inf}
    if source != "Yamasaki et al. 2025":
        assert set(found(source, PUBLIC, task)) == {0}


def test_what_the_papers_say_in_words_holds_of_their_figures():
    """Gao et al., section 5.1; Yamasaki et al., section 5.2; Bhusal et al., results; Tang et al., section 5.2."""
    for task in TASKS:
        better, base = (found("Gao et al. 2025", method, task) for method in ("adadpsyn", "gaussian"))
        assert all(better[epsilon][0] > base[epsilon][0] for epsilon in (1, 2, 4, 8))
    for task in ("agnews", "trec"):
        better, base = (found("Yamasaki et al. 2025", method, task) for method in ("gaussian+pta", "gaussian"))
        assert all(better[epsilon][0] > base[epsilon][0] for epsilon in (1, 8))
    for task in ("agnews", "trec"):
        ours, *others = (
            [e.accuracy for e in published() if (e.method, e.task, e.epsilon, e.table) == (method, task, 1, "table 1")]
            for method in ("blended-logits", "gaussian", "svt-public")
        )
        assert all(ours[0] > other[-1] for other in others)
    for task in ("dbpedia", "trec"):
        private, public = found("Tang et al. 2024", "gaussian", task), found("Tang et al. 2024", PUBLIC, task)
        assert all(private[epsilon][0] > public[0][0] for epsilon in (1, 2, 4, 8))
