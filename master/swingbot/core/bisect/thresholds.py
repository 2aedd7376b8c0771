"""The numbers that decide what a bisection believes and reports, in the order in which it meets
them.

`Policy` holds those that callers set: the service from its settings, `swingbot bisect run` from its
options, benchmarks to see what a number costs. The rest are constants. Each says its unit, what it
means, and what happens when it moves. What is expected of the noise of an unmeasured testbox
is `EMULATED` and `NOISY` in core/model/noise.py; grids and tolerances of the arithmetic
stay where they are used.

"sd" is a standard deviation, of one boot if nothing else is said; "relative" is a share: 0.01 is 1
%.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swingbot.core.thresholds import INTERVAL_ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a bisection decides. A journal stores it with each step."""

    # Which rules hold. 1 are those of journals that name none: images are never odd, spreads are
    # equal on both sides, a step is built in another layout only where the noise record says that
    # layout matters. 2: nothing creeps, modes are not known from the noise record, images of paired
    # testboxes are never odd. Such journals are decided as they were.
    edition: int = 3
    # P(culprit) at which a commit is named. Lower: wrong commits are named; higher: a third more
    # boots a nine.
    confidence: float = 0.99
    # The same where kernels can be built in one layout only, if P would reach `confidence` were no
    # image odd. Lower: an odd image at an end is named; `confidence`: a commit beside an end is
    # never named there.
    unchecked: float = 0.9
    # P(culprit), given that there is one, at which its confirmation begins. Higher: boots that
    # confirmation would have decided as well; 0.9: 2 % more boots.
    suspect: float = 0.75
    # Boots in all, but for the last pairs of a confirmation. Lower: small effects on noisy
    # testboxes
    # end inconclusive; higher: a hopeless one holds the testbox for days.
    max_boots: int = 200

    # Boots of each end before anything is judged. 1: no idea of the spread; more: boots spent where
    # one often needs none.
    boots_per_end: int = 2
    # Boots of each end before we admit that the ends cannot be distinguished.
    max_end_boots: int = 30
    # P(no change that matters) at which the swing counts as not reproduced. Lower: true small
    # swings are dropped.
    no_change: float = 0.97
    # The same once no more boots of the ends are allowed.
    no_change_at_last: float = 0.95
    # P(a change that matters) at which the search begins. Higher: more end boots; lower: searches
    # for nothing.
    reproduced: float = 0.75

    # Prior that there is no change: somebody saw a swing before we started. 0 would make "not
    # reproduced" impossible.
    prior_no_change: float = 0.1
    # Prior that two commits of the range changed the metric. 0: one is named and the other missed.
    prior_two: float = 0.05
    # Prior that the level creeps: it moves with every commit by the same share. 0: commits of a
    # creep are named for steps; larger: more boots where commits step.
    prior_creep: float = 0.03
    # P(creep) at which it is the answer. Lower: several steps are called a creep; higher: more
    # boots, and more without an answer.
    creep: float = 0.95
    # P(two steps) at which both sides are searched on their own; the one without a step then ends
    # by itself.
    two: float = 0.5
    # Prior that some images are odd. 0: an odd image at an end, or beside one, is named for a step;
    # larger: more builds in other layouts where there is nothing.
    odd_images: float = 0.16
    # Prior sd of the log effect. Far too small hides large steps, far too large hides small ones.
    prior_effect: float = 0.1

    # Pairs of fresh boots that confirm. 1 would let one odd boot confirm.
    confirm_boots: int = 2
    # More pairs where layout or a wandering testbox could feign the step. Of 70 such claims three
    # were wrong without them.
    wary_boots: int = 2
    # Pairs before boots that deny the step end the bisection. Lower: a true step is denied by bad
    # luck.
    max_confirm: int = 6
    # P that the printed interval misses.
    interval_alpha: float = INTERVAL_ALPHA
    # Boots of one kernel that may fail before it counts as unbootable. 1: a flaky boot condemns.
    boot_tries: int = 2

    # Boots of the search in flight. 2: 8 % less time, 8 to 40 % more boots, a third more builds
    # (benchmarks, -5 % on run CV 2 %).
    parallel: int = 1
    # Share of what the best boot tells that a further boot in flight must tell. 0: testbox always
    # busy, twice the boots.
    worth: float = 0.55
    # Squared distance of the levels, in sd, from which a boot under way is planned with as if its
    # answer were known. Lower: testboxes of a group spread out.
    decisive: float = 9.0
    # Share of what is not known yet that the rest of the budget must be able to tell. Higher: gives
    # up where patience wins.
    hopeless: float = 0.4
    # Bits a boot; below, more boots cannot tell the rest apart.
    least_gain: float = 0.0002


# What a journal that does not give these fields of a policy means by them.
FIRST_EDITION: Final[Mapping[str, float]] = {
    "edition": 1,
    "odd_images": 0.0,
    "unchecked": 0.0,
    "prior_creep": 0.0,
    "creep": 0.0,
}
# Fields in which the second edition differs from the present one.
SECOND_EDITION: Final[Mapping[str, float]] = {"edition": 2, "prior_creep": 0.0, "creep": 0.0}
EARLIER_EDITIONS: Final = {1: FIRST_EDITION, 2: SECOND_EDITION}

# --- in a group of testboxes: an idle one costs nothing, and time does ---

# Boots of each end, as many as testboxes, at most. More: ends that differ clearly are booted on and
# on.
GROUP_BOOTS_PER_END: Final = 4
# In place of `Policy.decisive` and `Policy.worth`. Higher: testboxes stand idle; lower: boots that
# tell what another one tells.
GROUP_DECISIVE: Final = 4.0
GROUP_WORTH: Final = 0.3

# --- what a person may say of a commit ---

# Factors of a hint. Wider: a wrong hint outweighs more boots than the bisection has.
HINT_LEAST, HINT_MOST = 0.001, 1000.0
# Weight, of the mean one, below which no hint brings a commit. 0: a hint can make the culprit
# impossible.
HINT_FLOOR: Final = 0.1

# --- what is known of the boots ---

# Failed boots for each good one of the same kernel, beyond `Policy.boot_tries`, before it counts as
# unbootable. Fewer: kernels that come up every other time are lost.
FAILED_PER_GOOD: Final = 2
# P(wild) from which a boot is left out of a printed effect. Lower: boots are left out because they
# do not fit.
WILD_P: Final = 0.5
# Weight of such a boot where wandering is looked for, of a good one. 1: a wild boot is taken for a
# moving testbox.
WILD_WEIGHT: Final = 1.0 / 64.0

# --- priors of testboxes whose boots are not paired ---
# docs/statistics.md, "The posterior of a bisection"

# Shapes of the noise: (share of wild boots, their spread and the distance of their middle from the
# level, both in sd, prior). The data decide between them. The last four are testboxes whose boots
# fall into two modes. Without them a second mode is taken for a change; with them it takes 2 % more
# boots where there is none.
SHAPES: Final = (
    (0.01, 8.0, 0.0, 0.65),
    (0.1, 8.0, 0.0, 0.17),
    (0.3, 4.0, 0.0, 0.06),
    (0.4, 1.2, -3.0, 0.03),
    (0.4, 1.2, 3.0, 0.03),
    (0.4, 2.0, -5.5, 0.03),
    (0.4, 2.0, 5.5, 0.03),
)
# Weight of the two modes that the noise record knows, or that the boots show, beside these shapes.
# Lower: boots that tell which mode is which; 1: a testbox that lost its modes is never believed.
MODES_KNOWN: Final = 0.9
# (factor of the layout spread that is known, prior). Narrower: layout that is worse than recorded
# names commits.
LAYOUT_FACTORS: Final = ((0.4, 0.25), (1.0, 0.5), (2.5, 0.25))
# Odd images are off by far more than the layout spread says, all boots of one alike, as an unlucky
# alignment does it: (share of the images, prior if there are any), and the sd of what they are off
# by on the effect scale. Narrower: odd images that are off by more are named for a step; wider:
# every image takes longer to be believed.
ODD_IMAGES: Final = ((0.05, 0.5), (0.3, 0.5))
ODD_IMAGE_SD: Final = 0.04
# (share of the images, prior if there are odd ones) of images that are all off by the same, just as
# far as the ends are apart; at ODD_IMAGE_SD less likely by exp(-1/2). 0: a second mode of images is
# named for a step; larger: more kernels are measured.
ODD_MODE: Final = (0.3, 0.3)
# `Policy.odd_images` counts so often where no commit can be built in another layout: what cannot be
# checked may not lean on a guess. 1: where images are odd, claims at a stated 95 % are right in 65
# %; larger: more boots and fewer claims.
ODD_IMAGES_UNCHECKED: Final = 1.5
# Kernels on either side of a suspect, itself and its parent counted, that are measured before it is
# named where no commit can be built in another layout. A search halves the range whatever it
# measures: odd images look like a step to it until neighbours are measured too. Fewer: odd images
# name commits; more: builds where images are even.
UNCHECKED_NEIGHBOURS: Final = 4
# Share of the budget after which a bisection ends that has nothing left to doubt but an odd build
# which it cannot check. Lower: kernels that would have shown that images are even stay unmeasured;
# 1: a step beside an end takes the whole budget.
UNCHECKED_BUDGET: Final = 0.3
# Swings that odd ends feign, for each one that a step makes, were all pairs of ends unlike. 0: an
# odd end is named for a step; larger: a step beside an end is believed later where images are odd.
ODD_SWINGS: Final = 2.0
# P(odd images) above which a commit is not named unless it was built in another layout. Higher:
# where images are seen to be odd, an odd one is named.
ODD_IMAGES_SEEN: Final = 0.5
# Prior that the step changes the spread of the boots as well, and the sd of the logarithm of the
# factor. 0: the spread of the noisier side is taken for steps; larger: small steps take more boots.
UNEQUAL_SPREADS: Final = 0.08
UNEQUAL_LN_SD: Final = 1.1
# The size of the step: Gaussians of (multiple of `Policy.prior_effect`, weight). Without the wide
# ones a step of half the level is taken for wild boots.
EFFECT_WIDTHS: Final = ((0.5, 0.7), (3.0, 0.28), (20.0, 0.02))

# --- priors of boots that share a shift: equal k if paired, or the hour of a wandering testbox ---

# (factor of the layout spread that is known, prior).
PAIRED_LAYOUT_FACTORS: Final = ((0.33, 0.25), (1.0, 0.5), (3.0, 0.25))
# Odd images at once of paired boots, at most: of each number the likeliest sets are weighed. Fewer:
# where more are odd, one is named for a step; more: each step of a search takes longer.
ODD_SET: Final = 3
# Relative sd of what k does to all kernels. Wide, so that in effect only differences at the same k
# count. Smaller: the shift of one k is taken for a step.
SHIFT_SD: Final = 0.05
# Relative sd between testboxes of a group: as good as nothing is known. Smaller: a slower testbox
# is taken for a step.
TESTBOX_SD: Final = 0.5
# Prior that a testbox wanders: unknown; seen to wander; seen to stand still.
# Larger: true steps are put down to the testbox; smaller: its drift names commits.
WANDERS_UNKNOWN: Final = 0.1
WANDERS_SEEN: Final = 0.9
WANDERS_NOT_SEEN: Final = 0.005
# By how much it then does: (sd, prior) if unknown, (factor of the sd between days,
# prior) where it was seen to.
WANDER_SD: Final = ((0.7, 0.5), (2.0, 0.5))
WANDER_FACTORS: Final = ((0.5, 0.3), (1.0, 0.5), (2.0, 0.2))
# Over how many boots it moves by that. Only long ones: a drift within a few boots is taken for a
# step; only short ones: a slow one.
WANDER_BOOTS: Final = (6.0, 40.0)
# Boots beyond which time is not looked at, and gaps between measured points beyond which two steps
# are not. Lower: a long search takes a drift for a step, or misses a second one; higher: the work
# grows with the cube and with the square.
WANDER_MOST_BOOTS: Final = 500
TWO_STEPS_MOST_GAPS: Final = 64

# --- the search ---

# Share of all boots that each end gets. More: boots that a search which goes well does not need;
# fewer: two odd boots of an end next to the culprit keep the search among equal kernels for ever.
END_SHARE: Final = 1 / 16
# An end with so many boots whose level is known worse than this multiple of their error is booted
# no more for its level: its image may be odd, and all its boots share it. Higher: boots of one end
# to no purpose, up to the last of the budget.
IMAGE_BOOTS: Final = 6
IMAGE_TOLD: Final = 4.0

# --- confirmation ---

# Layout matters where so many sd between builds of equal code exceed the step: then each pair is of
# other builds, and more pairs confirm. Fewer: layout names commits; more: builds and boots where it
# could not have feigned the step.
LAYOUT_SDS: Final = 8.0
# P(the testbox wanders) from which more pairs confirm. Higher: two pairs agree by chance too often.
WARY_OF_WANDERING: Final = 0.2
# Share of the minimum effect that the fresh boots show at least. Smaller: steps that no one cares
# about are named.
CONFIRMED_SHARE: Final = 0.5
# Denied: so many standard errors above what the fresh boots show is less than this share of what
# the search believes. Fewer errors, or a larger share: true steps are denied. With 2 errors, and
# 0.95 for `Policy.no_change`, five of 500 steps of -2 % were lost.
DENIED_ERRORS: Final = 3.0
DENIED_SHARE: Final = 0.5

# --- more than one step ---

# P(no further step) below which a stretch beside a step that was found is searched too. Higher:
# searches for nothing.
ELSEWHERE_NONE: Final = 0.5

# --- creep ---

# Measured positions, and commits that can be the step, from which a line and a step are
# distinguished. Fewer: any two steps are a line.
CREEP_LEAST_POSITIONS: Final = 5
CREEP_LEAST_COMMITS: Final = 8
# P(creep) from which boots are spread over the range until it is settled. Lower: boots that a step
# does not need.
CREEP_SUSPECT: Final = 0.5
# Places that they are spread over, the ends included, and boots of each before a creep is the
# answer. Fewer: steps in between are taken for a line; more: boots.
CREEP_PLACES: Final = 9
CREEP_BOOTS: Final = 2
# Boots of each of these places after which the search goes on. Higher: boots of kernels that layout
# alone may have moved.
CREEP_MOST_BOOTS: Final = 6
# Prior that any number of steps made the change, and how many are then expected. 0: three steps are
# a creep.
CREEP_MANY_PRIOR: Final = 0.03
CREEP_MANY_STEPS: Final = 4.0

# --- what is reported ---

# Share of the change between the ends that a culprit explains without a word about the rest. Wider:
# a second change goes unsaid.
EXPLAINED_SHARE: Final = (0.6, 1.6)
# P(the step changes the spread of the boots) from which the answer says so. Lower: two odd boots
# are reported as a finding.
SPREAD_CHANGED_P: Final = 0.9
# Probability of the commits that are listed when the budget is spent.
LISTED_P: Final = 0.9
# P(culprit) below which a suspect is cleared, in "so many boots would clear it".
CLEARED_P: Final = 0.5
