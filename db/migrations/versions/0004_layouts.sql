-- A bisection may ask for a boot of another layout of a commit's code, and of one testbox of a group.

ALTER TABLE bisection_want ADD COLUMN layout integer NOT NULL DEFAULT 0     -- 0: as the linker lays it out; others: see workers/swingbot_worker/kbuild/layout.py
    CONSTRAINT bisection_want_layout_check CHECK (layout >= 0);
ALTER TABLE bisection_want ADD COLUMN box integer NOT NULL DEFAULT 0        -- which testbox of the group, as the bisection's policy lists them
    CONSTRAINT bisection_want_box_check CHECK (box >= 0);
