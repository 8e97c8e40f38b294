"""Fetching a model from the hub, with progress, retries and checks of digests."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

from httpx2 import HTTPError
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.constants import HF_HUB_CACHE
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from huggingface_hub.utils._xet import abort_xet_session
from huggingface_hub.utils.tqdm import tqdm

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models.listed import KEPT, no_model
from mechanisms.inference.models.weights import file_digest

_NETWORK = ".transfer"
"""The ending of the name of the hub client's progress bar for bytes transferred by Xet."""
_FULL = "No space left"
_BESIDE = (".json", ".txt", ".model", ".jinja")
"""Endings of the files that are fetched in addition to weights; others, such as pickles, are not fetched."""


def fetch(
    name: str,
    file: str = "",
    tell: Callable[[float], object] = lambda share: None,
    check: Callable[[Path], object] = lambda folder: None,
) -> None:
    """Fetch a model into the hub's cache: its configuration first, then weights, only as safetensors.

    A broken connection is resumed a few times during the call; a complete file is not fetched again. Each file of
    weights must have the SHA-256 that the hub states.

    Args:
        name: the hub id.
        file: the GGUF file of the model, which is then the only fetched file.
        tell: receives the share of all bytes that has arrived; if it raises `ModelUnavailable`, the fetch stops, and
            complete files are kept.
        check: receives the folder before weights are fetched, and may refuse it.

    Raises:
        ModelUnavailable: no such model, its licence was not accepted, the hub cannot be reached, there are no
            safetensors, the disk is full, or a digest differs.
    """
    begun = False

    def tell_begun(share: float) -> None:
        nonlocal begun
        begun = True
        tell(share)

    try:
        _fetch(name, file, tell_begun, check)
    except GatedRepoError as error:
        raise ModelUnavailable(
            f"Accept the licence of '{name}' on the hub first, and set HF_TOKEN to your access token."
        ) from error
    except LocalEntryNotFoundError as error:  # the hub could not be reached
        raise _not_reached(name) from error
    except (RepositoryNotFoundError, HFValidationError, EntryNotFoundError) as error:
        raise no_model(name) from error
    except (HTTPError, OSError, RuntimeError) as error:  # Xet's own errors are all of the last kind
        full = getattr(error, "errno", None) == errno.ENOSPC or _FULL in str(error)
        raise (_no_room(name) if full else _not_reached(name, begun)) from error


def _no_room(name: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"The disk is full, so '{name}' cannot be fetched: make room for '{HF_HUB_CACHE}', or set HF_HUB_CACHE to a "
        f"folder on another disk, and try again. {KEPT}"
    )


def _not_reached(name: str, begun: bool = False) -> ModelUnavailable:
    failed = "broke off" if begun else "failed"
    return ModelUnavailable(
        f"The model '{name}' is not on this machine, and fetching it {failed}: connect to the hub and try again, or "
        f"give a folder or a GGUF file.{f' {KEPT}' if begun else ''}"
    )


def _fetch(name: str, file: str, tell: Callable[[float], object], check: Callable[[Path], object]) -> None:
    found = {each.rfilename: each for each in HfApi().model_info(name, files_metadata=True).siblings or ()}
    wanted = sorted((each for each in found if (each == file if file else _belongs(each))), key=_is_weights)
    if file and not wanted:
        raise EntryNotFoundError(name)
    if not file and not any(map(_is_weights, wanted)):
        raise ModelUnavailable(
            f"'{name}' has no model*.safetensors on the hub, and other weights are not read: choose another model, or "
            "give a GGUF file that is on this machine."
        )
    total = sum(found[each].size or 0 for each in wanted) or 1
    there, stopped = 0, list[ModelUnavailable]()

    class Told(tqdm):  # type: ignore[misc, type-arg]
        """A progress bar that draws nothing, and reports the share of all bytes that has arrived."""

        def __init__(self, *args: Any, name: str | None = None, **more: Any) -> None:
            # Xet has two bars: compressed bytes over the network, and bytes of the file; the latter counts.
            self._counts = not (name or "").endswith(_NETWORK)
            super().__init__(*args, name=name, **more | {"disable": True})

        def update(self, n: float | None = 1) -> None:
            nonlocal there
            there += int(n or 0) if self._counts else 0
            try:
                tell(min(1.0, there / total))
            except ModelUnavailable as error:
                stopped.append(error)
                abort_xet_session()  # it may report progress in another thread, whose errors end nothing
                raise

    if not file:
        check(Path(hf_hub_download(name, "config.json")).parent)
    for each in wanted:
        before = there
        try:
            path = Path(hf_hub_download(name, each, tqdm_class=Told))
        except (Exception, KeyboardInterrupt):
            if stopped:
                raise stopped[0] from None
            raise
        stated = found[each].lfs
        if stated is not None and file_digest(path) != stated.sha256:
            path.resolve().unlink()
            path.unlink(missing_ok=True)
            raise ModelUnavailable(f"The file of '{name}' does not have the digest that the hub states: try again.")
        there = before + (found[each].size or 0)
        tell(there / total)


def _belongs(file: str) -> bool:
    return "/" not in file and (file.endswith(_BESIDE) or _is_weights(file))


def _is_weights(file: str) -> bool:
    # Some repositories have the same weights a second time under other names.
    return file.startswith("model") and file.endswith(".safetensors")
