"""The agent that runs inside every sandbox and does there what the server asks for.

Standard library only (the kernel module imports jupyter_client when the first kernel is wanted), so that it
starts in a few dozen milliseconds. The server never opens a path or a process of a sandbox itself: it asks
this agent over a Unix socket, so links, `..` and process ids mean what they mean inside the sandbox, and
nothing more.
"""
