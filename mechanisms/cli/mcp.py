"""`mcp`: demo sets as tools of an assistant on this machine (Model Context Protocol, over standard input and output).

The assistant sees only releasable values: the sets named at the start, their certificates, and the model's answers to
texts that the assistant sends. No tool reads a file, a private row or the ledger, or spends epsilon. An assistant that
runs elsewhere takes its answers there.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ToolError

from mechanisms import api, confidence
from mechanisms.accounting import PrivacyTarget
from mechanisms.api import certificate_check, checked_texts, probabilities
from mechanisms.cli import plan as planning
from mechanisms.cli.output import in_json
from mechanisms.demos.demo_set import DemoSet, loads
from mechanisms.errors import StudioError, UsageError, place_of
from mechanisms.evaluation.evaluate import Accuracy, known_rows
from mechanisms.evaluation.reader import check_gives_labels
from mechanisms.files import text_of
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.listing import default_name
from mechanisms.records import Record
from mechanisms.runs.defaults import MECHANISM
from mechanisms.runs.planner import Task
from mechanisms.sampling import SamplingPlan

_ABOUT = (
    "Demonstrations that were written with differential privacy, their certificates, a small local model that reads "
    "them, and the accounting of DP-ICL Studio. Nothing here reads private rows or spends epsilon."
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("demos", metavar="DEMOS", nargs="*", help="demo sets; each goes by its file's name")
    parser.add_argument("--model", default=default_name(), help="reads the texts (default: %(default)s)")
    parser.set_defaults(run=_serve)


def _serve(options: argparse.Namespace) -> None:
    texts = {Path(path).name.split(".")[0]: text_of(path) for path in options.demos}
    if len(texts) < len(options.demos):
        raise UsageError("Two demo sets go by the same name: rename one of the files.")
    for path, text in zip(
        options.demos, texts.values(), strict=True
    ):  # refused at the start, not in the middle of a conversation
        if (reason := loads(text).certificate.why_not_private) is not None:
            raise UsageError(f"'{path}' is not private ({reason}): it is not served.")
    server(texts, functools.cache(lambda: api.load_model(options.model))).run("stdio")


def server(texts: Mapping[str, str], model: Callable[[], LanguageModel]) -> FastMCP[None]:
    """A server with its tools, which are the public methods of `_Tools`.

    Args:
        texts: the files' texts by the names of the sets.
        model: loads the reading model on first use.
    """
    tools = _Tools(texts, model)
    served: FastMCP[None] = FastMCP("dp-icl-studio", _ABOUT, log_level="ERROR")
    for tool in (
        tools.sets, tools.demonstrations, tools.certificate, tools.classify, tools.evaluate, calibrate, plan,
    ):  # fmt: skip
        served.add_tool(_in_one_line(tool))
    return served


@dataclass(frozen=True, repr=False)
class _Tools:
    """The tools on sets; the assistant reads each docstring as the tool's description."""

    texts: Mapping[str, str]
    model: Callable[[], LanguageModel]

    def sets(self) -> list[dict[str, Any]]:
        """The demo sets at hand: name, labels, number of demonstrations, and the epsilon that was claimed."""
        return [
            {
                "name": name,
                "labels": list(each.labels),
                "demonstrations": len(each.demonstrations),
                "epsilon": each.certificate.claim.epsilon if each.certificate.private else None,
                "delta": each.certificate.claim.delta,
                "unit": each.certificate.unit,
            }
            for name, each in ((name, loads(text)) for name, text in self.texts.items())
        ]

    def demonstrations(self, name: str) -> list[dict[str, Any]]:
        """The demonstrations of a set, to be used as few-shot examples: text and label, and output if there is one."""
        return [
            {"text": each.text, "label": each.label, **({"output": each.output} if each.output is not None else {})}
            for each in self._set(name).demonstrations
        ]

    def certificate(self, name: str) -> dict[str, Any]:
        """What a set's certificate claims, recomputed by two accountants; `problems` names what does not fit."""
        return certificate_check(self._text(name))

    def classify(self, name: str, texts: list[str]) -> list[dict[str, Any]]:
        """Labels of up to 64 texts behind a set, each with all probabilities, by the local model."""
        return probabilities(self._set(name), self.model(), checked_texts(texts))

    def evaluate(self, name: str, texts: list[str], labels: list[str]) -> dict[str, Any]:
        """How many of up to 64 labelled texts a set labels rightly, with an interval and its level.

        Send public or fictional rows alone: the figure has no noise. Nothing is looked up or remembered about the rows:
        a mark on private ones would stand in later certificates, and say who is among them.
        """
        written, given = self._set(name), checked_texts(texts)
        check_gives_labels(written)
        if len(labels) != len(given):
            raise UsageError("Give one label for each text.")
        rows = known_rows(written.labels, [Record(text, label) for text, label in zip(given, labels, strict=True)])
        answers = probabilities(written, self.model(), [each.text for each in rows])
        right = sum(answer["label"] == row.label for answer, row in zip(answers, rows, strict=True))
        return {"rows": len(rows), "level": confidence.LEVEL, **in_json(Accuracy(right, len(rows)))}

    def _set(self, name: str) -> DemoSet:
        return loads(self._text(name))

    def _text(self, name: str) -> str:
        if name not in self.texts:
            raise UsageError(f"There is no set of that name: name one of {', '.join(self.texts) or 'none'}.")
        return self.texts[name]


def calibrate(
    epsilon: float,
    delta: float,
    size: int,
    mechanism: str = MECHANISM,
    subsets: int = SamplingPlan.subsets,
    tokens: int = SamplingPlan.tokens,
    shots: int = SamplingPlan.shots,
) -> dict[str, Any]:
    """The least noise for a privacy target, for labels of a public size, and its cost by two accountants."""
    sampled = SamplingPlan(subsets=subsets, tokens=tokens, shots=shots)
    return api.calibrate(PrivacyTarget(epsilon, delta), size, mechanism, sampled)


def plan(
    epsilon: float,
    delta: float,
    size: int,
    max_prompt_tokens: float,
    prompt_tokens: int = 100,
    tokens: int = SamplingPlan.tokens,
    shots: int = SamplingPlan.shots,
    mechanism: str = MECHANISM,
) -> list[dict[str, Any]]:
    """Ways to sample rows for a privacy target and a budget of compute, the most signal over noise first.

    The budget is in prompt tokens for one demonstration; `size` is the public number of rows of the smallest label.
    """
    task, target = Task(size, tokens, prompt_tokens, 1, shots), PrivacyTarget(epsilon, delta)
    return [planning.in_json(each) for each in api.planned(mechanism, task, target, max_prompt_tokens)]


def _in_one_line(tool: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(tool)
    def answer(*arguments: Any, **named: Any) -> Any:
        try:
            return tool(*arguments, **named)
        except StudioError as error:
            raise ToolError(str(error)) from None
        except Exception as error:  # its message may quote what was asked
            raise ToolError(f"A defect of this program ({place_of(error)}): please report it.") from None

    return answer


COMMANDS = {"mcp": _add_options}
