"""The bank and sector rules against 103 address patterns counted on an H200, and their laws."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.analysis.hardware import global_sectors, shared_wavefronts

MEASURED = list(csv.DictReader((Path(__file__).parents[1] / "data" / "h200-access-patterns.csv").read_text().splitlines()))


@pytest.mark.parametrize(
    "row", MEASURED, ids=lambda r: f"{r['space']}-{r['op']}-{r['bytes_per_lane']}-{r['byte_address_of_lane']}"
)
def test_patterns_counted_on_an_h200(row: dict[str, str]) -> None:
    size, mask = int(row["bytes_per_lane"]), int(row["active_lanes"], 16)
    address = np.array([[eval(row["byte_address_of_lane"], {"lane": lane}) for lane in range(32)]], np.int64)
    active = np.array([[bool(mask >> lane & 1) for lane in range(32)]])
    if row["space"] == "shared":
        _, wavefronts, ideal = shared_wavefronts(address, active, size, store=row["op"] == "store")
        assert (wavefronts[0], ideal[0]) == (int(row["wavefronts"]), int(row["ideal_wavefronts"]))
    else:
        sectors, least = global_sectors(address, active, size)
        assert (sectors[0], least[0]) == (int(row["sectors"]), int(row["ideal_sectors"]))


addresses = st.lists(st.integers(0, 4095), min_size=32, max_size=32)
masks = st.lists(st.booleans(), min_size=32, max_size=32)
sizes = st.sampled_from((4, 8, 16))


@given(addresses, masks, sizes, st.booleans(), st.integers(0, 1000))
def test_moving_all_lanes_by_whole_words_changes_no_wavefront(
    a: list[int], m: list[bool], size: int, store: bool, shift: int
) -> None:
    address, active = np.array([a], np.int64) * size, np.array([m])
    here = shared_wavefronts(address, active, size, store=store)
    there = shared_wavefronts(address + shift * size, active, size, store=store)
    assert [x.tolist() for x in here] == [x.tolist() for x in there]


@given(addresses, masks, sizes, st.booleans())
def test_wavefronts_of_one_warp_by_counting_words_one_by_one(a: list[int], m: list[bool], size: int, store: bool) -> None:
    lanes = [x * size if on else None for x, on in zip(a, m, strict=True)]
    per = {4: 32, 8: 16, 16: 8}[size]
    if size > 4 and not store:
        for d in (1, 2):
            if all(lanes[i] is None or lanes[i ^ d] is None or lanes[i] == lanes[i ^ d] for i in range(32)):
                per *= 2
                break
    expected = 0
    for start in range(0, 32, per):
        banks: dict[int, set[int]] = {}
        for x in lanes[start : start + per]:
            for word in range(x // 4, (x + size) // 4) if x is not None else ():
                banks.setdefault(word % 32, set()).add(word)
        expected += max(map(len, banks.values()), default=0)
    result = shared_wavefronts(np.array([a], np.int64) * size, np.array([m]), size, store=store)
    assert result.wavefronts[0] == expected
    assert result.ideal[0] <= expected
