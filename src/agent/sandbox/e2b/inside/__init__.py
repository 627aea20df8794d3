"""Programs that run inside the sandbox, sent there as text; each works in any E2B template."""

from importlib.resources import files

END_TREE = (files(__name__) / "end_tree.sh").read_text()
"""Bash that ends every process of a command; its head says which variables it needs."""
