"""How far we agree with lkp-tests: its job files and its fixtures through its programs and ours.
Nothing of it is in this repository."""
