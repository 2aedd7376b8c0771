"""A service elsewhere, over HTTP: the login, the connection, and its documents."""
