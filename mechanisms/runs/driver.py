"""The driver of a run, which the command line, `api`, the app and the research scripts share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, nullcontext

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.disclosures import disclosures_at_the_end
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import TooLong, UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness
from mechanisms.records import Dataset
from mechanisms.runs.events import CuratorEvent, RunCompleted, RunStarted, RunStopped, SetSoFar
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.plan import Plan
from mechanisms.runs.run import run

_STOPPED = "Stopped. No row was read, and nothing is spent."
_STOPPED_AGAIN = "Stopped. No row was read, and the run can still be resumed."


def drive(
    plan: Plan,
    dataset: Dataset,
    model: LanguageModel,
    embedder: Embedder | None,
    ledger: PrivacyLedger,
    *,
    keep: Callable[[DemoSet, bool], object] | None = None,
    tell: Callable[[str], object] = lambda remark: None,
    stopped: Callable[[], bool] = lambda: False,
    randomness: Randomness | None = None,
    curator: bool = False,
    journal: RunJournal | None = None,
) -> Generator[CuratorEvent, None, None]:
    """The events of a run, as `mechanisms.runs.run.run` yields them. Closing the generator also closes the journal.

    Args:
        plan: calibrated, or the plan of the journal's run.
        keep: called once at the end with the set and whether the run is complete, if anything was released. If the run
            is complete, the run file then replaces the journal. The set states whether some of its rows had become
            known without noise by then.
        tell: called with remarks, one line each.
        stopped: returns whether the curator has stopped the run, which then ends with `RunStopped`. If the run has not
            yielded anything new yet, a UsageError is raised instead.
    """
    last: RunStarted | SetSoFar | RunCompleted | None = None
    # Two numbers of events, counted from `RunStarted` on: those that a resumed run repeats, and those yielded so far.
    known, seen = journal.known if journal else 0, 0
    with closing(journal) if journal else nullcontext():
        try:
            with closing(run(plan, dataset, model, ledger, randomness, curator, journal, embedder)) as events:
                for event in events:
                    if isinstance(event, RunStarted | SetSoFar | RunCompleted):
                        last = event
                    seen += last is not None
                    yield event
                    # `SetSoFar` is not a place to stop: the release that its set already has comes next.
                    if isinstance(event, SetSoFar | RunCompleted) or not stopped():
                        continue
                    if last is None or seen <= known:
                        raise UsageError(_STOPPED_AGAIN if journal and journal.started else _STOPPED)
                    yield RunStopped(last.demo_set)
                    return
        finally:
            if keep and isinstance(last, SetSoFar | RunCompleted):
                # Disclosures made while the run was in progress count, too.
                made = last.demo_set.with_disclosures(disclosures_at_the_end(fingerprint(dataset), ledger))
                keep(made, isinstance(last, RunCompleted))
                if journal and isinstance(last, RunCompleted):
                    try:
                        journal.end(last, ledger, made.certificate.disclosures)
                    except TooLong as error:
                        tell(str(error))
