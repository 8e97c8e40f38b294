"""A model behind an OpenAI-compatible address: public text in, its words out.

It is no `LanguageModel`: it has no tokens, no sessions and no logits, so that nothing that reads private rows takes it.
"""

from mechanisms.inference.remote.address import ServerAddress
from mechanisms.inference.remote.chat_server import ChatServer, Patience
from mechanisms.inference.remote.key import KEY_VARIABLE, key_from_environment

__all__ = ["KEY_VARIABLE", "ChatServer", "Patience", "ServerAddress", "key_from_environment"]
