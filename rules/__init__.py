"""The built-in rules of cudalint, one module each; found through the entry point group `cudalint.rules`."""
