"""Directives, conditions and macro expansion."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.semantics.preprocess import (
    Include,
    Preprocessed,
    expand,
    expand_text,
    macro_arguments,
    predefined,
    preprocess,
)

TARGET = predefined(90, {})


def read(text: str, **defines: str) -> Preprocessed:
    return preprocess(text.encode(), "a.cu", predefined(90, defines))


def expanded(text: str, use: str) -> str:
    facts = read(text)
    found = expand_text(use, facts.macro)
    assert found is not None
    return re.sub(r"\s+", " ", found).strip()


def active(text: str, **defines: str) -> str:
    """The lines that stay, joined; each test line is one word."""
    facts = read(text, **defines)
    kept = []
    offset = 0
    for line in text.splitlines(keepends=True):
        if line.strip() and not line.lstrip().startswith("#") and facts.is_active(offset):
            kept.append(line.strip())
        offset += len(line.encode())
    return " ".join(kept)


# ------------------------------------------------------------------------ directives


def test_a_macro_has_its_value_between_definition_and_undef() -> None:
    text = "x\n#define N 4\ny\n#undef N\nz\n#define N 8\n"
    facts = read(text)
    assert facts.macro("N", text.index("x")) is None
    first = facts.macro("N", text.index("y"))
    assert first is not None and first.body == "4" and first.params is None
    assert facts.macro("N", text.index("z")) is None
    last = facts.macro("N")
    assert last is not None and last.body == "8" and last.offset == text.rindex("#define")


def test_continuation_lines_and_comments_leave_the_body() -> None:
    facts = read('#define A 1 + \\\r\n  2 // more\n#define B "/*" /* c */ 3\n')
    first, second = facts.macro("A"), facts.macro("B")
    assert first is not None and first.body.split() == ["1", "+", "2"]
    assert second is not None and second.body.split() == ['"/*"', "3"]


@pytest.mark.parametrize(
    ("head", "params", "variadic"),
    [
        ("F(a,b)", ("a", "b"), False),
        ("F()", (), False),
        ("F(fmt, ...)", ("fmt", "__VA_ARGS__"), True),
        ("F(args...)", ("args",), True),
    ],
)
def test_parameters(head: str, params: tuple[str, ...], variadic: bool) -> None:
    macro = read(f"#define {head} x\n").macro("F")
    assert macro is not None
    assert (macro.params, macro.variadic) == (params, variadic)


def test_a_blank_before_the_parenthesis_makes_an_object() -> None:
    macro = read("#define F (a)\n").macro("F")
    assert macro is not None and macro.params is None and macro.body == "(a)"


@pytest.mark.parametrize(
    "hiding",
    [
        "/*\n#define N 1\n*/\n",
        "/* // */ /*\n#define N 1\n*/\n",
        'const char* s = R"(\n#define N 1\n)";\n',
        'const char* s = R"x(\n)"\n#define N 1\n)x";\n',
    ],
)
def test_directives_in_comments_and_raw_strings_are_none(hiding: str) -> None:
    assert read(hiding).macro("N") is None


@pytest.mark.parametrize(
    "opening",
    ["// /*\n", 'const char* s = "/*";\n', "char c = '\"'; // /*\n", "//*\n", '#define S "/*"\n', "x /* y */ // /*\n"],
)
def test_what_only_looks_like_a_comment_hides_nothing(opening: str) -> None:
    macro = read(opening + "#define N 1\n").macro("N")
    assert macro is not None


def test_includes_that_are_compiled() -> None:
    facts = read('#include "a.h"\n#if 0\n#include "b.h"\n#endif\n# include <c/d.h> // e\n#define H "f.h"\n#include H\n')
    assert [(include.target, include.quoted) for include in facts.includes] == [("a.h", True), ("c/d.h", False), ("f.h", True)]
    assert facts.includes[0] == Include(0, "a.h", True)


# ------------------------------------------------------------------------ conditions


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("1", True),
        ("0", False),
        ("UNKNOWN", False),
        ("!UNKNOWN", True),
        ("defined(__CUDACC__) && defined __CUDA_ARCH__", True),
        ("defined(__HIPCC__) || defined(__HIP_PLATFORM_AMD__)", False),
        ("__CUDA_ARCH__ >= 900", True),
        ("__CUDA_ARCH__ == 900 && __CUDA_ARCH__ / 10 == 90", True),
        ("__CUDACC_VER_MAJOR__ >= 12", True),
        ("CUDART_VERSION >= 13000", True),
        ("__cplusplus >= 201703L", True),
        ("_MSC_VER", False),
        ("(2 + 3) * 4 == 20 && 7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1", True),
        ("1 ? 0 : 1", False),
        ("'A' == 65 && '\\n' == 10", True),
        ("0x10 == 16 && 010 == 8 && 0b11 == 3 && 1'000 == 1000", True),
        ("1 << 3 | 1", True),
        ("true && !false", True),
        ("1/0", False),
        ("0 && 1/0", False),
        ("1 || 1/0", True),
        ("0 && __has_include(<nothing.h>)", False),
        ("__has_include(<nothing.h>)", True),  # cannot be known: keeps its arm
        ("__has_cpp_attribute(nodiscard) >= 2", True),
        ("1 +", True),  # no expression: kept as well
        ("not UNKNOWN and 1", True),
    ],
)
def test_condition(condition: str, holds: bool) -> None:
    assert active(f"#if {condition}\nyes\n#else\nno\n#endif\n") == ("yes" if holds else "no")


def test_conditions_see_macros_with_their_value_at_that_place() -> None:
    text = "#define N 3\n#define TWICE(x) (2 * (x))\n#if TWICE(N) == 6\na\n#endif\n#undef N\n#if TWICE(N) == 6\nb\n#endif\n"
    assert active(text) == "a"


def test_one_arm_of_a_chain() -> None:
    text = "#if N == 1\na\n#elif N == 2\nb\n#elif N == 2\nc\n#else\nd\n#endif\ne\n"
    assert [active(text, N=value) for value in ("1", "2", "3")] == ["a e", "b e", "d e"]


def test_definitions_in_dead_arms_do_not_count() -> None:
    facts = read("#if 0\n#define N 1\n#if 1\n#define N 2\n#else\n#define N 3\n#endif\n#else\n#define N 4\n#endif\n")
    macro = facts.macro("N")
    assert macro is not None and macro.body == "4"


def test_ifdef_family() -> None:
    text = "#ifdef A\na\n#elifdef B\nb\n#elifndef C\nc\n#else\nd\n#endif\n"
    assert active(text, A="") == "a"
    assert active(text, B="") == "b"
    assert active(text) == "c"
    assert active(text, C="") == "d"


def test_a_default_that_the_user_overrides() -> None:
    text = "#ifndef TILE\n#define TILE 32\n#endif\n"
    for facts, body in ((read(text), "32"), (read(text, TILE="16"), "16")):
        macro = facts.macro("TILE")
        assert macro is not None and macro.body == body


@pytest.mark.parametrize(
    "text", ["#if 1\nx\n", "#endif\nx\n", "#else\nx\n", "#if\nx\n#endif\n", "#ifdef\n#endif\nx\n", "#if (((\nx\n"]
)
def test_unbalanced_directives_are_survived(text: str) -> None:
    facts = read(text)
    assert all(start < end for start, end in facts.inactive)


def test_deep_and_malformed_conditions_are_unknown_not_fatal() -> None:
    assert active("#if " + "(" * 5000 + "1\na\n#endif\n") == "a"
    assert active("#if " + "!" * 5000 + "1\na\n#endif\n") == "a"


@given(st.lists(st.sampled_from(["#if 1", "#if 0", "#if X", "#elif 1", "#else", "#endif", "#define X 1", "#undef X", "a"])))
def test_inactive_ranges_are_sorted_and_disjoint(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    facts = read(text)
    ends = [0]
    for start, end in facts.inactive:
        assert ends[-1] <= start < end <= len(text)
        ends.append(end)
    for start, end in facts.inactive:
        assert not facts.is_active(start) and not facts.is_active(end - 1)


# ------------------------------------------------------------------------ expansion


@pytest.mark.parametrize(
    ("definitions", "use", "result"),
    [
        ("#define N 4", "N + NN", "4 + NN"),
        ("#define SQ(x) ((x)*(x))", "SQ(a + 1)", "((a + 1)*(a + 1))"),
        ("#define SQ(x) ((x)*(x))", "SQ", "SQ"),
        ("#define SQ(x) ((x)*(x))", "SQ (SQ(2))", "((((2)*(2)))*(((2)*(2))))"),
        ("#define SQ(x) ((x)*(x))\n#define G SQ", "G(3)", "((3)*(3))"),
        ("#define CAT(a,b) a##b\n#define A 1", "CAT(A, A) CAT(x, 1)", "AA x1"),
        ("#define CAT(a,b) a ## b\n#define N 5\n#define XCAT(a,b) CAT(a,b)", "XCAT(v, N)", "v5"),
        ("#define STR(x) #x", 'STR(a  "b")', '"a \\"b\\""'),
        ("#define LOG(f, ...) g(f, ##__VA_ARGS__)", 'LOG("x") LOG("x", 1, 2)', 'g("x") g("x",1, 2)'),
        ("#define ALL(...) f(__VA_ARGS__)", "ALL() ALL(1) ALL(1, (2, 3))", "f() f(1) f(1, (2, 3))"),
        ("#define OPT(x, ...) f(x __VA_OPT__(,) __VA_ARGS__)", "OPT(1) OPT(1, 2)", "f(1 ) f(1 , 2)"),
        ("#define NAMED(args...) f(args)", "NAMED(1, 2)", "f(1, 2)"),
        ("#define F(x) x\n#define EMPTY", "F(EMPTY)F()", ""),
        ("#define M -1", "-M", "- -1"),
        ("#define N 4", "\"N\" 'N' 0xN", "\"N\" 'N' 0xN"),
        ("#define REC REC + 1", "REC", "REC + 1"),
        ("#define A B\n#define B A", "A B", "A B"),
        ("#define F(x) G(x)\n#define G(x) F(x) + x", "F(2)", "F(2) + 2"),
        ("#define AT(i, j) a[(i) * N + (j)]\n#define N 8", "AT(f(x, y), z)", "a[(f(x, y)) * 8 + (z)]"),
    ],
)
def test_expansion(definitions: str, use: str, result: str) -> None:
    assert expanded(definitions + "\n", use) == result


def test_one_use_by_its_arguments() -> None:
    facts = read("#define AT(i, j) ((i) * N + (j))\n#define N 8\n")
    macro = facts.macro("AT")
    assert macro is not None
    assert expand(macro, ["N", "2"], facts.macro) == "((8) * 8 + (2))"


def test_doubling_stops_at_the_budget() -> None:
    text = "#define D0 x\n" + "".join(f"#define D{i} D{i - 1} D{i - 1}\n" for i in range(1, 41))
    facts = read(text)
    small, large = facts.macro("D3"), facts.macro("D40")
    assert small is not None and large is not None
    assert expand(small, None, facts.macro) == " ".join("x" * 8)
    assert expand(large, None, facts.macro) is None


def test_nested_arguments_are_bounded() -> None:
    facts = read("#define F(x) (x)\n")
    assert expand_text("F(" * 500 + "1" + ")" * 500, facts.macro) is None


@given(st.text(alphabet="abc(),#\"' \\\n+-*/<>0123456789", max_size=60))
def test_text_without_macros_is_unchanged(text: str) -> None:
    assert expand_text(text, lambda _: None) == text


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    facts = read("#define F(x) #x ## x\n" + text)
    expand_text(text, facts.macro)


def test_arguments_are_split_as_the_preprocessor_does() -> None:
    text = "F(a, (b, c), d<e, f>, \")\", ',') + 1"
    found = macro_arguments(text, 1)
    assert found is not None
    arguments, end = found
    assert arguments == ["a", "(b, c)", "d<e", "f>", '")"', "','"]
    assert text[end:] == " + 1"
    assert macro_arguments("F(a", 1) is None


# ------------------------------------------------------------------------ includes


def test_macros_of_an_included_file_count_from_its_include_on() -> None:
    header = read("#pragma once\n#define N 4\n#define M N\n")
    text = 'a\n#include "h.h"\nb\n#if N == 4\n#define K 1\n#endif\n#undef N\nc\n'
    facts = preprocess(text.encode(), "a.cu", TARGET, lambda include: header if include.target == "h.h" else None)
    assert facts.macro("N", text.index("a")) is None
    inside = facts.macro("N", text.index("b"))
    assert inside is not None and inside.body == "4"
    assert facts.macro("N", text.index("\nc")) is None
    assert facts.macro("K") is not None
    assert facts.is_macro_name("M") and not facts.is_macro_name("NOWHERE")


def test_a_file_that_includes_itself_ends() -> None:
    loaded: list[Preprocessed] = []
    text = '#ifndef G\n#define G\n#include "self.h"\n#define N 1\n#endif\n'
    facts = preprocess(text.encode(), "self.h", TARGET, lambda _: loaded[0] if loaded else None)
    loaded.append(facts)
    macro = facts.macro("N")
    assert macro is not None and macro.body == "1"
