"""Types of declarations, classes and calls: the public face of the modules that know them."""

from __future__ import annotations

from cudalint.semantics.arithmetic import common_type
from cudalint.semantics.deduction import bind, resolve_call
from cudalint.semantics.records import (
    Record,
    TemplateRef,
    complete,
    constructors,
    member_constant,
    member_enum,
    member_field,
    member_type,
    methods,
)
from cudalint.semantics.resolve import (
    Declared,
    declarations,
    declare_local,
    expression_type,
    initializer_arguments,
    lambda_parameters,
    literal_type,
    named_type,
    parameters,
    resolve_qualifier,
    resolve_template_arguments,
    resolve_type,
    return_type,
    returns_reference,
    sizeof,
    template_argument,
    type_of_variable,
)

__all__ = (
    "Declared",
    "Record",
    "TemplateRef",
    "bind",
    "common_type",
    "complete",
    "constructors",
    "declarations",
    "declare_local",
    "expression_type",
    "initializer_arguments",
    "lambda_parameters",
    "literal_type",
    "member_constant",
    "member_enum",
    "member_field",
    "member_type",
    "methods",
    "named_type",
    "parameters",
    "resolve_call",
    "resolve_qualifier",
    "resolve_template_arguments",
    "resolve_type",
    "return_type",
    "returns_reference",
    "sizeof",
    "template_argument",
    "type_of_variable",
)
