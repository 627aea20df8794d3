"""The scripted chat model, its scripts, and the bundled broken project."""

# Named here and not read from the folder: a server may ask on its event loop, where listing would block.
SCRIPTS = ("chat", "repair")
"""The scripts that `scripted:` names; several are joined by a plus sign."""
