"""How long `cudalint check` takes against tree-sitter's parse alone of the same files, in one process.

usage: check_speed.py FOLDER… [--runs N] [--limit RATIO]

Both are timed in turn in this process after everything is imported, on CPU time; the medians and
their ratio are printed per folder.  With --limit the exit status is 1 if a ratio is above it.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import tree_sitter
import tree_sitter_cuda

from cudalint import engine, registry
from cudalint.config import Resolver
from cudalint.source.discover import DiscoverySettings, discover


def cpu_seconds(action: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    gc.collect()
    started = time.process_time()
    action()
    return time.process_time() - started


def main() -> int:
    """Measure each folder and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folders", nargs="+")
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--limit", type=float)
    options = arguments.parse_args()
    language = tree_sitter.Language(tree_sitter_cuda.language())
    rules = registry.load()
    worst = 0.0
    print(f"{'folder':32}{'files':>7}{'MB':>7}{'parse s':>9}{'check s':>9}{'ratio':>7}")
    for folder in options.folders:
        files = discover([folder], DiscoverySettings()).files
        texts = [Path(f).read_bytes() for f in files]

        def parse(texts: list[bytes] = texts) -> None:
            parser = tree_sitter.Parser(language)
            for text in texts:
                parser.parse(text)

        def check(folder: str = folder) -> None:
            engine.check([folder], Resolver({}, isolated=True), rules)

        check()
        pairs = [(cpu_seconds(parse), cpu_seconds(check)) for _ in range(options.runs)]
        ratio = median(c / p for p, c in pairs)
        worst = max(worst, ratio)
        size = sum(map(len, texts)) / 1e6
        bare, whole = median(p for p, _ in pairs), median(c for _, c in pairs)
        print(f"{folder:32}{len(files):7}{size:7.1f}{bare:9.2f}{whole:9.2f}{ratio:7.1f}")
    return int(options.limit is not None and worst > options.limit)


if __name__ == "__main__":
    sys.exit(main())
