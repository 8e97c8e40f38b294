"""A grammar writes records of its schema alone, whoever chooses among what it allows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.data.record_schema import RecordSchema, rewritten
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import Grammar
from tests.toy_model import VOCABULARY, ToyModel

NAMES = st.text("ab\"\\ '{}[]", min_size=1, max_size=5)
CHOICES = st.lists(
    st.one_of(st.text('ae"\\/ ', max_size=4), st.integers(-20, 20), st.booleans(), st.none()), min_size=1
)
LEAVES = st.one_of(
    st.integers(0, 4).flatmap(
        lambda low: st.integers(low, 6).map(lambda high: {"type": "string", "minLength": low, "maxLength": high})
    ),
    st.integers(-300, 300).flatmap(
        lambda low: st.integers(low, 900).map(lambda high: {"type": "integer", "minimum": low, "maximum": high})
    ),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": "string", "maxLength": 5}]),
    CHOICES.map(lambda values: {"enum": values}),
)


def objects(values):
    properties = st.dictionaries(NAMES, values, min_size=1, max_size=3)
    return properties.flatmap(
        lambda found: st.sets(st.sampled_from(sorted(found))).map(
            lambda wanted: {"type": "object", "properties": found, "required": sorted(wanted)}
        )
    )


def lists(values):
    return st.integers(0, 2).flatmap(
        lambda low: values.map(lambda each: {"type": "array", "items": each, "minItems": low, "maxItems": low + 1})
    )


SCHEMAS = objects(st.recursive(LEAVES, lambda values: objects(values) | lists(values), max_leaves=4)).map(RecordSchema)


def walk(schema: RecordSchema, rng: np.random.Generator) -> tuple[str, int]:
    """A record by chance, and how many of its tokens were forced."""
    model, tokens, forced = ToyModel(), [], 0
    grammar = Grammar(schema.text, model)
    while not grammar.complete:
        if grammar.forced:
            tokens.append(grammar.take())
            forced += 1
        else:
            tokens.append(int(rng.choice(np.flatnonzero(grammar.allowed(VOCABULARY)))))
            grammar.accept(tokens[-1])
    return grammar.text(tokens), forced


@settings(max_examples=40)
@given(SCHEMAS, st.integers(0, 2**32 - 1))
def test_every_record_parses_and_validates(schema, seed):
    text, forced = walk(schema, np.random.default_rng(seed))
    assert schema.holds(text)
    assert schema.holds(rewritten(text))
    assert forced <= schema.fixed_bytes


@settings(max_examples=20)
@given(SCHEMAS)
def test_a_record_that_ends_without_a_model_validates_too(schema):
    grammar = Grammar(schema.text, ToyModel())
    text = grammar.text(list(grammar.rest()))
    assert schema.holds(text)
    assert grammar.complete


def test_bytes_that_must_come_are_forced_and_nothing_else_is():
    schema = RecordSchema({"type": "object", "properties": {"k": {"enum": ["ab", "ac"]}}, "required": ["k"]})
    grammar = Grammar(schema.text, ToyModel())
    begun = []
    while grammar.forced:
        begun.append(grammar.take())
    assert grammar.text(begun) == '{"k": "a'
    assert bytes(np.flatnonzero(grammar.allowed(VOCABULARY)).tolist()) == b"bc"
    assert not grammar.complete
    grammar.accept(ord("b"))
    assert grammar.text([grammar.take(), grammar.take()]) == '"}'
    assert grammar.complete


def test_a_token_that_is_not_allowed_is_refused():
    grammar = Grammar(RecordSchema({"type": "object", "properties": {"n": {"type": "null"}}}).text, ToyModel())
    with pytest.raises(ValueError, match="may not come next"):
        grammar.accept(ord("x"))


def test_a_model_without_the_tokens_is_refused():
    grammar = Grammar(RecordSchema({"type": "object", "properties": {"n": {"type": "null"}}}).text, ToyModel())
    grammar.take()
    with pytest.raises(ModelUnavailable, match="choose another model"):
        grammar.allowed(4)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "integer", "minimum": 3, "maximum": 1},
        {"type": "string", "minLength": 3, "maxLength": 1},
        {"type": "array", "items": {"type": "null"}, "minItems": 3, "maxItems": 1},
    ],
)
def test_a_schema_that_nothing_meets_is_refused(value):
    schema = RecordSchema({"type": "object", "properties": {"a": value}, "required": ["a"]})
    with pytest.raises(UsageError, match="No record can be written"):
        Grammar(schema.text, ToyModel())


def test_names_that_the_tokens_cannot_write_are_refused():
    schema = RecordSchema({"type": "object", "properties": {"título": {"type": "null"}}})
    with pytest.raises(UsageError, match="names and values"):
        Grammar(schema.text, ToyModel())


@pytest.mark.slow
def test_the_real_tokens_write_records_whatever_is_chosen():
    """The tokenizer alone, with names and accents that its pieces cut within a letter."""
    from llguidance.hf import from_tokenizer
    from transformers import AutoTokenizer

    from mechanisms.inference.models.catalogue import converted
    from mechanisms.inference.models.listing import gguf_in_wheel

    class Tokens:
        vocabulary = from_tokenizer(AutoTokenizer.from_pretrained(str(converted(gguf_in_wheel()))))

    words = {"type": "string", "minLength": 1, "maxLength": 40}
    schema = RecordSchema(
        {
            "type": "object",
            "properties": {
                "título": words,
                "year": {"type": "integer", "minimum": 1900, "maximum": 2030},
                "cast": {"type": "array", "items": words, "maxItems": 3},
                "genre": {"enum": ["Drama", "Dram", "Comédie", 'a "b"']},
            },
            "required": ["título", "year", "genre"],
        }
    )
    rng = np.random.default_rng(0)
    size = Tokens.vocabulary.vocab_size
    for _ in range(40):
        grammar, tokens, forced = Grammar(schema.text, Tokens()), [], 0
        while not grammar.complete:
            if grammar.forced:
                tokens.append(grammar.take())
                forced += 1
            else:
                tokens.append(int(rng.choice(np.flatnonzero(grammar.allowed(size)))))
                grammar.accept(tokens[-1])
        text = grammar.text(tokens)
        assert schema.holds(text)
        assert list(json.loads(text))[:2] == ["título", "year"]
        assert 0 < forced <= schema.fixed_bytes
