"""Day two: copies of all that must not be lost, and the way back from them."""
