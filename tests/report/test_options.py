"""The options as `config` and `--show-settings` print them."""

from __future__ import annotations

import json

from cudalint.config import OPTIONS, Resolver
from cudalint.report import View, options


def test_one_option() -> None:
    assert (
        options.render([OPTIONS["assume-block"]], View())
        == """\
assume-block
  Block shape of kernels for which no launch, bound or constant says one.
  type     list of one to three integers
  default  (built-in)
  example  assume-block = [256, 1, 1]
"""
    )


def test_json_lists_every_option() -> None:
    listed = json.loads(options.render_json(list(OPTIONS.values())))
    assert [item["key"] for item in listed] == list(OPTIONS)
    assert listed[list(OPTIONS).index("target-arch")]["default"] == ["sm_80"]


def test_settings_with_their_origin() -> None:
    lines = options.render_settings(Resolver({"fail-on": "error"}, isolated=True).for_path(".")).splitlines()
    assert lines[0] == "# no configuration file"
    assert 'fail-on = "error"  # --fail-on' in lines
    assert 'target-arch = ["sm_80"]' in lines
    assert len(lines) == 1 + len(OPTIONS)
