"""Lowering of function bodies to `ir`; the way in is `cudalint.semantics.lower.lower`."""
