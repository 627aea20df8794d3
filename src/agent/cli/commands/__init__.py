"""The commands as they are typed: their options and help, and no work.

What a command needs is imported when it runs: `--help` loads nothing of the package.
"""
