"""For benchmarks that read the same texts again and again: what embeds, drafts or reads each of them once."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from mechanisms.evaluation.reader import Classifier
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Floats
from mechanisms.records import PromptTemplate
from mechanisms.runs import stage as run_stage
from mechanisms.runs.drafts import write_drafts


class Remembering:
    """An embedder that embeds a text once; in memory."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimensions, self._embedder = embedder.name, embedder.dimensions, embedder
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        missing = [each for each in texts if each not in self._known]
        self._known.update(zip(missing, self._embedder.embed(missing), strict=True))
        return np.array([self._known[each] for each in texts], np.float32).reshape(len(texts), self.dimensions)


@dataclass
class Memory:
    """What runs share, so that it is made once: public drafts, and what the model makes of a text under a prompt."""

    drafts: dict[tuple[Any, ...], tuple[str, ...]] = field(default_factory=dict)
    scores: dict[tuple[Any, ...], dict[str, Floats]] = field(default_factory=dict)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Everything that is read or drafted meanwhile is remembered; no score depends on other texts."""
        reading = Classifier.reading

        def read(reader: Classifier, texts: Sequence[str]) -> Generator[int, None, Floats]:
            seen = self.scores.setdefault(reader.prompt, {})
            missing = [each for each in dict.fromkeys(texts) if each not in seen]
            scores = yield from reading(reader, missing)
            seen.update(zip(missing, scores, strict=True))
            return np.array([seen[each] for each in texts]).reshape(len(texts), scores.shape[1])

        def written(model: LanguageModel, template: PromptTemplate, label: str, *given: Any, **named: Any) -> Any:
            key = (template, label, given[1])  # the third of the rest is how many
            if key not in self.drafts:
                self.drafts[key] = write_drafts(model, template, label, *given, **named)
            return self.drafts[key]

        with patch.object(Classifier, "reading", read), patch.object(run_stage, "write_drafts", written):
            yield
