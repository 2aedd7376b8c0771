-- A bisection may request a boot of another code layout of a commit, and of one testbox of a group.

ALTER TABLE bisection_want ADD COLUMN layout integer NOT NULL DEFAULT 0     -- 0: the linker's own layout; others: see workers/swingbot_worker/kbuild/layout.py
    CONSTRAINT bisection_want_layout_check CHECK (layout >= 0);
ALTER TABLE bisection_want ADD COLUMN box integer NOT NULL DEFAULT 0        -- index of the testbox in the group, in the order of the bisection's policy
    CONSTRAINT bisection_want_box_check CHECK (box >= 0);
