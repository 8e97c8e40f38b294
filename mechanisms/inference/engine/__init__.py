"""The transformers engine."""

DEVICE = "DPICL_DEVICE"
"""The variable that says which device computes: see `device.chosen_device`. Here, since torch need not be there."""
