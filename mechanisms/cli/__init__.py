"""The command line of the studio: `python -m mechanisms COMMAND`."""
