"""Sets of demonstrations from anywhere."""

from __future__ import annotations

import json

import pytest

from mechanisms.errors import UsageError
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.score import read_set, with_choice

TASK = {"labels": ["red", "blue"], "instruction": "Sort.", "template": {"text": "Note", "label": "Topic"}}
BY_HAND = {"demonstrations": [{"text": "a rose", "label": "red"}], "task": TASK}


def test_a_set_by_hand():
    found = read_set(json.dumps(BY_HAND))
    assert found.demonstrations == (Demonstration("a rose", "red"),)
    assert (found.labels, found.template) == (("red", "blue"), PromptTemplate("Sort.", "Note", "Topic"))
    assert (found.prior, found.zero_shot, found.spare) == (None, None, 0.0)
    assert read_set(json.dumps(BY_HAND | {"demonstrations": []})).demonstrations == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"demonstrations": [{"text": "a rose"}]}, "demonstrations/0"),
        ({"demonstrations": [{"text": "a rose", "label": "green"}]}, "green"),
        ({"task": {"labels": ["red", "blue"]}}, "task"),
        ({"format": "dpicl-demos/2"}, "demo set"),
    ],
)
def test_what_is_no_set_is_refused(change, message):
    with pytest.raises(UsageError, match=message):
        read_set(json.dumps(BY_HAND | change))


def test_one_label_can_be_read_and_tells_nothing_apart():
    found = read_set(json.dumps(BY_HAND | {"task": TASK | {"labels": ["red"]}}))
    with pytest.raises(UsageError, match="two labels"):
        with_choice(found)
    both = read_set(json.dumps(BY_HAND))
    assert with_choice(both) is both


@pytest.mark.parametrize("text", ["[]", "{", '"x"', '{"demonstrations": []}'])
def test_other_files_are_refused(text):
    with pytest.raises(UsageError):
        read_set(text)
