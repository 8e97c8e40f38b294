"""Matrix products of 8-bit numbers on a CPU, with one scale for each position of each row.

A CPU without fast bfloat16 multiplies them faster than float32 (research/docs/engine.md). torch's dynamic quantisation
takes one scale from all rows of a batch, so that a row's result depends on the others. Here the scale of a position is
its own, and sums of integers are exact in any order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn

from mechanisms.inference.engine.threads import computing

_INPUT = 127
"""An input is rounded to a whole number from -127 to 127, stored with 128 added: the kernel takes numbers without a
sign."""
_WEIGHT, _WEIGHT_IN_PAIRS = 127, 63
"""A weight is rounded to a whole number of at most this size. Without VNNI instructions a kernel adds pairs of products
in 16 bits, which hold 2 x 255 x 63 but not 2 x 255 x 127, so weights have 7 bits there."""
_TINY = torch.finfo(torch.float32).tiny


def _most_of_weight() -> int:
    return _WEIGHT if torch.cpu._is_vnni_supported() else _WEIGHT_IN_PAIRS


class EightBitLinear(nn.Module):
    """A linear layer with rounded weights, one scale for each output, and rounded inputs, one scale for each position.

    The scale is the largest absolute value divided by the largest whole number.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        weight = layer.weight.detach().float()
        most = _most_of_weight()
        self.out_features, self.in_features = weight.shape
        self._scales = weight.abs().amax(dim=1).clamp_(min=_TINY * most) / most
        rounded = (weight / self._scales[:, None]).round_().to(torch.int8)
        self._weight = torch.ops.onednn.qlinear_prepack(rounded, None)
        self._zeros = torch.zeros(self.out_features, dtype=torch.int32)
        self._bias = None if layer.bias is None else layer.bias.detach().float()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        positions = inputs.reshape(-1, self.in_features).float()
        # Ten times faster than `linalg.vector_norm`.
        most = torch.maximum(positions.amax(dim=1, keepdim=True), -positions.amin(dim=1, keepdim=True))
        most.clamp_(min=_TINY * _INPUT)
        # The conversion cuts off what follows the point.
        rounded = (positions * (_INPUT / most)).add_(_INPUT + 1.5).to(torch.uint8)
        # The scale of a position follows later: one factor, that of the weights, is rounded alike in every kernel.
        outputs: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
            rounded,
            1.0,
            _INPUT + 1,
            self._weight,
            self._scales,
            self._zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        ).mul_(most / _INPUT)
        if self._bias is not None:
            outputs.add_(self._bias)
        return outputs.view(*inputs.shape[:-1], self.out_features).to(inputs.dtype)


def round_to_eight_bits(model: Any) -> bool:
    """Replace a model's linear layers, except the output head; False if there was none to replace."""
    if getattr(model, "is_quantized", False):
        return False
    head, found = model.get_output_embeddings(), False
    for parent in [each for each in model.modules() if not isinstance(each, nn.Linear)]:
        for name, layer in [*parent.named_children()]:
            if type(layer) is nn.Linear and layer is not head:
                setattr(parent, name, EightBitLinear(layer))
                found = True
    return found


@cache
@computing
def eight_bits_work() -> bool:
    """Whether this processor has fast 8-bit products, and this torch's are close to those of float32."""
    if not torch.cpu._is_avx2_supported():  # elsewhere oneDNN may compute them without fast kernels
        return False
    layer, inputs = nn.Linear(64, 8), torch.arange(5.0 * 64).cos().view(5, 64)
    try:
        with torch.inference_mode():
            layer.weight.copy_(torch.arange(8.0 * 64).sin().view(8, 64))
            found, exact = EightBitLinear(layer)(inputs), layer(inputs)
    except (RuntimeError, AttributeError, NotImplementedError):  # a torch without oneDNN
        return False
    return bool((found - exact).norm() < 0.05 * exact.norm())


def number_format(model: Any) -> str:
    """The format of a model's numbers: its dtype, or that of its linear layers if their weights are rounded."""
    if any(isinstance(each, EightBitLinear) for each in model.modules()):
        return f"8-bit products ({_most_of_weight().bit_length() + 1}-bit weights)"
    rounded = next((bits for bits in (8, 4) if getattr(model, f"is_loaded_in_{bits}bit", False)), None)
    return str(model.dtype).removeprefix("torch.") + (f" ({rounded}-bit weights)" if rounded else "")
