"""What code produced beside text: kept once in the store, referenced from messages, served by address."""
