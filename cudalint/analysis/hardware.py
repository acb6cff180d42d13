"""What one warp instruction costs: shared-memory wavefronts and 32-byte sectors.

Rules of compute capability 5.0 and up, as counted on an H200 (103 of 103 probed
address patterns): 32 banks of 4 bytes; lanes that ask for one 32-bit word do not
conflict; 8-byte accesses are served in half-warps, 16-byte ones in
quarter-warps; loads, never stores, merge phases in pairs where every active
lane's neighbour (`lane ^ 1`, or for all lanes `lane ^ 2`) is inactive or asks
for the same address.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WARP = 32
BANKS = 32
WORD = 4
SECTOR = 32
_NOWHERE = np.int64(1) << 62

Lanes = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Wavefronts(NamedTuple):
    """Per warp: worst words in a bank in a phase, wavefronts, and the fewest that the bytes asked for need."""

    degree: Lanes
    wavefronts: Lanes
    ideal: Lanes


class Sectors(NamedTuple):
    """Per warp: 32-byte sectors touched, and the fewest that the bytes asked for need."""

    sectors: Lanes
    ideal: Lanes


def shared_wavefronts(address: Lanes, active: Mask, size: int, *, store: bool) -> Wavefronts:
    """Cost of warp instructions on shared memory.

    address, active  byte addresses and masks of shape (warps, 32)
    size             bytes per lane: 1, 2, 4, 8 or 16
    """
    warps = len(address)
    degree = np.zeros(warps, np.int64)
    wavefronts = np.zeros(warps, np.int64)
    lanes_per_phase = np.full(warps, {8: 16, 16: 8}.get(size, WARP))
    if size > WORD and not store:
        for distance in (2, 1):
            lanes_per_phase[_pairs_agree(address, active, distance)] = {8: 32, 16: 16}[size]
    for lanes in np.unique(lanes_per_phase):
        rows = lanes_per_phase == lanes
        worst = _worst_bank(address[rows], active[rows], size, int(lanes))
        degree[rows] = worst.max(axis=1)
        wavefronts[rows] = worst.sum(axis=1)
    asked = active.sum(axis=1) * size
    return Wavefronts(degree, wavefronts, np.minimum(wavefronts, -(-asked // (BANKS * WORD))))


def _pairs_agree(address: Lanes, active: Mask, distance: int) -> Mask:
    other = np.arange(WARP) ^ distance
    same = (address == address[:, other]) | ~active | ~active[:, other]
    result: Mask = same.all(axis=1)
    return result


def _worst_bank(address: Lanes, active: Mask, size: int, lanes: int) -> Lanes:
    """Most distinct words in one bank, of shape (warps, phases)."""
    words = np.where(active, address // WORD, _NOWHERE)
    if size > WORD:
        spread = words[:, :, None] + np.arange(size // WORD)
        words = np.where(active[:, :, None], spread, _NOWHERE)
    phases = words.reshape(len(address) * (WARP // lanes), -1)
    phases = np.sort(phases, axis=1)
    distinct = phases != _NOWHERE
    distinct[:, 1:] &= phases[:, 1:] != phases[:, :-1]
    slot = np.arange(len(phases))[:, None] * BANKS + phases % BANKS
    counts = np.bincount(slot[distinct], minlength=len(phases) * BANKS)
    worst: Lanes = counts.reshape(len(phases), BANKS).max(axis=1).reshape(len(address), -1)
    return worst


def global_sectors(address: Lanes, active: Mask, size: int) -> Sectors:
    """Sectors of warp instructions on global memory; shapes as in `shared_wavefronts`."""
    ends = np.concatenate((address // SECTOR, (address + size - 1) // SECTOR), axis=1)
    both = np.concatenate((active, active), axis=1)
    touched = np.sort(np.where(both, ends, _NOWHERE), axis=1)
    distinct = touched != _NOWHERE
    distinct[:, 1:] &= touched[:, 1:] != touched[:, :-1]
    sectors = distinct.sum(axis=1)
    asked = active.sum(axis=1) * size
    return Sectors(sectors, np.minimum(sectors, -(-asked // SECTOR)))
