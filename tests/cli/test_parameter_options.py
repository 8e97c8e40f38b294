"""Flags of parameters say what they mean to each mechanism that has them."""

from __future__ import annotations

import argparse
import re

import pytest

from mechanisms.cli.answer import add_answer_options
from mechanisms.cli.options import add_plan_options
from mechanisms.discovery import parameters
from mechanisms.queries import query_mechanism_class, query_mechanism_names
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names

PLAN = [mechanism_class(name) for name in mechanism_names()] + [transform_class(name) for name in transform_names()]
ANSWER = [query_mechanism_class(name) for name in query_mechanism_names()]


def sections(add) -> dict[str, str]:
    """The help by the titles of its groups, each on one line."""
    parser = argparse.ArgumentParser(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=10**5))
    add(parser)
    parts = re.split(r"^([^\s].*):\n", parser.format_help(), flags=re.MULTILINE)
    return {title: re.sub(r"\s+", " ", text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize(("add", "users"), [(add_plan_options, PLAN), (add_answer_options, ANSWER)])
def test_every_owner_has_a_group_and_every_meaning_is_told(add, users):
    told = sections(add)
    owners = {}
    for user in users:
        for each in parameters(user):
            owners.setdefault(each.flag, []).append(user)
    for flag, sharing in owners.items():
        if add is add_answer_options and flag == "noise":  # it follows from epsilon
            continue
        for user in sharing:
            [each] = [each for each in parameters(user) if each.flag == flag]
            title = f"parameters of {user.name}" if len(sharing) == 1 else "parameters of several mechanisms"
            prefix = "" if len(sharing) == 1 else f"{user.name}: "
            assert f"{prefix}{each.help} ({each.citation})" in told[title]
            assert f"--{flag}" in told[title]
    assert "PARAMETER_" not in "".join(told.values())


def test_a_shared_flag_does_not_tell_one_mechanism_what_holds_for_another():
    shared = sections(add_plan_options)["parameters of several mechanisms"]
    [temperature] = re.findall(r"--temperature X (.*?)(?= --|$)", shared)
    own = re.split(r"(?:^| )([a-z-]+): ", temperature)
    meanings = dict(zip(own[1::2], own[2::2], strict=True))
    assert "the more private" in meanings["blended-logits"]
    assert "the more private" not in meanings["gaussian"] + meanings["svt-public"]
