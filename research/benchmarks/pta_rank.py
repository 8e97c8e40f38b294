"""What plausible token amplification does to the tokens that private rows favour.

    python -m research.benchmarks.pta_rank trec/train.csv agnews/train.csv

At each step of held-out texts, the favoured token is the candidate whose mean log ratio of private to public
probability is largest. Printed: its mean rank among the K candidates and its mean share of the (clean) sum, in
standard deviations of the noise of one step, without and with the transform. Figures of real private data: for the
data's owner only.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict

import numpy as np
from scipy.special import log_softmax

from mechanisms.inference import GenerationPrompt, LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.records import PromptTemplate
from mechanisms.steps import NoTransform, TokenDistributions
from mechanisms.steps.transforms.pta import PlausibleTokenAmplification

ROWS, TEXTS, STEPS, K, NOISE = 100, 3, 12, 50, 3.2
ARMS = {
    "plain": NoTransform(),
    "pta": PlausibleTokenAmplification(),
    "pta, no base": PlausibleTokenAmplification(base=False),
    "pta, alpha 2": PlausibleTokenAmplification(alpha=2.0),
}


def measure(path: str, model: LanguageModel) -> None:
    by_label = defaultdict(list)
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            by_label[row["label"]].append(row["text"])
    ranks, signals = defaultdict(list), defaultdict(list)
    for label, texts in list(by_label.items())[:3]:
        prompt = GenerationPrompt(model, PromptTemplate("", "Text", "Label"), label, 64, 1)
        rows = [prompt.row([text]) for text in texts[:ROWS]]
        for text in texts[ROWS : ROWS + TEXTS]:
            private = model.open(prompt.prefix, rows, prompt.length, STEPS)
            public = model.open(prompt.prefix, [prompt.cue], len(prompt.cue), STEPS)
            base = model.open([], [model.encode("\n")], 1, STEPS)
            for token in model.encode(" " + text)[:STEPS]:
                columns = np.sort(np.argsort(-public.logits()[0])[:K])
                step = TokenDistributions(
                    private.logits(columns), np.ones(len(rows), dtype=bool), public.logits(columns)[0], ROWS, True,
                    base.logits(columns)[0],
                )  # fmt: skip
                ratio = log_softmax(step.rows, axis=1) - log_softmax(step.public)
                favoured = int(ratio.mean(axis=0).argmax())
                for name, transform in ARMS.items():
                    total = transform.apply(step).probabilities().sum(axis=0)
                    ranks[name].append(1 + int((total > total[favoured]).sum()))
                    signals[name].append((total[favoured] - np.median(total)) / NOISE)
                for session, count in ((private, len(rows)), (public, 1), (base, 1)):
                    session.advance([token] * count)
    print(path)
    for name in ARMS:
        rank, signal = np.mean(ranks[name]), np.mean(signals[name])
        print(f"  {name:14} mean rank {rank:5.1f} of {K}   {signal:6.2f} sd above the median")


if __name__ == "__main__":
    loaded = load_model()
    for each in sys.argv[1:]:
        measure(each, loaded)
