"""A run over two Ray workers of which one is killed (SIGKILL) in each of twenty steps: is it the run of one process?

    python -m research.faults.ray_faults [--kills 20] [--seed 1]

Once with one sample for the whole demonstration, whose rows every replacement has to be told again, and once with a new
sample for each token. Tokens, scores and the ledger must be those of a single process; the first difference ends the
benchmark. The table has the kills, the charges, and how much longer a step took than without kills. The work is in
`tests/inference/ray/killing.py`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import torch

from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.inference.ray.engine import RayModel, spread
from mechanisms.sampling import Scheme
from tests.inference.ray.killing import Killer, Watch, in_small_chunks, written

LABELS = ("a",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the moments, in every run of them")
    options = parser.parse_args()
    os.environ |= {"DPICL_RAY_WORKERS": "2", "DPICL_THREADS": "1"}
    os.environ.pop("RAY_ADDRESS", None)
    torch.set_num_threads(1)
    local = in_small_chunks(load_model(EMBEDDED, 1))
    print(f"| a sample | steps | kills | charges | a step with kills / without |\n{'|---' * 5}|", flush=True)
    with tempfile.TemporaryDirectory() as home, spread(EMBEDDED, local) as model:
        for scheme in (Scheme.PER_DEMONSTRATION, Scheme.PER_TOKEN):
            tried(local, model, scheme, options, Path(home) / scheme)


def tried(local: object, model: RayModel, scheme: Scheme, options: argparse.Namespace, home: Path) -> None:
    """Write alone, spread, and under kills; compare, and print a line."""
    tokens, quiet, killed = options.kills + 1, Watch(), Watch()
    alone = written(local, scheme, home / "alone", tokens, LABELS)
    assert len(alone.tokens) == tokens
    assert len(alone.charges) == 1
    assert written(model, scheme, home / "spread", tokens, LABELS, quiet) == alone, "without kills"
    killer = Killer(options.kills, quiet.step, options.seed)

    def released(count: int) -> None:
        killed(count)
        killer(count)

    assert written(model, scheme, home / "killed", tokens, LABELS, released) == alone, "with kills"
    assert len(set(killer.victims)) == options.kills
    print(
        f"| {scheme} | {tokens} | {options.kills} | {len(alone.charges)} | {killed.step / quiet.step:.0f} |", flush=True
    )


if __name__ == "__main__":
    main()
