-- Whether the loop has seen every change: if not, or while something is open, more work may follow (docs/decisions/0008-idle.md).

CREATE TABLE unseen (                                                   -- one row per transaction that changed a table with the trigger wake()
    -- Deleted by the round that began after the commit, once it has completed.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);
INSERT INTO unseen DEFAULT VALUES;                                      -- no round has seen the existing rows

-- As before it wakes the loop and the master's dispatcher; now it also records a change to process. Writing a row
-- without changing it is not a change, or each round would make work for the next.
CREATE OR REPLACE FUNCTION wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    PERFORM pg_notify('swingbot', TG_TABLE_NAME);
    IF COALESCE(current_setting('swingbot.unseen', true), '') = '' THEN
        LOOP                                                            -- after a crash the sequence may return a number twice
            INSERT INTO swingbot.unseen DEFAULT VALUES ON CONFLICT DO NOTHING;
            EXIT WHEN FOUND;
        END LOOP;
        PERFORM set_config('swingbot.unseen', 'recorded', true);        -- until the end of the transaction
    END IF;
    RETURN NULL;
END $$;

-- The other tables that a round depends on. Not those written only together with one of them (boot, kernel_build, comparison_row, ...),
-- nor those that matter only while a bisection, an order or a mail is open (bisection_want, observation, lease, outbox, ...).
CREATE TRIGGER change_wakes AFTER INSERT ON change FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER tree_move_wakes AFTER UPDATE ON tree FOR EACH ROW
    WHEN ((OLD.tip_commit, OLD.state) IS DISTINCT FROM (NEW.tip_commit, NEW.state)) EXECUTE FUNCTION wake();    -- a poll without news wakes neither
CREATE TRIGGER testbox_wakes AFTER INSERT OR UPDATE ON testbox FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER testbox_now_wakes AFTER INSERT OR UPDATE ON testbox_now FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER orders_wakes AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER swing_wakes AFTER INSERT OR UPDATE ON swing FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER incident_wakes AFTER INSERT OR UPDATE ON incident FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER sighting_wakes AFTER INSERT OR UPDATE ON sighting FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER noise_record_wakes AFTER INSERT OR UPDATE ON noise_record FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER alert_wakes AFTER INSERT OR UPDATE ON alert FOR EACH ROW EXECUTE FUNCTION wake();
