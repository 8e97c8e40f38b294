"""The stages of a run, one a file, each found by its `STAGE`; their order is that of `mechanisms.runs.recipe.Stage`."""
