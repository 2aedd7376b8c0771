-- Who may read what panels show, and nothing else. Run once by the owner of the database of a lab:
--     psql "$URL" -v ON_ERROR_STOP=1 -f db/reader-role.sql
--     psql "$URL" -c "CREATE ROLE grafana LOGIN PASSWORD '...' IN ROLE swingbot_reader"
-- Safe to repeat; run it again after an upgrade that brings a new view.
DO $$
DECLARE
    view_name text;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'swingbot_reader') THEN
        CREATE ROLE swingbot_reader NOLOGIN;
    END IF;
    GRANT USAGE ON SCHEMA swingbot TO swingbot_reader;
    FOR view_name IN SELECT viewname FROM pg_views WHERE schemaname = 'swingbot' AND viewname LIKE 'v\_%' LOOP
        EXECUTE format('GRANT SELECT ON swingbot.%I TO swingbot_reader', view_name);
    END LOOP;
END $$;
