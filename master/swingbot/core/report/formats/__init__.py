"""Numbers of a comparison in the forms that kernel developers paste."""
