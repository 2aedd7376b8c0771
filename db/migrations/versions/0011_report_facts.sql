-- What the words of a report were made of, so that its page and others need not read them back out of the mail. NULL: drafted before this was kept.
ALTER TABLE report ADD COLUMN facts jsonb;
