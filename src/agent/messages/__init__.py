"""The conversation with a model: what it is sent is what its provider takes, what it says is whole or told.

State holds whatever models and clients put there. `requests` makes of it, for each call, a conversation that
the provider of the model accepts; `answers` lets nothing through to the tools that is not whole. The agent,
the step agent and the planner use both, the agents by `middleware.MessagesMiddleware`.
"""
