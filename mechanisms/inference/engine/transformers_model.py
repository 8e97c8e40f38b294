"""Any Hugging Face causal language model as a `LanguageModel`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import jinja2
import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine.attention import ATTENTION, FEW, GrowingCache
from mechanisms.inference.engine.device import CPU, device_of, titled
from mechanisms.inference.engine.eight_bits import number_format
from mechanisms.inference.engine.forward import Branches, Chunk, ForwardPass
from mechanisms.inference.engine.memory import (
    DeviceRoom,
    keep_freed_memory,
    report_out_of_memory,
    retry_when_out_of_memory,
)
from mechanisms.inference.engine.threads import computing, threads_here
from mechanisms.inference.language_model import NO_TURN, Tokens, Turn
from mechanisms.noise import Floats, Integers

# Numbers of rows at which all slots of a batch give equal results, measured on the device itself.
#
# A matrix kernel works in blocks of rows and computes the last, smaller block with other instructions, or gives each
# thread its own blocking. Either rounds differently, so a row's last bits can depend on its slot. No unit changes its
# slot because another left (docs/accounting.md), so this is defence in depth: it makes a row's numbers depend on the
# row alone. The safe numbers of rows depend on processor, threads and library.

_MULTIPLES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
_MANY, _OF_MANY = 64, 4
"""Chunks of at least the first number of rows have a multiple of the second, so labels of nearly equal size share a
shape."""
_BEFORE = 16
"""Attended positions in a comparison of rows without a shared prefix: kernels that mix rows do not depend on them."""


class Slots:
    """Chooses the shape of chunks for one model on one device, and remembers at which shapes all slots agree."""

    def __init__(self, forward: ForwardPass) -> None:
        self._forward = forward
        self._known: dict[tuple[int, int, int, int], bool] = {}
        self._words: GrowingCache | None = None

    def layout(self, room: DeviceRoom, rows: int, limit: int, length: int, prefix: int = 0) -> tuple[int, int, bool]:
        """Number of chunks, rows of each, and whether all slots are known to agree at this shape.

        The chunks have room for the fewest additional rows at which all slots agree. If they agree at no number within
        the limit, the chunks are those that memory allows.

        Args:
            limit: the most rows of a chunk.
            length: positions of a row in the first pass; 1 if only single tokens follow.
            prefix: earlier positions, which rows may share.
        """
        fewest = _OF_MANY if min(rows, limit) >= _MANY else 1
        for multiple in (each for each in _MULTIPLES if fewest <= each <= limit):
            chunks, per_chunk = layout(rows, limit, room.in_a_pass(length), multiple)
            behind = self._forward.shared(prefix, per_chunk)
            if self.alike(per_chunk, 1, behind) and self.alike(room.slices(per_chunk, length), length, behind):
                return chunks, per_chunk, True
        return *layout(rows, limit, room.in_a_pass(length)), False

    def alike(self, rows: int, positions: int, behind: int = 0) -> bool:
        """Whether equal rows give equal bits in every slot of a pass of rows x positions, with torch's threads, if the
        rows share `behind` earlier positions."""
        key = (rows, positions, behind if positions <= FEW else 0, torch.get_num_threads())
        if rows > 1 and key not in self._known:
            with torch.inference_mode():
                self._known[key] = self._compared(*key[:3])
        return rows == 1 or self._known[key]

    def _compared(self, rows: int, positions: int, behind: int) -> bool:
        # The whole model is compared: a few layers in bfloat16 seldom reveal a difference in the last bit.
        before = max(behind, _BEFORE)
        words, forward = torch.arange(before + positions) % 47 + 1, self._forward
        # Shorter comparisons use the beginning of the longest prefix so far: one prefix is stored, not one for each
        # length.
        if self._words is None or self._words.layers[0].get_max_length() < before:
            self._words = forward.prefix(words[:before].tolist())
        self._words.fill(before)
        cache = self._words.expanded(rows, len(words), behind)
        tokens = words[before:].expand(rows, -1)
        features = forward(Chunk(cache, tokens, torch.ones((rows, len(words)), dtype=torch.long)))
        seen = [features, cache.layers[-1].keys, cache.layers[-1].values]
        if positions == 1:
            columns = torch.arange(2, device=forward.device)
            seen += [forward.head.logits(features), forward.head.logits(features, columns)]
        return all(bool((each == each[:1]).all()) for each in seen)


def layout(rows: int, limit: int, in_a_pass: int, multiple: int = 1) -> tuple[int, int]:
    """Number of chunks, and rows of each, all of one shape, which splits into passes of one shape.

    Args:
        rows: the rows to be computed; the chunks have room for a few more.
        limit: the most rows of a chunk, except for rows that passes of one shape add; at least `multiple`.
        in_a_pass: the most rows of a forward pass.
        multiple: the number of rows of a chunk is a multiple of this.
    """
    chunks = math.ceil(rows / (limit // multiple * multiple))
    per_chunk = math.ceil(rows / chunks)
    steps = [multiple]
    if per_chunk > in_a_pass:
        steps = [math.lcm(size, multiple) for size in range(in_a_pass, in_a_pass // 2, -1)]
    return chunks, min(math.ceil(per_chunk / step) * step for step in steps)


_LOGITS = 128
"""The number of rows for which logits of the whole vocabulary are computed at once, unless a chunk has more."""
_PREFIXES_KEPT = 8
_WRITER = "You write short texts the way people write them."
"""Replaces a template's own system message, which makes a model write about itself and offer help."""
_UNKNOWN_CONTEXT = 2**31
_THOUGHTS = {
    **{f"<{tag}>": f"\n\n</{tag}>\n\n" for tag in ("think", "thinking", "thought", "reasoning")},
    "[THINK]": "[/THINK]",  # Mistral
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "<|START_THINKING|>": "<|END_THINKING|>",  # Cohere
    "<|think|>": "<|end|><|begin|>assistant<|content|>",  # Solar Open
}
"""The beginnings of models' thoughts, each with the text that closes an empty thought, as in the models' own templates.
"""


def _without_thought(prompt: str) -> str:
    """The end of a prompt, with a thought that the template opened closed as empty, so that the model writes an answer.

    Otherwise the first tokens, which rows pay for, would be the model's thoughts.
    """
    for opened, closed in _THOUGHTS.items():
        before, found, after = prompt.rpartition(opened)
        if found and closed.strip() not in after:
            return before + opened + closed + after.lstrip()
    return prompt


class TransformersModel:
    """A language model on PyTorch. Only one thread may use a session at a time."""

    def __init__(
        self, name: str, sha256: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, chat: bool = True
    ) -> None:
        keep_freed_memory()
        model.set_attn_implementation(ATTENTION)
        self.name, self.sha256 = name, sha256
        self.model: Any = model.eval()
        self.tokenizer: Any = tokenizer
        text_config = model.config.get_text_config()
        self.context: int = getattr(text_config, "max_position_embeddings", None) or _UNKNOWN_CONTEXT
        self.stop_tokens = self._stop_tokens()
        has_template = bool(tokenizer.chat_template)
        try:
            self.turn = self._turn() if chat and has_template else NO_TURN
            self.writing_turn = self._writing_turn() if has_template else NO_TURN
        except (jinja2.TemplateError, ValueError) as error:
            raise ModelUnavailable(
                "The model's chat template omits messages: use a model with another template."
            ) from error
        self.forward = ForwardPass(model)
        self.slots = Slots(self.forward)
        self.room = DeviceRoom.of(model)
        self._prefixes: dict[tuple[int, ...], GrowingCache] = {}

    @property
    def arithmetic(self) -> str:
        place, number = device_of(self.model), threads_here().number or torch.get_num_threads()
        threads = f", {number} thread{'s' if number > 1 else ''}" if place.type == CPU else ""
        return f"{titled(place)}, {number_format(self.model)}{threads}"

    def rows_at_once(self, computed: int, held: int) -> int:
        return self.room.rows_at_once(computed, held + len(self._start))

    def _writing_turn(self) -> Turn:
        try:
            return self._turn({"role": "system", "content": _WRITER})
        except (jinja2.TemplateError, ValueError):  # a template that knows no such role
            return self._turn()

    def _turn(self, *system: dict[str, str]) -> Turn:
        before, after = self._around(["user"], system, asks=True)
        shown = again = ""
        with suppress(jinja2.TemplateError, ValueError):  # a template that takes no further turn
            _, shown, again, _ = self._around(["user", "assistant", "user"], system)
        return Turn(*map(self._special, (before, _without_thought(after), shown, again)))

    def _around(self, roles: Sequence[str], system: Sequence[dict[str, str]] = (), asks: bool = False) -> list[str]:
        """The template's text before, between and after the roles' messages; a ValueError if it leaves out a
        message."""
        marks = [f"<<{i}>>" for i in range(len(roles))]
        messages = [*system, *({"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True))]
        # Templates of thinking models use the last argument; others ignore it.
        whole: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=asks, enable_thinking=False
        )
        parts = []
        for mark in marks:
            part, found, whole = whole.partition(mark)
            if not found:
                raise ValueError("the chat template leaves out what was said")
            parts.append(part)
        return [*parts, whole]

    def _special(self, text: str) -> list[int]:
        # This is only public text of the template: here the spelling of a special token means the token.
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _stop_tokens(self) -> frozenset[int]:
        ends = self.model.generation_config.eos_token_id
        stops = set(ends if isinstance(ends, list) else [ends]) | {self.tokenizer.eos_token_id}
        vocabulary = self.tokenizer.get_vocab()
        stops |= {i for piece, i in vocabulary.items() if "\n" in piece or "Ċ" in piece or piece == "<0x0A>"}
        return frozenset(int(i) for i in stops if i is not None)

    def prefix_cache(self, prefix: tuple[int, ...]) -> GrowingCache:
        """Keys and values of a public prefix, computed on first use; the most recent few are cached."""
        if prefix not in self._prefixes:
            if len(self._prefixes) >= _PREFIXES_KEPT:
                self._prefixes.pop(next(iter(self._prefixes)))
            self._prefixes[prefix] = self.forward.prefix(prefix)
        return self._prefixes[prefix]

    def encode(self, text: str) -> list[int]:
        """Tokens of a text; the spelling of a special token is encoded as plain characters."""
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return list(encoded["input_ids"])

    def decode(self, tokens: Tokens) -> str:
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True))

    @computing
    @report_out_of_memory()
    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> TransformersSession:
        started = self.started(prefix)

        def opened(device: DeviceRoom) -> TransformersSession:
            return TransformersSession(self, started, rows, length, room, device)

        return retry_when_out_of_memory(opened, self.room, len(rows), length)

    def check(self, prefix: Tokens, rows: int, length: int, room: int) -> None:
        before = len(self.started(prefix))
        held = before + length + room
        if held > self.context:
            raise UsageError(
                f"A prompt of {held} tokens does not fit in the model's context of {self.context}: lower the tokens "
                "of a record, the records of a row, the exemplars, or the tokens to write."
            )
        self.room.check(rows, held - self.forward.shared(before, rows))

    @computing
    def alike(self, prefix: Tokens, rows: int, length: int, room: int) -> bool:
        before = len(self.started(prefix))
        limit = self.room.chunk(length, before + length + room)
        return self.slots.layout(self.room, rows, limit, length, before)[2]

    def started(self, prefix: Tokens) -> list[int]:
        """The prefix after the tokens that start every text of the model; unchanged if it has them already."""
        start = self._start if not prefix or list(prefix[: len(self._start)]) != self._start else []
        return [*start, *prefix]

    @cached_property
    def _start(self) -> list[int]:
        # The tokenizer's prefix of every text; a chat template may already contain it.
        bos = self.tokenizer.bos_token_id
        return [bos] if bos is not None and self.tokenizer("")["input_ids"][:1] == [bos] else []


def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
    """The log-probabilities of every token, in float32: float64 takes four times as long."""
    return torch.log_softmax(logits.float(), dim=-1)


class TransformersSession:
    """A session whose rows are computed in chunks of one shape, each with its own cache.

    By default a chunk has as many rows as fit; `per_chunk` fixes the number.
    """

    def __init__(
        self,
        owner: TransformersModel,
        prefix: Tokens,
        rows: Sequence[Tokens],
        length: int,
        room: int,
        device: DeviceRoom,
        per_chunk: int | None = None,
    ) -> None:
        if any(len(row) > length for row in rows) or length < 1:
            raise ValueError("every row must fit in the session's public length")
        owner.check(prefix, len(rows), length, room)
        held = len(prefix) + length + room
        self._forward, self._slots, self._head = owner.forward, owner.slots, owner.forward.head
        self._room, self._usual, self._is_share = device, owner.room, per_chunk is not None
        self._count, self._limit, self._prefix = len(rows), device.chunk(length, held), len(prefix)
        chunks, per_chunk = self._layout(len(rows), length, per_chunk)
        # Empty rows pad the last chunk, so that every chunk runs the same kernels.
        padded = [*rows, *([()] * (chunks * per_chunk - len(rows)))]
        with torch.inference_mode():
            before, behind = owner.prefix_cache(tuple(prefix)), self._forward.shared(len(prefix), per_chunk)
            self._chunks = [
                Chunk.of(before.expanded(per_chunk, held, behind), padded[i : i + per_chunk], len(prefix), length)
                for i in range(0, len(padded), per_chunk)
            ]
            self._features = self._step(device)

    def _step(self, room: DeviceRoom) -> torch.Tensor:
        self._room = room
        return torch.cat([self._computed(chunk) for chunk in self._chunks])

    def _computed(self, chunk: Chunk) -> torch.Tensor:
        positions = chunk.tokens.shape[1]
        chunk.cache.fill(chunk.mask.shape[1] - positions)  # possibly computed before memory ran out
        sizes = self._room.sizes(chunk.rows, positions)
        usual = self._room is self._usual  # for which the chunks were laid out
        behind = chunk.cache.behind
        size = next(each for each in sizes if usual or self._slots.alike(each, positions, behind))
        parts = [self._forward(chunk.part(slice(i, i + size))) for i in range(0, chunk.rows, size)]
        chunk.cache.fill(chunk.mask.shape[1])
        return torch.cat(parts)

    @computing
    @report_out_of_memory()
    def logits(self, columns: Integers | None = None, rows: slice = slice(None)) -> Floats:
        with torch.inference_mode():
            if columns is None:
                # By whole chunks, at whose number of rows all slots are known to agree.
                size = self._chunks[0].rows
                start, stop, _ = rows.indices(self._count)
                first = start // size * size
                parts = [self._head.logits(self._features[i : i + size]) for i in range(first, stop, size)]
                logits = torch.cat(parts)[start - first : stop - first]
            else:
                chosen = torch.from_numpy(columns).to(self._forward.device)
                logits = self._head.logits(self._features[: self._count][rows], chosen)
            return np.asarray(logits[:, -1].cpu().double().numpy())

    @computing
    @report_out_of_memory()
    def advance(self, tokens: Tokens) -> None:
        filled = torch.zeros((len(self._chunks), self._chunks[0].rows), dtype=torch.long)
        filled.view(-1)[: self._count] = torch.tensor(tokens)
        with torch.inference_mode():
            for chunk, column in zip(self._chunks, filled, strict=True):
                chunk.append(column[:, None])
            if self._is_share:  # other workers compute rows of the same batch, in passes of the usual shape
                self._features = self._step(self._room)
            else:
                self._features = retry_when_out_of_memory(self._step, self._room, self._chunks[0].rows, 1)

    def _layout(self, rows: int, length: int, per_chunk: int | None) -> tuple[int, int]:
        if per_chunk is None:
            limit = min(self._limit, self._room.in_a_pass(1))
            return self._slots.layout(self._room, rows, limit, length, self._prefix)[:2]
        return math.ceil(rows / per_chunk), per_chunk

    @computing
    @report_out_of_memory()
    def keep(self, rows: Sequence[int], per_chunk: int | None = None) -> None:
        """Keep these rows; `per_chunk` means the same as when the session was opened."""
        with torch.inference_mode():
            chunks, per_chunk = self._layout(len(rows), 1, per_chunk)
            # Repetitions of the first row pad the last chunk.
            padded = [*rows, *([rows[0]] * (chunks * per_chunk - len(rows)))]
            self._features = self._features[padded]
            parts = [padded[i : i + per_chunk] for i in range(0, len(padded), per_chunk)]
            self._chunks, self._count = [Chunk.gathered(self._chunks, part) for part in parts], len(rows)

    @computing
    @report_out_of_memory()
    def score(self, continuation: Tokens) -> Floats:
        return self._of_chunks(lambda chunk, features: self._score(chunk, features, continuation))

    def _of_chunks(self, work: Callable[[Chunk, torch.Tensor], Floats]) -> Floats:
        """A result for each chunk, stacked in the order of the session's rows."""
        rows = self._chunks[0].rows
        with torch.inference_mode():
            parts = [work(chunk, self._features[i * rows : (i + 1) * rows]) for i, chunk in enumerate(self._chunks)]
        return np.concatenate(parts)[: self._count]

    def _score(self, chunk: Chunk, features: torch.Tensor, continuation: Tokens) -> Floats:
        length, tokens, mask = chunk.cache.get_seq_length(), chunk.tokens, chunk.mask
        total = torch.zeros(chunk.rows, dtype=torch.float64)
        for i, token in enumerate(continuation):
            if i:
                chunk.append(torch.full((chunk.rows, 1), continuation[i - 1]))
                features = self._computed(chunk)
            total += log_probabilities(self._head.logits(features)[:, -1])[:, token].cpu().double()
        chunk.cache.fill(length)
        chunk.tokens, chunk.mask = tokens, mask
        return np.asarray(total.numpy())

    @computing
    @report_out_of_memory()
    def scores(self, continuations: Sequence[Tokens]) -> Floats:
        """Scores of all continuations at once; one by one if the model cannot process a tree."""
        if not self._forward.branches:
            return np.stack([self.score(each) for each in continuations], axis=1)
        tree = Branches(continuations)
        return self._of_chunks(lambda chunk, features: self._scores(chunk, features, tree))

    def _scores(self, chunk: Chunk, features: torch.Tensor, tree: Branches) -> Floats:
        states = features
        if nodes := len(tree.paths) - 1:
            most = self._room.chunk(nodes, chunk.mask.shape[1] + nodes)
            sizes = (each for each in self._room.sizes(chunk.rows, nodes) if each <= most)
            size = next(each for each in sizes if self._slots.alike(each, nodes, chunk.cache.behind))
            parts = [self._forward.ahead(chunk, slice(i, i + size), tree) for i in range(0, chunk.rows, size)]
            states = torch.cat([features, torch.cat(parts)], dim=1)
        total = torch.zeros((chunk.rows, len(tree.continuations)), dtype=torch.float64)
        # Many paths at once, but not all: logits of a whole vocabulary need much memory.
        most = min(len(tree.paths), _LOGITS // chunk.rows)
        together = next((n for n in range(most, 1, -1) if self._slots.alike(chunk.rows * n, 1)), 1)
        for start in range(0, len(tree.paths), together):
            places = [min(start + i, len(tree.paths) - 1) for i in range(together)]  # groups of one shape
            known = log_probabilities(self._head.logits(states[:, places].view(chunk.rows * together, 1, -1))[:, -1])
            of_rows = known.view(chunk.rows, together, -1)
            for i, path in enumerate(tree.paths[start : start + together]):
                going, tokens = tree.after(path)
                total[:, going] += of_rows[:, i, tokens].cpu().double()
        return np.asarray(total.numpy())
