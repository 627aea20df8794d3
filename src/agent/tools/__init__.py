"""What a model can do in a sandbox, and how results are worded for it."""
