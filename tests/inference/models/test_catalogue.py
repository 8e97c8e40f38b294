"""From what a file calls a model to what the command line calls it."""

from __future__ import annotations

from mechanisms.inference.models import catalogue
from mechanisms.inference.models.listing import ModelListing


def test_a_label_leads_to_the_listed_model_that_has_it_here(monkeypatch):
    here = [ModelListing("one", "", 1, True), ModelListing("two", "", 1, True), ModelListing("away", "", 1, False)]
    monkeypatch.setattr(catalogue, "available_models", lambda: here)
    monkeypatch.setattr(catalogue, "_locate", lambda name: ("somewhere", f"label of {name}"))
    assert catalogue.listed_as("label of two") == "two"
    assert catalogue.listed_as("label of away") is None
    assert catalogue.listed_as("two") is None
