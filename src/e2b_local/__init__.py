"""A local server that speaks E2B's wire protocol to the unmodified E2B SDKs."""
