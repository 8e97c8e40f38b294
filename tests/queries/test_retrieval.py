"""One unit more or less changes what at most one shard retrieves: the sensitivity that every release rests on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechanisms.answers.plan import AnswerPlan
from mechanisms.answers.session import SearchableUnits
from mechanisms.answers.spec import AnswerSpec
from mechanisms.queries import nearest_by_shard
from mechanisms.queries.retrieval import GRID, on_grid, similarities
from mechanisms.records import Dataset, Record
from tests.toy_embedder import ToyEmbedder

SHARDS, NEIGHBOURS = 10, 4
BOUNDED = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def units_of(records, embedder, by_user=False) -> SearchableUnits:
    spec = AnswerSpec.of(mechanism="keywords", epsilon=1.0, delta=1e-5, queries=1)
    plan = AnswerPlan(spec, spec.made_mechanism, by_user=by_user)
    return SearchableUnits(Dataset("d", (), tuple(records), "who" if by_user else None), plan, embedder)


def retrieved(records, embedder, query: str, threshold: float, by_user=False) -> list[list[Record]]:
    """What each shard gets, by the code that answers questions."""
    units = units_of(records, embedder, by_user)
    by_unit, by_record = units.similarities(embedder.embed([query])[0])
    payers = np.nonzero(by_unit >= threshold)[0]
    rows = nearest_by_shard(by_unit, units.shard, payers, SHARDS, NEIGHBOURS)
    return [units.examples(row, by_record) for row in rows]


def by_rank(records, embedder, query: str) -> list[list[Record]]:
    """The published partition (Koskela et al. 2025, section 2.1): the nearest of all, cut into batches by rank."""
    similarity = embedder.embed([record.text for record in records]) @ embedder.embed([query])[0]
    order = np.argsort(-similarity, kind="stable")[: SHARDS * NEIGHBOURS]
    return [[records[i] for i in order[start::SHARDS]] for start in range(SHARDS)]


def changed(one: list[list[Record]], other: list[list[Record]]) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


@pytest.mark.slow
@given(question=st.integers(0, 59), rank=st.integers(0, 60), threshold=st.sampled_from([0.0, 0.2, 0.3, 0.4]))
@settings(BOUNDED, max_examples=60)
def test_a_removed_row_of_trec_changes_one_shard_at_most(trec, question, rank, threshold):
    rows, questions, embedder = trec
    query = questions[question]
    similarity = embedder.embed([row.text for row in rows]) @ embedder.embed([query])[0]
    removed = int(np.argsort(-similarity, kind="stable")[rank])
    without = rows[:removed] + rows[removed + 1 :]
    before, after = (retrieved(each, embedder, query, threshold) for each in (rows, without))
    seen = any(rows[removed] is record for shard in before for record in shard)
    assert changed(before, after) <= 1
    if seen and rows.count(rows[removed]) == 1:
        assert changed(before, after) == 1  # the row did take part: the test would notice if it did not


@pytest.mark.slow
def test_the_published_partition_by_rank_changes_many_batches(trec):
    rows, questions, embedder = trec
    worst = 0
    for query in questions[:10]:
        similarity = embedder.embed([row.text for row in rows]) @ embedder.embed([query])[0]
        nearest = int(similarity.argmax())
        without = rows[:nearest] + rows[nearest + 1 :]
        worst = max(worst, changed(by_rank(rows, embedder, query), by_rank(without, embedder, query)))
    assert worst == SHARDS


WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4).map(" ".join)


@given(texts=st.lists(WORDS, min_size=1, max_size=60), query=WORDS, place=st.integers(0, 59))
@BOUNDED
def test_rows_in_any_order_and_equal_rows(texts, query, place):
    records = [Record(text, "a") for text in texts]
    place %= len(records)
    without = records[:place] + records[place + 1 :]
    embedder = ToyEmbedder()
    whole = retrieved(records, embedder, query, 0.0)
    assert changed(whole, retrieved(without, embedder, query, 0.0)) <= 1
    assert whole == retrieved(records[::-1], embedder, query, 0.0)


def test_equal_rows_are_units_of_their_own():
    records = [Record("the same", "a")] * 50
    units = units_of(records, ToyEmbedder())
    assert len(set(units.digests)) == 50
    assert len(set(units.shard.tolist())) > 1
    assert set(units_of(records[:-1], ToyEmbedder()).digests) < set(units.digests)


@given(
    owners=st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=30),
    texts=st.lists(WORDS, min_size=30, max_size=30),
    query=WORDS,
)
@settings(BOUNDED, max_examples=60)
def test_all_rows_of_a_user_change_one_shard_at_most(owners, texts, query):
    records = [Record(text, "a", owner) for text, owner in zip(texts, owners, strict=False)]
    without = [record for record in records if record.unit != owners[0]]
    embedder = ToyEmbedder()
    whole = retrieved(records, embedder, query, 0.0, by_user=True)
    assert changed(whole, retrieved(without, embedder, query, 0.0, by_user=True)) <= 1
    best = {record.unit for shard in whole for record in shard}
    assert len(best) == sum(len(shard) for shard in whole)  # a user sits in one shard, with one row


def test_a_user_is_as_near_as_the_nearest_row():
    embedder = ToyEmbedder()
    records = [Record("a b", "x", "u"), Record("c d", "y", "u"), Record("e f", "z", "v")]
    units = units_of(records, embedder, by_user=True)
    by_unit, by_record = units.similarities(embedder.embed(["c d"])[0])
    best = int(by_unit.argmax())
    assert by_unit[best] == pytest.approx(1, abs=0.01)
    assert units.examples([best], by_record) == [records[1]]


# Exact search: integers are the reference, and neither other rows nor extremes change a bit.

DIMENSIONS = 384


def unit_vectors(seed: int, rows: int, dimensions: int = DIMENSIONS):
    vectors = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def in_integers(rows, query):
    return (rows * GRID).astype(np.int64) @ (query * GRID).astype(np.int64) / GRID**2


@pytest.mark.parametrize("rows", [0, 1, 7, 5000])
def test_similarities_are_the_integers_ones(rows):
    points = on_grid(unit_vectors(1, rows + 1))
    assert np.array_equal(similarities(points[1:], points[0]), in_integers(points[1:], points[0]))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 200), st.floats(0, 12))
def test_no_bit_depends_on_the_other_rows(seed, place, others, spread):
    """Also for coordinates of very different sizes, where the order of a float sum shows."""
    scale = np.exp(np.random.default_rng(seed).uniform(-spread, 0, DIMENSIONS))
    vectors = unit_vectors(seed, others + 41) * scale
    points = on_grid((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))
    whole = similarities(points, points[0])
    kept = np.delete(np.arange(len(points)), [i for i in (place + 1, others) if i != place])
    assert np.array_equal(similarities(points[kept], points[0]), whole[kept])
    assert np.array_equal(whole, in_integers(points, points[0]))


@pytest.mark.parametrize("dimensions", [1, 4, 384, 4096])
def test_the_longest_partial_sums_fit_in_float32(dimensions):
    """All coordinates equal, so that every product has one sign; in 384 dimensions each is rounded up."""
    equal = on_grid(np.full((1, dimensions), dimensions**-0.5, np.float32))
    assert similarities(equal, equal[0]) == in_integers(equal, equal[0])
    assert np.sum((equal * GRID).astype(np.int64) ** 2) < 2**24


def test_rounding_moves_a_similarity_by_little():
    vectors = unit_vectors(3, 200)
    points = on_grid(vectors)
    # Each coordinate moves by at most half a step: Cauchy and Schwarz, twice.
    bound = 2 * np.sqrt(DIMENSIONS) / 2 / GRID + DIMENSIONS / 4 / GRID**2
    assert np.abs(similarities(points, points[0]) - vectors @ vectors[0]).max() <= bound


def test_coordinates_that_are_not_finite_count_as_zero():
    assert on_grid(np.array([[np.nan, np.inf, -np.inf, 1.0]], np.float32)).tolist() == [[0, 0, 0, 1]]
