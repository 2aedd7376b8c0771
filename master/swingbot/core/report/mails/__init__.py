"""The text of each kind of mail: subject and body from facts."""
