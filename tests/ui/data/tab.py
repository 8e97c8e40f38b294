"""Step 1 without a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dpicl_ui.data.cards import DECLARE
from dpicl_ui.data.state import DataState
from dpicl_ui.data.step import DataStep
from dpicl_ui.frame.services import CuratorLedger, Sessions
from mechanisms.accounting import PrivacyLedger
from mechanisms.asking import Wording
from tests.ui.tabs import in_page, services

TAB: Any = SimpleNamespace(username=None, session_hash="tab")
NO_USER = "(every row stands for itself)"


class Tab:
    """A tab's step 1. `page` has what its components hold, of the updates so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sessions, self.ledger = folder, Sessions(), PrivacyLedger(folder / "home")
        ledgers = CuratorLedger(self.ledger)
        self.step = in_page(lambda: DataStep(services(ledgers, sessions=self.sessions)))
        self.page: dict[Any, Any] = {}

    @property
    def state(self) -> DataState:
        return self.sessions.of(TAB).of(DataState)

    @property
    def wording(self) -> Wording:
        return self.state.wording

    def file(self, name: str, text: str) -> str:
        path = self.folder / "uploads" / "one" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def upload(self, *columns: str) -> dict[Any, Any]:
        head = ",".join(f'"{each}"' for each in columns)
        rows = [",".join([f"a rather long text {i}", "xy"[i % 2], "zw"[i % 2]]) for i in range(40)]
        return self.shown(self.step._upload(self.file("rows.csv", "\n".join([head, *rows])), TAB))

    def shown(self, updates: dict[Any, Any]) -> dict[Any, Any]:
        """The updates; their values are what the page holds."""
        for component, update in updates.items():
            value = getattr(update, "constructor_args", {"value": update})
            if "value" in value:
                self.page[component] = value["value"]
        return updates

    def values(self, **said: Any) -> dict[Any, Any]:
        """What the words' components and the labels hold, with some of them changed."""
        words = self.step.words
        changed = {getattr(words, name): value for name, value in said.items()}
        inputs = [*words.inputs, self.step.labels]
        return {each: self.page.get(each, each.value) for each in inputs} | changed

    def say(self, **said: Any) -> dict[Any, Any]:
        """Type words and leave their fields."""
        self.page |= self.values(**said)
        return self.step._set_wording(self.values(), TAB)

    def inspect(self, text: str, label: str, unit: str = NO_USER) -> dict[Any, Any]:
        return self.shown(self.step._inspect(TAB, text, label, unit, False))

    def confirm(
        self,
        labels: Sequence[str] = ("x", "y"),
        *,
        name: str = "rows",
        public: bool = True,
        sizes: str = DECLARE,
        epsilon: float | None = None,
        **said: Any,
    ) -> dict[Any, Any]:
        """Press the last button, with these words."""
        card = self.step.public
        pressed = {card.public: public, card.sizes: sizes, card.count_epsilon: epsilon}
        values = self.values(**said) | pressed | {self.step.public.name: name, self.step.labels: [*labels]}
        return self.step._confirm(values, TAB)
