"""What step 2 shows of models: the one that is there, and what another one would need."""

from __future__ import annotations

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.tree import Tree, el, notice
from dpicl_ui.privacy.duration import duration
from mechanisms.inference.models.listing import ModelListing

_CHAT = "It is asked through its chat template."
_PLAIN = "It is asked in plain text, as a base model is."
_LOCKED = "The operator of this server has locked the model."
_CONVERTED_ONCE = "It is converted once, which takes a minute for a small model and more memory than the model itself."
_UNKNOWN = "It is not on this machine, so its size is not known before it is fetched."


def there(loader: ModelLoader) -> list[Tree]:
    """The model that runs use, or how far it is."""
    if not loader.settled:
        return [el("p.spinner", f"Loading {loader.title}: {loader.stage} …", role="status")]
    if loader.problem:
        return [*notice(loader.refusal or ""), *notice(f"No model is loaded. {loader.problem}")]
    how = _CHAT if loader.chat else _PLAIN
    back = notice(f"{loader.refusal} The model before it is back in its place.") if loader.refusal else []
    return [el("p", el("strong", loader.title), " is loaded. ", how), *back]


def locked() -> list[Tree]:
    """Why there is nothing to choose."""
    return [el("p.muted", _LOCKED)]


def title(listed: ModelListing) -> str:
    """A listed model in the list."""
    return f"{listed.description}{'' if listed.available else ' (not installed)'}"


def would_need(memory: str | None, free: str, seconds: float | None, measured: bool, converted: bool) -> list[Tree]:
    """What a model needs, before it is loaded.

    Args:
        memory, free: in words; None where the model is not on this machine.
        seconds: of the planned run; None where there is none, or nothing is known.
        measured: the duration was measured with this model, and not guessed by its size.
        converted: its weights can be read as they are.
    """
    needs = _UNKNOWN if memory is None else f"Its weights need {memory} of memory, here {free} are free."
    run = ""
    if seconds is not None:
        guess = "" if measured else ", guessed by its size; it is measured once loaded"
        run = f" The planned run takes {duration(seconds)}{guess}."
    return [el("p.muted", f"{needs}{run}{'' if converted else ' ' + _CONVERTED_ONCE}", role="status")]
