-- Facts behind the text of a report, so that its page need not parse the mail. NULL: drafted before this was stored.
ALTER TABLE report ADD COLUMN facts jsonb;
