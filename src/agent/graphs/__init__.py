"""The graphs that langgraph.json exports; wiring only."""
