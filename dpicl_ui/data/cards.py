"""Step 1's cards: where the file comes from, what is in it, and what becomes public."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.state import GO_ON, Columns
from dpicl_ui.frame.inputs import drop
from dpicl_ui.frame.tree import MANY_LABELS, Tree, count_row, el, panel, private_tag
from mechanisms.data.columns import Inspection
from mechanisms.data.sources import EXAMPLES, PACKED, formats_in_words
from mechanisms.data.table import Table

# Where the file comes from.

LONGEST_NAME = 100
"""Characters of a data set's name."""
_SAY_NOTHING = {
    "all", "book", "copy", "csv", "data", "dataset", "default", "dev", "download", "eval", "excel", "export", "file",
    "final", "full", "input", "json", "jsonl", "labeled", "labelled", "list", "master", "new", "output", "parquet",
    "part", "private", "public", "records", "results", "rows", "sample", "sheet", "split", "table", "temp", "test",
    "testing", "text", "texts", "tmp", "train", "training", "untitled", "val", "valid", "validation", "version",
}  # fmt: skip
"""Words of file names that many data sets share."""
_SOURCE = [
    el("h2", "Bring your labelled texts"),
    el(
        "p.lead",
        f"A file ({formats_in_words()}) with one row for each text, and a column with its label. It is read into this "
        "server's memory, removed from its disk at once, and forgotten when you close the page.",
    ),
]


def proposed_name(file: str) -> str:
    """A file's name without its ending; empty if it is a common word.

    The ledger stores costs by name: under "train" one data set would pay for another.
    """
    stem = Path(file.removesuffix(PACKED)).stem
    words = "".join(each if each.isalpha() else " " for each in stem.lower()).split()
    return stem[:LONGEST_NAME] if any(len(word) > 1 and word not in _SAY_NOTHING for word in words) else ""


class SourceCard:
    """Components."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(*_SOURCE)
            with gr.Row(elem_classes="source"):
                with gr.Column(min_width=240):
                    self.upload = drop("upload-data", 150)
                with gr.Column(elem_classes="examples", min_width=240):
                    panel(el("p.small-head", "No data at hand? Take an example"))
                    self.examples = [(gr.Button(each.title, size="sm"), each) for each in EXAMPLES]
                    panel(el("p.small-head", "Demonstrations made before?"))
                    self.load_instead = gr.Button("Load an exported set and test it", size="sm", elem_id="load-instead")
                    self.load_run = gr.UploadButton("Look at a saved run again", size="sm", elem_id="look-again")
            self.notice = panel(elem_id="data-notice")


# What is in the file; all of it is private until the curator declares parts public.

PREVIEW_ROWS = 5
_CELL, _COLUMNS = 240, 12
_FEW = 30
_FEW_ROWS = "few {units}: much noise for each"
_MANY_FEW = f"{{few}} of the {{of}} labels have fewer than {_FEW} {{units}}: much noise for each. Leave some out below."
_LONG_TEXT = 600
"""Characters, well beyond the tokens of a row that step 2 proposes to read."""
_CUT = (
    "Most of these texts are long. Of each the model reads about the first 35 words, unless you raise the tokens of a "
    "row under 'For experts' in step 2; that takes longer."
)


def preview_table(table: Table, whole: bool = True) -> list[Tree]:
    """The first rows of a parsed file, or of its beginning, cells cut."""
    columns, count = table.columns[:_COLUMNS], len(table.columns)
    rows = table.frame[columns].head(PREVIEW_ROWS).itertuples(index=False)
    size = f"{len(table.frame):,} rows, " if whole else ""
    size += f"{count} column{'' if count == 1 else 's'}"
    cut = f"; the first {_COLUMNS} are shown" if count > _COLUMNS else ""
    cells = (el("tr", *(el("td", el("div.cell", str(cell)[:_CELL])) for cell in row)) for row in rows)
    head = el("thead", el("tr", *(el("th", name, scope="col") for name in columns)))
    return [
        el("div.card-head", el("h3", "First rows"), private_tag()),
        el("p.muted", size + cut),
        *(el("p.notice.info", remark) for remark in table.remarks),
        el("div.scroll", el("table.preview", head, el("tbody", *cells))),
    ]


def counted(columns: Columns, labels: list[str]) -> list[Tree]:
    long = columns.file.table.frame[columns.mapping.text].str.len().median() > _LONG_TEXT
    counts = label_counts(columns.inspection, labels, columns.by_user)
    return [*counts, el("p.notice.info", _CUT)] if long else counts


def label_counts(inspection: Inspection, labels: list[str], by_user: bool = False) -> list[Tree]:
    """Units of each chosen label as bars, the rows that are left out, and the file's problems."""
    units = "users" if by_user else "rows"
    largest, many = max(inspection.counts.values(), default=1), len(labels) > MANY_LABELS
    sizes = [inspection.counts.get(label, 0) for label in labels]
    few = [size < _FEW for size in sizes]
    lines = (
        count_row(
            label,
            size / largest,
            f"{size:,}",
            el("span.few", _FEW_ROWS.format(units=units)) if is_few and not many else None,
        )
        for label, size, is_few in zip(labels, sizes, few, strict=True)
    )
    span = " to ".join(dict.fromkeys(f"{size:,}" for size in (min(sizes, default=0), max(sizes, default=0))))
    told = [el("p.muted", f"{len(labels)} labels, with {span} {units}")] if many else []
    if many and any(few):
        told.append(el("p.few", _MANY_FEW.format(few=sum(few), of=len(labels), units=units)))
    kind = "bad" if inspection.fatal else "warn"
    problems = filter(None, [inspection.rows.left_out(labels).sentence, *inspection.problems])
    tag = private_tag("Private until you confirm below")
    return [
        el("div.card-head", el("h3", f"Labels and how many {units} have them"), tag),
        *told,
        el("div.counts", *lines),
        *(el(f"p.notice.{kind}", line) for line in problems),
    ]


# What becomes public, and the button that confirms it.

DECLARE, MEASURE = "declare", "measure"
_SIZES = [("Declare the counts public", DECLARE), ("Measure them with noise, for a share of epsilon", MEASURE)]
_PUBLIC = (
    "I declare public: the label names, the words above and, unless it is measured with noise, the number of {units} "
    "of each label. Names and words stand in the prompts and in the export. The noise is computed from the numbers, so "
    "that they are not protected: do not confirm if one of them is itself a secret."
)
UNCONFIRMED = "Tick the box: what it names becomes public."


def declared(by_user: bool) -> str:
    """The text of the box by which the curator declares what becomes public."""
    return _PUBLIC.format(units="users" if by_user else "rows")


class PublicCard:
    """Components; `inputs` are the box and how the sizes become known, `outputs` what changes with the columns."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="card public"):
            panel(el("div.card-head", el("h3", "What becomes public"), el("span.tag.public", "Releasable")))
            self.name = gr.Textbox(
                label="Name of this data set",
                elem_id="data-name",
                max_length=LONGEST_NAME,
                info="The ledger keeps what was spent under this name: use it again for newer versions.",
            )
            self.sizes = gr.Radio(_SIZES, value=DECLARE, label="How large each label is", elem_id="sizes")
            self.count_epsilon = gr.Number(
                0.1,
                label="Epsilon for counting",
                info="Spent once for this data set while this page is open; every run on it claims it too.",
                visible=False,
                elem_id="count-epsilon",
            )
            self.public = gr.Checkbox(label=declared(False), elem_id="declared-public")
            self.left_out = gr.Checkbox(label=GO_ON, visible=False, elem_id="allow-left-out")
            self.problem = panel(elem_id="data-problem")
            self.confirm = gr.Button("Use this data set", variant="primary", elem_id="confirm-data")
        self.inputs: list[Any] = [self.public, self.sizes, self.count_epsilon]
        self.outputs: list[Any] = [self.public, self.left_out, self.problem]

    def unconfirmed(self, columns: Columns | None, labels: Collection[str]) -> dict[Any, Any]:
        many = columns is not None and columns.left_out(labels).many
        return {
            self.public: gr.Checkbox(value=False, label=declared(columns is not None and columns.by_user)),
            self.left_out: gr.Checkbox(value=False, visible=many),
            self.problem: [],
        }

    def chosen(self, sizes: str, epsilon: float | None) -> dict[Any, Any]:
        spends = f"Spend epsilon {epsilon or 0:g} on counting, and use this data set"
        return {
            self.count_epsilon: gr.Number(visible=sizes == MEASURE),
            self.public: False,
            self.confirm: gr.Button(spends if sizes == MEASURE else "Use this data set"),
            self.problem: [],
        }
