"""Language models: prompts in, float64 logits out. Knows tensors, not privacy.

`load_model` is not imported here: it brings torch and transformers along, which take seconds.
"""

from mechanisms.inference.grammar import Grammar
from mechanisms.inference.language_model import Embedder, LanguageModel, Session, Tokens, scores_of
from mechanisms.inference.prompts import CompletionPrompt, DraftPrompt, GenerationPrompt, QueryPrompt, QueryWords

__all__ = [
    "CompletionPrompt",
    "DraftPrompt",
    "Embedder",
    "GenerationPrompt",
    "Grammar",
    "LanguageModel",
    "QueryPrompt",
    "QueryWords",
    "Session",
    "Tokens",
    "scores_of",
]
