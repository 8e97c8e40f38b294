"""From what a file calls a model to what the command line calls it."""

from __future__ import annotations

import re

from mechanisms.inference.models import catalogue
from mechanisms.inference.models.listing import ModelListing, available_models
from tests.conftest import ROOT


def test_a_label_leads_to_the_listed_model_that_has_it_here(monkeypatch):
    here = [
        ModelListing("one", "", 1, True, {}),
        ModelListing("two", "", 1, True, {}),
        ModelListing("away", "", 1, False, {}),
    ]
    monkeypatch.setattr(catalogue, "available_models", lambda: here)
    monkeypatch.setattr(catalogue, "_locate", lambda name: ("somewhere", f"label of {name}"))
    assert catalogue.listed_as("label of two") == "two"
    assert catalogue.listed_as("label of away") is None
    assert catalogue.listed_as("two") is None


def test_what_is_said_of_a_models_worth_is_what_was_measured():
    page = (ROOT / "research/docs/worth.md").read_text("utf-8")
    for listed in available_models():
        for name, accuracy in listed.measured.items():
            [row] = re.findall(rf"^\| {name.lower().replace(' ', '')}, {listed.name}, 1 \| (\d+) \|(.*)$", page, re.M)
            assert row[0] == "5"
            assert f"| {accuracy:.3f} ± ".replace("0.", ".") in row[1]
