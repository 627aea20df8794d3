"""The sandbox's life: made, found again, kept, paused, ended."""
