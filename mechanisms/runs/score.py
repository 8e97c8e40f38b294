"""Private scores of any set of demonstrations: an exported set with its certificate, or JSON written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mechanisms.accounting import (
    BudgetSnapshot,
    Claim,
    Fingerprint,
    PrivacyLedger,
    PrivacyTarget,
    claim,
    fingerprint,
    share_any,
    text_digests,
)
from mechanisms.asking import Wording
from mechanisms.data.sizes import without_counts
from mechanisms.data.units import charged, units_of
from mechanisms.demos.demo_set import (
    DEMONSTRATIONS,
    DIRECTIONS,
    PROTOTYPES,
    PUBLIC_ONLY,
    ZERO_SHOT,
    DemoSet,
    PublicSet,
    Score,
    check_against,
    demonstrations_of,
    loads,
    read_json,
    schema,
    template_of,
)
from mechanisms.demos.directions import Directions
from mechanisms.demos.signature import Signature, check_signature
from mechanisms.errors import UsageError
from mechanisms.evaluation.class_prototypes import nearest_prototype, one_record_each
from mechanisms.evaluation.classifier import Classifier
from mechanisms.evaluation.evaluate import truth_of
from mechanisms.evaluation.reader import check_labels
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Floats, Randomness, SecureRandomness
from mechanisms.privacy_events import Composed, PrivacyEvent
from mechanisms.public_inputs import FILE_FORMAT, LABEL_SET, LABEL_WEIGHTS, WHETHER_MET, WHETHER_SHOWN, WHETHER_VERBATIM
from mechanisms.records import Dataset, Demonstration, PromptTemplate, saying_words
from mechanisms.runs.drafts import DRAFT_TOKENS, draft_tokens_of, written_publicly
from mechanisms.runs.judging import of_units, right
from mechanisms.runs.roles import divided, earlier_runs
from mechanisms.runs.run import TEST_SEED
from mechanisms.runs.spec import SCORE, VOTE, RunSpec, Split
from mechanisms.tallies import Prototypes, ScoreTally, Weighing, weights


@dataclass(frozen=True)
class ScoredSet:
    """Demonstrations and their task; public.

    Attributes:
        words: the words of each label's topic; the prompt with the demonstrations has them.
        directions: the direction of each label in the embedding space; None if the set has none.
        wording: the owner's words, with which the model is asked to write public demonstrations.
        draft_tokens: the most tokens of a public demonstration.
        prior: what is added to each label's log-probability with the demonstrations; None if not measured.
        zero_shot: the same without demonstrations.
        public_only: the public set with which the run compared it, with its correction; None if there was none.
        writer: the model that wrote it; empty if unknown.
        model_sha256: the digest of the model with which the corrections were measured; None if unknown.
        spare: the share of the units, at the scoring stage's end of the roles, that the run read for no other stage.
        event: the privacy event of the run that made the set, with its measurement of sizes; None if unknown.
        sizes: the label sizes that weigh the rows of each label in a score; None if all rows have the same weight.
        reason: why the set, and everything derived from it, is not private; None if it is private or if this is
            unknown.
        signed_here: whether this installation's signature of the set is valid, so that its texts were not edited.
    """

    demonstrations: tuple[Demonstration, ...]
    labels: tuple[str, ...]
    template: PromptTemplate
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    directions: Directions | None = None
    wording: Wording = field(default_factory=Wording)
    draft_tokens: int = DRAFT_TOKENS
    prior: Mapping[str, float] | None = None
    zero_shot: Mapping[str, float] | None = None
    public_only: PublicSet | None = None
    writer: str = ""
    model_sha256: str | None = None
    spare: float = 0.0
    event: Composed | None = None
    sizes: Mapping[str, int] | None = None
    reason: str | None = None
    signed_here: bool = False

    @property
    def weighing(self) -> Weighing:
        return Weighing.ROWS if self.sizes is None else Weighing.LABELS

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of a row of each label in a score; public, in (0, 1]."""
        return dict.fromkeys(self.labels, 1.0) if self.sizes is None else weights(self.sizes, Weighing.LABELS)

    def as_read_by(self, model: LanguageModel) -> ScoredSet:
        """The set for the model that reads it: without corrections if they were measured with another model."""
        if self.model_sha256 == model.sha256:
            return self
        public = self.public_only and replace(self.public_only, prior=None)
        return replace(self, prior=None, zero_shot=None, public_only=public)

    def __post_init__(self) -> None:
        check_labels(self.labels)
        if foreign := [each.label for each in self.demonstrations if each.label not in self.labels]:
            raise UsageError(f"A demonstration has the label '{foreign[0]}', which is not one of the task's.")


def read_set(text: str) -> ScoredSet:
    """Read a demo set, or JSON that has only `demonstrations` and `task`. Raises a UsageError if it is neither."""
    document = read_json(text)
    if isinstance(document, dict) and "format" in document:
        return of_demo_set(loads(text), check_signature(text) is Signature.VALID)
    known = schema()["properties"]
    task = known["task"] | {"required": ["labels", "instruction", "template"]}  # no model was asked for its texts
    parts = {"demonstrations": known["demonstrations"], "task": task}
    wanted = {"type": "object", "required": list(parts), "properties": parts}
    check_against(wanted, document, "This is no set of demonstrations")
    task = document["task"]
    return ScoredSet(demonstrations_of(document), tuple(task["labels"]), template_of(task))


def of_demo_set(demo_set: DemoSet, signed_here: bool = False) -> ScoredSet:
    """An exported set with its measured corrections. Raises a UsageError if it has a single label."""
    parameters = demo_set.certificate.parameters
    by_roles = parameters["split"] == Split.ROLES
    read = sum(stage.role for stage in demo_set.stages if stage.name != SCORE)
    baselines = demo_set.baselines
    return ScoredSet(
        demo_set.demonstrations,
        demo_set.labels,
        demo_set.template,
        words=demo_set.words or {},
        directions=demo_set.directions,
        wording=demo_set.wording,
        draft_tokens=draft_tokens_of(demo_set),
        prior=demo_set.prior,
        zero_shot=baselines.zero_shot if baselines else None,
        public_only=baselines.public_only if baselines else None,
        writer=demo_set.model_id,
        model_sha256=demo_set.model_sha256,
        spare=max(0.0, 1 - read) if by_roles and demo_set.stages else 0.0,
        event=demo_set.certificate.event,
        sizes=demo_set.public_sizes if parameters["weighing"] == Weighing.LABELS else None,
        reason=demo_set.certificate.why_not_private,
        signed_here=signed_here,
    )


USUAL_SHARE = 0.1
_ALL_BUT_ONE = 1e-9


@dataclass(frozen=True)
class ScoreFound:
    """A released score.

    Attributes:
        claim: the upper bound on the cost of the scoring run.
        event: its privacy event.
        before: the data set's budget before it.
        public_inputs: what the claim takes as public.
        reason: why the score is not private: an observer could predict the noise, or the set itself is not private;
            None if it is private.
    """

    score: Score
    claim: Claim
    event: Composed
    before: BudgetSnapshot
    public_inputs: tuple[str, ...]
    reason: str | None


def score_set(
    dataset: Dataset,
    scored: ScoredSet,
    spec: RunSpec,
    model: LanguageModel,
    ledger: PrivacyLedger,
    share: float = USUAL_SHARE,
    prototypes_epsilon: float | None = None,
    embedder: Embedder | None = None,
    randomness: Randomness | None = None,
) -> ScoreFound:
    """Score a set, zero-shot and a public set on private rows. The cost is charged before any row is read.

    Args:
        dataset: the rows; private. All other arguments are public.
        spec: gives `epsilon`, the cost for the scoring units, `delta` of the whole run, and the caps on what is read.
        share: w, the share of the units that score, in (0, 1]: those at the end of the roles' range, as in a run.
        prototypes_epsilon: the cost, for the other units, of class means of embeddings; None leaves these out.
        randomness: the operating system's by default; tests pass their own.

    Raises:
        BudgetRefused: the data set's cap does not allow it.
        UsageError: the model is too small for the prompts, the set does not fit the data set, the share is out of
            range, or an embedding model is needed and missing.
    """
    _check_fit(dataset, scored, share, prototypes_epsilon, embedder)
    randomness = randomness or SecureRandomness()
    scored, data = scored.as_read_by(model), fingerprint(dataset)
    arms = _arms(scored, model, spec.max_record_tokens)  # public, and fails most often: before any charge
    names, prototypes = [*arms, *([DIRECTIONS] if scored.directions else [])], None
    if prototypes_epsilon is not None:  # from the units that do not score
        target = PrivacyTarget(prototypes_epsilon, spec.delta)
        prototypes = Prototypes.costing(target, len(dataset.labels))
    tally = ScoreTally(spec.epsilon, dataset.by_user, scored.weighing is Weighing.LABELS)
    # Scoring units and the others are disjoint, so the more expensive of the two lists is the cost of a unit.
    lists: list[tuple[str, tuple[PrivacyEvent, ...]]] = [(SCORE, (tally.event,))]
    if prototypes is not None:
        lists.append((PROTOTYPES, (prototypes.event,)))
    event = Composed("role", tuple(lists))
    claimed = claim(event, spec.delta)
    held_out = share <= scored.spare + _ALL_BUT_ONE and _only(scored, data, ledger)
    with charged(dataset, SCORE, event, claimed, ledger, randomness) as before:
        parts = {SCORE: dataset} if share > 1 - _ALL_BUT_ONE else divided(dataset, {VOTE: 1 - share, SCORE: share})
        units = units_of(parts[SCORE], 1)
        records = [record for unit in units for record in unit]
        rows, truth = [record.text for record in records], truth_of(scored.labels, records)
        columns = [right(each.log_probabilities(rows), offset, truth) for each, offset in arms.values()]
        if embedder is not None and (scored.directions is not None or prototypes is not None):
            embedded = embedder.embed(rows)
            if scored.directions is not None:
                columns.append(scored.directions.nearest_to(embedded) == truth)
            if prototypes is not None:
                texts, places = one_record_each(parts[VOTE])
                vectors = Prototypes.contributions(places, embedder.embed(texts).astype(np.float64))
                columns.append(nearest_prototype(embedded, prototypes.release(vectors, randomness)) == truth)
                names.append(PROTOTYPES)
        of_rows = np.array([scored.weights[label] for label in scored.labels])[truth]
        counted = tally.cells(np.stack(columns, axis=1)) * of_rows[:, None]
        cells = tally.release(of_units(counted, units), randomness)
    weighed = () if scored.sizes is None else (LABEL_WEIGHTS,)
    checked = () if scored.signed_here else (WHETHER_VERBATIM,)
    return ScoreFound(
        Score.of_table(tally, cells, names, not scored.demonstrations, held_out, scored.weighing),
        claimed,
        event,
        before,
        (LABEL_SET, FILE_FORMAT, WHETHER_SHOWN, WHETHER_MET, *weighed, *checked),
        _why_not_private(scored, data) if randomness.private else TEST_SEED,
    )


def _check_fit(
    dataset: Dataset, scored: ScoredSet, share: float, prototypes_epsilon: float | None, embedder: Embedder | None
) -> None:
    """Refuse arguments that do not fit one another, as `score_set` says."""
    if not 0 < share <= 1:
        raise UsageError("The share of the units that score must lie in (0, 1].")
    if prototypes_epsilon is not None and share > 1 - _ALL_BUT_ONE:
        raise UsageError("Prototypes are made of the units that do not score: choose a share below 1.")
    if dataset.labels != scored.labels:
        raise UsageError("The data set and the set must agree on the labels.")
    if (prototypes_epsilon is not None or scored.directions is not None) and embedder is None:
        raise UsageError("Prototypes and directions need an embedding model.")
    if scored.directions is not None and embedder is not None:
        scored.directions.check(embedder)


def _why_not_private(scored: ScoredSet, data: Fingerprint) -> str | None:
    """Why the score of a set is not private: the set is not, or, not signed here, it has a text of the file."""
    if scored.reason is not None or scored.signed_here:
        return scored.reason
    if share_any(text_digests(each.text for each in scored.demonstrations), data.rows):
        return "a text of the set is a text of the file, so that the set may be made of rows"
    return None


def _arms(scored: ScoredSet, model: LanguageModel, cap: int) -> dict[str, tuple[Classifier, Floats]]:
    """The arms of the comparison, by name: the classifier with the arm's set, and the correction of each label's
    log-probability, shape (labels,).

    A set without demonstrations is the zero-shot arm itself. `cap` is the most tokens of a query.
    """
    own, public = scored.template, scored.public_only
    compared: list[tuple[str, Sequence[Demonstration], PromptTemplate, Mapping[str, float] | None]]
    compared = [(ZERO_SHOT, (), own, scored.zero_shot if scored.demonstrations else scored.prior)]
    if scored.demonstrations:
        if public is None:
            made = written_publicly(scored.demonstrations, scored.labels, scored.wording, model, scored.draft_tokens)
            public = PublicSet(made, own, None)
        compared.append((PUBLIC_ONLY, public.demonstrations, public.template, public.prior))
        compared.append((DEMONSTRATIONS, scored.demonstrations, saying_words(own, scored.words), scored.prior))
    arms = {}
    for name, demonstrations, template, prior in compared:
        classifier = Classifier(model, template, scored.labels, demonstrations, max_query_tokens=cap)
        contextual = classifier.contextual  # this opens the prompt, so that one that is too long is refused here
        arms[name] = classifier, contextual if prior is None else np.array([prior[each] for each in scored.labels])
    return arms


def _only(scored: ScoredSet, data: Fingerprint, ledger: PrivacyLedger) -> bool:
    """Whether no earlier run in the ledger can have read the scoring rows, except to count them.

    This holds if there was exactly one run, with roles and without a score, and its event is that of the run that made
    the set. For any other run, the rows that it left out are unknown.
    """
    made = scored.event
    if made is None or made.per != "role" or SCORE in dict(made) or ledger.rows.disclosures(data):
        return False
    uncounted = without_counts(made)  # in the ledger, the measurement of sizes is a separate run
    earlier = earlier_runs(data, ledger)
    # In an edited file, or with another key, rows have other roles than they had in that run.
    return len(earlier) == 1 and earlier[0].same_content and earlier[0].event in (made, uncounted)
