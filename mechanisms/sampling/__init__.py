"""Who joins a step: the sampling plan, which carries its own accounting, and the units' places in a batch."""

from mechanisms.sampling.disjoint import copy_numbers, keyed_place
from mechanisms.sampling.plan import Adjacency, Compose, EventOfSteps, SamplingPlan, Scheme, sensitivity
from mechanisms.sampling.roles import role_place
from mechanisms.sampling.seating import Seating, seat_in_slots, seat_in_subsets

__all__ = [
    "Adjacency",
    "Compose",
    "EventOfSteps",
    "SamplingPlan",
    "Scheme",
    "Seating",
    "copy_numbers",
    "keyed_place",
    "role_place",
    "seat_in_slots",
    "seat_in_subsets",
    "sensitivity",
]
