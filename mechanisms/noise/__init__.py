"""Where randomness comes from: the operating system for real runs, a seed for tests only."""

from mechanisms.noise.prefetch import PrefetchedRandomness
from mechanisms.noise.secure import SecureRandomness
from mechanisms.noise.seeded import SeededRandomness
from mechanisms.noise.source import Floats, Integers, Randomness

__all__ = ["Floats", "Integers", "PrefetchedRandomness", "Randomness", "SecureRandomness", "SeededRandomness"]
