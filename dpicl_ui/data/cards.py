"""What step 1 shows about a file, as trees; all of it is private until the curator declares parts public."""

from __future__ import annotations

from dpicl_ui.frame.cards import private_tag
from dpicl_ui.frame.tree import Tree, el
from mechanisms.studio.data.csv_file import Inspection, Table

PREVIEW_ROWS = 5
_CELL = 240
_COLUMNS = 12
_FEW = 30


def preview_table(table: Table) -> list[Tree]:
    """The first rows of a parsed file, cells cut."""
    columns = table.columns[:_COLUMNS]
    head = el("tr", *(el("th", name, scope="col") for name in columns))
    rows = []
    for _, row in table.frame[columns].head(PREVIEW_ROWS).iterrows():
        rows.append(el("tr", *(el("td", str(cell)[:_CELL]) for cell in row)))
    size = f"{len(table.frame):,} rows, {len(table.columns)} columns"
    cut = f"; the first {_COLUMNS} are shown" if len(table.columns) > _COLUMNS else ""
    return [
        el("div.card-head", el("h3", "First rows"), private_tag()),
        el("p.muted", size + cut),
        *(el("p.notice.info", remark) for remark in table.remarks),
        el("div.scroll", el("table.preview", el("thead", head), el("tbody", *rows))),
    ]


def label_counts(inspection: Inspection, labels: list[str], by_user: bool = False) -> list[Tree]:
    """Units of each chosen label as bars, and the file's problems."""
    units = "users" if by_user else "rows"
    title = f"Labels and how many {units} have them"
    largest = max(inspection.counts.values(), default=1)
    lines = []
    for label in labels:
        count = inspection.counts.get(label, 0)
        remark = el("span.few", f"few {units}: much noise for each") if count < _FEW else None
        lines.append(
            el(
                "div.count-row",
                el("span.count-name", label, title=label),
                el("span.count-bar", numbers={"share": count / largest}),
                el("span.count-number", f"{count:,}"),
                remark,
            )
        )
    kind = "bad" if inspection.fatal else "warn"
    return [
        el(
            "div.card-head",
            el("h3", title),
            private_tag("Private until you confirm below"),
        ),
        el("div.counts", *lines),
        *(el(f"p.notice.{kind}", problem) for problem in inspection.problems),
    ]
