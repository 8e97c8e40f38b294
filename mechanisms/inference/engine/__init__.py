"""The transformers engine."""

DEVICE = "DPICL_DEVICE"
"""The variable that selects the device: see `device.chosen_device`. It is defined here because this module needs no
torch."""
