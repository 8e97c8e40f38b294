"""Who joins a step: the sampling plan, which carries its own accounting, and the Poisson draw itself."""

from mechanisms.sampling.disjoint import copy_numbers, keyed_place
from mechanisms.sampling.plan import Adjacency, Compose, EventOfSteps, SamplingPlan, Scheme, sensitivity
from mechanisms.sampling.poisson import Seating, poisson_sample, seat_in_slots, seat_in_subsets
from mechanisms.sampling.roles import role_place

__all__ = [
    "Adjacency",
    "Compose",
    "EventOfSteps",
    "SamplingPlan",
    "Scheme",
    "Seating",
    "copy_numbers",
    "keyed_place",
    "poisson_sample",
    "role_place",
    "seat_in_slots",
    "seat_in_subsets",
    "sensitivity",
]
