"""Readable text of lowered functions, for tests and debugging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cudalint.semantics import ir

_INDENT = "  "


def dump(function: ir.Function) -> str:
    """The function as pseudo-code, one statement a line: memory is `[address]:type`, `@name` the address of a variable."""
    params = ", ".join(f"{p.type.name} {p.name}" for p in function.params)
    lines = [f"{function.name}({params}) -> {function.returns.name}"]
    _statements(function.body.body, 1, lines)
    return "\n".join(lines)


def dump_expr(expr: ir.Expr) -> str:
    """An expression as pseudo-code."""
    return _EXPRESSIONS[type(expr)](expr)


def dump_block(block: ir.Block) -> str:
    """A block as pseudo-code."""
    lines: list[str] = []
    _statements(block.body, 0, lines)
    return "\n".join(lines)


# ------------------------------------------------------------------ statements


def _statements(statements: tuple[ir.Stmt, ...], depth: int, lines: list[str]) -> None:
    for statement in statements:
        _STATEMENTS[type(statement)](statement, depth, lines)


def _line(depth: int, text: str, lines: list[str]) -> None:
    lines.append(_INDENT * depth + text)


def _block(block: ir.Block, depth: int, lines: list[str]) -> None:
    _line(depth, "{", lines)
    _statements(block.body, depth + 1, lines)
    _line(depth, "}", lines)


def _declare(statement: ir.Declare, depth: int, lines: list[str]) -> None:
    symbol = statement.symbol
    space = "" if symbol.space == "register" else symbol.space + " "
    init = "" if statement.init is None else " = " + dump_expr(statement.init)
    _line(depth, f"{space}{symbol.type.name} {symbol.name}{init}", lines)


def _if(statement: ir.If, depth: int, lines: list[str]) -> None:
    _line(depth, f"if {dump_expr(statement.condition)}", lines)
    _statements(statement.then.body, depth + 1, lines)
    if statement.other is not None:
        _line(depth, "else", lines)
        _statements(statement.other.body, depth + 1, lines)


def _loop(statement: ir.Loop, depth: int, lines: list[str]) -> None:
    condition = "" if statement.condition is None else " " + dump_expr(statement.condition)
    unroll = "" if statement.unroll is None else f" unroll {statement.unroll}"
    if statement.init is not None:
        _statements(statement.init.body, depth, lines)
    step = "" if statement.step is None else "; " + dump_expr(statement.step)
    _line(depth, f"{statement.kind}{condition}{step}{unroll}", lines)
    _statements(statement.body.body, depth + 1, lines)


def _switch(statement: ir.Switch, depth: int, lines: list[str]) -> None:
    _line(depth, f"switch {dump_expr(statement.value)}", lines)
    for labels, body in statement.cases:
        _line(depth, "case " + ", ".join(map(dump_expr, labels)) if labels else "default", lines)
        _statements(body.body, depth + 1, lines)


def _return(statement: ir.Return, depth: int, lines: list[str]) -> None:
    _line(depth, "return" if statement.value is None else f"return {dump_expr(statement.value)}", lines)


_STATEMENTS: dict[type, Callable[[Any, int, list[str]], None]] = {
    ir.Block: _block,
    ir.Declare: _declare,
    ir.Evaluate: lambda s, depth, lines: _line(depth, dump_expr(s.expr), lines),
    ir.If: _if,
    ir.Loop: _loop,
    ir.Switch: _switch,
    ir.Break: lambda _, depth, lines: _line(depth, "break", lines),
    ir.Continue: lambda _, depth, lines: _line(depth, "continue", lines),
    ir.Return: _return,
}


# ----------------------------------------------------------------- expressions


def _list(exprs: tuple[ir.Expr, ...]) -> str:
    return ", ".join(map(dump_expr, exprs))


def _load(expr: ir.Load) -> str:
    hint = f" {expr.hint}" if expr.hint else ""
    return f"[{dump_expr(expr.pointer)}]:{expr.type.name}{hint}"


def _assign(expr: ir.Assign) -> str:
    target = f"[{dump_expr(expr.target)}]:{expr.type.name}" if expr.memory else dump_expr(expr.target)
    arrow = "=" if not expr.compound else "=post" if expr.post else "=compound"
    return f"({target} {arrow} {dump_expr(expr.value)})"


def _call(expr: ir.Call) -> str:
    name = f"{expr.qualifier}::{expr.name}" if expr.qualifier else expr.name
    receiver = "" if expr.receiver is None else f"{dump_expr(expr.receiver)}; "
    known = "" if expr.function is None else "lambda " if isinstance(expr.function, ir.Lambda) else "!"
    return f"{known}{name}({receiver}{_list(expr.args)})"


def _lambda(expr: ir.Lambda) -> str:
    params = ", ".join(f"{p.type.name} {p.name}" for p in expr.params)
    return f"[]({params}) {{ {'; '.join(dump_block(expr.body).splitlines())} }}"


_EXPRESSIONS: dict[type, Callable[[Any], str]] = {
    ir.Const: lambda e: f"{e.value}",
    ir.Var: lambda e: e.symbol.name,
    ir.Special: lambda e: f"%{e.name}",
    ir.Unary: lambda e: f"{e.op}{dump_expr(e.operand)}",
    ir.Binary: lambda e: f"({dump_expr(e.left)} {e.op} {dump_expr(e.right)})",
    ir.Select: lambda e: f"({dump_expr(e.condition)} ? {dump_expr(e.then)} : {dump_expr(e.other)})",
    ir.Cast: lambda e: f"({e.type.name}){dump_expr(e.operand)}",
    ir.Base: lambda e: f"@{e.symbol.name}",
    ir.PtrAdd: lambda e: f"{dump_expr(e.pointer)} + {dump_expr(e.index)} * {'?' if e.stride is None else e.stride}",
    ir.FieldPtr: lambda e: f"{dump_expr(e.pointer)} .{e.name}({'?' if e.offset is None else e.offset})",
    ir.Load: _load,
    ir.Assign: _assign,
    ir.Construct: lambda e: f"{e.type.name}{{{_list(e.args)}}}",
    ir.FieldValue: lambda e: f"{dump_expr(e.operand)}.{e.name}",
    ir.Call: _call,
    ir.Lambda: _lambda,
    ir.Asm: lambda e: f"asm({e.text!r}; {_list(e.outputs)}; {_list(e.inputs)})",
    ir.Unknown: lambda e: f"unknown<{e.text}>({_list(e.parts)})",
}
