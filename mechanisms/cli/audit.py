"""`audit`: tests and attacks on the privacy of steps, of whole runs and of released demonstrations."""

from __future__ import annotations

import argparse
import math
from typing import Any

from mechanisms import api, confidence
from mechanisms.accounting import Claim, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.audit import extraction as extracting
from mechanisms.audit import membership as members
from mechanisms.audit.extraction import Exposure, canary_attack, writes
from mechanisms.audit.mechanism import CONFIDENCE, AuditProgress, AuditResult, audit_mechanism
from mechanisms.audit.membership import LOW, RELEASED, Roc, allowed
from mechanisms.audit.one_run import audit_run, audited_runs
from mechanisms.cli.options import (
    add_label_names,
    add_plan_options,
    add_reading_options,
    field_names,
    labels_of,
    mechanism,
    of_rows,
    sampling_plan,
    transform,
)
from mechanisms.cli.output import add_json, progress, show, told_of_rows
from mechanisms.data.sizes import mark_attacked
from mechanisms.demos.demo_set import finite, loads, read_json
from mechanisms.files import text_of
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.listing import default_name
from mechanisms.records import Dataset, default_template
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.score import ScoredSet, read_set, with_choice
from mechanisms.steps import mechanism_names

_REASON = "figures of attacks on private rows, without noise: for the curator alone"
_SHOWN = (
    "These figures have no noise: they are for the curator alone, promise nothing about the rows, and every later "
    "certificate of theirs says that they were shown."
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    step = verbs.add_parser("mechanism", help="many draws of one step on a worst-case pair of neighbours")
    step.add_argument("name", choices=mechanism_names())
    step.add_argument("--epsilon", type=float, default=2.0, help="what one step is calibrated to cost")
    step.add_argument("--draws", type=int, default=100_000)
    add_json(step)
    step.set_defaults(run=_mechanism)
    run = verbs.add_parser("run", help="one whole run on canaries alone: the epsilon that right guesses prove")
    run.add_argument("name", choices=audited_runs(), help="the vote of a recipe, or a token mechanism")
    run.add_argument("--epsilon", type=float, default=2.0, help="what the run is calibrated to cost")
    run.add_argument("--canaries", type=int, default=512, help="units that are in or out by a coin each")
    run.add_argument("--rate", type=float, default=1.0, help="sampling rate of a token mechanism")
    add_json(run)
    run.set_defaults(run=_run)
    _add_attacks(verbs)


def _mechanism(options: argparse.Namespace) -> None:
    for told in audit_mechanism(options.name, options.epsilon, options.draws):
        match told:
            case AuditProgress(done, total):
                if done % (total // 10 or 1) == 0:
                    progress(f"{done} of {total}")
            case AuditResult():
                document = {
                    "mechanism": told.mechanism,
                    "epsilon_lower_bound": told.lower_bound,
                    "epsilon_claimed": told.claimed if told.claimed != float("inf") else None,
                    "delta": told.delta,
                    "confidence": CONFIDENCE,
                    "draws": told.draws,
                    "holds": told.holds,
                }
                show(options, document)


def _run(options: argparse.Namespace) -> None:
    found = audit_run(options.name, options.epsilon, options.canaries, options.rate)
    document = {
        "run": found.audited,
        "epsilon_lower_bound": found.guesses.lower_bound,
        "epsilon_claimed": finite(found.claimed),
        "delta": found.delta,
        "confidence": confidence.LEVEL,
        "canaries": found.canaries,
        "guesses": found.guesses.made,
        "correct": found.guesses.correct,
        "holds": found.holds,
    }
    show(options, document)


# `audit mia`, `audit extract` and `audit canary`: attacks on prompts that hold demonstrations.


def _add_attacks(verbs: Any) -> None:
    """Register the three attacks as verbs of `audit`."""
    for add in (_add_mia, _add_extract, _add_canary):
        parser = add(verbs)
        parser.add_argument("--text-column", default="text")
        parser.add_argument("--label-column", default="label")
        add_label_names(parser)
        add_reading_options(parser)
        parser.add_argument("--unit-column", help="user id: the privacy unit is all rows of a user")
        parser.add_argument("--name", help="the data set's name in the ledger (default: the file's name)")
        parser.add_argument("--model", default=default_name())
        add_json(parser)


def _add_mia(verbs: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        "mia", help="was a row behind these demonstrations? membership inference, beside what the claim allows"
    )
    _add_files(parser)
    parser.add_argument("--held-out", required=True, metavar="FILE", help="rows of the same source that took no part")
    usual = members.Effort()
    parser.add_argument("--rows", type=int, default=usual.rows, help="of each label, in and out (default: %(default)s)")
    parser.add_argument("--prompts", type=int, default=usual.prompts, help="prompts of real rows, the planted leak")
    parser.add_argument("--shots", type=int, default=usual.shots, help="rows of each label in such a prompt")
    parser.add_argument("--references", type=int, default=usual.references, help="prompts of held-out rows")
    parser.set_defaults(run=_mia)
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="FILE", help="the private file that the demonstrations were made from")
    parser.add_argument("demos", metavar="DEMOS", help="a demo set, or JSON by hand with 'demonstrations' and 'task'")


def _add_extract(verbs: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        "extract", help="addresses and numbers of private rows that a prompt gives away; rates only"
    )
    _add_files(parser)
    usual = extracting.Effort()
    parser.add_argument("--prompts", type=int, default=usual.prompts, help="prompts of real rows, the planted leak")
    parser.add_argument("--shots", type=int, default=usual.shots, help="rows in such a prompt")
    parser.add_argument("--answer-tokens", type=int, default=usual.tokens, help="tokens of an answer")
    parser.set_defaults(run=_extract)
    return parser


def _add_canary(verbs: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        "canary", help="plant secrets, write demonstrations with a mechanism, and measure how exposed the secrets are"
    )
    parser.add_argument("csv", metavar="FILE", help="the private file; it stays as it is")
    parser.add_argument("--labels", required=True, metavar="A,B,...", help="the public label set")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--canaries", type=int, default=8, help="secrets planted (default: %(default)s)")
    parser.add_argument("--secrets", type=int, default=256, help="secrets compared with (default: %(default)s)")
    parser.add_argument("--candidates", type=int, default=SynthesisRequest.candidates, metavar="K")
    parser.add_argument("--max-record-tokens", type=int, default=SynthesisRequest.max_record_tokens)
    add_plan_options(parser)
    parser.set_defaults(run=_canary)
    return parser


def _mia(options: argparse.Namespace) -> None:
    task, claimed = _task(options.demos)
    with_choice(task)
    effort = members.Effort(options.rows, options.prompts, options.shots, options.references)
    private = _dataset(options, options.csv, task.labels)
    held_out = _dataset(options, options.held_out, task.labels)
    model = _begun(options, private, held_out)
    document: dict[str, Any] = {**_curator_only(), **_claim(claimed)}
    for told in members.membership(model, task, private, held_out, effort):
        match told:
            case AuditProgress(done, total):
                told_of_rows(done, total)
            case members.Membership(shown, attacks):
                document[shown] = {name: _roc(each, _of(claimed, shown)) for name, each in attacks.items()}
    show(options, document)


def _extract(options: argparse.Namespace) -> None:
    task, claimed = _task(options.demos)
    effort = extracting.Effort(options.prompts, options.shots, options.answer_tokens)
    private = _dataset(options, options.csv, task.labels)
    model = _begun(options, private)
    document: dict[str, Any] = {**_curator_only(), **_claim(claimed)}
    for told in extracting.extraction(model, task.template, private, task.demonstrations, effort):
        match told:
            case AuditProgress(done, total):
                told_of_rows(done, total)
            case extracting.Extraction():
                document.setdefault(told.shown, {})[told.pattern] = _rates(told)
    show(options, document)


def _canary(options: argparse.Namespace) -> None:
    labels = labels_of(options)
    private, plan = _dataset(options, options.csv, labels), sampling_plan(options)
    request = SynthesisRequest(
        labels=labels,
        template=default_template(labels, *field_names(options, options.text_column, options.label_column)),
        plan=plan,
        mechanism=mechanism(options, plan),
        transform=transform(options),
        target=PrivacyTarget(options.epsilon, options.delta),
        sizes={label: max(1, size) for label, size in private.counted_sizes().items()},
        content=fingerprint(private).content,
        by_user=private.by_user,
        candidates=options.candidates,
        max_record_tokens=options.max_record_tokens,
    )
    calibrated = request.calibrated()
    model = _begun(options, private)
    claimed = calibrated.claim()
    document: dict[str, Any] = {**_curator_only(), **_claim(claimed), "mechanism": options.mechanism}
    write = writes(request, model)
    for found in canary_attack(model, request.template, private, write, options.canaries, options.secrets):
        progress(found.shown)
        document[found.shown] = _exposure(found, _of(claimed, found.shown))
    show(options, document)


def _task(path: str) -> tuple[ScoredSet, Claim | None]:
    """A set with its claim; None for a set written by hand."""
    text = text_of(path)
    document = read_json(text)
    exported = isinstance(document, dict) and "format" in document
    return read_set(text), loads(text).certificate.claim if exported else None


def _dataset(options: argparse.Namespace, path: str, labels: tuple[str, ...]) -> Dataset:
    alone = options.label_column == "" and len(labels) == 1  # texts alone
    return api.load(
        path,
        labels,
        text=options.text_column,
        label=None if alone else options.label_column,
        user=options.unit_column,
        name=options.name,
        **of_rows(options),
    )


def _begun(options: argparse.Namespace, private: Dataset, held_out: Dataset | None = None) -> LanguageModel:
    """Load the model, and mark the data sets in the ledger before any figure is shown."""
    model = api.load_model(options.model)
    mark_attacked(fingerprint(private), PrivacyLedger(), fingerprint(held_out) if held_out else None)
    progress(_SHOWN)
    return model


def _curator_only() -> dict[str, Any]:
    return {"private": False, "reason": _REASON, "curator_only": True}


def _claim(claimed: Claim | None) -> dict[str, Any]:
    if claimed is None:
        return {"claim": None}
    return {"claim": {"epsilon": finite(claimed.epsilon), "delta": claimed.delta}}


def _of(claimed: Claim | None, shown: str) -> Claim | None:
    """The claim for a kind of prompt; None for prompts of real rows."""
    return claimed if shown == RELEASED else None


def _roc(found: Roc, claimed: Claim | None) -> dict[str, Any]:
    bound = None if claimed is None or not math.isfinite(claimed.epsilon) else claimed
    return {
        "members": found.members,
        "others": found.others,
        "level": confidence.LEVEL,
        "auc": round(found.area, 4),
        "auc_interval": [round(each, 4) for each in found.interval],
        "tpr_at_1%_fpr": round(found.found, 4),
        "tpr_at_1%_fpr_interval": [round(each, 4) for each in found.found_interval],
        "tpr_at_1%_fpr_allowed": round(allowed(bound.epsilon, bound.delta, LOW), 4) if bound else None,
        "roc": [[rate, round(reached, 4)] for rate, reached in found.points],
    }


def _rates(found: extracting.Extraction) -> dict[str, Any]:
    return {
        "prompts": found.prompts,
        "questions": found.questions,
        "answers_with_private_item": round(found.rate, 4),
        "interval": [round(each, 4) for each in found.interval],
        "level": confidence.LEVEL,
        "standing_in_prompts": found.standing,
        "taken_of_standing": round(found.taken / found.standing, 4) if found.standing else None,
    }


def _exposure(found: Exposure, claimed: Claim | None) -> dict[str, Any]:
    return {
        "exposure_bits": [round(each, 2) for each in sorted(found.bits, reverse=True)],
        "most_bits": round(found.most, 2),
        "verbatim": found.verbatim,
        "ranks": _roc(found.ranks, claimed),
    }


COMMANDS = {"audit": _add_options}
