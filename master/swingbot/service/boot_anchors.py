"""Boot a kernel that is known once more when a testbox has nothing else to do: its noise record grows, and a testbox that moved is found out.

A testbox that moved is quarantined: its orders wait until an anchor shows that it is what it was again, or a person resumes it.
"""

from __future__ import annotations

import math
from typing import Final

from swingbot.core.model.box import Barred, Freed
from swingbot.core.model.records import Comparison
from swingbot.core.plan.alerts import MOVED
from swingbot.core.plan.anchors import moved
from swingbot.core.plan.rules import rule_of
from swingbot.core.plan.series import series_for
from swingbot.service.ports import Lab, RequestError, Store
from swingbot.service.read_boots import boots_of

# Boots of an anchor at a time: two tell whether boots differ, and on a repeatable testbox the same two each time.
BOOTS: Final = 2
ANCHOR_K: Final = 200  # beyond what any comparison or bisection asks for
REFERENCE: Final = 5  # earlier anchors that a new one is held against
# A quarantined testbox gets its next anchor after so many seconds of rest, whatever `policy.idle_aa_minutes` says.
RETRY_SECONDS: Final = 600.0
RESUMED: Final = "the testbox was resumed since"


def boot_anchors(lab: Lab, store: Store) -> None:
    """Order an anchor for each testbox that has been idle for long, and for each that an anchor put into quarantine."""
    for name, (state, reason) in store.testbox_reasons().items():
        ours = state == "quarantined" and (reason or "").startswith(MOVED)
        if name not in lab.testboxes or (state != "active" and not ours):
            continue
        rest, wanted = (
            store.idle_seconds(name, queue=not ours),
            RETRY_SECONDS if ours else lab.policies.idle_aa_seconds,
        )
        if wanted > 0 and rest is not None and rest >= wanted:
            order_anchor(store, name)


def order_anchor(store: Store, testbox: str) -> None:
    """Boot the kernel of the last anchor, so that it can be compared; else the base of the latest comparison of a watched tree.

    Nothing if an anchor is under way, or no kernel is known yet.
    """
    known = store.anchor_kernel(testbox)
    if known is not None and not store.anchors(testbox, "waiting", "running"):
        tree, variant, spec = known
        store.add_comparison(
            kind="anchor",
            tree=tree,
            base=variant,
            head=variant,
            boots=BOOTS,
            parts=[(testbox, spec)],
            first_k=ANCHOR_K,
        )


def check_anchors(lab: Lab, store: Store) -> None:
    """Hold each anchor that has ended against the earlier ones; quarantine a testbox that moved, and release one that is well again."""
    for comparison in store.open_comparisons():
        orders = store.wanted(comparison=comparison.id)
        if (
            comparison.kind == "anchor"
            and comparison.status == "running"
            and orders
            and all(order.over for order in orders)
        ):
            _check(lab, store, comparison)


def _check(lab: Lab, store: Store, comparison: Comparison) -> None:
    testbox, spec = comparison.parts[0]
    key = store.variant(comparison.base).build_key
    image = (
        store.kernel_builds([key])[key].image_sha256 if key in store.kernel_builds([key]) else None
    )
    if image is None:
        store.set_comparison(comparison.id, "failed", "the anchor kernel is not built")
        return
    trouble = _trouble(lab, store, comparison, testbox, spec, image)
    state, reason = store.testbox_reasons()[testbox]
    store.set_comparison(
        comparison.id, "done", f"{MOVED}{trouble}" if trouble is not None else None
    )
    if trouble is not None and state == "active":
        store.set_testbox(testbox, "quarantined", f"{MOVED}{trouble} (anchor c{comparison.id})")
    elif trouble is None and state == "quarantined" and (reason or "").startswith(MOVED):
        store.set_testbox(testbox, "active", None)


def _trouble(
    lab: Lab, store: Store, comparison: Comparison, testbox: str, spec: str, image: str
) -> str | None:
    ks = list(range(comparison.first_k, comparison.first_k + comparison.boots))
    now, problems = boots_of(
        store, image, testbox, spec, series_for(lab.testboxes[testbox], comparison), ks
    )
    earlier = [
        c
        for c in store.anchors(testbox, "done")
        if c.id < comparison.id and c.base == comparison.base and c.parts == comparison.parts
    ]
    sound = [c for c in earlier if not store.anchor_mark(c.id)][-REFERENCE:]
    past = [
        boots_of(
            store,
            image,
            testbox,
            spec,
            series_for(lab.testboxes[testbox], c),
            list(range(c.first_k, c.first_k + c.boots)),
        )[0]
        for c in sound
    ]
    if not now and any(past):
        return f"the same kernel gives no result any more: {problems[0] if problems else 'its boots were lost to the lab'}"
    for job in store.spec(spec):
        for metric in (m for m in lab.programs[job.program].metrics.values() if m.headline):
            key = (job.name, metric.name)
            before = [sum(b.values) / len(b.values) for values in past for b in values.get(key, [])]
            fresh = [sum(b.values) / len(b.values) for b in now.get(key, [])]
            least = math.log1p(rule_of(lab.testboxes[testbox], metric, job).min_effect_pct / 100.0)
            told = moved(before, fresh, store.noise_record(testbox, *key), least)
            if told is not None:
                return f"{metric.name} of {job.name}: {told}"
    return None


def quarantine(lab: Lab, testbox: str, reason: str) -> None:
    """By hand: orders wait until `resume`. Raises RequestError."""
    _set(lab, testbox, "quarantined", reason)


def drain(lab: Lab, testbox: str, reason: str) -> None:
    """What runs ends, nothing new begins until `resume`. Raises RequestError."""
    _set(lab, testbox, "drained", reason)


def resume(lab: Lab, testbox: str) -> None:
    """Take the testbox as it is now: what anchors measured before counts no more. Raises RequestError."""
    _set(lab, testbox, "active", None)


def _set(lab: Lab, testbox: str, state: str, reason: str | None) -> None:
    with lab.transaction("set testbox") as store:
        known = store.testbox_reasons()
        if testbox not in known or known[testbox][0] == "gone":
            there = ", ".join(
                sorted(name for name, (state_, _) in known.items() if state_ != "gone")
            )
            raise RequestError(f"there is no testbox {testbox!r}; known are {there}")
        store.set_testbox(testbox, state, reason)
        if state == "quarantined":
            store.move_box(testbox, Barred(reason or "by hand"))
        if state == "active":
            store.screen_again(testbox)
            store.move_box(testbox, Freed("a person let it work again"))
            for anchor in store.anchors(testbox, "done"):
                store.mark_anchor(anchor.id, RESUMED)
