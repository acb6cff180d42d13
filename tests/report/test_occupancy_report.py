from __future__ import annotations

import json

import pytest

from cudalint.model import architectures
from cudalint.model.occupancy import AXES, Axis, Config, curve, occupancy
from cudalint.report import View
from cudalint.report.occupancy import figures, render, render_curve, render_json

H = architectures.get("sm_90")
PLAIN = View()


def test_json_is_the_contract() -> None:
    assert json.loads(render_json(occupancy(H, 224, 96))) == {
        "blocks_per_sm": 2,
        "warps_per_sm": 14,
        "occupancy_percent": 21.9,
        "limiter": "registers",
        "limiters": ["registers"],
        "limits": {"registers": 2, "shared": 228, "warps": 9, "blocks": 32},
    }


def test_json_keeps_the_order_of_the_limits_and_has_null_for_no_limit() -> None:
    limits = json.loads(render_json(occupancy(architectures.get("sm_75"), 64, 32)))["limits"]
    assert list(limits.items()) == [("registers", 32), ("shared", None), ("warps", 16), ("blocks", 16)]


def test_json_says_why_a_block_cannot_run() -> None:
    document = json.loads(render_json(occupancy(H, 2048, 16)))
    assert (document["blocks_per_sm"], document["limiter"]) == (0, "warps")
    assert document["reason"] == "2,048 threads, a block can have 1,024"


def test_figures_are_the_first_four_numbers() -> None:
    assert figures(occupancy(H, 256, 32)) == {
        "blocks_per_sm": 8,
        "warps_per_sm": 64,
        "occupancy_percent": 100.0,
        "limiter": "registers",
    }


def test_json_of_a_curve() -> None:
    config = Config(256, 40)
    document = json.loads(render_json(occupancy(H, 256, 40), curve(H, "registers", config)))["curve"]
    assert (document["axis"], document["current"]) == ("registers", 40)
    assert document["steps"][1] == {"first": 33, "last": 40, **figures(occupancy(H, 256, 40))}
    assert document["cliffs"][0] == {"before": 32, "after": 33, "blocks_per_sm": [8, 6], "occupancy_percent": [100.0, 75.0]}


def test_table() -> None:
    assert render(occupancy(H, 224, 96), PLAIN) == (
        "sm_90 (Hopper), 224 threads per block, 96 registers per thread, 0 bytes of shared memory\n"
        "\n"
        "21.9 % occupancy: 2 blocks per SM, 14 of 64 warps\n"
        "limited by registers\n"
        "\n"
        "           blocks  a block takes                         an SM has\n"
        "registers       2  21,504 registers (7 warps of 3,072)   65,536 in 4 parts\n"
        "shared        228  1,024 bytes (1,024 of them reserved)  233,472\n"
        "warps           9  7 warps                               64\n"
        "blocks         32  1 slot                                32\n"
        "\n"
        "registers per thread: 3 blocks (32.8 %) up to 80, 1 block (10.9 %) from 129\n"
        "bytes of shared memory per block: 1 block (10.9 %) from 115,713\n"
    )


def test_table_of_a_block_that_cannot_run() -> None:
    text = render(occupancy(architectures.get("sm_75"), 1025, 16), PLAIN)
    assert "cannot run: 1,025 threads, a block can have 1,024\nlimited by warps\n" in text
    assert "shared          -  0 bytes" in text


def test_table_shows_barriers_where_they_limit() -> None:
    assert "barriers        4  5 barriers" in render(occupancy(architectures.get("sm_120"), 64, 16, barriers=5), PLAIN)


def test_colour_marks_the_verdict_and_changes_nothing_else() -> None:
    for found in (occupancy(H, 256, 32), occupancy(H, 2048, 32)):
        colored = render(found, View(color=True))
        assert colored != render(found, PLAIN)
        assert colored.replace("\x1b[1m", "").replace("\x1b[1;31m", "").replace("\x1b[0m", "") == render(found, PLAIN)


def test_register_curve_in_ascii() -> None:
    assert render_curve(curve(H, "registers", Config(256, 40)), PLAIN, unicode=False) == "\n".join(
        [
            "sm_90, 256 threads per block, 0 bytes of shared memory: occupancy by registers per thread",
            "",
            "  100 % |########",
            "        |########",
            "   75 % |##########",
            "        |############",
            "   50 % |################",
            "        |####################",
            "   25 % |################################",
            "        |################################################################",
            "    0 % +----------------------------------------------------------------",
            "                 ^ ! !   !   !           !",
            "         8             64              128             192             255",
            "",
            "^ 40: 6 blocks (75.0 %), limited by registers",
            "! 32 -> 33: 8 blocks (100.0 %) -> 6 blocks (75.0 %)",
            "! 40 -> 41: 6 blocks (75.0 %) -> 5 blocks (62.5 %)",
            "! 48 -> 49: 5 blocks (62.5 %) -> 4 blocks (50.0 %)",
            "! 64 -> 65: 4 blocks (50.0 %) -> 3 blocks (37.5 %)",
            "! 80 -> 81: 3 blocks (37.5 %) -> 2 blocks (25.0 %)",
            "! 128 -> 129: 2 blocks (25.0 %) -> 1 block (12.5 %)",
            "",
        ]
    )


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("arch", architectures.all(), ids=lambda arch: arch.name)
def test_charts_fit_80_columns_and_mark_the_current_point(axis: Axis, arch: architectures.Architecture) -> None:
    found = curve(arch, axis, Config(256, 40, 8192))
    lines = render_curve(found, PLAIN).splitlines()
    chart = lines[2:-1][: lines[2:].index("")]
    assert max(len(line) for line in chart) <= 80
    assert sum("▲" in line for line in chart) == 1
    assert sum(line.startswith("! ") for line in lines) == len(found.cliffs)


def test_charts_without_unicode_are_ascii() -> None:
    assert render_curve(curve(H, "smem", Config(256, 40, 8192)), PLAIN, unicode=False).isascii()


def test_heights_are_drawn_in_eighths() -> None:
    top = render_curve(curve(H, "block", Config(512, 40)), PLAIN).splitlines()[4]
    assert top.startswith("   75 % │  ██████▅▅██▂▂██")  # 75, 70.3, 75 and 65.6 % from 128 threads on


def test_a_point_beyond_the_axis_is_said_to_be_impossible() -> None:
    text = render_curve(curve(H, "block", Config(2000, 40)), PLAIN)
    assert "▲ 2,000: cannot run, the most is 1,024\n" in text
    assert "▲ 300,000: cannot run, the most is 232,448\n" in render_curve(curve(H, "smem", Config(256, 40, 0, 300_000)), PLAIN)
