-- A branch that is rebuilt every day is a list of patches (docs/incidents.md, "Rebased branches").

CREATE TABLE patch (                                                    -- a commit on the first-parent line of a watched branch, now or earlier
    commit   text PRIMARY KEY CHECK (commit ~ '^[0-9a-f]{40}$'),
    parent   text NOT NULL CHECK (parent ~ '^([0-9a-f]{40})?$'),        -- its first parent; '' for a root
    patch_id text NOT NULL,                                             -- git patch-id --stable; of a merge 'merge:' and the merged commits; '': no change
    subject  text NOT NULL,
    author   text NOT NULL
);
CREATE INDEX patch_by_id ON patch (patch_id) WHERE patch_id <> '';

CREATE TABLE branch_patch (                                             -- contents of a branch since its last move, replaced at the next one
    tree     bigint NOT NULL REFERENCES tree,
    position integer NOT NULL CHECK (position > 0),                     -- oldest first; dropped ones at the end
    commit   text NOT NULL REFERENCES patch,
    state    text NOT NULL CHECK (state IN ('same', 'moved', 'changed', 'new', 'below', 'dropped')),
    was      text REFERENCES patch,                                     -- the same patch, or its previous version, at the previous tip
    PRIMARY KEY (tree, position),
    CONSTRAINT branch_patch_was_there CHECK ((state IN ('same', 'moved', 'changed')) = (was IS NOT NULL))
);

ALTER TABLE comparison DROP CONSTRAINT comparison_kind_check;
ALTER TABLE comparison ADD CONSTRAINT comparison_kind_check             -- still: the copy of a known culprit in a rebased branch against its parent
    CHECK (kind IN ('asked', 'watch', 'attribute', 'prove', 'anchor', 'gate', 'still')) NOT VALID;
ALTER TABLE comparison VALIDATE CONSTRAINT comparison_kind_check;

ALTER TABLE swing DROP CONSTRAINT swing_state_check;
ALTER TABLE swing ADD CONSTRAINT swing_state_check                      -- known: caused by known culprits that are still in the branch
    CHECK (state IN ('suspected', 'refuted', 'open', 'bisecting', 'explained', 'noted', 'not_found', 'known')) NOT VALID;
ALTER TABLE swing VALIDATE CONSTRAINT swing_state_check;

ALTER TABLE swing ADD COLUMN upto bigint REFERENCES variant;            -- last kernel of the range to search, if that is not the tip

ALTER TABLE incident_event DROP CONSTRAINT incident_event_act_check;
ALTER TABLE incident_event ADD CONSTRAINT incident_event_act_check
    CHECK (act IN ('opened', 'seen', 'merge', 'split', 'close', 'reopen', 'expected', 'fixed-by', 'invalid', 'checked', 'still', 'withdrawn')) NOT VALID;
ALTER TABLE incident_event VALIDATE CONSTRAINT incident_event_act_check;
