-- Recipients whom the culprit's commit alone names, marked for the moderator (docs/mail.md).

ALTER TABLE report ADD COLUMN commit_only text[] NOT NULL DEFAULT '{}';
