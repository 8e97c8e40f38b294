"""Exact search over 1,000,000 vectors of 384 dimensions: milliseconds a query and memory, one library a process.

    pip install faiss-cpu scikit-learn
    python -m research.benchmarks.retrieval

Each line is what the threshold rule needs: all rows at or above a similarity, with their similarities. The vectors are
random; about one in a thousand is above the threshold. Takes about 3 minutes on 2 cores, and 4 GB of memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mechanisms.queries.retrieval import GRID, on_grid, similarities

ROWS, DIMENSIONS = 1_000_000, 384
THRESHOLD = 0.16
QUERIES = 50
BLOCK = 4096


def vectors() -> np.ndarray:
    generator = np.random.default_rng(0)
    rows = np.empty((ROWS, DIMENSIONS), np.float32)
    for start in range(0, ROWS, BLOCK):
        block = generator.standard_normal((min(BLOCK, ROWS - start), DIMENSIONS), dtype=np.float32)
        rows[start : start + BLOCK] = on_grid(block / np.linalg.norm(block, axis=1, keepdims=True))
    return rows


def numpy_float32(rows: np.ndarray) -> Callable[[np.ndarray], object]:
    return lambda query: np.flatnonzero(similarities(rows, query) >= THRESHOLD)


def numpy_int16(rows: np.ndarray) -> Callable[[np.ndarray], object]:
    """Half the memory: grid steps, widened block by block."""
    steps = (rows * GRID).astype(np.int16)

    def search(query: np.ndarray) -> object:
        products = np.empty(len(steps), np.float32)
        for start in range(0, len(steps), BLOCK):
            block = slice(start, start + BLOCK)
            np.dot(steps[block].astype(np.float32), query, out=products[block])
        return np.flatnonzero(products >= THRESHOLD * GRID)

    return search


def faiss_flat(rows: np.ndarray) -> Callable[[np.ndarray], object]:
    import faiss

    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(rows)
    return lambda query: index.range_search(query[None], THRESHOLD)


def faiss_half(rows: np.ndarray) -> Callable[[np.ndarray], object]:
    """Half precision, which holds the grid exactly: half the memory."""
    import faiss

    index = faiss.IndexScalarQuantizer(DIMENSIONS, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    index.train(rows[:1])
    index.add(rows)
    return lambda query: index.range_search(query[None], THRESHOLD)


def scikit_learn(rows: np.ndarray) -> Callable[[np.ndarray], object]:
    """For unit vectors, a similarity of t is a distance of sqrt(2 - 2t)."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(algorithm="brute", radius=np.sqrt(2 - 2 * THRESHOLD)).fit(rows)
    return lambda query: index.radius_neighbors(query[None])


CANDIDATES = {
    "numpy, float32": numpy_float32,
    "numpy, int16": numpy_int16,
    "faiss flat, float32": faiss_flat,
    "faiss flat, float16": faiss_half,
    "scikit-learn brute force": scikit_learn,
}


def measure(name: str) -> None:
    rows = vectors()
    queries = rows[:: ROWS // QUERIES].copy()
    search = CANDIDATES[name](rows)
    del rows
    search(queries[0])
    times = []
    for query in queries:
        start = time.perf_counter()
        search(query)
        times.append(1e3 * (time.perf_counter() - start))
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**30
    median, p95 = np.median(times), np.quantile(times, 0.95)
    print(f"| {name} | {median:.0f} | {p95:.0f} | {resident:.2f} |", flush=True)


def main() -> None:
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    print("| library | median ms | p95 ms | GiB resident |\n|---|---|---|---|", flush=True)
    for name in CANDIDATES:
        subprocess.run([sys.executable, "-m", "research.benchmarks.retrieval", name], check=True)


if __name__ == "__main__":
    main()
