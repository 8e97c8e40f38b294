"""Privacy events in words, for people who read a ledger."""

from __future__ import annotations

from mechanisms.privacy_events import (
    ZCDP,
    Approximate,
    Composed,
    Gaussian,
    Laplace,
    Poisson,
    PrivacyEvent,
    Pure,
    Repeat,
    Sequence,
)

_FEW = 4
"""Lists that are named one by one."""
_KINDS = {"label": "labels", "cell": "batches", "role": "roles"}


def in_words(event: Composed) -> str:
    """What a run releases; lists with the same events are named together."""
    named: dict[tuple[PrivacyEvent, ...], list[str]] = {}
    for name, events in event:
        named.setdefault(events, []).append(name)
    parts = [(names, ", then ".join(map(_words, events))) for events, names in named.items()]
    if event.per == "dataset" and len(parts) == 1:
        return parts[0][1]
    return "; ".join(f"{_who(names, event)}: {words}" for names, words in parts)


def _who(names: list[str], event: Composed) -> str:
    if len(names) <= _FEW:
        return ", ".join(names)
    return f"{'each' if len(names) == len(event.lists) else 'others'} of {len(names)} {_KINDS.get(event.per, 'lists')}"


def _words(event: PrivacyEvent) -> str:
    match event:
        case Gaussian(multiplier):
            return f"Gaussian noise of {multiplier:.4g} times the sensitivity"
        case Laplace(scale):
            return f"Laplace noise of {scale:.4g} times the sensitivity"
        case Pure(epsilon, count):
            return f"{'a step' if count == 1 else f'{count} steps'} of epsilon {epsilon:.4g}"
        case ZCDP(rho):
            return f"a release of rho {rho:.4g} (zCDP)"
        case Approximate(delta):
            return f"a failure of probability {delta:.2g}"
        case Poisson(rate, of):
            return f"{_words(of)} on a sample that each unit joins with probability {rate:.3g}"
        case Repeat(count, of):
            return f"{count} times ({_words(of)})"
        case Sequence(of):
            return " and ".join(_words(each) for each in of)
