"""Orders: placed on request, settled when the answer is known, dispatched to workers."""
