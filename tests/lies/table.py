"""The lies."""

from __future__ import annotations

from tests.lies.planting import Change, Lie

_TOKENS = "tests/replay/test_tokens.py::test_a_run_costs_a_unit_what_it_charges_and_not_much_less"
_AMPLIFIED = "tests/replay/test_tokens.py::test_amplified_tokens_cost_no_more"
_READ = "tests/replay/test_tokens.py::test_however_a_noisy_vector_is_read_its_token_follows_from_it"
_SIZES = "tests/replay/test_single_releases.py::test_a_unit_moves_measured_sizes_by_what_it_pays"
_SET = "tests/replay/test_single_releases.py::test_a_unit_moves_the_score_of_a_set_by_what_it_pays_and_in_one_place"
_STAGES = "tests/replay/test_stages.py::test_a_unit_of_each_stage_costs_what_its_list_was_charged"
_ROLES, _EVERYONE = f"{_STAGES}[vote-roles-rows-by rows-declared]", f"{_STAGES}[vote-epsilon-rows-by rows-measured]"
_OPENINGS = "tests/replay/test_stages.py::test_a_unit_moves_the_openings_by_what_it_pays"
_PRICES = "tests/replay/test_price_list.py::test_stages_in_every_combination_cost_what_is_listed"
_DEMONSTRATIONS = "tests/replay/test_price_list.py::test_demonstrations_in_every_combination_cost_what_is_listed"
_ANSWERS = "tests/replay/test_answers.py::test_a_unit_costs_what_was_reserved_and_not_much_less"
_RESUMED = "tests/replay/test_resumed.py::test_tokens_of_a_resumed_run_cost_what_was_charged"
_GONE_ON = "tests/replay/test_resumed.py::test_stages_of_a_resumed_run_cost_what_was_charged"
_STEPS = "tests/steps/test_demonstrations.py::test_a_demonstration_costs_what_its_event_pays_for_and_not_much_less"
_TALLIES = "tests/tallies/test_contract.py"

_COUNTS = "mechanisms.data.sizes"
_PLAN = "mechanisms.sampling"
_GAUSSIAN = "mechanisms.steps.gaussian"
_RUN_PLAN = "mechanisms.runs.plan"
_RUN = "mechanisms.runs.run"
_WRITE = "mechanisms.runs.stages.write"
_WRITING = "mechanisms.runs.writing"
_ASKING = "mechanisms.runs.stages.openings"
_JUDGING = "mechanisms.runs.judging"
_VOTE = "mechanisms.runs.stages.vote"
_SCORE = "mechanisms.runs.stages.score"
_CALIBRATE = "mechanisms.runs.stages.calibrate"
_SESSION = "mechanisms.answers"

_FALSE_TALLY = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from mechanisms.privacy_events import Pure
from mechanisms.tallies.tally import LATTICE, Tally, check_epsilon, within_one

@dataclass(frozen=True)
class Applause(Tally):
    name: ClassVar[str] = "applause"
    title: ClassVar[str] = "A tally whose noise is half of what it charges for"
    epsilon: float

    def __post_init__(self):
        check_epsilon(self.epsilon)

    @classmethod
    def costing(cls, target, by_user, alternatives):
        return cls(target.epsilon)

    @property
    def event(self):
        return Pure(self.epsilon)

    def release(self, contributions, randomness):
        total = within_one(contributions, LATTICE).sum(axis=0)
        return randomness.laplace(total, LATTICE / (2 * self.epsilon)) / LATTICE

TALLY = Applause
"""


def lie(says: str, killer: str, *changes: tuple[str, str, str], worst: bool = False) -> Lie:
    return Lie(says, tuple(Change(*change) for change in changes), killer, worst)


SIZES = [
    lie(
        "sizes are measured with .7 of the noise that is charged",
        f"{_SIZES}[rows]",
        (
            _COUNTS,
            "for label in labels], dtype=np.int64), scale)",
            "for label in labels], dtype=np.int64), 0.7 * scale)",
        ),
        worst=True,
    ),
    lie(
        "a user moves one label's size only",
        f"{_SIZES}[users]",
        (_COUNTS, "scale = (len(labels) if dataset.by_user else 1) / epsilon", "scale = 1 / epsilon"),
        worst=True,
    ),
    lie(
        "a measured size is never below the true one",
        f"{_SIZES}[rows]",
        (_COUNTS, "max(1, int(count) + margin)", "max(counted[label], int(count) + margin)"),
    ),
    lie(
        "measuring sizes costs half of epsilon",
        f"{_SIZES}[rows]",
        (_COUNTS, "cost = (Pure(epsilon), ", "cost = (Pure(epsilon / 2), "),
    ),
]

TOKENS = [
    lie(
        "units are seated at 1.2 times the rate that is charged",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (
            _WRITING,
            "sampling.rate(self._plan.sizes[self.label])",
            "min(1.0, 1.2 * sampling.rate(self._plan.sizes[self.label]))",
        ),
        worst=True,
    ),
    lie(
        "every second demonstration is free",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (_WRITE, "if run is not None:\n", "if run is not None and writer.key[1] == 1:\n"),
        worst=True,
    ),
    lie(
        "a run has half of the samples that it draws",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (_PLAN, "return (Repeat(self.draws_per_label, event(steps, rate)),)", "return (event(steps, rate),)"),
        (_WRITE, "if run is not None:\n", "if run is not None and writer.key[1] == 1:\n"),
        worst=True,
    ),
    lie(
        "a demonstration has half of its tokens",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (
            _GAUSSIAN,
            "Gaussian(self.noise_multiplier / math.sqrt(steps))",
            "Gaussian(self.noise_multiplier / math.sqrt(max(1, steps // 2)))",
        ),
    ),
    lie(
        "a demonstration is charged after its first token",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (_WRITE, "if run is not None:\n", "if run is None:\n"),
        (
            _WRITE,
            "                yield from write_together(group, self._plan, state.model)\n",
            "                for event in write_together(group, self._plan, state.model):\n"
            "                    yield event\n"
            "                    if isinstance(event, TokenReleased) and event.step == 1:\n"
            "                        run.charge(*self._stage.charge_of(*key_of(event)), part_of(key_of(event)))\n",
        ),
        worst=True,
    ),
    lie(
        "noise is drawn once, and used for every token",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (
            _GAUSSIAN,
            "randomness.gaussian(self.aggregate(distributions), deviation * GRID) / GRID",
            "(self.aggregate(distributions) + _DRAWN.setdefault(len(distributions.public), "
            "randomness.gaussian(0 * self.aggregate(distributions), deviation * GRID))) / GRID",
        ),
        (_GAUSSIAN, "MECHANISM = GaussianMechanism", "MECHANISM = GaussianMechanism\n_DRAWN = {}"),
    ),
    lie(
        "the mean of two noisy sums costs as much as one",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (
            _GAUSSIAN,
            "scores = randomness.gaussian(self.aggregate(distributions), deviation * GRID) / GRID",
            "draws = [randomness.gaussian(self.aggregate(distributions), deviation * GRID) for _ in range(2)]\n"
            "        scores = sum(draws) / 2 / GRID",
        ),
    ),
    lie(
        "the clean sums are shown beside the winner",
        f"{_TOKENS}[noisy-max-per-demonstration-rows]",
        (
            "mechanisms.steps.noisy_max",
            "randomness.exponential_argmax(self.aggregate(distributions), scale), None)",
            "randomness.exponential_argmax(self.aggregate(distributions), scale), "
            "self.aggregate(distributions) / GRID)",
        ),
        worst=True,
    ),
    lie(
        "noise of half the scale",
        f"{_TOKENS}[noisy-max-per-demonstration-rows]",
        (
            "mechanisms.steps.noisy_max",
            "return self.sensitivity(unit_rows).bound / self.step_epsilon",
            "return self.sensitivity(unit_rows).bound / (2 * self.step_epsilon)",
        ),
        worst=True,
    ),
    lie(
        "a unit that turns one row into another moves the sum by 1",
        f"{_TOKENS}[gaussian-per-demonstration-subsets]",
        (_PLAN, "return 1.0 if unit_rows else math.sqrt(2.0)", "return 1.0"),
    ),
    lie(
        "a user's labels compose in parallel",
        f"{_TOKENS}[gaussian-per-demonstration-users]",
        (
            _RUN_PLAN,
            "run = self.sampling.compose(event, sizes, self.spec.delta, not self.by_user)",
            "run = self.sampling.compose(event, sizes, self.spec.delta, True)",
        ),
        (_WRITE, "        name = ALL if plan.by_user else label\n", "        name = label\n"),
        worst=True,
    ),
    lie(
        "softmax draws on one sample are amplified one by one",
        f"{_TOKENS}[blended-logits-per-demonstration-rows]",
        (
            "mechanisms.steps.softmax_draw",
            "return Poisson(rate, Pure(eta, steps))",
            "return ZCDP(steps * amplified(eta, rate) ** 2 / 8)",
        ),
    ),
    lie(
        "clipped logits span half of what they do",
        f"{_TOKENS}[difference-clipping-per-token-rows]",
        ("mechanisms.steps.difference_clipping", "return 2 * self.clip\n", "return self.clip\n"),
    ),
    lie(
        "the posterior mean is that of the clean sums",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (
            _GAUSSIAN,
            "return self.read(scores, distributions, deviation, randomness)",
            "clean = self.read(self.aggregate(distributions) / GRID, distributions, deviation, randomness)\n"
            "        return type(clean)(**vars(clean) | {'scores': scores})",
        ),
        worst=True,
    ),
    lie(
        "a noisy vector is read through the mean of the private rows",
        f"{_READ}[0.0-0.1-gaussian]",
        (
            "mechanisms.steps.noisy_vector",
            "noise * distributions.public_probabilities",
            "noise * distributions.probabilities().sum(axis=0) / distributions.expected_rows",
        ),
        worst=True,
    ),
    lie(
        "whether a text is refused follows from how many rows there are",
        f"{_TOKENS}[gaussian-per-demonstration-rows]",
        (
            _WRITE,
            "if reason := self._state.gate.reason(text) if text else NO_SENTENCE:\n",
            "if reason := NO_SENTENCE if _ROWS[-1] % 2 else None:\n",
        ),
        (
            _WRITE,
            "        self._stage, self._state, self._plan = stage, state, stage.plan\n",
            "        self._stage, self._state, self._plan = stage, state, stage.plan\n"
            "        _ROWS.append(len(state.parts[WRITE].records))\n",
        ),
        (
            _WRITE,
            'NO_SENTENCE = "it has no whole sentence"\n',
            'NO_SENTENCE = "it has no whole sentence"\n_ROWS = []\n',
        ),
        worst=True,
    ),
    lie(
        "free tokens come from the private rows",
        f"{_STEPS}[svt-public-per-demonstration-unit-rows]",
        (
            "mechanisms.steps.svt_public",
            "            public = distributions.public_probabilities\n",
            "            public = distributions.probabilities().mean(axis=0)\n",
        ),
    ),
    lie(
        "the distance from public text is compared without noise",
        f"{_STEPS}[svt-public-per-demonstration-unit-rows]",
        (
            "mechanisms.steps.svt_public",
            "return self._noisy(exact, 2 * _ROW / (self.mechanism.half - of_threshold)) >= self.noisy_threshold",
            "return exact >= self.noisy_threshold",
        ),
    ),
    lie(
        "a ball's offsets are longer than its radius",
        f"{_STEPS}[adadpsyn-per-demonstration-unit-rows]",
        (
            "mechanisms.steps.ball",
            "scale = np.minimum(1.0, _SHRINK * radius * GRID / np.maximum(lengths, 1.0))",
            "scale = 1.0",
        ),
    ),
    lie(
        "the public distribution that is shown is public",
        f"{_AMPLIFIED}[rows-per-demonstration]",
        (
            "mechanisms.steps.transforms",
            "return replace(distributions, rows=base + self.alpha * ratio)",
            "return replace(distributions, rows=base + self.alpha * ratio, public=distributions.rows.mean(axis=0))",
        ),
    ),
    lie(
        "subsets share a unit",
        "tests/runs/test_lockstep.py::test_subsets_move_by_at_most_root_two[per-demonstration]",
        (
            "mechanisms.sampling",
            "        rows[choices[place]].append(int(sampled[place]))\n",
            "        for row in rows:\n            row.append(int(sampled[place]))\n",
        ),
    ),
]

TALLIES = [
    lie(
        "a tally's noise is .7 of its scale",
        f"{_TALLIES}::test_a_unit_can_use_up_what_it_pays_and_pays_the_target[votes-records]",
        (
            "mechanisms.tallies.tally",
            "randomness.laplace(np.asarray(total), self.steps / self.epsilon)",
            "randomness.laplace(np.asarray(total), 0.7 * self.steps / self.epsilon)",
        ),
    ),
    lie(
        "negative contributions are numbers like others",
        f"{_TALLIES}::test_odd_numbers_move_it_no_further_either[prior-records-[ 0. -1. -1. -1.]]",
        (
            "mechanisms.tallies.tally",
            "(np.isfinite(contributions) & (contributions >= 0)).all(",
            "np.isfinite(contributions).all(",
        ),
    ),
    lie(
        "an embedding may have any length",
        f"{_TALLIES}::test_odd_numbers_move_it_no_further_either[prototypes-records-[ 0. -1. -1. -1.]]",
        (
            "mechanisms.tallies.prototypes",
            "lengths = np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1.0)",
            "lengths = np.ones((len(kept), 1))",
        ),
        ("mechanisms.tallies.prototypes", "    assert ((whole**2).sum(axis=1) <= LATTICE**2).all()\n", ""),
    ),
    Lie(
        "a new tally, in one file, charges for half of its noise",
        (),
        f"{_TALLIES}::test_a_unit_can_use_up_what_it_pays_and_pays_the_target",
        added=("mechanisms.tallies", _FALSE_TALLY),
    ),
]

STAGES = [
    lie(
        "the score is that of the clean table",
        _EVERYONE,
        (
            _SCORE,
            "        cells = tally.release(contributions, self._state.randomness)\n",
            "        tally.release(contributions, self._state.randomness)\n        cells = contributions.sum(axis=0)\n",
        ),
        worst=True,
    ),
    lie(
        "labels are weighed by how many rows of each there are, and not by their public sizes",
        f"{_STAGES}[vote-epsilon-rows-by labels-declared]",
        (
            _JUDGING,
            "by_label, counted = weights(plan.sizes, weighing), masses(plan.sizes, weighing)\n",
            "rows = [record.label for part in parts.values() for record in part.records]\n"
            "        by_label = weights({y: max(1, rows.count(y)) for y in plan.labels}, weighing)\n"
            "        counted = masses(plan.sizes, weighing)\n",
        ),
    ),
    lie(
        "the certificate leaves a stage out",
        _ROLES,
        (
            _RUN_PLAN,
            "return with_counts(self.event, self.measured)",
            "return with_counts(Composed(self.event.per, self.event.lists[:-1]), self.measured)",
        ),
        worst=True,
    ),
    lie(
        "the vote is not charged",
        _EVERYONE,
        (
            _RUN,
            "                entry.charge(of, events, name)\n",
            "                if name != 'vote':\n                    entry.charge(of, events, name)\n",
        ),
    ),
    lie(
        "corrections are measured once",
        _ROLES,
        (_CALIBRATE, "return (self.tally.event,) * (1 + REFINEMENTS)", "return (self.tally.event,)"),
    ),
    lie("voters do not score", _ROLES, (_RUN, "found[stage] = (end, 1.0)", "found[stage] = (0.0, 1.0)")),
    lie(
        "scorers do not calibrate",
        _ROLES,
        (_JUDGING, "part = self._parts[stage]", "part = self._parts['score' if stage == 'calibrate' else stage]"),
    ),
    lie(
        "a vote counts once",
        _EVERYONE,
        (
            _VOTE,
            "voters = units_of(state.parts[self._stage.name], plan.spec.max_unit_records)",
            "voters = 2 * list(units_of(state.parts[self._stage.name], plan.spec.max_unit_records))",
        ),
    ),
    lie(
        "a calibrator judges one set",
        _EVERYONE,
        (_CALIBRATE, "mine = everyone[judged == k]", "mine = everyone"),
        (
            _CALIBRATE,
            "compared = tally.release(cells.reshape(len(units), _SETS * labels), randomness).reshape(_SETS, labels)",
            "compared = np.stack([tally.release(cells[:, k], randomness) for k in range(_SETS)])",
        ),
    ),
    lie(
        "prototypes of a foreign set's score are free",
        f"{_SET}[and prototypes-by rows-rows]",
        (
            "mechanisms.runs.score",
            "    if prototypes is not None:\n        lists.append((PROTOTYPES, (prototypes.event,)))\n",
            "",
        ),
    ),
    lie(
        "scorers give no embeddings",
        f"{_SET}[and prototypes-by rows-rows]",
        ("mechanisms.runs.score", "return parts[SCORE], parts[VOTE]", "return parts[SCORE], dataset"),
    ),
    lie(
        "a user gives one embedding",
        "tests/evaluation/test_prototype_release.py::test_a_user_of_any_size_and_labels_moves_no_more_than_a_row[60]",
        (
            "mechanisms.evaluation.prototypes",
            "records = [unit[0] for unit in units_of(dataset, 1)]",
            "records = [record for unit in dataset.members for record in unit]",
        ),
    ),
]

COMBINED = [
    lie(
        "the score of records has half its noise where labels count the same",
        f"{_STAGES}[vote-roles-rows-by labels-measured]",
        (
            "mechanisms.tallies.tally",
            "randomness.laplace(np.asarray(total), self.steps / self.epsilon)",
            "randomness.laplace(np.asarray(total), self.steps / self.epsilon / (1 + getattr(self, 'weighted', False)))",
        ),
        worst=True,
    ),
    lie(
        "a foreign set's score has half its noise where labels count the same",
        f"{_SET}[score-by labels-rows]",
        (
            "mechanisms.runs.score",
            "        cells = tally.release(of_units(counted, units), randomness)\n",
            "        less = replace(tally, epsilon=2 * tally.epsilon) if scored.sizes else tally\n"
            "        cells = less.release(of_units(counted, units), randomness)\n",
        ),
    ),
    lie(
        "seats inside a role are drawn at a rate that the role's share has raised twice",
        f"{_STAGES}[tokens-per-demonstration-roles-rows-by rows-measured]",
        (
            _WRITING,
            "sampling.rate(self._plan.sizes[self.label])",
            "min(1.0, sampling.rate(self._plan.sizes[self.label]) / sampling.share)",
        ),
        worst=True,
    ),
    lie(
        "the comparison of sets is free where sizes were measured",
        f"{_PRICES}[vote-roles-rows-measured]",
        (
            _CALIBRATE,
            "return (self.tally.event,) * (1 + REFINEMENTS)",
            "return (self.tally.event,) * (REFINEMENTS + (self.plan.measured is None))",
        ),
        worst=True,
    ),
    lie(
        "what counting has cost may be spent once more",
        f"{_PRICES}[vote-epsilon-users-measured]",
        (_RUN_PLAN, "whole = left_after_counts(self.spec.epsilon, self.measured)", "whole = self.spec.epsilon"),
    ),
    lie(
        "the certificate does not tell of the counting",
        f"{_PRICES}[tokens-roles-rows-measured]",
        (
            _COUNTS,
            "return Composed(event.per, tuple((name, (counting, *events)) for name, events in event))",
            "return Composed(event.per, tuple((name, (*events,) if counting else ()) for name, events in event))",
        ),
    ),
    lie(
        "sizes that were measured are never too small",
        f"{_DEMONSTRATIONS}[gaussian-roles-users-measured]",
        (
            _RUN_PLAN,
            "(name, (*events, failure)) for name, events in run))",
            "(name, events) for name, events in run if failure))",
        ),
    ),
    lie(
        "a role has no more units than it is expected to have",
        f"{_PRICES}[tokens-roles-users-declared]",
        (
            _PLAN,
            "return min(size, most + 1), float(binom.sf(most, size, self.share))",
            "return min(size, most + 1), 0.0",
        ),
    ),
    lie(
        "a batch has room for a bound of the label's units times both rates",
        f"{_PRICES}[both-roles-rows-declared]",
        (
            _PLAN,
            "        allowed = (CAPACITY_SHARE * delta - failure) / self.draws_per_label\n",
            "        rate, members = rate * self.share, size\n"
            "        allowed = (CAPACITY_SHARE * delta - failure) / self.draws_per_label\n",
        ),
    ),
    lie(
        "a user who takes part in every stage has one label",
        f"{_PRICES}[vote-epsilon-users-declared]",
        (_RUN_PLAN, "return (ALL,) if self.by_user else self.labels", "return self.labels if ALL else ()"),
        worst=True,
    ),
    lie(
        "what one stage does not use another one may",
        f"{_STAGES}[tokens-per-demonstration-epsilon-users-by rows-measured]",
        (
            _SCORE,
            "        cells = tally.release(contributions, self._state.randomness)\n",
            "        twice = type(tally)(2 * tally.epsilon, tally.by_user, tally.weighted)\n"
            "        cells = twice.release(contributions, self._state.randomness)\n",
        ),
    ),
]

OPENINGS = [
    lie(
        "openings have half of the noise that is charged",
        f"{_OPENINGS}[vote-roles-pooled-rows]",
        (
            _ASKING,
            "noisy = stage.tally.release_of(chunks, state.randomness)",
            "noisy = Openings(2 * stage.tally.epsilon, plan.by_user).release_of(chunks, state.randomness)",
        ),
        worst=True,
    ),
    lie(
        "an opening has one vote of a row",
        f"{_OPENINGS}[vote-roles-by label-rows]",
        (
            _ASKING,
            "units = units_of(state.parts[stage.name], plan.spec.max_unit_records)",
            "units = 2 * [*units_of(state.parts[stage.name], plan.spec.max_unit_records)]",
        ),
        worst=True,
    ),
    lie(
        "a user has one vote on the openings",
        f"{_OPENINGS}[vote-roles-pooled-users]",
        (
            _ASKING,
            "units = units_of(state.parts[stage.name], plan.spec.max_unit_records)",
            "units = [(row,) for unit in units_of(state.parts[stage.name], 3) for row in unit]",
        ),
        worst=True,
    ),
    lie(
        "openings are read from their own role alone",
        f"{_STAGES}[both-per-demonstration-roles-rows-by rows-declared]",
        (
            _ASKING,
            "units = units_of(state.parts[stage.name], plan.spec.max_unit_records)",
            "units = [*units_of(state.parts[stage.name], 3), *units_of(state.parts['write'], 3)]",
        ),
        worst=True,
    ),
    lie(
        "the weights of openings are those of the clean counts",
        f"{_OPENINGS}[vote-roles-pooled-rows]",
        (
            _ASKING,
            "        yield OpeningsReleased(openings, told, stage.tally.deviation, stage.used(openings, counts))\n",
            "        exact = dict(zip(groups, cast(units).sum(axis=0).reshape(noisy.shape), strict=True))\n"
            "        used = {\n"
            "            label: {each: exact[''][openings.index(each)] / 1e3 for each in of}\n"
            "            for label, of in stage.used(openings, counts).items()\n"
            "        }\n"
            "        yield OpeningsReleased(openings, told, stage.tally.deviation, used)\n",
        ),
        worst=True,
    ),
    lie(
        "clean counts decide whether openings are used",
        f"{_OPENINGS}[vote-roles-pooled-rows]",
        (
            _ASKING,
            "stage.used(openings, counts))\n",
            "stage.used(openings, {group: each * (cast(units).sum() % 2) for group, each in counts.items()}))\n",
        ),
    ),
    lie(
        "the openings are not charged",
        f"{_OPENINGS}[vote-roles-pooled-rows]",
        (
            _RUN,
            "                entry.charge(of, events, name)\n",
            "                if name != 'openings':\n                    entry.charge(of, events, name)\n",
        ),
        worst=True,
    ),
    lie(
        "the openings are not claimed",
        f"{_PRICES}[vote-roles-rows-declared]",
        (
            _RUN_PLAN,
            "        for stage in self.stages.values():\n            for name, events in stage.charges():\n",
            "        for stage in self.stages.values():\n"
            "            for name, events in stage.charges() if stage.name != 'openings' else ():\n",
        ),
        worst=True,
    ),
    lie(
        "openings by label cost every label's rows nothing more",
        f"{_PRICES}[vote-epsilon-rows-declared]",
        (
            _ASKING,
            "return (self.tally.event,)",
            "return (type(self.tally.event)(self.tally.epsilon / len(self.plan.labels)),)",
        ),
    ),
]

RESUMED = [
    lie(
        "what is left of a run that was cut off is forgotten",
        f"{_RESUMED}[4-one by one-per-demonstration]",
        (
            _WRITE,
            "for group in groups(writers, self._plan, state.model):",
            "for group in groups([], self._plan, state.model):",
        ),
        worst=True,
    ),
    lie(
        "a run that is resumed votes again",
        f"{_GONE_ON}[both-epsilon-VotesReleased in vote]",
        ("mechanisms.runs.stage", "self._done = True\n", "self._done = self._stage.name != 'vote'\n"),
    ),
    lie(
        "a run that is resumed measures its priors again",
        f"{_GONE_ON}[both-epsilon-PriorsReleased in calibrate]",
        ("mechanisms.runs.stage", "self._done = True\n", "self._done = self._stage.name != 'calibrate'\n"),
        worst=True,
    ),
    lie(
        "a run that is resumed scores again",
        f"{_GONE_ON}[both-epsilon-ScoreReleased in score]",
        ("mechanisms.runs.stage", "self._done = True\n", "self._done = self._stage.name != 'score'\n"),
    ),
    lie(
        "a run that is resumed asks for openings again",
        f"{_GONE_ON}[both-epsilon-OpeningsReleased in openings]",
        ("mechanisms.runs.stage", "self._done = True\n", "self._done = self._stage.name != 'openings'\n"),
        worst=True,
    ),
    lie(
        "what was let out before the run was cut off may be drawn again",
        f"{_RESUMED}[8-one by one-per-demonstration]",
        (_WRITE, "left = [key for key in self._keys if part_of(key) not in seen]", "left = list(self._keys)"),
        worst=True,
    ),
    lie(
        "a copy of a run's file may be gone on with once more",
        "tests/runs/test_resume.py::test_a_copy_that_is_gone_on_with_once_more_lets_nothing_out_again[vote]",
        (
            "mechanisms.accounting.ledger",
            "if database.execute(query, (part, told, self.number, self.holder)).rowcount != 1:",
            "if database.execute(query, (part, told, self.number, self.holder)).rowcount > 1:",
        ),
    ),
]

ANSWERS = [
    lie(
        "Poisson answers are drawn at 1.3 times the rate that is charged",
        f"{_ANSWERS}[knn-votes-poisson-16-rows]",
        (
            _SESSION,
            "poisson_sample(len(units), request.rate or 0.0)",
            "poisson_sample(len(units), min(1.0, 1.3 * (request.rate or 0.0)))",
        ),
        worst=True,
    ),
    lie(
        "knn-votes answers from the clean histogram",
        f"{_ANSWERS}[knn-votes-threshold-1-rows]",
        (
            "mechanisms.queries.knn_votes",
            "QueryRelease((int(scores.argmax()),), scores)",
            "QueryRelease((int(histogram.argmax()),), scores)",
        ),
        worst=True,
    ),
    lie(
        "soft-votes answers from the clean histogram",
        f"{_ANSWERS}[soft-votes-threshold-1-rows]",
        (
            "mechanisms.queries.soft_votes",
            "MECHANISM = SoftVotes",
            "def _clean(self, histogram, randomness):\n"
            "    told = KnnVotes.release(self, histogram, randomness)\n"
            "    return type(told)((int(histogram.argmax()),), told.scores)\n\n\n"
            "SoftVotes.release = _clean\nMECHANISM = SoftVotes",
        ),
    ),
    lie(
        "a shard casts one vote",
        f"{_ANSWERS}[knn-votes-threshold-16-rows]",
        ("mechanisms.queries.mechanism", "    vote[label] = parts\n", "    vote[label] = 2 * parts\n"),
    ),
    lie(
        "who has paid for all questions is asked no more",
        f"{_ANSWERS}[knn-votes-threshold-16-rows]",
        (
            _SESSION,
            "payers = near[self._paid.charge(units.digests[unit] for unit in near)]",
            "payers = near[self._paid.charge(units.digests[unit] for unit in near) >= 0]",
        ),
    ),
    lie(
        "all questions cost what one does",
        f"{_ANSWERS}[knn-votes-poisson-16-rows]",
        (
            _SESSION,
            "events = (Repeat(self.queries, Poisson(self.rate, Gaussian(self.mechanism.dominating_noise))),)",
            "events = (Poisson(self.rate, Gaussian(self.mechanism.dominating_noise)),)",
        ),
    ),
    lie(
        "keywords are released without their test",
        f"{_ANSWERS}[keywords-threshold-1-rows]",
        (
            "mechanisms.queries.keywords",
            "        if not self._test(int(gaps[best]), randomness):\n",
            "        if not [self._test(int(gaps[best]), randomness)]:\n",
        ),
    ),
    lie(
        "the test of keywords has no margin",
        f"{_ANSWERS}[keywords-threshold-1-rows]",
        ("mechanisms.queries.keywords", "margin = math.ceil(scale * float(norm.isf(self.failure))) + 1", "margin = 0"),
    ),
    lie(
        "a word counts once in a shard's answer",
        f"{_ANSWERS}[keywords-threshold-16-rows]",
        (
            "mechanisms.queries.mechanism",
            "        histogram[list(set(answer))] += 1\n",
            "        np.add.at(histogram, list(answer), 1)\n",
        ),
    ),
    lie(
        "a session answers whoever has spent what",
        "tests/test_answers.py::test_answers_are_never_refused_where_units_are_spent",
        (
            _SESSION,
            "        rows = nearest_by_shard(",
            "        if not len(payers):\n            raise UsageError('all rows near this question have been spent')\n"
            "        rows = nearest_by_shard(",
        ),
    ),
    lie(
        "a user is one unit in answers",
        f"{_ANSWERS}[knn-votes-poisson-16-users]",
        (
            _SESSION,
            'identity = ("user", record.unit or "") if by_user else',
            'identity = ("user", record.unit or "") if not record else',
        ),
    ),
]

_PUBLIC = "tests/replay/test_public_sets.py::test_one_row_that_earlier_runs_share_shows_nowhere_in_public"

PUBLIC = [
    lie(
        "whose rows are in a test file stands under their name",
        _PUBLIC,
        (
            "mechanisms.data.sizes",
            "    ledger.rows.mark_rows(test.rows, SCORED)\n",
            "    for name in owners_of(test, ledger):\n"
            "        ledger.rows.mark(Fingerprint(name, test.unit, test.content, test.rows), SCORED)\n",
        ),
    ),
    lie(
        "a public set carries the marks of the owner's rows",
        _PUBLIC,
        (
            "mechanisms.runs.run",
            "    return ledger.snapshot(data.name, data.unit).disclosures\n",
            "    return ledger.rows.disclosures(data)\n",
        ),
    ),
    lie(
        "a public set carries the marks of the owner's rows since it is exported",
        _PUBLIC,
        (
            "mechanisms.demos.demo_set",
            "if WHETHER_SHOWN not in self.certificate.public_inputs:",
            "if not self.certificate.public_inputs:",
        ),
    ),
]

FIGURES = [
    lie(
        "intervals are of 95%",
        "tests/test_confidence.py::test_the_pages_say_the_level_that_there_is",
        ("mechanisms.confidence", "LEVEL = 0.95\n", "LEVEL = 0.9\n"),
    ),
    lie(
        "a private accuracy has an interval of 95%",
        "tests/test_confidence.py::test_every_interval_is_of_the_one_level[a private accuracy]",
        (
            "mechanisms.tallies.score",
            "        right = float(cells[_right(cells, arm)].sum())\n"
            "        total = float(cells.sum())\n"
            "        noise, z2 = self._half_noise(cells), confidence.standard_errors() ** 2\n",
            "        right = float(cells[_right(cells, arm)].sum())\n"
            "        total = float(cells.sum())\n"
            "        noise, z2 = self._half_noise(cells), 1.645**2\n",
        ),
    ),
]

LIES = [*SIZES, *TOKENS, *TALLIES, *STAGES, *COMBINED, *OPENINGS, *RESUMED, *ANSWERS, *PUBLIC, *FIGURES]
