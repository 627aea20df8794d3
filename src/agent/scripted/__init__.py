"""The scripted chat model, its scripts, and the bundled broken project."""
