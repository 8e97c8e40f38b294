"""Where demonstrations come from and what is promised, in few fields, for formats that have a place for it."""

from __future__ import annotations

from typing import Any

from mechanisms.accounting import cost_in_words
from mechanisms.errors import printable
from mechanisms.records import unit_in_words
from mechanisms.studio.exports.export_format import Released
from mechanisms.studio.synthesis.demo_set import finite


def provenance(released: Released) -> dict[str, Any]:
    """Plain JSON: the claim, the curator's marks, and the digest of the demo-set file, which has everything.

    `prior` is the measured correction: what to add to each label's log-probability, with the model that is named.
    """
    made = released.demo_set
    held, model = made.certificate, made.model_id
    return {
        "synthetic": True,
        "private": held.private,
        **({"reason": held.reason} if held.reason else {}),
        "epsilon": finite(held.claim.epsilon),
        "delta": held.claim.delta,
        "unit": held.unit,
        "mechanism": held.mechanism,
        "curator_diagnostics_shown": bool(held.shown),
        **({"shown": list(held.shown)} if held.shown else {}),
        "model": model,
        **({"prior": dict(made.prior)} if made.prior else {}),
        "demo_set_digest": released.digest,
    }


def in_a_line(released: Released) -> str:
    """The same in one line."""
    held = released.demo_set.certificate
    claim = f"{cost_in_words(held.claim.epsilon, held.claim.delta)} for {unit_in_words(held.unit)}"
    said = [
        f"synthetic; {claim}" if held.private else f"synthetic; not private: {held.reason or 'nothing is promised'}",
        *([f"known to the curator: {', '.join(held.shown)}"] if held.shown else []),
        f"demo set {released.digest}",
    ]
    return printable("; ".join(said))
