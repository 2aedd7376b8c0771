"""Whether the service is well, for people and for Prometheus."""
