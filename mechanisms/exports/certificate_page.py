"""The certificate as one page to print, which loads nothing, runs nothing and shows values of the file as text."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import jinja2
import markupsafe

from mechanisms import __version__
from mechanisms.demos.demo_set import Certificate, DemoSet
from mechanisms.errors import printable
from mechanisms.exports.export_format import ExportFormat, Released
from mechanisms.exports.facts_label import Fact, label_as_svg
from mechanisms.files import bundled
from mechanisms.runs.plan import guarantee

_NOTHING = "Nothing is promised: these demonstrations may repeat the rows they were written from."
_SEEN = (
    "Marked: the curator may know more of the data than this page accounts for ({}). The promise below covers the "
    "releases of this run; it does not cover choices made with such knowledge, the choice of this set included."
)
_ANYWHERE = (
    "Facts about the population still tell something about each person, whether that person's rows took part or not.",
    "The values under “Taken as public” are not protected.",
    "The model's own training data is not protected.",
    "Nobody checked that the demonstrations are true, harmless or fair.",
    "Runs under another name, by other people, on other machines or at another privacy unit are not included here.",
    "A file cannot prove that its run took place, with unchanged software and on the intended rows.",
)
_ROWS = "A person with several rows is protected less: the promise is for one row."
_USERS = "The rows of a user are protected for that user, not for other people whom they mention."
_BEFORE = "The promise covers this run. Earlier spending on the same data set adds to its epsilon and delta."
_WEAK = "Epsilon 5 and more is a weak promise, for tests."


def _files(released: Released) -> str:
    made = released.demo_set
    held = made.certificate
    return _template().render(
        count=len(made.demonstrations),
        created=made.created,
        alarms=[
            *([] if held.private else [f"Not private: {held.reason or 'nothing is promised'}."]),
            *([_SEEN.format("; ".join(held.disclosures))] if held.disclosures else []),
        ],
        guarantee=guarantee(held.claim, held.by_user) if held.private else _NOTHING,
        label=markupsafe.Markup(label_as_svg(released)),  # its texts are escaped by ElementTree
        facts=list(_of_task(made)),
        limits=list(_limits(held)),
        digest=released.digest,
        version=__version__,
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        # Control characters in the file's text must not reorder text on the page.
        finalize=lambda value: value if isinstance(value, markupsafe.Markup) else printable(str(value)),
    )
    return environment.from_string(bundled("certificate.html").read_text(encoding="utf-8"))


def _of_task(made: DemoSet) -> Iterator[Fact]:
    yield Fact("Adjacency", "add or remove one unit", "")
    yield Fact("Labels", ", ".join(made.labels), made.template.instruction)
    if made.choice is not None:  # a file of before
        chosen = f"{made.choice['chosen']}, chosen among {made.choice['among']} by rows"
        yield Fact("Choice", chosen, "none: the model does best without any" if not made.demonstrations else "")


def _limits(held: Certificate) -> Iterator[str]:
    if held.private:
        yield _USERS if held.by_user else _ROWS
    yield from _ANYWHERE
    if held.private and held.spent_before[0]:
        yield _BEFORE
    if held.private and held.claim.epsilon >= 5:
        yield _WEAK


FORMAT = ExportFormat(
    name="certificate",
    title="Certificate (a page to print)",
    purpose="For people: the promise and its limits on one page, with the digest that identifies the file.",
    file_name="certificate.html",
    media_type="text/html",
    files=_files,
    correction="",
    without_demonstrations=True,
)
