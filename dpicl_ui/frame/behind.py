"""Work that lets the page go first: in a thread of its own, of lower priority than those that serve and draw."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

_NICER = 5
"""Steps of priority, each worth about a quarter: beside a page that draws, this work gets a quarter of a core, and all
of it where nothing else wants it."""

Made = TypeVar("Made")


@dataclass(frozen=True)
class _Ended:
    error: BaseException | None = None


def behind(work: Generator[Made]) -> Generator[Made]:
    """The same values, made behind whatever else wants the processor; closing this closes the work.

    Threads that the work starts, such as those that a model computes with, have its priority. Linux alone has one for
    each thread: elsewhere the work is only moved.
    """
    asked, told = SimpleQueue[bool](), SimpleQueue[Made | _Ended]()
    thread = threading.Thread(target=_make, args=(work, asked, told), name="behind", daemon=True)
    thread.start()
    try:
        while True:
            asked.put(True)
            made = told.get()
            if not isinstance(made, _Ended):
                yield made
            elif made.error is not None:
                raise made.error
            else:
                return
    finally:
        asked.put(False)
        thread.join()


def _make(work: Generator[Made], asked: SimpleQueue[bool], told: SimpleQueue[Made | _Ended]) -> None:
    _give_way()
    try:
        while asked.get():
            told.put(next(work))
    except StopIteration:
        told.put(_Ended())
    except BaseException as error:  # the caller's to handle, as if the work were its own
        told.put(_Ended(error))
    finally:
        work.close()


def _give_way() -> None:
    """Lower the priority of the thread that calls, for good: without privileges it cannot be raised again."""
    if sys.platform == "linux":
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + _NICER)
