"""The commands of `swingbot`, one module per noun."""
