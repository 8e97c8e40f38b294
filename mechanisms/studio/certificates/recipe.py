"""A recipe's run as its certificate states it."""

from __future__ import annotations

from mechanisms.accounting import PrivacyTarget
from mechanisms.errors import UsageError
from mechanisms.studio.certificates.stated import Stated, at, check_extent, measured_of, sizes_of
from mechanisms.studio.certificates.writing import plan_of, writing_of
from mechanisms.studio.data.counts import MeasuredSizes
from mechanisms.studio.recipes.recipe import Division, Kind, Recipe, Stage
from mechanisms.studio.recipes.request import RecipeRequest
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.request import NO_FILE, SynthesisRequest
from mechanisms.tallies import Weighing


def recipe_of(demo_set: DemoSet, stated: Stated) -> RecipeRequest:
    """The request of the run that such a certificate describes.

    Args:
        demo_set: whose certificate it is.
        stated: its parameters.

    Raises:
        UsageError: a stated value is missing, of the wrong kind or out of range; the message begins with its field.
    """
    recipe = _recipe(stated)
    _check_names(demo_set, recipe)
    certificate = demo_set.certificate
    epsilon = stated.of("target_epsilon", float)
    with at("privacy/delta"):
        PrivacyTarget(1.0, certificate.claim.delta)
    with at(stated.where):
        target = PrivacyTarget(epsilon, certificate.claim.delta)
    shots = stated.of("shots_per_label", int)
    check_extent(demo_set.labels, shots, stated)
    sizes = sizes_of(demo_set.labels, stated)
    measured = measured_of(stated, sizes)
    caps = {name: stated.of(name, int) for name in ("tokens", "max_record_tokens")}
    if certificate.by_user:
        caps["max_unit_records"] = stated.of("max_unit_records", int)
    written = _written(demo_set, stated, recipe, sizes, measured)
    with at(stated.where):
        return RecipeRequest(
            labels=demo_set.labels,
            template=demo_set.template,
            recipe=recipe,
            target=target,
            sizes=sizes,
            content=NO_FILE,
            by_user=certificate.by_user,
            shots=shots,
            written=written,
            measured=measured,
            public_inputs=certificate.public_inputs,
            **caps,
        )


def _recipe(stated: Stated) -> Recipe:
    kind, division = stated.known("recipe", list(Kind)), stated.known("division", list(Division))
    shares = stated.within("shares")
    if foreign := set(shares.values) - set(Stage):
        raise UsageError(f"{shares.where}: {len(foreign)} of these are no stages.")
    shared = {stage: shares.of(stage, float) for stage in Stage if stage in shares.values}
    # Files of before state no weighing: rows counted the same.
    weighing = stated.known("weighing", list(Weighing)) if "weighing" in stated.values else Weighing.ROWS
    numbers = {name: stated.of(name, int) for name in ("drafts", "rounds", "sets")}
    with at(stated.where):
        return Recipe(Kind(kind), Division(division), shared, **numbers, weighing=Weighing(weighing))


def _check_names(demo_set: DemoSet, recipe: Recipe) -> None:
    wanted = {"mechanism": f"recipe {recipe.kind}", "transform": "none", "scheme": recipe.division.value}
    for name, value in wanted.items():
        if getattr(demo_set.certificate, name) != value:
            raise UsageError(f"privacy/{name}: '{value}' must stand here in the file of such a recipe.")


def _written(
    demo_set: DemoSet, stated: Stated, recipe: Recipe, sizes: dict[str, int], measured: MeasuredSizes | None
) -> SynthesisRequest | None:
    """What the stage "write" writes with, for units of its own role."""
    if Stage.WRITE not in recipe.shares:
        return None
    written = stated.within("written")
    share = recipe.shares[Stage.WRITE] if recipe.division is Division.ROLES else 1.0
    plan = plan_of(demo_set, written, written, share)
    return writing_of(demo_set, written, written, plan, sizes, measured)
