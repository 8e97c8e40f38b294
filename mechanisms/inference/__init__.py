"""Language models: prompts in, float64 logits out. This package handles tensors and knows nothing of privacy.

`load_model` is not imported here: it imports torch and transformers, which takes seconds.
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
