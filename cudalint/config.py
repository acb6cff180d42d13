"""Configuration: where it comes from, what may stand in it, what holds for a file.

`Settings` is the table of options: each field carries its type, default and
help, so that the parser, `cudalint config` and the documentation cannot
disagree.  Layers are applied in the order base of `extend`, file, command line.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudalint import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "OPTIONS",
    "ConfigError",
    "Option",
    "Origin",
    "Resolver",
    "Selection",
    "Settings",
    "arch_number",
    "nearest_config",
    "suggest",
]

FILE_NAMES = (".cudalint.toml", "cudalint.toml", "pyproject.toml")
"""In order of preference within one folder."""
DEFAULT_ARCH = "sm_80"
MAX_BLOCK = 1024


class ConfigError(Exception):
    """A setting that cannot be used; its text is one line that says where and why."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where


def suggest(word: str, known: Iterable[str]) -> str:
    """` (did you mean "…"?)` for the known word nearest to `word`, "" if none is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f' (did you mean "{near[0]}"?)' if near else ""


# ------------------------------------------------------------------ value types


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of option.  `parse` turns a TOML or command line value into the setting; `ValueError` says what is wrong."""

    name: str
    parse: Callable[[Any], Any]


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("expected a list of strings")
    return tuple(value)


def _string_or_strings(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else _strings(value)


def _choice(*names: str) -> Kind:
    listing = ", ".join(f'"{name}"' for name in names)

    def parse(value: object) -> str:
        if value not in names:
            raise ValueError(f"expected one of {listing}{suggest(str(value), names)}")
        return str(value)

    return Kind(" | ".join(f'"{name}"' for name in names), parse)


def _architectures(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ValueError("expected at least one architecture")
    return tuple(dict.fromkeys(_architecture(item) for item in items))


def _architecture(value: object) -> str:
    match = re.fullmatch(r"(?:sm_|compute_)?(\d+)(?:\.(\d))?[af]?", str(value).strip().lower())
    number = int((match[1] + (match[2] or "")) if match else 0)
    if isinstance(value, bool) or not 50 <= number <= 129:
        raise ValueError(f'"{value}" is no architecture from sm_50 to sm_121')
    return f"sm_{number}"


def arch_number(name: str) -> int:
    """Compute capability times ten of a normalised name: 90 for "sm_90"."""
    return int(name.removeprefix("sm_"))


def _defines(value: object) -> tuple[str, ...]:
    items = _strings(value)
    for item in items:
        if not re.match(r"[A-Za-z_]\w*(=|\Z)", item):
            raise ValueError(f'"{item}" is not NAME or NAME=VALUE')
    return items


def _block(value: object) -> tuple[int, int, int]:
    sizes = value if isinstance(value, list) else [value]
    if not 1 <= len(sizes) <= 3 or not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError("expected one to three positive integers, such as [16, 16, 1]")
    x, y, z = (*sizes, 1, 1)[:3]
    if x * y * z > MAX_BLOCK:
        raise ValueError(f"{x * y * z} threads are more than the {MAX_BLOCK} a block can have")
    return x, y, z


def _requirement(value: object) -> str:
    text = _text(value)
    for part in text.split(","):
        if not re.fullmatch(r"\s*(==|!=|>=|<=|>|<|~=)?\s*\d+(\.\d+)*\s*", part):
            raise ValueError(f'"{part.strip()}" is not a version such as ">=0.1" or "0.1.0"')
    return text


def _patterns(value: object) -> tuple[str, ...]:
    from pathspec import GitIgnoreSpec

    items = _strings(value)
    for item in items:
        try:
            GitIgnoreSpec.from_lines([item])
        except (ValueError, re.error) as error:
            raise ValueError(f'"{item}" is no pattern of .gitignore') from error
    return items


BOOLEAN = Kind("bool", _boolean)
STRINGS = Kind("list of strings", _strings)
PATTERNS = Kind("list of patterns", _patterns)
FORMATS = Kind("string or list of strings", _string_or_strings)
ARCHITECTURES = Kind("list of architectures", _architectures)
DEFINES = Kind("list of NAME or NAME=VALUE", _defines)
BLOCK = Kind("list of one to three integers", _block)
REQUIREMENT = Kind("version requirement", _requirement)
SEVERITY = _choice("error", "warning", "info")


# ------------------------------------------------------------------ the options


def _option(default: object, kind: Kind, help_text: str, example: str, *, accumulate: bool = False) -> Any:
    return field(default=default, metadata={"kind": kind, "help": help_text, "example": example, "accumulate": accumulate})


@dataclass(frozen=True, slots=True)
class Selection:
    """One layer of rule selectors.  `select` None keeps what the layers below selected."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """What holds for a file.  Compared by identity: files of one configuration share one object."""

    select: tuple[str, ...] | None = _option(
        None, STRINGS, "Rules to use in place of the default selection: names, codes, families or ALL.", '["memory", "CU201"]'
    )
    ignore: tuple[str, ...] = _option((), STRINGS, "Rules to leave out. The more specific selector wins.", '["slow-math"]')
    extend_select: tuple[str, ...] = _option(
        (), STRINGS, "Rules to use on top of the selection.", '["narrow-global-access"]', accumulate=True
    )
    exclude: tuple[str, ...] | None = _option(
        None,
        PATTERNS,
        "Folders and files to leave out (patterns of .gitignore), in place of the built-in list of build and vendor folders.",
        '["generated", "*_autogen.cu"]',
    )
    extend_exclude: tuple[str, ...] = _option(
        (), PATTERNS, "Folders and files to leave out on top of `exclude`.", '["legacy/"]', accumulate=True
    )
    respect_gitignore: bool = _option(True, BOOLEAN, "Leave out what .gitignore files leave out.", "false")
    force_exclude: bool = _option(
        False, BOOLEAN, "Exclude files even if they are named on the command line, as pre-commit does.", "true"
    )
    target_arch: tuple[str, ...] = _option(
        (DEFAULT_ARCH,),
        ARCHITECTURES,
        "GPU architectures to judge for; a finding is reported once, for the worst of them.",
        '["sm_80", "sm_90"]',
    )
    defines: tuple[str, ...] = _option(
        (), DEFINES, "Macros defined for every file, as with -D.", '["TILE=32", "NDEBUG"]', accumulate=True
    )
    include_dirs: tuple[str, ...] = _option(
        (), STRINGS, "Folders searched for included files, relative to this file, as with -I.", '["include"]', accumulate=True
    )
    assume_block: tuple[int, int, int] | None = _option(
        None, BLOCK, "Block shape of kernels for which no launch, bound or constant says one.", "[256, 1, 1]"
    )
    fail_on: str = _option("warning", SEVERITY, "Least severity that makes the exit status 1.", '"error"')
    output_format: tuple[str, ...] = _option(
        ("text",), FORMATS, "Formats of the report, each FORMAT or FORMAT=PATH.", '["text", "json=cudalint.json"]'
    )
    show_info: bool = _option(False, BOOLEAN, "Print findings of severity info too.", "true")
    required_version: str | None = _option(None, REQUIREMENT, "Versions of cudalint that may use this configuration.", '">=0.1"')

    selection: tuple[Selection, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict)
    config_path: Path | None = None

    def where(self, key: str, value: str = "") -> str:
        """Where an option (or one string in its list) was set: "path:line", "--option" or ""."""
        origin = self.origins.get(key)
        return origin.locate(key, value) if origin else ""


@dataclass(frozen=True, slots=True)
class Option:
    """One key of the configuration."""

    key: str
    kind: Kind
    default: Any
    help: str
    example: str
    accumulate: bool

    @property
    def attribute(self) -> str:
        """The field of `Settings` that holds it."""
        return self.key.replace("-", "_")


OPTIONS: Mapping[str, Option] = {
    item.name.replace("_", "-"): Option(item.name.replace("_", "-"), default=item.default, **item.metadata)
    for item in dataclasses.fields(Settings)
    if item.metadata
}


# ----------------------------------------------------------------------- layers


_SHORT = {"defines": "-D", "include-dirs": "-I"}
"""Options whose name on the command line is not that of the key."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where values come from: a file, or the command line (`path` None)."""

    path: Path | None = None
    table: str = ""

    def locate(self, key: str, value: str = "") -> str:
        """ "path:line" of a key, or of a string in its list; "--key" on the command line."""
        if self.path is None:
            return _SHORT.get(key, f"--{key}")
        return f"{self.path}:{self._line(key, value)}"

    def _line(self, key: str, value: str) -> int:
        try:
            lines = self.path.read_text("utf-8", "replace").splitlines() if self.path else []
        except OSError:
            return 1
        return _line_of_key(lines, self.table, key, value)


def _line_of_key(lines: Sequence[str], table: str, key: str, value: str) -> int:
    """The line that sets `key` in `[table]` (of `value` within it, if that can be seen), 1 if none does."""
    header = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]")
    setting = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
    current, found = "", 0
    for number, line in enumerate(lines, 1):
        match = header.match(line)
        if match and not found:
            current = match[1].replace('"', "").replace(" ", "")
        if not found and current == table and setting.match(line):
            found = number
        if found and (not value or f'"{value}"' in line or f"'{value}'" in line):
            return number
    return found or 1


@dataclass(frozen=True, slots=True)
class _Layer:
    values: Mapping[str, Any]
    origin: Origin


def _parse_layer(data: Mapping[str, Any], origin: Origin) -> _Layer:
    values = {}
    for key, value in data.items():
        option = OPTIONS.get(key)
        if option is None:
            known = [*OPTIONS, "extend"]
            raise ConfigError(f'unknown option "{key}"{suggest(key.replace("_", "-"), known)}', origin.locate(key))
        try:
            values[key] = option.kind.parse(value)
        except ValueError as error:
            raise ConfigError(str(error) if origin.path is None else f"{key}: {error}", origin.locate(key)) from error
    base = origin.path.parent if origin.path else Path.cwd()
    if "include-dirs" in values:
        values["include-dirs"] = tuple(os.path.abspath(base / folder) for folder in values["include-dirs"])
    return _Layer(values, origin)


def _read_toml(path: Path) -> dict[str, Any]:
    shown = _shown(path)
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError((error.strerror or str(error)).lower(), str(shown)) from error
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", f"{shown}:1") from error
    except tomllib.TOMLDecodeError as error:
        match = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        line = match[1] if match else "1"
        reason = str(error)[: match.start()] if match else str(error)
        raise ConfigError(f"invalid TOML: {reason[:1].lower()}{reason[1:]}", f"{shown}:{line}") from error
    except ValueError as error:
        raise ConfigError("invalid TOML: a number that is too long", f"{shown}:1") from error
    except RecursionError as error:
        raise ConfigError("invalid TOML: nested too deeply", f"{shown}:1") from error


def _table(path: Path, data: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The settings in a file and the name of their table; None where a pyproject.toml has none."""
    if path.name != "pyproject.toml":
        return data, ""
    tool = data.get("tool")
    table = tool.get("cudalint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError("tool.cudalint: expected a table", f"{_shown(path)}:1")
    return table, "tool.cudalint"


def _load_layers(path: Path, above: tuple[Path, ...] = ()) -> list[_Layer]:
    """The layers of a file, the base of its `extend` first."""
    path = Path(os.path.abspath(path))
    table, name = _table(path, _read_toml(path))
    if table is None:
        if above:
            raise ConfigError("has no [tool.cudalint] table to extend", str(_shown(path)))
        table = {}
    origin = Origin(_shown(path), name)
    base = table.pop("extend", None)
    layer = _parse_layer(table, origin)
    if base is None:
        return [layer]
    if not isinstance(base, str):
        raise ConfigError("extend: expected a string", origin.locate("extend"))
    target = Path(os.path.abspath(path.parent / os.path.expanduser(base)))  # noqa: PTH111 (a user without a home is no error)
    if target in (*above, path):
        raise ConfigError(f"extend: {base} extends this file in turn", origin.locate("extend"))
    if not target.is_file():
        raise ConfigError(f"extend: no such file: {base}", origin.locate("extend", base))
    return [*_load_layers(target, (*above, path)), layer]


def _shown(path: Path) -> Path:
    """The path as messages name it: relative to the working directory where it lies below."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _merge(layers: Sequence[_Layer], config_path: Path | None) -> Settings:
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for layer in layers:
        for key, value in layer.values.items():
            option = OPTIONS[key]
            values[option.attribute] = (*values.get(option.attribute, ()), *value) if option.accumulate else value
            origins[key] = layer.origin
    selection = tuple(
        Selection(layer.values.get("select"), layer.values.get("ignore", ()), layer.values.get("extend-select", ()), layer.origin)
        for layer in layers
        if layer.values.keys() & {"select", "ignore", "extend-select"}
    )
    settings = Settings(**values, selection=selection, origins=origins, config_path=config_path)
    _require_version(settings)
    return settings


def _require_version(settings: Settings) -> None:
    needed = settings.required_version
    if needed and not _satisfies(__version__, needed):
        raise ConfigError(f"cudalint {needed} is required, this is {__version__}", settings.where("required-version"))


def _satisfies(version: str, requirement: str) -> bool:
    have = _release(version)
    for part in requirement.split(","):
        match = re.fullmatch(r"\s*(==|!=|>=|<=|>|<|~=)?\s*([\d.]+)\s*", part)
        if match is None or not _COMPARE[match[1] or "=="](have, _release(match[2]), match[2].count(".")):
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", version)[:4]]
    return tuple(numbers + [0] * (4 - len(numbers)))


_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...], int], bool]] = {
    "==": lambda have, want, _: have == want,
    "!=": lambda have, want, _: have != want,
    ">=": lambda have, want, _: have >= want,
    "<=": lambda have, want, _: have <= want,
    ">": lambda have, want, _: have > want,
    "<": lambda have, want, _: have < want,
    "~=": lambda have, want, dots: have >= want and have[:dots] == want[:dots],
}


# ------------------------------------------------------------------- resolution


def nearest_config(folder: Path) -> Path | None:
    """The configuration that holds in a folder: the nearest one upwards.  Raises `ConfigError` for a broken pyproject.toml."""
    for parent in (folder, *folder.parents):
        for name in FILE_NAMES:
            path = parent / name
            if path.is_file() and (name != "pyproject.toml" or _has_table(path)):
                return path
    return None


def _has_table(path: Path) -> bool:
    """Whether a pyproject.toml configures cudalint; one that does not mention it is not even parsed."""
    try:
        if b"cudalint" not in path.read_bytes():
            return False
    except OSError:
        return False
    return _table(path, _read_toml(path))[0] is not None


class Resolver:
    """Finds the settings of files.

    overrides  options of the command line, by key, as TOML would hold them
    config     a file to use for everything in place of the nearest ones
    isolated   use no file at all
    """

    def __init__(self, overrides: Mapping[str, Any] | None = None, config: Path | None = None, isolated: bool = False) -> None:
        self._override = _parse_layer(overrides or {}, Origin())
        self._config = Path(os.path.abspath(config)) if config else None
        self._isolated = isolated
        self._by_config: dict[Path | None, Settings] = {}
        self._by_folder: dict[Path, Settings] = {}
        self._by_name: dict[str, Settings] = {}

    def for_path(self, path: str | os.PathLike[str]) -> Settings:
        """The settings of a file or folder.  Raises `ConfigError`."""
        name = os.path.abspath(path)
        if name not in self._by_name:
            absolute = Path(name)
            self._by_name[name] = self.for_folder(absolute if absolute.is_dir() else absolute.parent)
        return self._by_name[name]

    def for_folder(self, folder: Path) -> Settings:
        """The settings in a folder (absolute path).  Raises `ConfigError`."""
        if folder not in self._by_folder:
            self._by_folder[folder] = self._load(self._config_of(folder))
        return self._by_folder[folder]

    def _config_of(self, folder: Path) -> Path | None:
        if self._isolated:
            return None
        return self._config or nearest_config(folder)

    def _load(self, path: Path | None) -> Settings:
        if path not in self._by_config:
            layers = _load_layers(path) if path else []
            self._by_config[path] = _merge([*layers, self._override], path)
        return self._by_config[path]
