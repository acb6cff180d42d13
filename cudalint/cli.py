"""The command line: arguments to settings, results to streams and an exit status.

Only `argparse` is imported here; each command imports what it needs, so that
`--version` and `--help` answer at once.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from cudalint import __version__

if TYPE_CHECKING:
    from cudalint.config import Resolver, Settings
    from cudalint.registry import Registry
    from cudalint.report import View
    from cudalint.result import Inspection, Result
    from cudalint.source.text import SourceFile

CLEAN, FINDINGS, FAILURE = 0, 1, 2
INTERRUPTED = 130

_USAGE = """usage: cudalint COMMAND [OPTION…]

A static analyser for CUDA C++ source: no GPU, no build.

commands:
  check [PATH…]       report what makes kernels slow or wrong, the costliest first
  inspect [PATH…]     show the facts behind: kernels, launches, accesses, branches
  occupancy           blocks per SM from block size, registers and shared memory
  explain NAME…       what a rule is about, why it matters, how to mend it
  rule [NAME|--all]   the same; without a name the list of all rules
  config [KEY]        the options of cudalint.toml
  new-rule NAME       write a rule to start from, with its test
  version             print the version

options:
  -h, --help          this text; `cudalint COMMAND --help` for a command
  -V, --version       print the version
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0 clean, 1 findings, 2 wrong usage, wrong configuration or an internal error."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # Python's own exit status would be that of findings
        return _crash(error, arguments)


def _main(arguments: Sequence[str]) -> int:
    command = arguments[0] if arguments else "--help"
    if command in ("-h", "--help", "help"):
        return _print(_USAGE) if arguments else _print(_USAGE) or FAILURE
    if command in ("-V", "--version", "version"):
        return _print(f"cudalint {__version__}\n")
    if command not in _COMMANDS:
        return _unknown_command(command)
    return _run(command, arguments[1:])


def _run(command: str, arguments: Sequence[str]) -> int:
    from cudalint.config import ConfigError

    describe, execute = _COMMANDS[command]
    parser = _Parser(prog=f"cudalint {command}", allow_abbrev=False)
    describe(parser)
    args = parser.parse_intermixed_args(arguments)
    try:
        return execute(args)
    except ConfigError as error:
        return _fail(f"error: {error}")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, in place of every option that there is."""

    def error(self, message: str) -> NoReturn:
        from cudalint.config import suggest

        unknown = re.fullmatch(r"unrecognized arguments: (\S+).*", message)
        if unknown:
            word = unknown[1].partition("=")[0]
            kind = "option" if word.startswith("-") else "argument"
            message = f'unknown {kind} "{word}"{suggest(word, self._option_string_actions) if kind == "option" else ""}'
        self.exit(FAILURE, f"error: {message}; see {self.prog} --help\n")


def _unknown_command(word: str) -> int:
    from cudalint.config import suggest

    if os.path.lexists(word):
        return _fail(f'error: unknown command "{word}"; to check that path: cudalint check {word}')
    return _fail(f'error: unknown command "{word}"{suggest(word, _COMMANDS)}; see cudalint --help')


def _crash(error: Exception, arguments: Sequence[str]) -> int:
    """What to say about an exception that nothing else has caught."""
    _say(f"internal error: {type(error).__name__}: {error}".rstrip(": "))
    if "-v" in arguments or "--verbose" in arguments:
        from traceback import format_exception

        _say("".join(format_exception(error)))
    else:
        _say("note: this is a bug of cudalint or of a plugin, --verbose shows where")
    return FAILURE


def _fail(message: str) -> int:
    _say(message)
    return FAILURE


def _say(message: str) -> None:
    """A line on standard error."""
    from cudalint.report.style import safe

    with suppress(OSError):  # nobody listens; the exit status still tells
        sys.stderr.write(safe(message) + "\n")


# ---------------------------------------------------------------------- options


def _commas(text: str) -> list[str]:
    return [item for item in (part.strip() for part in text.split(",")) if item]


def _block(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a block such as 256 or 16x16") from None


def _project_options(parser: argparse.ArgumentParser, formats: str) -> None:
    """Options of commands that read source files."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: .); - reads standard input")
    parser.add_argument(
        "--output-format", action="append", metavar="FORMAT[=PATH]", help=f"{formats}; with =PATH into a file; may be repeated"
    )
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours (default: auto)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary, no progress")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="add the facts of each finding, the configuration that holds, and tracebacks of internal errors",
    )
    target = parser.add_argument_group("target")
    target.add_argument(
        "--target-arch",
        action="extend",
        type=_commas,
        metavar="ARCH",
        help="GPU architecture such as sm_90 (default: sm_80); may be repeated",
    )
    target.add_argument("-D", dest="defines", action="append", metavar="NAME[=VALUE]", help="define a macro")
    target.add_argument("-I", dest="include_dirs", action="append", metavar="DIR", help="search included files here too")
    target.add_argument(
        "--assume-block", type=_block, metavar="X[xY[xZ]]", help="block of kernels that nothing in the source launches"
    )
    files = parser.add_argument_group("files")
    files.add_argument(
        "--exclude", action="extend", type=_commas, metavar="PATTERN", help="leave out, in place of the built-in list"
    )
    files.add_argument("--extend-exclude", action="extend", type=_commas, metavar="PATTERN", help="leave out as well")
    files.add_argument(
        "--respect-gitignore",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="leave out what .gitignore does (default)",
    )
    files.add_argument(
        "--force-exclude",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="exclude even files named on the command line",
    )
    files.add_argument("--stdin-filename", metavar="PATH", help="read standard input as if it were this file")
    other = parser.add_argument_group("configuration")
    other.add_argument("--config", metavar="PATH", help="use this file in place of the nearest configurations")
    other.add_argument("--isolated", action="store_true", help="use no configuration file")
    other.add_argument("--no-cache", action="store_true", help="keep nothing between runs (nothing is kept today)")
    other.add_argument("--jobs", type=int, metavar="N", help="processes to use (one is used today)")
    other.add_argument("--ptxas", action="store_true", help="ask a compiler at hand for registers (estimates are used today)")


def _check_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Report what makes kernels slow or wrong, the costliest first."
    _project_options(parser, "text (default), concise or json")
    rules = parser.add_argument_group("rules (names, codes, families or ALL; comma-separated)")
    rules.add_argument(
        "--select", action="extend", type=_commas, metavar="RULE", help="use these in place of the default selection"
    )
    rules.add_argument("--ignore", action="extend", type=_commas, metavar="RULE", help="leave these out")
    rules.add_argument("--extend-select", action="extend", type=_commas, metavar="RULE", help="use these as well")
    rules.add_argument("--no-plugins", action="store_true", help="built-in rules only")
    report = parser.add_argument_group("report")
    report.add_argument("--statistics", action="store_true", help="count findings by rule in place of listing them")
    report.add_argument(
        "--show-info", action=argparse.BooleanOptionalAction, default=None, help="print findings of severity info too"
    )
    report.add_argument(
        "--fail-on", choices=("error", "warning", "info"), help="least severity for exit status 1 (default: warning)"
    )
    report.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found in the files")
    report.add_argument("--show-files", action="store_true", help="list the files that would be checked")
    report.add_argument("--show-settings", action="store_true", help="print the settings that hold for the first path")


def _inspect_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show the facts behind the findings: kernels, launches, resources, accesses, branches."
    _project_options(parser, "text (default) or json")


def _occupancy_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Blocks per SM from block size, registers and shared memory, as NVIDIA's calculator gives them."
    parser.add_argument("--arch", default="sm_80", help="GPU architecture (default: sm_80)")
    parser.add_argument("--block", type=_block, required=True, metavar="N", help="threads per block: 256 or 16x16")
    parser.add_argument("--registers", type=int, required=True, metavar="N", help="registers per thread")
    parser.add_argument("--static-smem", type=int, default=0, metavar="BYTES", help="static shared memory per block")
    parser.add_argument("--dynamic-smem", type=int, default=0, metavar="BYTES", help="dynamic shared memory per block")
    parser.add_argument("--carveout", type=int, metavar="PERCENT", help="preferred shared-memory carve-out")
    parser.add_argument("--curve", choices=("registers", "block", "smem"), help="occupancy over all values of one of them")
    _text_or_json(parser)


def _text_or_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output-format", choices=("text", "json"), default="text", help="text (default) or json")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours (default: auto)")


def _explain_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "What a rule is about, why it matters, how to mend it."
    parser.add_argument("names", nargs="*", metavar="NAME", help="name or code of a rule; none: the list of all rules")
    parser.add_argument("--all", action="store_true", help="every rule")
    parser.add_argument("--no-plugins", action="store_true", help="built-in rules only")
    _text_or_json(parser)


def _config_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "The options of cudalint.toml, .cudalint.toml and [tool.cudalint] in pyproject.toml."
    parser.add_argument("key", nargs="?", metavar="KEY", help="one option; none: all of them")
    _text_or_json(parser)


def _new_rule_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a rule that works: metadata, documentation to fill in, examples that are its tests, a small check."
    )
    parser.add_argument("name", metavar="NAME", help="kebab-case name that describes the defect")
    parser.add_argument("--family", default="memory", help="memory, divergence, synchronisation, launch, latency or host")
    parser.add_argument("--code", help="code of the rule (default: the next free one)")
    parser.add_argument("--directory", default="rules", metavar="DIR", help="folder to write into (default: rules)")


# --------------------------------------------------------------------- commands


def _check(args: argparse.Namespace) -> int:
    from cudalint import engine, registry

    resolver, paths, stdin = _project(args)
    run = _run_settings(resolver, paths)
    outputs = _outputs(run, ("text", "concise", "json"))
    if args.show_settings:
        return _show_settings(resolver.for_path(paths[0]) if paths else run)
    if args.show_files:
        files = engine.files_of(paths, resolver).settings
        return _print("".join(f"{path}\n" for path in files))
    rules = registry.load(plugins=not args.no_plugins)
    _notes(args, run, rules)
    progress = _progress(args)
    result = engine.check(paths, resolver, rules, stdin=stdin, progress=progress)
    _problems(result, args)
    for note in result.notes:
        _say(f"{note.path}:{note.line}:{note.column}: note: {note.text}")
    written = _write_all(outputs, args, lambda name, view: _render(name, result, view, args), run)
    return _status(result, rules, args, run) if written else FAILURE


def _render(name: str, result: Result, view: View, args: argparse.Namespace) -> str:
    from cudalint import report

    if not args.statistics:
        return report.renderer(name).render(result, view)
    from cudalint.report import statistics

    return statistics.render_json(result) if name == "json" else statistics.render(result, view)


def _status(result: Result, rules: Registry, args: argparse.Namespace, run: Settings) -> int:
    from cudalint.finding import Severity

    if result.internal_errors or rules.problems:
        return FAILURE
    if args.exit_zero:
        return CLEAN
    if any(problem.named for problem in result.problems):
        return FAILURE
    worst = result.worst()
    return FINDINGS if worst is not None and worst >= Severity[run.fail_on.upper()] else CLEAN


def _inspect(args: argparse.Namespace) -> int:
    from cudalint import engine
    from cudalint.report import inspect_json, inspect_text

    renderers = {"text": inspect_text, "json": inspect_json}
    resolver, paths, stdin = _project(args)
    run = _run_settings(resolver, paths)
    outputs = _outputs(run, tuple(renderers), "output-format" in run.origins and args.output_format is None)
    _notes(args, run, None)
    result = engine.inspect(paths, resolver, stdin=stdin, progress=_progress(args))
    _problems(result, args)
    written = _write_all(outputs, args, lambda name, view: renderers[name].render(result, view), run)
    failed = result.internal_errors or any(problem.named for problem in result.problems)
    return CLEAN if written and not failed else FAILURE


def _occupancy(args: argparse.Namespace) -> int:
    from math import prod

    from cudalint.model.architectures import get
    from cudalint.model.occupancy import Config, curve, evaluate
    from cudalint.report.occupancy import render, render_curve, render_json

    try:
        arch = get(args.arch)
        config = Config(prod(args.block), args.registers, args.static_smem, args.dynamic_smem, carveout=args.carveout)
        answer = evaluate(arch, config)
        line = curve(arch, args.curve, config) if args.curve else None
    except ValueError as error:
        return _fail(f"error: {error}")
    if args.output_format == "json":
        return _print(render_json(answer, line))
    view = _view(args, sys.stdout)
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    return _print(render_curve(line, view, unicode=unicode) if line else render(answer, view))


def _explain(args: argparse.Namespace) -> int:
    from cudalint import registry
    from cudalint.report import explain

    known = registry.load(plugins=not args.no_plugins)
    for problem in known.problems:
        _say(f"error: {problem}")
    for word in args.names:
        if known.get(word) is None:
            return _fail(f'error: unknown rule "{word}"{known.suggestion(word)}')
    rules = [rule for rule in (known.get(word) for word in args.names) if rule] if not args.all else list(known.rules)
    view = _view(args, sys.stdout)
    if args.output_format == "json":
        status = _print(explain.render_json(rules or known.rules))
    else:
        status = _print(explain.render(rules, view) if rules else explain.render_list(known.rules, view))
    return FAILURE if known.problems else status


def _config(args: argparse.Namespace) -> int:
    from cudalint.config import OPTIONS, suggest
    from cudalint.report import options

    if args.key and args.key not in OPTIONS:
        return _fail(f'error: unknown option "{args.key}"{suggest(args.key, OPTIONS)}')
    chosen = [OPTIONS[args.key]] if args.key else list(OPTIONS.values())
    return _print(
        options.render_json(chosen) if args.output_format == "json" else options.render(chosen, _view(args, sys.stdout))
    )


def _new_rule(args: argparse.Namespace) -> int:
    from cudalint import scaffold

    try:
        paths, steps = scaffold.write(args.name, args.family, args.code, args.directory)
    except OSError as error:
        return _fail(f"error: {error.filename}: {(error.strerror or str(error)).lower()}")
    except ValueError as error:
        return _fail(f"error: {error}")
    return _print("".join(f"wrote {path}\n" for path in paths) + f"\n{steps}")


# ---------------------------------------------------------------------- project


def _project(args: argparse.Namespace) -> tuple[Resolver, list[str], SourceFile | None]:
    """The settings' resolver, the paths, and standard input as a file if it is one of them."""
    from pathlib import Path

    from cudalint.config import OPTIONS, ConfigError, Resolver

    given = {key: getattr(args, option.attribute, None) for key, option in OPTIONS.items()}
    overrides = {key: value for key, value in given.items() if value is not None}
    if args.config and not Path(args.config).is_file():
        raise ConfigError(f"no such file: {args.config}", "--config")
    resolver = Resolver(overrides, Path(args.config) if args.config else None, args.isolated)
    named = args.paths or (["-"] if args.stdin_filename else ["."])
    if args.stdin_filename and "-" not in named:
        raise ConfigError("paths are given, and none of them is -", "--stdin-filename")
    stdin = _standard_input(args.stdin_filename or "stdin.cu") if "-" in named else None
    paths = [stdin.path if stdin and path == "-" else path for path in named]
    missing = [path for path in paths if not os.path.lexists(path) and not (stdin and path == stdin.path)]
    if missing:
        raise ConfigError("no such file or directory", missing[0])
    return resolver, paths, stdin


def _standard_input(name: str) -> SourceFile:
    from cudalint.config import ConfigError
    from cudalint.source.text import MAX_BYTES, SourceError, from_bytes

    try:
        return from_bytes(name, sys.stdin.buffer.read(MAX_BYTES + 1))
    except SourceError as error:
        raise ConfigError(error.reason, error.path) from error
    except OSError as error:
        raise ConfigError((error.strerror or str(error)).lower(), "standard input") from error


def _run_settings(resolver: Resolver, paths: Sequence[str]) -> Settings:
    """The settings of the run itself (format, threshold): those of the working directory, else those of the first path."""
    here = resolver.for_path(os.curdir)
    return here if here.config_path or not paths else resolver.for_path(paths[0])


def _outputs(run: Settings, known: Sequence[str], fall_back: bool = False) -> list[tuple[str, str]]:
    """(format, path or "" for standard output) pairs.  Raises `ConfigError` for an unknown format."""
    from cudalint.config import ConfigError, suggest

    outputs = []
    for item in run.output_format:
        name, _, path = item.partition("=")
        if name in known:
            outputs.append((name, path))
        elif not fall_back:
            raise ConfigError(f'unknown format "{name}"{suggest(name, known)}', run.where("output-format", item))
    return outputs or [("text", "")]


def _notes(args: argparse.Namespace, run: Settings, rules: Registry | None) -> None:
    for problem in rules.problems if rules else ():
        _say(f"error: {problem}")
    if args.verbose:
        _say(f"configuration: {run.config_path or 'none'}")


def _problems(result: Result | Inspection, args: argparse.Namespace) -> None:
    """What went wrong, and that nothing was checked, on standard error."""
    for problem in result.problems:
        _say(f"{problem.path}: {'error' if problem.named else 'warning'}: {problem.reason}")
    _internal_errors(result, args.verbose)
    if not result.files:
        _say("warning: no CUDA files found")


def _internal_errors(result: Result | Inspection, verbose: bool) -> None:
    """The first few on one line each, all with tracebacks if `verbose`."""
    shown = result.internal_errors if verbose else result.internal_errors[:5]
    for error in shown:
        where = f"rule {error.rule}, " if error.rule else ""
        _say(f"internal error: {where}{error.where}: {error.message}")
        if verbose:
            _say(error.traceback.rstrip("\n"))
    hidden = len(result.internal_errors) - len(shown)
    if shown and not verbose:
        more = f"{hidden} more; " if hidden else ""
        _say(f"note: {more}these are bugs of cudalint or of a plugin, --verbose shows where")


def _show_settings(settings: Settings) -> int:
    from cudalint.report import options

    return _print(options.render_settings(settings))


# ---------------------------------------------------------------------- streams


def _write_all(
    outputs: Sequence[tuple[str, str]], args: argparse.Namespace, render: Callable[[str, Any], str], run: Settings
) -> bool:
    """Write each report to its file or to standard output; False if a file cannot be written."""
    complete = True
    for name, path in outputs:
        if not path:
            complete = _print(render(name, _view(args, sys.stdout, run))) == CLEAN and complete
            continue
        try:
            with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:  # noqa: PTH123
                file.write(render(name, _view(args, None, run)))
        except OSError as error:
            _say(f"{path}: error: {(error.strerror or str(error)).lower()}")
            complete = False
    return complete


def _print(text: str) -> int:
    """Write to standard output; a reader that has gone away is no error, a full disk is."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again when it ends
        if not isinstance(error, BrokenPipeError):
            return _fail(f"error: standard output: {(error.strerror or str(error)).lower()}")
    return CLEAN


def _open_streams() -> None:
    """Streams that are closed lead nowhere; any text can be written to the others, in whatever encoding."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        elif name == "stdout" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _view(args: argparse.Namespace, stream: Any, run: Settings | None = None) -> View:
    from shutil import get_terminal_size

    from cudalint.report import View

    terminal = stream is not None and stream.isatty()
    width = get_terminal_size().columns if terminal else 160
    show_info = bool(run and run.show_info)
    quiet, verbose = getattr(args, "quiet", False), getattr(args, "verbose", False)
    return View(_colored(args.color, terminal), width, show_info, quiet, verbose)


def _colored(choice: str, terminal: bool) -> bool:
    if choice != "auto":
        return choice == "always"
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _progress(args: argparse.Namespace) -> Callable[[int, int], None] | None:
    """A progress bar on standard error once a run takes longer than half a second, only on a terminal."""
    if args.quiet or not sys.stderr.isatty():
        return None
    from time import monotonic

    started = monotonic()
    width = 30

    def show(done: int, total: int) -> None:
        if monotonic() - started < 0.5:
            return
        filled = width * done // max(total, 1)
        bar = f"\r[{'=' * filled}{' ' * (width - filled)}] {done}/{total} files" if done < total else "\r\x1b[K"
        sys.stderr.write(bar)
        sys.stderr.flush()

    return show


Describe = Callable[[argparse.ArgumentParser], None]
Execute = Callable[[argparse.Namespace], int]
_COMMANDS: dict[str, tuple[Describe, Execute]] = {
    "check": (_check_options, _check),
    "inspect": (_inspect_options, _inspect),
    "occupancy": (_occupancy_options, _occupancy),
    "explain": (_explain_options, _explain),
    "rule": (_explain_options, _explain),
    "config": (_config_options, _config),
    "new-rule": (_new_rule_options, _new_rule),
}
