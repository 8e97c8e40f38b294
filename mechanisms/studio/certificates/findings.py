"""What a demo set says that its stages found, held against the stages that its run had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.studio.data.marks import WHETHER_MET
from mechanisms.studio.recipes.corrections import Correction
from mechanisms.studio.recipes.recipe import Division, Recipe, Stage
from mechanisms.studio.recipes.sets import NONE, candidate_sets
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.findings import DEMONSTRATIONS, PROTOTYPES, PUBLIC_ONLY, ZERO_SHOT, Choice, Score

_ARMS = (ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS, PROTOTYPES)


def problems_of_findings(demo_set: DemoSet, recipe: Recipe | None) -> Iterator[str]:
    """One line for each field that does not fit, its name first.

    A field may be missing although its stage was paid for: a run can be stopped.
    """
    found = {
        "prior": (demo_set.prior, Stage.CALIBRATE),
        "choice": (demo_set.choice, Stage.CHOOSE),
        "score": (demo_set.score, Stage.SCORE),
    }
    for name, (value, stage) in found.items():
        if value is not None and (recipe is None or stage not in recipe.shares):
            yield f"{name}: nobody has paid for it: this run has no stage '{stage}'."
    yield from _of_labels("prior", demo_set.prior, demo_set.labels)
    if recipe is not None and demo_set.choice is not None:
        yield from _of_choice(demo_set.choice, demo_set, recipe)
    if recipe is not None and demo_set.score is not None:
        yield from _of_score(demo_set.score, recipe, demo_set.certificate.public_inputs)


def _of_labels(field: str, correction: Mapping[str, float] | None, labels: tuple[str, ...]) -> Iterator[str]:
    if correction is not None and set(correction) != set(labels):
        yield f"{field}: every label must stand here, and nothing else."


def _of_choice(choice: Choice, demo_set: DemoSet, recipe: Recipe) -> Iterator[str]:
    with_own_words, with_plain = (names_of_sets(recipe, words) for words in (1, 2))
    most = len(with_plain) * len(Correction)
    if choice.among > most:
        yield f"choice/among: this recipe has at most {most} arms."
    if choice.chosen not in with_own_words + with_plain:
        yield "choice/chosen: no set of this recipe has that name."
    if choice.chosen == NONE and demo_set.demonstrations:
        yield "demonstrations: the choice was to have none."
    yield from _of_labels("choice/zero_shot_prior", choice.zero_shot, demo_set.labels)
    if public := choice.public_only:
        yield from _of_labels("choice/public_only/prior", public.prior, demo_set.labels)
        if any(each.label not in demo_set.labels for each in public.demonstrations):
            yield "choice/public_only/demonstrations: every label must be one of the task's."


def names_of_sets(recipe: Recipe, words: int) -> list[str]:
    """Names of the sets that stand in the choice, in their order; they do not depend on the texts.

    Args:
        recipe: public.
        words: wordings of the task, 1 or 2.
    """
    texts = {"": [""]}
    voted = texts if Stage.VOTE in recipe.shares else {}
    written = [Demonstration("", "")] if Stage.WRITE in recipe.shares else []
    templates = [PromptTemplate("")] * words
    return [each.name for each in candidate_sets(templates, [""], 1, recipe.sets, texts, voted, written)]


def _of_score(score: Score, recipe: Recipe, public_inputs: Sequence[str]) -> Iterator[str]:
    if score.untouched and recipe.division is not Division.ROLES:
        yield "score/rows: where every unit takes part in every stage, these rows took part in the choice."
    elif score.untouched and WHETHER_MET not in public_inputs:
        yield f"score/rows: '{WHETHER_MET}' must stand among privacy/public_inputs."
    if score.weighing is not recipe.weighing:
        yield "score/weighing: the run's parameters state another one."
    if not set(score.arms) <= set(_ARMS):
        yield f"score/arms: there are no others than {', '.join(_ARMS)}."
    for arm in score.arms.values():
        low, high = arm.interval
        if not low <= arm.accuracy <= high:
            yield "score/arms: an accuracy must lie inside its interval."
