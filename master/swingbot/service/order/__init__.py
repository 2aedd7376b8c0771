"""Orders: placed for what is wanted, settled when their answer is known, dispatched to workers."""
