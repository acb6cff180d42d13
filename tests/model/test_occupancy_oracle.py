"""The occupancy model against NVIDIA's own calculator, the header `cuda_occupancy.h` of an installed toolkit.

The header is looked for under CUDA_HOME and CUDA_PATH, /usr/local/cuda*, and the `nvidia` packages of PyPI.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import site
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from cudalint.model import architectures
from cudalint.model.architectures import Architecture
from cudalint.model.occupancy import TIE_ORDER, Config, evaluate

_PROGRAM = r"""
#include <cstdio>
#include <cuda_occupancy.h>

int main() {
    int major, minor, warps, regsBlock, block, regs, barriers, carveout, optin;
    size_t smemSm, smemOptin, reserved, fixed, dynamic;
    while (std::scanf("%d %d %d %d %zu %zu %zu %d %d %zu %zu %d %d %d", &major, &minor, &warps, &regsBlock, &smemSm, &smemOptin,
                      &reserved, &block, &regs, &fixed, &dynamic, &barriers, &carveout, &optin) == 14) {
        cudaOccDeviceProp device;
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = warps * 32;
        device.regsPerBlock = regsBlock;
        device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = smemSm;
        device.sharedMemPerBlockOptin = smemOptin;
        device.reservedSharedMemPerBlock = reserved;
        device.numSms = 1;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = regs;
        kernel.sharedSizeBytes = fixed;
        kernel.maxDynamicSharedSizeBytes = dynamic;
        kernel.shmemLimitConfig = optin ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
        kernel.numBlockBarriers = barriers;
        cudaOccDeviceState state;
        state.carveoutConfig = carveout;
        cudaOccResult result;
        cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, block, dynamic);
        if (status != CUDA_OCC_SUCCESS)
            std::printf("error %d\n", (int)status);
        else
            std::printf("%d %d %d %d %d %d\n", result.activeBlocksPerMultiprocessor, result.blockLimitRegs,
                        result.blockLimitSharedMem, result.blockLimitBarriers, result.blockLimitBlocks, result.blockLimitWarps);
    }
}
"""
_NO_LIMIT = 2**31 - 1
_PER_ARCHITECTURE = 5500


def _include_folders() -> Iterable[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "include"
    yield from sorted(Path("/usr/local").glob("cuda*/include"), reverse=True)
    for packages in (*site.getsitepackages(), site.getusersitepackages()):
        yield from sorted(Path(packages).glob("nvidia/*/include"))


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    include = next((folder for folder in _include_folders() if (folder / "cuda_occupancy.h").is_file()), None)
    if compiler is None or include is None:
        pytest.skip(f"the oracle needs {'cuda_occupancy.h' if compiler else 'g++'}, which is not installed")
    folder = tmp_path_factory.mktemp("oracle")
    source = folder / "oracle.cpp"
    source.write_text(_PROGRAM, encoding="utf-8")
    subprocess.run([compiler, "-O1", "-w", f"-I{include}", str(source), "-o", str(folder / "oracle")], check=True)
    return folder / "oracle"


def _configs(arch: Architecture, count: int) -> list[Config]:
    """Edges crossed with each other, filled up with random configurations."""
    dice = random.Random(arch.number)
    optin = arch.shared_optin
    blocks = (1, 32, 33, 96, 224, 256, 288, 320, 512, 768, 1000, 1024, 1025)
    registers = (1, 16, 31, 32, 33, 40, 63, 64, 65, 96, 100, 128, 168, 169, 255)
    smems = ((0, 0), (1, 0), (0, 8192), (48 * 1024, 0), (0, optin), (0, optin + 1), (1024, optin - 1024))
    found = [
        Config(block, regs, static, dynamic) for block, regs, (static, dynamic) in itertools.product(blocks, registers, smems)
    ]
    while len(found) < count:
        found.append(
            Config(
                threads_per_block=dice.choice((dice.randint(1, 1024), 32 * dice.randint(1, 32), dice.randint(1, 1100))),
                registers_per_thread=dice.randint(1, 255),
                static_smem=dice.choice((0, 0, dice.randint(0, 48 * 1024))),
                dynamic_smem=dice.choice((0, dice.randint(0, 8192), dice.randint(0, optin + 2048))),
                barriers=dice.choice((0, 1, dice.randint(0, 16))),
                carveout=dice.choice((None, None, dice.randint(0, 100))),
                optin=dice.random() < 0.8,
            )
        )
    return found


def _line(arch: Architecture, config: Config) -> str:
    major, minor = arch.compute_capability
    carveout = -1 if config.carveout is None else config.carveout
    numbers = (
        major, minor, arch.warps_per_sm, arch.registers_per_block, arch.shared_per_sm, arch.shared_optin, arch.shared_reserved,
        config.threads_per_block, config.registers_per_thread, config.static_smem, config.dynamic_smem, config.barriers, carveout,
        int(config.optin),
    )  # fmt: skip
    return " ".join(map(str, numbers))


def test_equals_the_header_for_every_architecture(oracle: Path) -> None:
    asked = [(arch, config) for arch in architectures.all() for config in _configs(arch, _PER_ARCHITECTURE)]
    assert len(asked) > 100_000
    text = "\n".join(_line(arch, config) for arch, config in asked)
    answers = subprocess.run([str(oracle)], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(asked)
    wrong = [
        (arch.name, config, answer)
        for (arch, config), answer in zip(asked, answers, strict=True)
        if _ours(arch, config) != _theirs(answer)
    ]
    assert wrong == []


def _ours(arch: Architecture, config: Config) -> tuple[object, ...]:
    found = evaluate(arch, config)
    limits = found.limits
    return found.blocks_per_sm, limits["registers"], limits["shared"], limits["blocks"], limits["warps"], found.limiters


def _theirs(answer: str) -> tuple[object, ...]:
    blocks, registers, shared, barriers, slots, warps = map(int, answer.split())
    by_name = dict(zip(TIE_ORDER, (registers, shared, barriers, slots, warps), strict=True))
    limiters = tuple(name for name in TIE_ORDER if by_name[name] == blocks)
    return blocks, registers, None if shared == _NO_LIMIT else shared, slots, warps, limiters
