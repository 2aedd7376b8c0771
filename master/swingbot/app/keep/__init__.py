"""Operations on a running service: backup, restore, retention, health checks."""
