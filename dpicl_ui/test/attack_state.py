"""What step 4 remembers of an attack: that it is asked to stop. What it finds is on the screen and nowhere else."""

from __future__ import annotations

import threading

from dpicl_ui.frame.sessions import Session, State


class AttackState(State):
    """The attack that was asked for last."""

    def __init__(self, session: Session) -> None:
        self._stop = threading.Event()

    def begin(self) -> threading.Event:
        """Ask for an attack; what it gives is set when no more of it is wanted."""
        self._stop = threading.Event()
        return self._stop

    def stop(self) -> None:
        """End the attack that was asked for last."""
        self._stop.set()

    def close(self) -> None:
        """See `State.close`."""
        self.stop()
