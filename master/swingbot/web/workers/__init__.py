"""The exchange with workers and controllers."""
