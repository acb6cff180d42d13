"""Which files are checked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cudalint.source.discover import Discovery, DiscoverySettings, discover, find_root, is_cuda_header

KERNEL = "__global__ void k(int* p) { p[threadIdx.x] = 1; }\n"


def write(root: Path, name: str, content: str = KERNEL) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(*paths: str, **settings: object) -> list[str]:
    return discover(paths or (".",), DiscoverySettings(**settings)).files  # type: ignore[arg-type]


def test_cuda_files_and_headers_that_hold_cuda(project: Path) -> None:
    write(project, "a.cu", "int main() {}\n")
    write(project, "b.cuh", "#pragma once\n")
    write(project, "c.h", "#pragma once\nint f();\n")
    write(project, "d.hpp", "__device__ int f();\n")
    write(project, "e.cpp", "void f() { k<<<1, 32>>>(p); }\n")
    write(project, "f.py", "code = r'''__global__ void k() {}'''\n")
    write(project, "g.py", "print(1)\n")
    write(project, "h.txt")
    assert found() == ["a.cu", "b.cuh", "d.hpp", "e.cpp", "f.py"]
    assert found(python=False) == ["a.cu", "b.cuh", "d.hpp", "e.cpp"]
    assert found(python=False, every_header=True) == ["a.cu", "b.cuh", "c.h", "d.hpp", "e.cpp"]


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        (b"__shared__ float tile[32];", True),
        (b"int i = threadIdx.x;", True),
        (b"k<T, 4><<<grid, block>>>(p);", True),
        (b"// __global__ void k();", False),
        (b'const char* s = "__global__";', False),
        (b"/* threadIdx.x */ int x;", False),
        (b"<<<<<<< HEAD\nint a;\n=======\nint b;\n>>>>>>> other\n", False),
        (b"std::cout << a << b;", False),
        (b"RAFT_KERNEL scale(float* x) {}", True),
        (b'const char* s = R"(__device__ int f();)";', False),
    ],
)
def test_what_makes_a_header_cuda(text: bytes, cuda: bool) -> None:
    assert is_cuda_header(text) is cuda


def test_builds_and_vendored_trees_are_left_out(project: Path) -> None:
    for name in ("build", "cmake-build-debug", "third_party", "vendor", ".venv", "node_modules", "_deps"):
        write(project, f"src/{name}/x.cu")
    write(project, "src/builder/x.cu")
    assert found() == ["src/builder/x.cu"]


def test_a_folder_that_is_named_is_searched_whatever_it_is_called(project: Path) -> None:
    write(project, "build/x.cu")
    write(project, "build/third_party/y.cu")
    assert found("build") == ["build/x.cu"]
    assert found("build", force_exclude=True) == []


def test_exclude_replaces_and_extend_exclude_adds(project: Path) -> None:
    write(project, "build/x.cu")
    write(project, "src/y.cu")
    write(project, "src/z_test.cu")
    assert found(exclude=()) == ["build/x.cu", "src/y.cu", "src/z_test.cu"]
    assert found(extend_exclude=("*_test.cu",)) == ["src/y.cu"]
    assert found(extend_exclude=("src/*.cu",)) == []
    assert found("src", extend_exclude=("src/y.cu",)) == ["src/z_test.cu"]


def test_gitignore_nested_and_negated(project: Path) -> None:
    write(project, ".gitignore", "*.gen.cu\n/out/\n")
    write(project, "sub/.gitignore", "!keep.gen.cu\nlocal.cu\n")
    write(project, ".git/info/exclude", "mine.cu\n")
    for name in ("a.cu", "a.gen.cu", "out/b.cu", "sub/out/c.cu", "sub/keep.gen.cu", "sub/local.cu", "local.cu", "mine.cu"):
        write(project, name)
    assert found() == ["a.cu", "local.cu", "sub/keep.gen.cu", "sub/out/c.cu"]
    assert found("sub") == ["sub/keep.gen.cu", "sub/out/c.cu"]
    assert "a.gen.cu" in found(respect_gitignore=False)


def test_a_bad_gitignore_line_hurts_no_other(project: Path) -> None:
    write(project, ".gitignore", "!\n//\nx.cu\n")
    write(project, "x.cu")
    write(project, "y.cu")
    assert found() == ["y.cu"]


def test_named_files_are_taken_unless_forced(project: Path) -> None:
    write(project, ".gitignore", "ignored.cu\n")
    write(project, "ignored.cu")
    write(project, "notes.txt")
    assert found("ignored.cu", "notes.txt") == ["ignored.cu", "notes.txt"]
    assert found("ignored.cu", force_exclude=True) == []


def test_order_and_duplicates_do_not_depend_on_the_arguments(project: Path) -> None:
    for name in ("b/x.cu", "a.cu", "b-c.cu"):
        write(project, name)
    assert found("b/x.cu", ".", "a.cu") == found(".") == found("a.cu", "b", ".", "./b-c.cu") == ["a.cu", "b/x.cu", "b-c.cu"]


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="no symbolic links here")
def test_links_loops_and_their_targets(project: Path) -> None:
    write(project, "real/x.cu")
    (project / "real" / "loop").symlink_to(project)
    (project / "again").symlink_to(project / "real")
    (project / "also.cu").symlink_to(project / "real" / "x.cu")
    (project / "dangling.cu").symlink_to(project / "nowhere.cu")
    result = discover(["."])
    assert len(result.files) == 1
    assert os.path.realpath(result.files[0]) == str((project / "real" / "x.cu").resolve())


def test_missing_paths_are_problems(project: Path) -> None:
    write(project, "a.cu")
    result = discover(["a.cu", "nowhere", "nothing.cu"])
    assert result.files == ["a.cu"]
    assert [(problem.path, problem.reason) for problem in result.problems] == [
        ("nothing.cu", "no such file or directory"),
        ("nowhere", "no such file or directory"),
    ]


@pytest.mark.skipif(os.name == "nt" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="permissions do not bind here")
def test_unreadable_folders_and_headers_are_problems(project: Path) -> None:
    write(project, "shut/x.cu")
    header = write(project, "shut.h")
    (project / "shut").chmod(0)
    header.chmod(0)
    try:
        result = discover(["."])
    finally:
        (project / "shut").chmod(0o755)
        header.chmod(0o644)
    assert result.files == []
    assert [problem.path for problem in result.problems] == ["shut", "shut.h"]


def test_an_empty_search_finds_nothing(project: Path) -> None:
    assert discover(["."]) == Discovery([], [])


def test_the_root_is_the_nearest_configuration_or_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    source = write(tmp_path, "a/b/k.cu")
    assert find_root(source) == str(tmp_path)
    (tmp_path / "a" / "cudalint.toml").touch()
    assert find_root(source) == str(tmp_path / "a")
    assert find_root(tmp_path / "a" / "b") == str(tmp_path / "a")
    write(tmp_path, "a/b/pyproject.toml", "[project]\nname = 'x'\n")
    assert find_root(source) == str(tmp_path / "a")
    write(tmp_path, "a/b/pyproject.toml", "[tool.cudalint.rules]\nx = 1\n")
    assert find_root(source) == str(tmp_path / "a" / "b")


def test_without_either_the_root_is_the_files_own_folder(tmp_path: Path) -> None:
    source = write(tmp_path, "lone/k.cu")
    if find_root(tmp_path) == str(tmp_path):
        assert find_root(source) == str(tmp_path / "lone")
