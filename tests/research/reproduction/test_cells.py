"""Which cells a grid has."""

from __future__ import annotations

import math

import pytest

from mechanisms.errors import UsageError
from research.reproduction.cells import METHODS, Cell, Grid, Setting
from research.reproduction.published import published

INF = math.inf


def keys(grid):
    return [(each.task, each.method, each.epsilon, each.run) for each in grid.cells()]


def test_a_grid_has_each_method_at_each_epsilon_and_the_baselines_once():
    grid = Grid(("trec",), ("gaussian", "gaussian+pta"), (0.0, 1.0, INF), 2)
    assert keys(grid) == [
        ("trec", "zero-shot", 0, 1),
        ("trec", "public", 0, 1),
        ("trec", "gaussian", 1, 1),
        ("trec", "gaussian+pta", 1, 1),
        ("trec", "real rows", INF, 1),
        ("trec", "non-private", INF, 1),
        ("trec", "non-private+pta", INF, 1),
        ("trec", "public", 0, 2),
        ("trec", "gaussian", 1, 2),
        ("trec", "gaussian+pta", 1, 2),
        ("trec", "real rows", INF, 2),
        ("trec", "non-private", INF, 2),
        ("trec", "non-private+pta", INF, 2),
    ]


def test_what_is_asked_for_twice_stands_in_a_grid_once():
    assert keys(Grid(("trec", "trec"), ("gaussian", "gaussian"), (1.0, 1.0), 1)) == [("trec", "gaussian", 1, 1)]


def test_files_of_cells_have_names_of_their_own():
    cells = list(Grid().cells())
    assert len({each.name for each in cells}) == len(cells)
    assert all("/" not in each.name and " " not in each.name for each in cells)


def test_the_whole_grid_has_a_cell_for_nearly_every_published_figure():
    own = {(each.task, each.method, each.epsilon) for each in Grid().cells()}
    without = {(each.method, each.epsilon) for each in published() if (each.task, each.method, each.epsilon) not in own}
    assert without == {("blended-logits", INF), ("svt-public", INF)}  # with little noise there, with none nowhere


def test_only_what_is_private_or_public_may_be_kept():
    assert [Cell("trec", "x", epsilon, 1).releasable for epsilon in (0.0, 8.0, INF)] == [True, True, False]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tasks": ("sst2",)}, "none of the papers'"),
        ({"methods": ("magic",)}, "magic"),
        ({"methods": ("non-private",)}, "baseline"),
        ({"methods": ("public",)}, "baseline"),
        ({"methods": ("blended-logits+pta",)}, "takes no transform"),
        ({"methods": ("gaussian+magic",)}, "magic"),
        ({"epsilons": (-1.0,)}, "--epsilons"),
        ({"epsilons": (math.nan,)}, "--epsilons"),
        ({"runs": 0}, "--runs"),
    ],
)
def test_what_cannot_be_is_refused(wrong, said):
    with pytest.raises(UsageError, match=said):
        Grid(**wrong)
    assert METHODS[0] == "gaussian"


def test_settings_out_of_range_are_refused():
    for wrong in ({"rows": 0}, {"seed": -1}):
        with pytest.raises(UsageError):
            Setting(**wrong)
