"""Running an evaluation once for every combination of the choices that it meets.

Host code decides launches by branches, loops and callers that the source does
not settle.  The evaluator is written as if it knew which way each of them goes:
it asks the `World` it runs in, and `explore` repeats the run until every way
has been taken or the bound is reached.  A choice is made once per world, so
values that depend on the same branch stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

T = TypeVar("T")


class Infeasible(Exception):
    """The choices of this world contradict each other: there is no such run."""


class Undecided(Exception):
    """A frozen world was asked for a choice that it has not made."""


class World:
    """One combination of choices.

    frozen  while true, new choices raise `Undecided`
    """

    __slots__ = ("_counts", "_made", "_prefix", "_taken", "frozen")

    def __init__(self, prefix: tuple[int, ...] = (), made: dict[Hashable, int] | None = None) -> None:
        self._prefix = prefix
        self._made = dict(made or {})
        self._taken: list[int] = []
        self._counts: list[int] = []
        self.frozen = False

    def choose(self, key: Hashable, count: int) -> int:
        """An index below `count`, the same one whenever `key` is asked for.  Raises `Undecided` in a frozen world."""
        if count <= 1:
            return 0
        index = self._made.get(key)
        if index is not None:
            return min(index, count - 1)
        if self.frozen:
            raise Undecided
        position = len(self._taken)
        index = self._prefix[position] if position < len(self._prefix) else 0
        self._made[key] = index
        self._taken.append(index)
        self._counts.append(count)
        return index

    def fork(self) -> World:
        """A world with the choices of this one, in which further ones can be explored."""
        return World((), self._made)

    def successor(self) -> tuple[int, ...] | None:
        """The prefix of the next combination: the last choice that has another way goes on to it."""
        for position in range(len(self._taken) - 1, -1, -1):
            if self._taken[position] + 1 < self._counts[position]:
                return (*self._taken[:position], self._taken[position] + 1)
        return None


def explore(run: Callable[[World], T], limit: int, base: World | None = None) -> list[T]:
    """The results of `run` in at most `limit` worlds, in the order of the choices; infeasible ones are left out."""
    results: list[T] = []
    prefix: tuple[int, ...] | None = ()
    made = base.fork()._made if base is not None else None
    for _ in range(limit):
        if prefix is None:
            break
        world = World(prefix, made)
        try:
            results.append(run(world))
        except Infeasible:
            pass
        prefix = world.successor()
    return results
