"""Routes that the LangGraph server serves beside its own."""
