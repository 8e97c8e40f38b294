"""DP-ICL Studio's core: differentially private few-shot demonstrations, without a user interface."""

__version__ = "0.3.0"
