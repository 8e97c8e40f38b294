"""Private answers to questions on a toy model: what they cost, who pays, what changes, what survives a crash."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechanisms.accounting import PrivacyLedger, PrivacyTarget
from mechanisms.answers.plan import GOOD, AnswerPlan, odds_in_words, plan_answers
from mechanisms.answers.session import SearchableUnits, exact_match, open_session
from mechanisms.answers.shards import LabelRespondent, NeighbourLabels, greedy
from mechanisms.answers.spec import AnswerSettings, AnswerSpec
from mechanisms.errors import BudgetRefused, ReservedOtherwise, UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.queries import Retrieval, nearest_by_shard, query_mechanism_class, query_mechanism_names
from mechanisms.queries.keywords import Keywords
from mechanisms.queries.retrieval import on_grid
from mechanisms.records import Dataset, Record
from tests.told_settings import check_told
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

# What it costs, and what does not go together.


def make(mechanism="knn-votes", epsilon=2.0, queries=5, labels=None, **changes) -> AnswerPlan:
    if labels is None:
        labels = () if query_mechanism_class(mechanism).open_answers else ("a", "b")
    spec = AnswerSpec.of(mechanism=mechanism, epsilon=epsilon, delta=1e-5, queries=queries, **changes)
    return plan_answers(spec, labels)


def test_editors_are_told_the_settings_that_there_are():
    check_told(AnswerSettings, AnswerSpec)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "epsilon"), [(None, 0.5), (None, 8.0), (0.05, 2.0), (1.0, 1.0)])
@pytest.mark.parametrize("mechanism", query_mechanism_names())
def test_calibration_uses_the_target_up_and_never_exceeds_it(mechanism, rate, epsilon):
    retrieval = Retrieval.THRESHOLD if rate is None else Retrieval.POISSON
    claimed = make(mechanism, epsilon, retrieval=retrieval, rate=rate).claim()
    assert 0.97 * epsilon <= claimed.epsilon <= epsilon
    assert claimed.delta == 1e-5


@pytest.mark.slow
def test_terms_tell_reservations_apart():
    requests = [
        make(),
        make(epsilon=3.0),
        make(queries=6),
        make(shards=5),
        make(neighbours=1),
        make(labels=("a", "c")),
        make(retrieval=Retrieval.LABELS_ONLY),
        make(retrieval=Retrieval.POISSON, rate=0.5),
        make(retrieval=Retrieval.POISSON, rate=0.25),
        make("keywords"),
    ]
    terms = [each.terms() for each in requests]
    assert all(one != other for one, other in itertools.combinations(terms, 2))
    assert make(threshold=0.9).terms() == terms[0]  # a later session may choose another


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"queries": 0}, "Answers"),
        ({"shards": 0}, "Shards"),
        ({"neighbours": 99}, "Neighbours"),
        ({"threshold": 1.5}, "cosine"),
        ({"labels": ("a",)}, "two public labels"),
        ({"labels": ()}, "two public labels"),
        ({"rate": 0.5}, "Poisson"),
        ({"retrieval": Retrieval.POISSON}, "Poisson"),
        ({"retrieval": Retrieval.POISSON, "rate": 1.5}, "Rate"),
        ({"retrieval": Retrieval.POISSON, "size": 0}, "Size"),
        ({"retrieval": Retrieval.POISSON, "rate": 0.5, "size": 100}, "not both"),
        ({"parameters": {"noise": 1.0}}, "no parameter"),
        ({"mechanism": "mine", "labels": ("a", "b")}, "no pay-per-query mechanism"),
        ({"mechanism": "keywords", "labels": ("a", "b")}, "open answers"),
        ({"mechanism": "keywords", "retrieval": Retrieval.LABELS_ONLY}, "open answers"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, word):
    with pytest.raises(UsageError, match=word):
        make(**changes)


@pytest.mark.slow
def test_where_the_accountants_have_a_gap_more_noise_is_taken():
    """At the least noise for three questions they cannot bound epsilon; a little above it they can."""
    request = make(epsilon=8.0, queries=3, retrieval=Retrieval.POISSON, rate=0.1)
    assert 4.0 < request.claim().epsilon <= 8.0


# What is said of an answer's noise before it is paid for.


@pytest.mark.parametrize(("epsilon", "queries", "chance"), [(4.0, 5, 78), (8.0, 1, 99)])
def test_poor_terms_are_named_with_what_to_change_and_good_ones_get_no_advice(epsilon, queries, chance):
    said = odds_in_words(make(epsilon=epsilon, queries=queries))
    assert "7 of 10 groups" in said
    assert f"{chance} of 100" in said
    assert ("Fewer questions" in said) == (chance < 100 * GOOD)


# A session from end to end.

LABELS = ("a", "b", "c")
BOUNDED = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = (f"data {number}" for number in itertools.count())


class Overheard:
    """A mechanism that keeps the shards' votes: they are private, and no session tells them."""

    def __init__(self, mechanism) -> None:
        self._mechanism, self.votes = mechanism, []

    def __getattr__(self, name):
        return getattr(self._mechanism, name)

    def release(self, histogram, randomness):
        self.votes.append(histogram)
        return self._mechanism.release(histogram, randomness)


PROMPTS = {"instruction": "Classify.", "text_field": "T", "label_field": "L", "max_record_tokens": 12}


def request(mechanism="knn-votes", retrieval=Retrieval.THRESHOLD, queries=3, **changes) -> AnswerPlan:
    values = {"shards": 4, "neighbours": 2, "answer_tokens": 4, "max_query_tokens": 12, "retrieval": retrieval}
    values |= PROMPTS | ({"rate": 0.5} if retrieval is Retrieval.POISSON else {}) | changes
    labels = () if query_mechanism_class(mechanism).open_answers else LABELS
    asked = make(mechanism, 4.0, queries, labels, **values)
    return replace(asked, mechanism=Overheard(asked.mechanism))


def session(records, asked=None, model=None, embedder=None, seed=0, name=None, by_user=False, **options):
    asked = asked or request(retrieval=Retrieval.LABELS_ONLY)
    dataset = Dataset(name or next(NAMES), asked.labels, tuple(records), "who" if by_user else None)
    ledger = PrivacyLedger()
    ledger.set_cap(dataset.name, dataset.unit, PrivacyTarget(1e9, 0.1))
    options = {"randomness": SeededRandomness(seed)} | options
    return open_session(dataset, asked, embedder or ToyEmbedder(), model or ToyModel(), ledger, **options)


def payments(name: str) -> dict[str, int]:
    with PrivacyLedger().transaction() as database:
        query = "SELECT paid.unit, answers FROM paid JOIN runs ON run = id WHERE name = ?"
        return dict(database.execute(query, (name,)).fetchall())


WORDS = st.lists(st.sampled_from("pqrstuvw"), min_size=1, max_size=3).map(" ".join)
RECORDS = st.lists(st.builds(Record, WORDS, st.sampled_from(LABELS)), min_size=1, max_size=25)
STREAM = st.lists(WORDS, min_size=1, max_size=8)


@pytest.mark.slow
@given(records=RECORDS, stream=STREAM, place=st.integers(0, 24), queries=st.integers(1, 3))
@BOUNDED
def test_without_a_unit_votes_differ_only_where_it_paid(records, stream, place, queries):
    place %= len(records)
    asked = request(retrieval=Retrieval.LABELS_ONLY, queries=queries, threshold=0.4)
    whole = session(records, asked)
    fewer = session(records[:place] + records[place + 1 :], asked)
    missing: str | None = None
    for query in stream:
        before = payments(whole.opened.name)
        one, two = whole.ask(query), fewer.ask(query)
        after, others = payments(whole.opened.name), payments(fewer.opened.name)
        different = {unit for unit in after if after[unit] != others.get(unit, 0)}
        assert len(different) <= 1  # nobody else's charges depend on the missing unit
        missing = next(iter(different), missing)
        moved = np.subtract(*asked.mechanism.votes[-2:])
        if missing is None or after.get(missing, 0) == before.get(missing, 0):
            assert not moved.any()
            assert one.votes == two.votes  # the noise is the same
        assert np.linalg.norm(moved) <= np.sqrt(2) + 1e-9


def test_a_missing_unit_does_change_the_votes_it_pays_for():
    asked = request(retrieval=Retrieval.LABELS_ONLY, shards=1, neighbours=1, queries=1)
    records = [Record("p q", "b"), Record("p r", "c")]
    whole, fewer = session(records, asked), session(records[1:], asked)
    whole.ask("p q")
    fewer.ask("p q")
    assert np.array_equal(asked.mechanism.votes, [(0, 1, 0), (0, 0, 1)])


ALTERNATING = [Record(str(i), "bc"[i % 2]) for i in range(60)]


class Ranked:
    """Similarities that fall with the number that a text is: 1, cos .05, cos .1, ..."""

    name, dimensions = "ranked", 2

    def embed(self, texts):
        angles = 0.05 * np.array([float(text) for text in texts])
        return on_grid(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def clean_votes(records, asked, repeats):
    answering = session(records, asked, embedder=Ranked())
    for _ in range(repeats):
        answering.ask("0")
    return asked.mechanism.votes[-repeats:]


def divergence(one, other, noise) -> float:
    """Exact rho of the whole transcript: its charges depend on no answer, so it is one Gaussian vector."""
    return sum(float(((a - b) ** 2).sum()) for a, b in zip(one, other, strict=True)) / (2 * noise**2)


@pytest.mark.parametrize("queries", [1, 3])
def test_the_counterexample_stays_under_its_claim(queries):
    """One shard, alternating labels, one query 50 times: exact rho against what the reservation says."""
    asked = request(retrieval=Retrieval.LABELS_ONLY, shards=1, neighbours=1, queries=queries, threshold=-1.0)
    one, other = (clean_votes(each, asked, 50) for each in (ALTERNATING, ALTERNATING[1:]))
    actual = divergence(one, other, asked.mechanism.noise)
    assert 0 < actual <= queries * asked.mechanism.rho * (1 + 1e-9)


def retrieved_pay(records, asked, repeats):
    """The published rule on the code that answers: who is retrieved pays once and is gone, and all others stay."""
    units = SearchableUnits(Dataset("d", LABELS, tuple(records)), asked, Ranked())
    (by_unit, by_record), left, votes = units.similarities(Ranked().embed(["0"])[0]), np.arange(len(records)), []
    for _ in range(repeats):
        [row] = nearest_by_shard(by_unit, units.shard, left, asked.spec.shards, asked.spec.neighbours)
        votes.append(NeighbourLabels(asked).answer([units.examples(row, by_record)], "0").histogram)
        left = np.setdiff1d(left, row)
    return votes


def test_charging_only_the_retrieved_exceeds_the_claim_fifty_times():
    """What the rule above stands against: without the first row everybody after it moves up, for fifty questions."""
    asked = request(retrieval=Retrieval.LABELS_ONLY, shards=1, neighbours=1, queries=1, threshold=-1.0)
    one, other = (retrieved_pay(each, asked, 50) for each in (ALTERNATING, ALTERNATING[1:]))
    assert divergence(one, other, asked.mechanism.noise) == pytest.approx(50 * asked.rho)


class Listening(ToyModel):
    """Keeps what its rows say."""

    heard = b""

    def open(self, prefix, rows, length, room):
        self.heard += b"".join(map(bytes, rows))
        return super().open(prefix, rows, length, room)


def taking_part(records, answering, model, question) -> list[Record]:
    """Whose text the model reads for an answer."""
    model.heard = b""
    answering.ask(question)
    return [record for record in records if record.text.encode() in model.heard]


class Failing(Listening):
    """Breaks down on the private rows, once it may answer."""

    broken = False

    def open(self, prefix, rows, length, room):
        if self.broken and len(rows) > 1:
            raise RuntimeError("out of memory")
        return super().open(prefix, rows, length, room)


@pytest.mark.parametrize("mechanism", ["knn-votes", "keywords"])
def test_a_crash_loses_the_answer_and_never_the_charge(mechanism):
    records, model = [Record(f"p {word}", "a") for word in "qrst"], Failing()
    asked = request(mechanism, queries=2, threshold=0.0)
    answering = session(records, asked, model, name="crashed")
    model.broken = True
    with pytest.raises(RuntimeError):
        answering.ask("p")
    assert set(payments("crashed").values()) == {1}
    model.broken = False
    again = session(records, asked, model, name="crashed")
    assert again.opened.continued
    assert taking_part(records, again, model, "p")
    assert set(payments("crashed").values()) == {2}
    assert not taking_part(records, again, model, "p")
    assert set(payments("crashed").values()) == {2}
    assert again.ask("p").answered == 4


FEW_KEYWORDS = {"fewest-keywords": 1, "most-keywords": 4}


@pytest.mark.parametrize(("mechanism", "own"), [("knn-votes", {}), ("keywords", FEW_KEYWORDS)])
def test_shapes_given_to_the_model_are_public(mechanism, own):
    asked = request(mechanism, threshold=0.0, parameters=own)
    shapes = []
    for records in ([Record("p q", "a")] * 9, [Record("p " * 200, "b" if asked.labels else "b " * 99)] * 2, []):
        model = ToyModel()
        session(records, asked, model).ask("p q r")
        shapes.append(model.opened)
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.parametrize(("mechanism", "own"), [("knn-votes", {}), ("keywords", FEW_KEYWORDS)])
def test_what_the_model_may_refuse_is_asked_before_anything_is_reserved(mechanism, own):
    asked, model = request(mechanism, threshold=-1.0, parameters=own), Agreeing()
    opened = session([Record("p q", "a")] * 30, asked, model)
    assert model.checked
    assert not model.opened
    opened.ask("p q")
    for rows, length, room in model.opened:
        assert any(rows <= r and length <= n and length + room <= n + m for r, n, m in model.checked)


def test_answers_are_never_refused_where_units_are_spent():
    records = [Record(f"p {word}", "b") for word in "qrstuvw"]
    asked, model = request(queries=1, threshold=0.0), Listening()
    answering = session(records, asked, model)
    assert taking_part(records, answering, model, "p")
    [public] = {answering.ask("p").zero_shot for _ in range(3)}
    assert not taking_part(records, answering, model, "p")
    assert asked.mechanism.votes[-1][LABELS.index(public)] == 4


@pytest.mark.slow
def test_poisson_answers_end_and_everybody_pays():
    records = [Record(f"p {number}", "b") for number in range(30)]
    model = Listening()
    answering = session(records, request(retrieval=Retrieval.POISSON, queries=2), model)
    assert answering.ask("p").sure_left == 1
    assert any(record.text.encode() in model.heard for record in records)
    released = answering.ask("p")
    assert (released.sure_left, released.threshold, released.rho) == (0, None, None)
    with pytest.raises(BudgetRefused, match="2 answers"):
        answering.ask("p")
    assert payments(answering.opened.name) == {}


def test_keywords_answer_where_shards_agree_and_abstain_where_they_do_not(data_folder):
    # The key divides the rows: under one of some 2,000 a model that says anything says the same in enough shards.
    data_folder.mkdir()
    (data_folder / "key").write_bytes(bytes(32))
    records = [Record(f"p {number}", "x") for number in range(40)]
    asked = make("keywords", queries=3, threshold=-1.0, shards=8, answer_tokens=4)
    asked = replace(asked, mechanism=Keywords(noise=0.1, fewest_keywords=1, most_keywords=4))
    for model, agreed in ((Agreeing(), True), (ToyModel(), False)):
        released = session(records, asked, model).ask("p")
        assert (released.abstained is None) == agreed
        assert bool(released.keywords) == agreed
        assert agreed or released.answer == released.zero_shot


class Agreeing(ToyModel):
    """Always says the same four bytes, whatever the prompt."""

    def open(self, prefix, rows, length, room):
        opened = super().open(prefix, rows, length, room)
        opened._row = lambda tokens: np.eye(128)[ord("kwyz"[len(tokens) % 4])] * 9.0
        return opened


def test_an_edited_file_is_reserved_anew_only_when_asked():
    records = [Record("p q", "a"), Record("r s", "b")]
    session(records, name="edited").ask("p")
    changed = [records[0], Record("r t", "b")]
    with pytest.raises(ReservedOtherwise, match="edited row"):
        session(changed, name="edited")
    assert not session(changed, name="edited", anew=True).opened.continued


def test_a_seeded_session_does_not_go_on_as_a_private_one():
    records = [Record("p q", "a")]
    assert not session(records, name="seeded").opened.private
    with pytest.raises(UsageError, match="terms"):
        session(records, name="seeded", randomness=None)


def test_exact_match_ignores_case_articles_punctuation_and_spaces():
    assert exact_match("The  Eiffel Tower.", "eiffel tower")
    assert not exact_match("theatre", "atre")
    assert not exact_match("Tower", "Eiffel Tower")


def test_an_empty_question_costs_nothing():
    answering = session([Record("p q", "a")])
    with pytest.raises(UsageError, match="empty"):
        answering.ask(" ")
    assert payments(answering.opened.name) == {}


# What shards answer, from their own examples alone.

VOTES = [name for name in query_mechanism_names() if not query_mechanism_class(name).open_answers]
PAIR = ("apple", "beta")  # " apple" and " beta" differ in their second token
SHARDS = [[Record(f"text {shard} {i}", PAIR[(shard + i) % 2]) for i in range(2)] for shard in range(30)]
SHARDS[7] = []


def votes(model, examples, mechanism="knn-votes", query="which one?"):
    asked = make(mechanism, 1.0, labels=PAIR, **PROMPTS, max_query_tokens=20)
    return LabelRespondent(model, asked).answer(examples, query).histogram


def only(place, examples):
    """All shards empty but one."""
    return [shard if i == place else [] for i, shard in enumerate(examples)]


@pytest.mark.parametrize("mechanism", VOTES)
def test_a_shards_vote_is_its_own_and_the_shape_is_public(mechanism):
    model = ToyModel()
    before = votes(model, SHARDS, mechanism)
    shapes = list(model.opened)
    moved = []
    for place in (3, 7):  # the second had no examples
        changed = [*SHARDS]
        changed[place] = [Record("another", PAIR[0])]
        moved.append(votes(model, changed, mechanism) - before)
        alone, was = (votes(model, only(place, each), mechanism) for each in (changed, SHARDS))
        assert (moved[-1] == alone - was).all()
    assert model.opened == shapes * 7
    assert mechanism == "knn-votes" or np.any(moved)


@pytest.mark.parametrize("mechanism", VOTES)
def test_a_shard_whose_numbers_are_not_finite_votes_as_without_data(mechanism):
    class Broken(ToyModel):
        """Has no numbers for what mentions a word."""

        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            plain = session._row
            session._row = lambda tokens: plain(tokens) * (np.nan if b"poison" in bytes(tokens) else 1.0)
            return session

    poisoned = only(3, [[Record("poison", PAIR[0])]] * 30)
    empty = [[]] * 30
    assert (votes(Broken(), poisoned, mechanism) == votes(Broken(), empty, mechanism)).all()
    assert (
        mechanism == "knn-votes"
        or (votes(ToyModel(), poisoned, mechanism) != votes(ToyModel(), empty, mechanism)).any()
    )


def test_an_answer_is_never_empty_and_ends_at_the_first_stop():
    class Quiet(ToyModel):
        """Wants to stop at once, and again after the second token."""

        def open(self, prefix, rows, length, room):
            opened = super().open(prefix, rows, length, room)
            start = len(opened.rows[0])
            opened._row = lambda tokens: np.eye(128)[10] * 3 + np.eye(128)[65] * (2 + 2 * (len(tokens) == start + 1))
            return opened

    quiet = Quiet()
    assert greedy(quiet, quiet.open([1], [[2], [3]], 1, 5), 5) == [[65, 65]] * 2
    assert greedy(quiet, quiet.open([1], [[2]], 1, 1), 1) == [[65]]
