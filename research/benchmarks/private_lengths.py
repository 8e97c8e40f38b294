"""Whether the time of a step tells how long the private rows are: two-sample tests on the embedded model.

    python -m research.benchmarks.private_lengths [SAMPLES] [--cpu]

With --cpu the clock is the processor time of one thread: what a busy machine leaves comparable.

Per-token steps (open and logits) and per-demonstration steps (advance and logits) with private rows that are empty,
short, or at the cap, in random order; each kind against the empty one, by Mann-Whitney (location) and
Kolmogorov-Smirnov (any difference). The same for rows padded to their own longest length, as an engine without public
lengths would do, so that one sees what the test can detect. Tokenising is apart: its time follows the text.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import ks_2samp, mannwhitneyu

from mechanisms.inference import GenerationPrompt, Session
from mechanisms.inference.engine.threads import fixed_thread_count
from mechanisms.inference.models.catalogue import load_model
from mechanisms.records import PromptTemplate

ROWS, CAP, ROOM = 10, 64, 4
RECORD_WORDS = {"empty": None, "short": 4, "at the cap": 90}
CPU_TIME = "--cpu" in sys.argv
COLUMNS = np.arange(100, 150)
WORDS = ["the", "market", "court", "team", "season", "science", "government", "reported", "network", "energy"]


class Steps:
    """What is timed, for rows of one kind; the sessions that `advance` needs are opened outside of the clock."""

    def __init__(self) -> None:
        self.model = load_model(threads=1 if CPU_TIME else fixed_thread_count())
        template = PromptTemplate("Classify the news articles.", "Article", "Answer")
        self.prompt = GenerationPrompt(self.model, template, "World", CAP, 1)

    def texts(self, kind: str) -> list[list[str]]:
        words = RECORD_WORDS[kind]
        return [[] if words is None else [" ".join(random.choices(WORDS, k=words))] for _ in range(ROWS)]

    def timed(self, kind: str) -> dict[str, float]:
        texts = self.texts(kind)
        times, rows = {}, [self.prompt.row(each) for each in texts]
        times["tokenise"] = clock(lambda: [self.prompt.row(each) for each in texts])
        for name, length in (("padded", self.prompt.length), ("unpadded", max(map(len, rows)))):
            opened: list[Session] = []
            times[f"per token, {name}"] = clock(partial(self._open, opened, rows, length))
            session = opened[0]
            times[f"per demonstration, {name}"] = clock(partial(self._advanced, session))
        return times

    def _open(self, opened: list[Session], rows: list[list[int]], length: int) -> None:
        opened.append(self.model.open(self.prompt.prefix, rows, length, ROOM))
        opened[-1].logits(COLUMNS)

    def _advanced(self, session: Session) -> None:
        session.advance([300] * ROWS)
        session.logits(COLUMNS)


def clock(work: Callable[[], object]) -> float:
    now = time.thread_time if CPU_TIME else time.perf_counter
    begun = now()
    work()
    return now() - begun


def main(samples: int) -> None:
    steps = Steps()
    for kind in RECORD_WORDS:
        steps.timed(kind)
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    order = list(RECORD_WORDS) * samples
    random.shuffle(order)
    for kind in order:
        for name, seconds in steps.timed(kind).items():
            times[name][kind].append(seconds)
    load = os.getloadavg()[0]
    print(f"load of the machine {load:.1f}, {'processor time of one thread' if CPU_TIME else 'wall-clock time'}")
    print(f"{ROWS} rows, {steps.prompt.length} positions each, {samples} samples of each kind")
    for name, kinds in times.items():
        for kind, measured in kinds.items():
            against = kinds["empty"]
            line = f"{name}: {kind}, median {1e3 * np.median(measured):.2f} ms"
            if kind != "empty":
                mann_whitney = mannwhitneyu(measured, against).pvalue
                line += f"; against empty: Mann-Whitney p {mann_whitney:.3g}"
                line += f", Kolmogorov-Smirnov p {ks_2samp(measured, against).pvalue:.3g}"
            print(line)
    encoding, step = times["tokenise"], times["per token, padded"]
    spread = np.median(encoding["at the cap"]) - np.median(encoding["empty"])
    print(
        f"tokenising rows at the cap takes {1e3 * spread:.2f} ms more than empty ones: "
        f"{spread / np.median(step['empty']):.2%} of a per-token step"
    )


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each.isdigit()]
    main(numbers[0] if numbers else 60)
