"""The live screen of a run as plain JSON values, drawn by `assets/live.js`; a pure function of the view."""

from __future__ import annotations

from typing import Any

from dpicl_ui.generate.run_view import Draft, RunView
from mechanisms.data.sizes import WHETHER_SHOWN
from mechanisms.runs.events import TokenReleased

MOST_BARS = 20
DRAFTING = "The model writes drafts from public text alone. No row is read yet, and nothing is spent."
IDLE = "What is written appears here as it is released."


def live(view: RunView) -> dict[str, Any]:
    """Everything the live screen draws.

    Returns:
        phase, where (which demonstration), count (which token), progress (0 to 1), text (without the last token), fresh
        (the last token's text), hint (shown instead of an empty text), chart (None before the first token) and others
        (label, number in words and text of the demonstrations that are written beside it).
    """
    draft = view.shown
    token, text, before = (draft.token, draft.text, draft.before) if draft else (None, "", "")
    if token and view.partly_forced:  # what was forced before the last token was not decided with it
        before = text.removesuffix(token.candidates[token.chosen])
    before = before if text.startswith(before) else ""
    return {
        "phase": view.phase,
        "where": _where(view),
        "count": _count(view, token) if token else "",
        "progress": round(view.progress, 3),
        "text": before,
        "fresh": text[len(before) :],
        "hint": _hint(view),
        "chart": chart(view, draft, token) if draft and token else None,
        "others": [{"label": each.label, "which": _which(view, each), "text": each.text} for each in view.drafts[1:]],
    }


def _which(view: RunView, draft: Draft) -> str:
    return f", number {draft.number} of {view.shots}" if view.shots > 1 else ""


def _count(view: RunView, token: TokenReleased) -> str:
    charged = "charged token" if view.partly_forced else "token"
    return f"{charged} {token.step} of at most {view.tokens}{', free' if token.free else ''}"


def _where(view: RunView) -> str:
    if view.phase == "waiting" and view.message:
        return view.message
    if view.phase == "waiting":
        return "Waiting for the model …"
    if view.phase in ("idle", "failed") or not view.shown:
        return "Nothing of yours is running" if view.phase != "running" else "Starting …"
    verb = "Writing" if view.drafts and view.phase == "running" else "Last written"
    return f"{verb}: {view.shown.label}{_which(view, view.shown)}"


def _hint(view: RunView) -> str:
    if view.phase == "waiting" and view.message:
        return DRAFTING
    if view.phase in ("running", "waiting"):
        words = reading(view)
        return f"{words[0].upper()}{words[1:]} …"
    return IDLE


def reading(view: RunView) -> str:
    """What the first token waits for."""
    certificate = view.demo_set.certificate if view.demo_set else None
    if certificate is None or WHETHER_SHOWN not in certificate.public_inputs:
        return "reading the prompt"
    expected = view.rows * _parameters(view).get("per_subset", 1)
    if certificate.by_user:
        return f"reading the records of about {expected} users"
    return f"reading about {expected} rows"


def visible(token: str) -> str:
    """A token with its spaces and line breaks made visible."""
    if not token:
        return "end of text"
    return token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "·")


def chart(view: RunView, draft: Draft, token: TokenReleased) -> dict[str, Any]:
    """The bars of a draft's last token: at most `MOST_BARS` candidates, the chosen one included.

    Ordered by the value that decided; values are in rows, one decimal. Where the mechanism releases the token alone,
    the bars are the public expectation, which is all that a `free` token came from. `noise` is its standard deviation
    where the certificate's parameters give it, and `clip` is how far a row's logits may go, where the mechanism bounds
    them.
    """
    values = token.scores if token.scores is not None else token.public
    order = sorted(range(len(values)), key=lambda i: -values[i])
    shown = order[:MOST_BARS]
    if token.chosen not in shown:
        shown[-1] = token.chosen
    noise = _noise(view) if token.scores is not None else None
    bars = _bars(token, draft.clean, values, shown)
    ends = [0.0, noise or 0.0, -(noise or 0.0)]
    ends += [bar[name] for bar in bars for name in ("value", "public", "clean") if bar[name] is not None]
    low, high = min(ends), max(ends)
    return {
        "noisy": token.scores is not None,
        "free": token.free,
        "bars": bars,
        "domain": [low, high if high > low else low + 1],
        "noise": noise,
        "clip": _parameters(view).get("clip"),
        "rows": view.rows,
        "hidden": len(values) - len(shown),
        "clean": draft.clean is not None,
    }


def _bars(
    token: TokenReleased, clean: tuple[float, ...] | None, values: tuple[float, ...], shown: list[int]
) -> list[dict[str, Any]]:
    return [
        {
            "token": visible(token.candidates[i]),
            "value": round(values[i], 1),
            "public": round(token.public[i], 1),
            "clean": round(clean[i], 1) if clean is not None else None,
            "chosen": i == token.chosen,
        }
        for i in shown
    ]


def _noise(view: RunView) -> float | None:
    parameters = _parameters(view)
    multiplier, sensitivity = parameters.get("noise_multiplier"), parameters.get("sensitivity")
    return round(multiplier * sensitivity, 1) if multiplier is not None and sensitivity is not None else None


def _parameters(view: RunView) -> dict[str, Any]:
    """What the tokens are written with: public, and in the certificate."""
    parameters = view.demo_set.certificate.parameters if view.demo_set else {}
    written: dict[str, Any] = parameters.get("written", parameters)  # a recipe's stage
    return written
