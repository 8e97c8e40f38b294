"""What step 1 shows about a file, as trees; all of it is private until the curator declares parts public."""

from __future__ import annotations

from dpicl_ui.data.state import Columns
from dpicl_ui.frame.tree import MANY_LABELS, Tree, count_row, el, private_tag
from mechanisms.data.columns import Inspection
from mechanisms.data.table import Table

PREVIEW_ROWS = 5
_CELL = 240
_COLUMNS = 12
_FEW = 30
_FEW_ROWS = "few {units}: much noise for each"
_MANY_FEW = f"{{few}} of the {{of}} labels have fewer than {_FEW} {{units}}: much noise for each. Leave some out below."
_LONG_TEXT = 600
"""Characters, well beyond the tokens of a row that step 2 proposes to read."""
_CUT = (
    "Most of these texts are long. Of each the model reads about the first 50 words, unless you raise the tokens of a "
    "row under 'For experts' in step 2; that takes longer."
)


def preview_table(table: Table, whole: bool = True) -> list[Tree]:
    """The first rows of a parsed file, or of its beginning, cells cut."""
    columns = table.columns[:_COLUMNS]
    head = el("tr", *(el("th", name, scope="col") for name in columns))
    rows = []
    for _, row in table.frame[columns].head(PREVIEW_ROWS).iterrows():
        rows.append(el("tr", *(el("td", el("div.cell", str(cell)[:_CELL])) for cell in row)))
    count = len(table.columns)
    size = f"{len(table.frame):,} rows, " if whole else ""
    size += f"{count} column{'' if count == 1 else 's'}"
    cut = f"; the first {_COLUMNS} are shown" if len(table.columns) > _COLUMNS else ""
    return [
        el("div.card-head", el("h3", "First rows"), private_tag()),
        el("p.muted", size + cut),
        *(el("p.notice.info", remark) for remark in table.remarks),
        el("div.scroll", el("table.preview", el("thead", head), el("tbody", *rows))),
    ]


def counted(columns: Columns, labels: list[str]) -> list[Tree]:
    """The number of rows of each chosen label, and the file's problems."""
    long = columns.file.table.frame[columns.mapping.text].str.len().median() > _LONG_TEXT
    counts = label_counts(columns.inspection, labels, columns.by_user)
    return [*counts, el("p.notice.info", _CUT)] if long else counts


def label_counts(inspection: Inspection, labels: list[str], by_user: bool = False) -> list[Tree]:
    """Units of each chosen label as bars, the rows that are left out, and the file's problems."""
    units = "users" if by_user else "rows"
    largest, many = max(inspection.counts.values(), default=1), len(labels) > MANY_LABELS
    lines = []
    for label in labels:
        count = inspection.counts.get(label, 0)
        remark = el("span.few", _FEW_ROWS.format(units=units)) if count < _FEW and not many else None
        lines.append(count_row(label, count / largest, f"{count:,}", remark))
    sizes = [inspection.counts.get(label, 0) for label in labels]
    each = " to ".join(dict.fromkeys(f"{size:,}" for size in (min(sizes, default=0), max(sizes, default=0))))
    span = f"{len(labels)} labels, with {each} {units}" if many else ""
    few = sum(size < _FEW for size in sizes) if many else 0
    return [
        _head(f"Labels and how many {units} have them"),
        el("p.muted", span) if span else "",
        el("p.few", _MANY_FEW.format(few=few, of=len(labels), units=units)) if few else "",
        el("div.counts", *lines),
        *_problems(inspection, labels),
    ]


def _head(title: str) -> Tree:
    return el("div.card-head", el("h3", title), private_tag("Private until you confirm below"))


def _problems(inspection: Inspection, labels: list[str]) -> list[Tree]:
    kind = "bad" if inspection.fatal else "warn"
    lines = [inspection.rows.left_out(labels).sentence, *inspection.problems]
    return [el(f"p.notice.{kind}", line) for line in lines if line]
