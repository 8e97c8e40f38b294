"""How drafts come out by turns and sentences: `python turns.py MODEL DRAFTS OUT [TASKS]`, with `DPICL_DATA`; `ONLY` names
variants."""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from mechanisms import api
from mechanisms.asking import LENGTH
from mechanisms.kinds import exemplars_of
from mechanisms.noise import SecureRandomness
from mechanisms.runs.drafts import _write
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.text import Gate, cleaned, whole_sentences
from research.benchmarks.worth import TASKS, Bench


class P:
    """prefix, cue, opening"""

    def __init__(self, model, turn, sentences, last):
        before, after, again = turn
        self.prefix = list(before)
        self.cue = list(after)
        self._m = model
        for s, t in sentences:
            self.prefix += [*model.encode(s), *self.cue, *model.encode(t), *again]
        self.prefix += model.encode(last)

    def opening(self, t):
        return self._m.encode(" " + t if t else t)


def sentence(asked, label, form):
    w = f"one {asked.kind} {asked.relation} {asked.named(label)}"
    Who = asked.writer[:1].upper() + asked.writer[1:]
    if form == "plays":
        return f"You are {asked.reader}. {Who} writes you {w}, {LENGTH}."
    if form == "persona":
        per = f"You are {asked.writer}. " if asked.writer else ""
        return f"{per}Write {w}{f' to {asked.reader}' if asked.reader else ''}, {LENGTH}."
    if form == "third":
        if asked.writer and asked.reader:
            return f"Write {w} from {asked.writer} to {asked.reader}, {LENGTH}."
        return f"Write {w}{f', as {asked.writer} would' if asked.writer else ''}, {LENGTH}."


def shown(asked, form):
    known = exemplars_of(asked.kind)
    addr = bool(asked.writer and asked.reader)
    fitting = [e for e in known if bool(e.reader) == addr] or known
    out = []
    for e in fitting[: asked.exemplars]:
        a = replace(
            asked,
            writer=asked.writer and (e.writer or asked.writer),
            reader=asked.reader and e.reader,
            relation="about",
            words={},
        )
        out.append((sentence(a, e.about, form), e.text))
    return out


def turn(model, kind):
    m = model
    if kind == "letter":
        before, between, _ = m._around(["system", "user"])
        _, b2, again, _ = m._around(["system", "user", "system"])
        return (m._special(before), m._special(between), m._special(again))
    if kind == "writer":
        return m.writing_turn  # system _WRITER
    if kind == "plain":
        return m._turn()  # template default system
    if kind == "text":
        return (m.encode(""), m.encode("\n\nMessage:"), m.encode("\n\n"))



VARIANTS = {
    "plain text, plays": ("text", "plays"),
    "plain text, persona": ("text", "persona"),
    "as built (system/user)": ("letter", "plays"),
    "plays, writer system": ("writer", "plays"),
    "plays, template system": ("plain", "plays"),
    "persona, writer system": ("writer", "persona"),
    "persona, template system": ("plain", "persona"),
    "third, writer system": ("writer", "third"),
    "third, template system": ("plain", "third"),
}


def main():
    modelname, n, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    model = api.load_model(modelname)
    rnd = SecureRandomness()
    todo = sys.argv[4].split(",") if len(sys.argv) > 4 else list(TASKS)
    only = os.environ.get("ONLY")
    global VARIANTS
    if only:
        VARIANTS = {k: v for k, v in VARIANTS.items() if k in only.split("|")}
    for task in todo:
        bench = Bench(Path(os.environ["DPICL_DATA"]), task, model, 1)
        asked = RunSpec(**bench.task.asked).asked
        gate = Gate(model, [r.text for r in bench.rows[:50]], asked)
        for name, (t, f) in VARIANTS.items():
            if not asked.reader and f == "plays":
                continue
            if not asked.reader and f == "third" and not asked.writer:
                continue
            tr = turn(model, t)
            if tr is None:
                continue
            own = []
            ownk = []
            use = 0
            tot = 0
            texts = {}
            t0 = time.time()
            for label in bench.labels:
                p = P(model, tr, shown(asked, f), sentence(asked, label, f))
                got = [x for x, _ in _write(model, p, [""] * n, 40, rnd)]
                whole = [whole_sentences(" ".join(x.split())) or " ".join(x.split()) for x in got]
                whole = [x or "." for x in whole]
                pred = bench.classifier._model.predict(bench.embedder.embed(whole))
                own += list(pred == label)
                kept = [c for x in got if (c := cleaned(x, asked, label, bench.labels, gate))]
                use += len(kept)
                tot += len(got)
                if kept:
                    ownk += list(bench.classifier._model.predict(bench.embedder.embed(kept)) == label)
                texts[label] = whole
            line = dict(
                model=modelname,
                task=task,
                variant=name,
                own=float(np.mean(own)),
                own_kept=float(np.mean(ownk)) if ownk else 0,
                usable=use / tot,
                seconds=time.time() - t0,
                texts=texts,
            )
            with open(out, "a") as fh:
                fh.write(json.dumps(line) + "\n")
            print(
                task,
                name,
                f"own {line['own']:.2f} usable {line['usable']:.2f} own kept {line['own_kept']:.2f} {line['seconds']:.0f}s",
                flush=True,
            )


main()
