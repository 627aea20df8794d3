"""LangGraph agents that write and run code in E2B sandboxes."""
