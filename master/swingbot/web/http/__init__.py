"""HTTP: the server, its limits on connections, and how responses are made."""
