"""`config` and `check --show-settings`: the options, and what holds."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

from cudalint.config import OPTIONS, Option, Settings
from cudalint.report import View
from cudalint.report.json_ import dumps
from cudalint.report.style import Style


def render(options: Sequence[Option], view: View) -> str:
    """One paragraph an option: what it does, its type, default and an example."""
    style = Style(view.color)
    return "\n".join(_paragraph(option, style) for option in options)


def _paragraph(option: Option, style: Style) -> str:
    lines = [
        style("bold", option.key),
        *textwrap.wrap(option.help, 96, initial_indent="  ", subsequent_indent="  "),
        f"  type     {option.kind.name}",
        f"  default  {toml(option.default)}",
        f"  example  {option.key} = {option.example}",
    ]
    return "\n".join(lines) + "\n"


def render_json(options: Sequence[Option]) -> str:
    """The same as a JSON list."""
    return dumps(
        [
            {
                "key": option.key,
                "type": option.kind.name,
                "default": option.default,
                "help": option.help,
                "example": option.example,
            }
            for option in options
        ]
    )


def render_settings(settings: Settings) -> str:
    """Every option as a line of TOML, with where it was set."""
    lines = [f"# {settings.config_path}" if settings.config_path else "# no configuration file"]
    for key, option in OPTIONS.items():
        where = settings.where(key)
        value = toml(getattr(settings, option.attribute))
        lines.append(f"{key} = {value}" + (f"  # {where}" if where else ""))
    return "".join(f"{line}\n" for line in lines)


def toml(value: Any) -> str:
    """A value as TOML writes it; `(built-in)` for None, which stands for the built-in behaviour."""
    return "(built-in)" if value is None else json.dumps(value, ensure_ascii=False)
