"""The studio without a screen: `python -m mechanisms COMMAND`."""
