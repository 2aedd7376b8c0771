"""Numbers of a comparison in the formats that kernel developers paste."""
