"""Language models: prompts in, float64 logits out. Knows tensors, not privacy.

`load_model` is not imported here: it brings torch and transformers along, which take seconds.
"""

from mechanisms.inference.language_model import Embedder, LanguageModel, Session, Tokens, Turn, scores_of
from mechanisms.inference.prompts import QueryPrompt, QueryWords, WritingPrompt

__all__ = [
    "Embedder",
    "LanguageModel",
    "QueryPrompt",
    "QueryWords",
    "Session",
    "Tokens",
    "Turn",
    "WritingPrompt",
    "scores_of",
]
