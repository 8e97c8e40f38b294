"""`audit mia`, `audit extract` and `audit canary`: attacks on prompts that hold demonstrations."""

from __future__ import annotations

import argparse
import math
from typing import Any

from mechanisms import confidence
from mechanisms.accounting import Claim, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.audit import extraction as extracting
from mechanisms.audit import membership as members
from mechanisms.audit.extraction import Exposure, canary_attack, writes
from mechanisms.audit.mechanism import AuditProgress
from mechanisms.audit.membership import LOW, RELEASED, Roc, allowed
from mechanisms.cli.label_names import add_label_names, label_names, labels_of
from mechanisms.cli.output import add_json, progress, show
from mechanisms.cli.plan_options import add_plan_options, mechanism, sampling_plan, transform
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.sizes import mark_attacked
from mechanisms.data.sources import KIND, name_of, of_kind, read_source
from mechanisms.demos.demo_set import finite, loads, read_json
from mechanisms.files import text_of
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.records import Dataset, default_template
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.score import AnySet, read_set, with_choice

_REASON = "figures of attacks on private rows, without noise: for the curator alone"
_SHOWN = (
    "These figures have no noise: they are for the curator alone, promise nothing about the rows, and every later "
    "certificate of theirs says that they were shown."
)


def add_attacks(verbs: Any) -> None:
    """Register the three attacks as verbs of `audit`."""
    for add in (_add_mia, _add_extract, _add_canary):
        parser = add(verbs)
        parser.add_argument("--text-column", default="text")
        parser.add_argument("--label-column", default="label")
        add_label_names(parser)
        parser.add_argument("--unit-column", help="user id: the privacy unit is all rows of a user")
        parser.add_argument("--name", help="the data set's name in the ledger (default: the file's name)")
        parser.add_argument("--model", default=EMBEDDED)
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
                progress(f"{done} of {total}")
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
                progress(f"{done} of {total}")
            case extracting.Extraction():
                document.setdefault(told.shown, {})[told.pattern] = _rates(told)
    show(options, document)


def _canary(options: argparse.Namespace) -> None:
    labels = labels_of(options)
    private, plan = _dataset(options, options.csv, labels), sampling_plan(options)
    request = SynthesisRequest(
        labels=labels,
        template=default_template(labels, options.text_column, options.label_column),
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


def _task(path: str) -> tuple[AnySet, Claim | None]:
    """A set with what it claims; one by hand claims nothing."""
    text = text_of(path)
    document = read_json(text)
    exported = isinstance(document, dict) and "format" in document
    return read_set(text), loads(text).certificate.claim if exported else None


def _dataset(options: argparse.Namespace, path: str, labels: tuple[str, ...]) -> Dataset:
    table = read_source(path)
    for remark in table.remarks:
        progress(remark)
    label = options.label_column
    if label == "" and len(labels) == 1:  # texts alone
        table, label = of_kind(table, labels[0]), KIND
    mapping = ColumnMapping(options.text_column, label, options.unit_column, label_names=label_names(options))
    return to_dataset(table, mapping, (options.name or name_of(path)).strip(), labels)


def _begun(options: argparse.Namespace, private: Dataset, held_out: Dataset | None = None) -> LanguageModel:
    """The model; and before anything is shown, the ledger remembers that it will be."""
    model = load_model(options.model)
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
    """The claim that holds for a kind of prompt: real rows have none."""
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
