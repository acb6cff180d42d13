"""Files as the user named them: the analysis knows absolute paths, reports do not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from cudalint.finding import Edit, Evidence, Finding, Fix, Location
from cudalint.rule import Access, Branch, KernelFacts, LaunchFacts


class Names:
    """Gives paths the form in which the user named them.

    files     the paths of the run, as named or found
    absolute  whether other files (headers, launches) are shown with their absolute paths
    """

    def __init__(self, files: Iterable[str] = (), absolute: bool = False) -> None:
        self._known = {os.path.abspath(path): path for path in files}
        self._absolute = absolute

    def of(self, path: str) -> str:
        """The shown form of a path."""
        shown = self._known.get(path)
        if shown is None:
            shown = self._known[path] = path if self._absolute else self._relative(path)
        return shown

    def _relative(self, path: str) -> str:
        try:
            return os.path.relpath(path).replace(os.sep, "/")
        except ValueError:  # another drive
            return path

    def in_location(self, location: Location) -> Location:
        """The location with the shown path."""
        return Location(self.of(location.path), location.start, location.end)

    def in_finding(self, finding: Finding) -> Finding:
        """The finding with shown paths everywhere."""
        fix = finding.fix
        return replace(
            finding,
            location=self.in_location(finding.location),
            evidence=self._in_evidence(finding.evidence),
            fix=None if fix is None else Fix(fix.title, tuple(map(self._in_edit, fix.edits)), fix.applicability),
        )

    def in_facts(self, facts: KernelFacts) -> KernelFacts:
        """The facts with shown paths everywhere."""
        return replace(
            facts,
            location=self.in_location(facts.location),
            launch=self._in_launch(facts.launch),
            accesses=tuple(map(self._in_access, facts.accesses)),
            branches=tuple(map(self._in_branch, facts.branches)),
            arrays=tuple(replace(array, location=self.in_location(array.location)) for array in facts.arrays),
        )

    def _in_evidence(self, evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
        return tuple(Evidence(self.in_location(item.location), item.text) for item in evidence)

    def _in_edit(self, edit: Edit) -> Edit:
        return Edit(self.in_location(edit.location), edit.text)

    def _in_launch(self, launch: LaunchFacts) -> LaunchFacts:
        return launch if launch.location is None else replace(launch, location=self.in_location(launch.location))

    def _in_access(self, access: Access) -> Access:
        return replace(access, location=self.in_location(access.location), evidence=self._in_evidence(access.evidence))

    def _in_branch(self, branch: Branch) -> Branch:
        return replace(branch, location=self.in_location(branch.location))
