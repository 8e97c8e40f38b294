"""Zero-concentrated differential privacy: the claim of releases of which only rho is known, and its check."""

from __future__ import annotations

import math

from dp_accounting import ZCDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import minimize_scalar

from mechanisms.accounting import rdp
from mechanisms.accounting.normal_form import Bounds, Concentrated, NormalForm, Primitive

NAME, CHECK = "zcdp", "rdp"
_LARGEST_LOG_ORDER = 60.0


def supports(primitive: Primitive) -> bool:
    """zCDP alone: everything else has a tighter accountant."""
    return isinstance(primitive, Concentrated)


def _rho(form: NormalForm) -> float:
    return sum(count * primitive.rho for primitive, count in form.primitives if isinstance(primitive, Concentrated))


def epsilon(form: NormalForm, delta: float) -> Bounds:
    """Epsilon at `delta`: rho adds up, and any order of the conversion is valid, so that the best is taken.

    Conversion: Canonne, Kamath, Steinke 2020, proposition 12.
    """
    rho = _rho(form)
    if rho == 0:
        return Bounds(0.0, 0.0)
    found = _converted(rho, delta)
    return Bounds(found, found)


def _converted(rho: float, delta: float) -> float:
    def at(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return rdp.to_epsilon(rho * order, order, delta)

    low, high = math.log(1e-3), math.log(1e6)
    while True:
        found = minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        if found.x < high - 1 or high > _LARGEST_LOG_ORDER:
            return float(found.fun)
        low, high = high - 2, high + 10  # so little rho that the best order lies there


def largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho, within a relative 1e-9, whose epsilon at `delta` is at most the given one."""
    low, high = 0.0, epsilon
    while _converted(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _converted(middle, delta) <= epsilon else (low, middle)
    return low


def check(form: NormalForm, delta: float) -> float:
    """The same from dp-accounting's Renyi accountant, at orders laid around its own optimum."""
    rho = _rho(form)
    if rho == 0:
        return 0.0
    centre = max(1e-3, math.sqrt(math.log(1 / delta) / rho))
    orders = [1 + centre * 1.02**step for step in range(-120, 121)]
    return float(RdpAccountant(orders).compose(ZCDpEvent(rho)).get_epsilon(delta))
