"""One pass: files to facts, facts to findings, findings merged, priced, suppressed, ordered.

Nothing here prints.  What goes wrong with a file or inside a rule is part of
the result, so that one bad file never ends a run.
"""

from __future__ import annotations

import gc
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from cudalint.config import ConfigError, Resolver, Settings, arch_number
from cudalint.finding import Finding, Location
from cudalint.merge import Merged, ranked
from cudalint.names import Names
from cudalint.result import Inspection, InternalError, KernelReport, Problem, Result, Sources
from cudalint.rule import KernelFacts, Rule
from cudalint.source.discover import (
    DEFAULT_EXCLUDE,
    MIXED_SUFFIXES,
    PYTHON_SUFFIXES,
    DiscoverySettings,
    discover,
    find_root,
    is_cuda_header,
)
from cudalint.source.text import SourceError, SourceFile, load
from cudalint.suppressing import Suppressing

if TYPE_CHECKING:
    from cudalint.model.cost import Pricing
    from cudalint.model.occupancy import Occupancy
    from cudalint.registry import Registry
    from cudalint.semantics.program import Program
    from cudalint.semantics.symbols import FunctionDef

MAX_USERS = 200
"""Kernels that are looked at because they include a header under check."""

Progress = Callable[[int, int], None]
"""Called with the number of files done and of all files."""


# ------------------------------------------------------------------------ facts


def open_program(
    root: Path, settings: Settings, arch: str, overlay: SourceFile | None = None, found: Sequence[str] | None = None
) -> Program:
    """The project at `root` as the settings and the architecture see it; `overlay` replaces the file of its path.

    `found` is what a search of `root` with these settings has found already.
    """
    from cudalint.semantics.program import Options, Program

    defines = dict(item.partition("=")[::2] if "=" in item else (item, "1") for item in settings.defines)
    options = Options(defines, tuple(map(Path, settings.include_dirs)), arch_number(arch))
    program = Program(root, options, replace(discovery_settings(settings), python=False), found)
    if overlay is not None:
        program.add(overlay)
    return program


def kernels_of(path: str, program: Program) -> Iterator[FunctionDef]:
    """The kernels defined in a file, then those of included headers that the file launches.

    Raises `SourceError` if the file cannot be read.
    """
    suffix = Path(path).suffix.lower()
    if suffix in PYTHON_SUFFIXES:
        return
    unit = program.unit(path)
    if unit is None:
        raise _unreadable(path)
    if suffix in MIXED_SUFFIXES and not is_cuda_header(unit.source.data):
        return
    yield from unit.kernels
    words = unit.launch_words
    for other in unit.closure[1:] if words else ():
        if other.may_hold_cuda and not other.defined_names.isdisjoint(words):
            yield from (kernel for kernel in other.kernels if kernel.name.encode() in words)


def users_of(path: str, program: Program) -> Iterator[FunctionDef]:
    """The kernels of files that include a header with device code, at most `MAX_USERS`."""
    unit = program.unit(path)
    if unit is None or Path(path).suffix.lower() in PYTHON_SUFFIXES or b"__device__" not in unit.source.data:
        return
    users = (user for other in program.includers(path) if (user := program.unit(other)) is not None)
    yield from islice((kernel for user in users for kernel in user.kernels), MAX_USERS)


def _unreadable(path: str) -> SourceError:
    """Why a file cannot be read."""
    try:
        load(path)
    except SourceError as error:
        return error
    return SourceError(path, "cannot be read")


def kernel_facts(kernel: FunctionDef, program: Program, settings: Settings) -> Sequence[KernelFacts]:
    """The facts of a kernel, one element per launch shape and instantiation."""
    from cudalint.analysis.evaluate import kernel_facts as evaluate

    return list(evaluate(kernel, program, assume_block=settings.assume_block))


def facts_of(path: str, program: Program, settings: Settings) -> Iterator[KernelFacts]:
    """The facts of every kernel that stands in a file or in a header that it includes and launches from."""
    for kernel in kernels_of(path, program):
        yield from kernel_facts(kernel, program, settings)


# ------------------------------------------------------------------------ files


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a run with the settings that hold for each.

    roots  the folder through which each was found, the project of files that are in no other
    found  what the search of a folder (absolute) with some settings has found
    """

    settings: dict[str, Settings]
    roots: dict[str, str]
    found: dict[tuple[str, DiscoverySettings], Sequence[str]]
    problems: tuple[Problem, ...]


def files_of(paths: Sequence[str], resolver: Resolver) -> Files:
    """Every file to check at or below `paths`.  Raises `ConfigError`."""
    settings: dict[str, Settings] = {}
    roots: dict[str, str] = {}
    problems: dict[str, Problem] = {}
    searched: dict[tuple[str, DiscoverySettings], Sequence[str]] = {}
    for path in paths:
        above = resolver.for_path(path)
        found = discover([path], discovery_settings(above))
        for error in found.problems:
            problems.setdefault(error.path, Problem(error.path, error.reason, named=not Path(path).is_dir()))
        settings.update(_own_settings(found.files, above, resolver))
        if Path(path).is_dir():
            folder = os.path.abspath(path)
            roots.update(dict.fromkeys(found.files, folder))
            searched[folder, discovery_settings(above)] = found.files
    return Files(settings, roots, searched, tuple(problems.values()))


def discovery_settings(settings: Settings) -> DiscoverySettings:
    """What the settings say about finding files."""
    return DiscoverySettings(
        exclude=DEFAULT_EXCLUDE if settings.exclude is None else settings.exclude,
        extend_exclude=settings.extend_exclude,
        respect_gitignore=settings.respect_gitignore,
        force_exclude=settings.force_exclude,
        root=str(settings.config_path.parent) if settings.config_path else None,
    )


def _own_settings(files: Sequence[str], above: Settings, resolver: Resolver) -> dict[str, Settings]:
    """Each file with the settings of its folder, less what a configuration further down, unknown to the search, leaves out."""
    by_settings: dict[Settings, list[str]] = {}
    for file in files:
        by_settings.setdefault(resolver.for_path(file), []).append(file)
    for settings, group in by_settings.items():
        if settings is not above:
            group[:] = discover(group, replace(discovery_settings(settings), force_exclude=True)).files
    own = {file: settings for settings, group in by_settings.items() for file in group}
    return {file: own[file] for file in files if file in own}


# --------------------------------------------------------------------- the pass


def check(
    paths: Sequence[str],
    resolver: Resolver,
    registry: Registry,
    *,
    stdin: SourceFile | None = None,
    progress: Progress | None = None,
) -> Result:
    """Check the files at and below `paths`.  `stdin` replaces the file of its path.

    Raises `ConfigError` for settings that cannot be used; everything else that goes wrong is part of the result.
    """
    with _uncollected():
        return _check(paths, resolver, registry, stdin, progress)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cyclic garbage collector: what a run makes lives as long as it does, an eighth of its time would go there."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _check(
    paths: Sequence[str], resolver: Resolver, registry: Registry, stdin: SourceFile | None, progress: Progress | None
) -> Result:
    started = time.perf_counter()
    run = _Pass(resolver, stdin, registry)
    suppressing = Suppressing(run.sources, registry)
    merged: dict[tuple[object, ...], Merged] = {}
    for settings, arch, kernel, own in run.kernels(paths, progress):
        rules = [rule for rule in run.rules(kernel.path, arch) if _concerns(rule, kernel)]
        for facts in run.facts(kernel, settings) if rules else ():
            for rule in rules:
                for finding in run.findings(rule, facts):
                    if not own and finding.location.path not in run.checked:
                        continue
                    key = (finding.rule, finding.location)
                    if key in merged:
                        merged[key].add(finding, facts, arch)
                    else:
                        merged[key] = Merged(finding, facts, arch)
    findings = [suppressing.apply(run.finish(item), run.extent(item)) for item in merged.values()]
    return Result(
        findings=tuple(ranked(findings, run.sources)),
        files=tuple(run.files),
        kernels=len(run.health),
        kernels_with_errors=sum(run.health.values()),
        problems=tuple(run.problems),
        notes=() if run.errors else tuple(suppressing.notes(run.files, run.ran())),
        internal_errors=tuple(run.errors),
        seconds=time.perf_counter() - started,
        target_arch=tuple(run.targets),
        sources=run.sources,
    )


def inspect(
    paths: Sequence[str], resolver: Resolver, *, stdin: SourceFile | None = None, progress: Progress | None = None
) -> Inspection:
    """The facts of all kernels at and below `paths` for the first target, the occupancy for all.  Raises `ConfigError`."""
    run = _Pass(resolver, stdin)
    reports = []
    for settings, _, kernel, _ in run.kernels(paths, progress, inspecting=True):
        facts = run.measured_facts(kernel, settings)
        location = run.names.in_location(Location(kernel.path, kernel.header_start, kernel.header_end))
        reports.append(KernelReport(kernel.name, location, facts, occupancies(facts, settings.target_arch)))
    return Inspection(
        kernels=tuple(sorted(reports, key=lambda report: report.location)),
        files=tuple(run.files),
        problems=tuple(run.problems),
        internal_errors=tuple(run.errors),
        target_arch=tuple(run.targets),
        sources=run.sources,
    )


def occupancies(facts: Iterable[KernelFacts], targets: Iterable[str]) -> dict[str, Occupancy]:
    """The occupancy under the launch that fits worst, by architecture; unknown resources do not count."""
    from cudalint.model import architectures
    from cudalint.model.occupancy import evaluate, nearest_config

    known = [(item, block) for item in facts if (block := item.launch.block) is not None and prod(block) > 0]
    found = {}
    for arch in targets if known else ():
        answers = [
            evaluate(
                architectures.get(arch),
                nearest_config(
                    prod(block),
                    item.registers[0] if item.registers else 1,
                    item.static_smem or 0,
                    item.launch.dynamic_smem or 0,
                ),
            )
            for item, block in known
        ]
        found[arch] = min(answers, key=lambda answer: answer.warps_per_sm)
    return found


class _Pass:
    """The state of one run: open programs, what was seen, what went wrong.

    health  whether each kernel definition has a parse error, by path and offset
    """

    def __init__(self, resolver: Resolver, overlay: SourceFile | None, registry: Registry | None = None) -> None:
        self.resolver = resolver
        self.overlay = overlay
        self.registry = registry
        self.sources = Sources({overlay.path: overlay} if overlay else None)
        self.names = Names()
        self.checked: set[str] = set()
        self._roots: dict[str, str] = {}
        self._found: dict[tuple[str, DiscoverySettings], Sequence[str]] = {}
        self._projects: dict[str, bool] = {}
        self._named: set[str] = set()
        self.files: list[str] = []
        self.targets: dict[str, None] = {}
        self.problems: list[Problem] = []
        self.errors: list[InternalError] = []
        self.health: dict[tuple[str, int], bool] = {}
        self._programs: dict[tuple[str, Settings, str], Program] = {}
        self._seen: set[tuple[str, str, int]] = set()
        self._ends: dict[tuple[str, int], int] = {}
        self._rules: dict[tuple[Settings, str], tuple[Rule, ...]] = {}
        self._pricings: dict[tuple[int, str], Pricing] = {}

    def kernels(
        self, paths: Sequence[str], progress: Progress | None, inspecting: bool = False
    ) -> Iterator[tuple[Settings, str, FunctionDef, bool]]:
        """Every kernel once for each target, with the settings of the file that brought it, and whether it is under check.

        Kernels that are not, use headers that are: only what they say about those counts.  `inspecting` leaves them out and
        takes the first target only.
        """
        files = self._files(paths)
        for number, (path, settings) in enumerate(files.items()):
            if progress:
                progress(number, len(files))
            targets = settings.target_arch[:1] if inspecting else settings.target_arch
            self.targets.update(dict.fromkeys(settings.target_arch))
            problems = len(self.problems)
            for arch in targets:
                for kernel in self._new_kernels(path, settings, arch, kernels_of):
                    self._note_health(kernel)
                    yield settings, arch, kernel, True
            if len(self.problems) == problems:
                self.files.append(path)
        for path, settings in () if inspecting else files.items():
            for arch in settings.target_arch:
                for kernel in self._new_kernels(path, settings, arch, self._users_elsewhere):
                    yield settings, arch, kernel, False
        if progress:
            progress(len(files), len(files))

    def _files(self, paths: Sequence[str]) -> dict[str, Settings]:
        on_disk = [path for path in paths if self.overlay is None or path != self.overlay.path]
        found = files_of(on_disk, self.resolver)
        self.problems.extend(found.problems)
        self._named = {os.path.normpath(path) for path in paths}
        if self.overlay is not None:
            found.settings[self.overlay.path] = self.resolver.for_path(self.overlay.path)
        for settings in set(found.settings.values()):
            _require_known(settings)
            if self.registry:
                self.registry.select(settings)
        self._roots = found.roots
        self._found = found.found
        self.checked = {os.path.abspath(path) for path in found.settings}
        self.names = Names(found.settings, absolute=all(map(os.path.isabs, paths)))
        if not found.settings:
            self.targets.update(dict.fromkeys(self.resolver.for_path(os.curdir).target_arch))
        return found.settings

    def _new_kernels(
        self, path: str, settings: Settings, arch: str, find: Callable[[str, Program], Iterator[FunctionDef]]
    ) -> list[FunctionDef]:
        """The kernels that a file brings and no file before has brought."""
        try:
            program = self._program(path, settings, arch)
            found = list(find(path, program))
        except SourceError as error:
            if find is kernels_of:
                self.problems.append(Problem(error.path, error.reason, error.path in self._named))
            return []
        except Exception as error:
            self.failed("", path, error)
            return []
        unit = program.unit(path)
        if unit is not None:
            self.sources.add(path, unit.source)
        new = [kernel for kernel in found if (arch, kernel.path, kernel.start) not in self._seen]
        self._seen.update((arch, kernel.path, kernel.start) for kernel in new)
        for kernel in new:
            self._ends[kernel.path, kernel.start] = kernel.end
            self.sources.add(self.names.of(kernel.path), kernel.unit.parsed.source)
        return new

    def _users_elsewhere(self, path: str, program: Program) -> Iterator[FunctionDef]:
        """`users_of`, unless the whole project is under check anyway."""
        return iter(()) if self.checked.issuperset(program.project_files()) else users_of(path, program)

    def _note_health(self, kernel: FunctionDef) -> None:
        key = (kernel.path, kernel.start)
        broken = kernel.unit.parsed.has_error_in(kernel.start, kernel.end)
        self.health[key] = broken or self.health.get(key, False)

    def _program(self, path: str, settings: Settings, arch: str) -> Program:
        root = find_root(path, self._roots.get(path), self._projects)
        key = (root, settings, arch)
        if key not in self._programs:
            found = self._found.get((root, discovery_settings(settings)))
            self._programs[key] = open_program(Path(root), settings, arch, self.overlay, found)
        return self._programs[key]

    def facts(self, kernel: FunctionDef, settings: Settings) -> Sequence[KernelFacts]:
        """The facts of a kernel; none if the analysis fails."""
        try:
            return kernel_facts(kernel, kernel.unit.program, settings)
        except Exception as error:
            self.failed("", f"kernel {kernel.name} in {self.names.of(kernel.path)}", error)
            return ()

    def measured_facts(self, kernel: FunctionDef, settings: Settings) -> tuple[KernelFacts, ...]:
        """`facts` under the paths that users see, all that is worked out late worked out; none if that fails."""
        try:
            return tuple(self.names.in_facts(item) for item in self.facts(kernel, settings))
        except Exception as error:
            self.failed("", f"kernel {kernel.name} in {self.names.of(kernel.path)}", error)
            return ()

    def rules(self, path: str, arch: str) -> tuple[Rule, ...]:
        """The rules that hold in a file for an architecture.  Raises `ConfigError`."""
        settings = self.resolver.for_path(path)
        key = (settings, arch)
        if key not in self._rules:
            number = arch_number(arch)
            selected = self.registry.select(settings) if self.registry else ()
            self._rules[key] = tuple(rule for rule in selected if _applies(rule, number))
        return self._rules[key]

    def findings(self, rule: Rule, kernel: KernelFacts) -> list[Finding]:
        """What a rule finds in a kernel; none if it fails."""
        try:
            found = list(rule.check_kernel(kernel))
            for item in found:
                if not isinstance(item, Finding):
                    raise TypeError(f"{item!r:.60} is not a Finding")
            return found
        except (Exception, SystemExit) as error:
            self.failed(rule.meta.name, f"kernel {kernel.name} in {self.names.of(kernel.location.path)}", error)
            return []

    def failed(self, rule: str, where: str, error: BaseException) -> None:
        """Note an exception of a rule or (rule "") of the analysis."""
        message = f"{type(error).__name__}: {error}".rstrip(": ")
        self.errors.append(InternalError(rule, where, message, "".join(traceback.format_exception(error))))

    def finish(self, merged: Merged) -> Finding:
        """The merged finding, priced, and suppressed if a comment says so."""
        settings = self.resolver.for_path(merged.finding.location.path)
        finding = self._priced(merged.result(settings.target_arch), merged.kernel, merged.arch)
        return self.names.in_finding(finding)

    def extent(self, merged: Merged) -> tuple[int, int] | None:
        """The byte range of the kernel that a finding is about, if the finding is in the same file."""
        place = merged.kernel.location
        end = self._ends.get((place.path, place.start))
        return (place.start, end) if end is not None and place.path == merged.finding.location.path else None

    def ran(self) -> set[Rule]:
        """The rules that have been checked somewhere."""
        return {rule for rules in self._rules.values() for rule in rules}

    def _priced(self, finding: Finding, kernel: KernelFacts, arch: str) -> Finding:
        if finding.repair is None:
            return finding
        from cudalint.model import architectures
        from cudalint.model.cost import Pricing

        try:
            pricing = self._pricings.get((id(kernel), arch))
            if pricing is None:
                pricing = self._pricings[id(kernel), arch] = Pricing(kernel, architectures.get(arch))
            return replace(finding, cost=pricing.price(finding.repair))
        except Exception as error:
            self.failed("", f"the cost of {finding.rule} in kernel {kernel.name}", error)
            return finding


def _concerns(rule: Rule, kernel: FunctionDef) -> bool:
    """Whether a word that the rule needs is anywhere in sight of the kernel."""
    words = [word.encode() for word in rule.meta.mentions]
    return not words or any(word in unit.source.data for unit in kernel.unit.closure for word in words)


def _applies(rule: Rule, arch: int) -> bool:
    low, high = rule.meta.min_arch, rule.meta.max_arch
    return (low is None or arch >= low) and (high is None or arch <= high)


def _require_known(settings: Settings) -> None:
    """Raises `ConfigError` for a target that no GPU has."""
    from cudalint.model import architectures

    for arch in settings.target_arch:
        try:
            architectures.get(arch)
        except ValueError as error:
            raise ConfigError(str(error), settings.where("target-arch", arch)) from error
