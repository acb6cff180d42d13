"""cudalint: a static analyser for CUDA C++ source."""

__version__ = "0.1.0"
