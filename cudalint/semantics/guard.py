"""One bound for everything that evaluates: expressions, types, templates and constants refer to each other without end.

The bounds count work, never time, so that a result does not depend on the machine.
"""

from __future__ import annotations

MAX_STEPS = 20_000
"""Nodes and definitions visited for one question."""
MAX_DEPTH = 90
"""Nested expressions."""
MAX_NESTING = 40
"""Definitions that are needed for one another: constants, instantiations, calls."""


class Guard:
    """Depth and work of the question being answered; the outermost `enter` starts a new one."""

    __slots__ = ("depth", "exhausted", "nesting", "steps")

    def __init__(self) -> None:
        self.depth = 0
        self.nesting = 0
        self.steps = 0
        self.exhausted = False

    @property
    def idle(self) -> bool:
        """Whether nothing is being answered."""
        return self.depth == 0 and self.nesting == 0

    def _admit(self, *, room: bool) -> bool:
        if self.idle:
            self.steps = 0
            self.exhausted = False
        self.steps += 1
        if not room or self.steps > MAX_STEPS:
            self.exhausted = True
            return False
        return True

    def enter(self) -> bool:
        """One expression deeper; False (then do not `leave`) if that is too deep or too much."""
        if not self._admit(room=self.depth < MAX_DEPTH):
            return False
        self.depth += 1
        return True

    def leave(self) -> None:
        """Undo `enter`."""
        self.depth -= 1

    def open(self) -> bool:
        """One definition deeper; False (then do not `close`) if that is too deep or too much."""
        if not self._admit(room=self.nesting < MAX_NESTING):
            return False
        self.nesting += 1
        return True

    def close(self) -> None:
        """Undo `open`."""
        self.nesting -= 1
