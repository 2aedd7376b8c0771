"""The numbers that decide what a bisection believes and reports, in the order of use.

`Policy` holds those that callers set: the service from its settings, `swingbot bisect run` from its
options, benchmarks to find what a number costs. The others are constants. Each comment gives the
unit, the meaning, and the consequence of another value. The expected noise of an unmeasured testbox
is `EMULATED` and `NOISY` in core/model/noise.py; grids and tolerances of the arithmetic are defined
where they are used.

"sd" is a standard deviation, of one boot unless stated otherwise; "relative" is a share: 0.01 is
1 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from swingbot.core.thresholds import INTERVAL_ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Numbers by which a bisection decides. A journal stores them with each step."""

    # P(culprit) at which a commit is named. Lower: wrong commits are named; higher: a third more
    # boots for each further nine.
    confidence: float = 0.99
    # P(culprit), given that there is one, at which its confirmation begins. Higher: boots of the
    # search that the confirmation could have replaced; 0.9: 2 % more boots.
    suspect: float = 0.75
    # Total boots, not counting the last pairs of a confirmation. Lower: small effects on noisy
    # testboxes end inconclusive; higher: a hopeless bisection occupies the testbox for days.
    max_boots: int = 200

    # Boots of each end before anything is judged. 1: the spread is unknown; more: boots where few
    # are needed.
    boots_per_end: int = 2
    # Boots of each end after which the ends count as indistinguishable. Fewer: small swings are
    # dropped; more: a hopeless bisection costs more boots.
    max_end_boots: int = 30
    # P(no change that matters) at which the swing counts as not reproduced. Lower: true small
    # swings are dropped.
    no_change: float = 0.97
    # The same after `max_end_boots`. As of `no_change`.
    no_change_at_last: float = 0.95
    # P(a change that matters) at which the search begins. Higher: more end boots; lower: searches
    # for nothing.
    reproduced: float = 0.75

    # Prior that there is no change; low, because a swing was seen before the bisection started. 0:
    # "not reproduced" becomes impossible.
    prior_no_change: float = 0.1
    # Prior that two commits of the range changed the metric. 0: one is named, the other missed.
    prior_two: float = 0.05
    # Prior that the level creeps, that is, moves with every commit by the same share. 0: commits of
    # a creep are reported as steps; larger: more boots for real steps.
    prior_creep: float = 0.03
    # P(creep) at which it is the answer. Lower: several steps are reported as a creep; higher: more
    # boots, and more bisections without an answer.
    creep: float = 0.95
    # P(two steps) at which both sides are searched separately; a side without a step ends by
    # itself. Lower: boots for a second step that is not there; higher: two steps are mistaken for
    # one for longer.
    two: float = 0.5
    # Prior that some images are odd. 0: an odd image at an end, or beside one, is reported as a
    # step; larger: more builds in other layouts where no image is odd.
    odd_images: float = 0.16
    # Prior sd of the log effect. Far too small: large steps are missed; far too large: small ones.
    prior_effect: float = 0.1

    # Pairs of fresh boots that confirm. 1: a single outlier can confirm.
    confirm_boots: int = 2
    # Further pairs if layout or a wandering testbox could explain the step. Without them, three of
    # 70 such claims were wrong.
    wary_boots: int = 2
    # Pairs after which boots that deny the step end the bisection. Lower: a true step is denied by
    # chance.
    max_confirm: int = 6
    # P(the printed interval does not contain the effect). As of `INTERVAL_ALPHA`.
    interval_alpha: float = INTERVAL_ALPHA
    # Failed boots after which a kernel counts as unbootable. 1: one flaky boot excludes it.
    boot_tries: int = 2

    # Boots of the search in flight. 2: 8 % less time, 8 to 40 % more boots, a third more builds
    # (benchmarks, -5 % on run CV 2 %).
    parallel: int = 1
    # Share of the information of the best boot that a further boot in flight must have. 0: the
    # testbox is always busy, with twice the boots.
    worth: float = 0.55
    # Squared distance of the levels, in sd, from which a boot under way counts as answered when the
    # next is chosen. Lower: testboxes of a group spread out.
    decisive: float = 9.0
    # Share of the remaining uncertainty that the rest of the budget must be able to resolve.
    # Higher: gives up where more boots would have succeeded.
    hopeless: float = 0.4
    # Bits of a boot below which more boots cannot distinguish the remaining commits. Higher: gives
    # up earlier; lower: boots without information.
    least_gain: float = 0.0002


# --- in a group of testboxes, where idle testboxes cost nothing and time does ---

# Most boots of each end, one for each testbox. More: ends that differ clearly are booted again.
GROUP_BOOTS_PER_END: Final = 4
# Used in place of `Policy.decisive` and `Policy.worth`. Higher: testboxes are idle; lower: boots
# repeat what another one tells.
GROUP_DECISIVE: Final = 4.0
GROUP_WORTH: Final = 0.3

# --- hints about a commit ---

# Factors of a hint. Wider: a wrong hint outweighs more boots than the bisection has.
HINT_LEAST, HINT_MOST = 0.001, 1000.0
# Least weight of a commit after hints, as a share of the mean weight. 0: a hint can rule out the
# culprit.
HINT_FLOOR: Final = 0.1

# Prior probability that no commit of `bisect run --paths` is the culprit. 0: an innocent commit of
# the paths gets the whole probability. Larger: more boots where the paths are right.
PATHS_WRONG: Final = 0.05

# --- properties of boots ---

# Failed boots for each good one of the same kernel, beyond `Policy.boot_tries`, after which it
# counts as unbootable. Fewer: kernels that boot every other time are lost.
FAILED_PER_GOOD: Final = 2
# Units of the last digit in a level from which boots that repeat have no noise: a coarser scale
# repeats by rounding. Lower: noise below the digits is taken for none; higher: equal boots.
EXACT_UNITS: Final = 10_000
# Boots of each end on such a testbox. More: equal boots; fewer: an end that differs by chance.
EXACT_END_BOOTS: Final = 3
# P(wild) from which a boot is excluded from a printed effect. Lower: boots are excluded because
# they do not fit.
WILD_P: Final = 0.5
# P that chance puts wild boots so unevenly before and behind the step (Fisher's test), below which
# they belong to the kernel and count in a printed effect. Larger: disturbed boots widen effects; 0:
# where 60 % of the boots behind a step show it, the others are left out.
WILD_APART_P: Final = 0.1
# Weight of such a boot in the search for wandering, relative to a good one. 1: a wild boot is
# mistaken for a moving testbox.
WILD_WEIGHT: Final = 1.0 / 64.0

# --- priors of testboxes whose boots are not paired ---
# docs/statistics.md, "The posterior of a bisection"

# Shapes of the noise: (share of wild boots, their spread and the distance of their mean from the
# level, both in sd, prior). The data decide between them. The last four describe testboxes whose
# boots fall into two modes. Without them a second mode is mistaken for a change; with them, boots
# of one mode cost 2 % more.
SHAPES: Final = (
    (0.01, 8.0, 0.0, 0.65),
    (0.1, 8.0, 0.0, 0.17),
    (0.3, 4.0, 0.0, 0.06),
    (0.4, 1.2, -3.0, 0.03),
    (0.4, 1.2, 3.0, 0.03),
    (0.4, 2.0, -5.5, 0.03),
    (0.4, 2.0, 5.5, 0.03),
)
# Weight of the two modes of the noise record, or of those that the boots show, against these
# shapes. Lower: boots are spent to tell the modes apart; 1: a testbox that lost its modes is never
# recognised.
MODES_KNOWN: Final = 0.9
# Share of the boots of an image that may be at a bound of the scale; if more are, the others do not
# tell how boots differ. Higher: the spread is estimated too small.
MOST_AT_BOUND: Final = 0.2
# (factor of the known layout spread, prior). Narrower: a layout spread that is worse than recorded
# causes wrong claims.
LAYOUT_FACTORS: Final = ((0.4, 0.25), (1.0, 0.5), (2.5, 0.25))
# The offset of an odd image is far larger than the layout spread and equal in all its boots, as
# caused by an unlucky alignment: (share of the images, prior given that there are any), and the sd
# of the offset on the effect scale. Narrower: odd images with larger offsets are reported as steps;
# wider: every image needs more boots.
ODD_IMAGES: Final = ((0.05, 0.5), (0.3, 0.5))
ODD_IMAGE_SD: Final = 0.04
# (share of the images, prior given that there are odd ones) of images with one common offset equal
# to the difference of the ends; at ODD_IMAGE_SD less likely by exp(-1/2). 0: a second mode of
# images is reported as a step; larger: more kernels are measured.
ODD_MODE: Final = (0.3, 0.3)
# Factor of `Policy.odd_images` if no commit can be built in another layout, because then odd images
# cannot be ruled out. 1: where images are odd, claims at a stated 95 % are right in 65 %; larger:
# more boots and fewer claims.
ODD_IMAGES_UNCHECKED: Final = 1.5
# Kernels on each side of a suspect, itself and its parent included, that are measured before it is
# named if no commit can be built in another layout. A search halves the range whatever it measures,
# so odd images look like a step until their neighbours are measured too. Fewer: odd images cause
# wrong claims; more: builds where no image is odd.
UNCHECKED_NEIGHBOURS: Final = 4
# The same where boots repeat to the last digit: one boot of a kernel is all that it can tell, and
# costs little. 4: where 30 % of the images are odd, 4 of 25 ranges without a culprit get one.
UNCHECKED_NEIGHBOURS_EXACT: Final = 8
# Least and most boots of each image beside a suspect, controls included, where an odd image is the
# only doubt, and the standard errors of its level that fit into the step by then. Fewer: noisy
# testboxes leave suspects; more: boots where images are odd.
IMAGE_CHECK_BOOTS: Final = (4, 12)
IMAGE_CHECK_ERRORS: Final = 8.0
# Swings caused by odd ends for each swing caused by a step, if all pairs of ends differed. 0: an
# odd end is reported as a step; larger: a step beside an end needs more boots where images are odd.
ODD_SWINGS: Final = 2.0
# P(odd images) above which a commit is named only after it was built in another layout. Higher: an
# odd image is named although images are known to be odd.
ODD_IMAGES_SEEN: Final = 0.5
# Least P(odd images) with which a probability is stated if no commit can be built in another
# layout. 0: where 30 % of the images are odd, five of 13 ranges without a culprit got one at 92 to
# 98 %; 1: a commit beside an end is named with less than one half.
ODD_IMAGES_STATED: Final = 0.25
# Prior that the step changes the spread of the boots as well, and the sd of the logarithm of the
# factor. 0: the spread of the noisier side is mistaken for steps; larger: small steps need more
# boots.
UNEQUAL_SPREADS: Final = 0.08
UNEQUAL_LN_SD: Final = 1.1
# Prior odds that each kernel has a spread of boots of its own, against a step of the spread, and
# the sds of the logarithms of such spreads. 0: where kernels have 0.4 to 2.7 times the noise, 8 of
# 25 ranges get a culprit at 99.7 %; larger: a step of the spread needs boots of more kernels.
OWN_SPREADS: Final = 0.5
OWN_LN_SDS: Final = (0.25, 0.5, 1.0)
# sd of the logarithm of the spreads of kernels on one side of a step of the spread. 0: small
# differences between images refute the step.
ALIKE_LN_SD: Final = 0.1
# Degrees of freedom to which other kernels are booted to show that a step of the spread lasts: of
# each kernel, and of all on one side. Fewer: it stays a suspect more often.
LASTING_BOOTS: Final = (8, 40)
# Weight of the noise record in the spread of one end alone. Larger: an end that is noisier than the
# record is not believed; smaller: few boots of an end decide its spread.
END_CERTAINTY: Final = 0.75
# Prior of the size of the step: Gaussians of (multiple of `Policy.prior_effect`, weight). Without
# the wide ones a step of half the level is mistaken for wild boots.
EFFECT_WIDTHS: Final = ((0.5, 0.7), (3.0, 0.28), (20.0, 0.02))

# --- runs that take another path ---

# Prior that the step changes the share of such runs or boots, half of it at an unchanged level of
# the others. 0: a path that one run in seven takes is "no change"; larger: disturbed runs are one.
SLOW_PATH_STEP: Final = 0.1
# Likelihood of two shares over that of one, from the fresh boots alone, that confirms such a step,
# and below which they deny it. Lower: chance confirms; higher: more boots.
SLOW_PATH_CONFIRMED: Final = 30.0
SLOW_PATH_DENIED: Final = 0.1
# P(the step changes the share of slow boots) from which no fresh boot is left out of an effect, and
# its spread includes both kinds of boots. Higher: intervals of -10 % in 60 % of boots say -10 %;
# lower: more fresh boots where some are wild.
SLOW_PATH_PERHAPS: Final = 0.2
# Fresh pairs after which it is neither. More: boots where nothing changed.
SLOW_PATH_MOST_PAIRS: Final = 32

# --- priors of boots that share a shift: equal k if paired, or the hour of a wandering testbox ---

# (factor of the known layout spread, prior). Narrower: as of `LAYOUT_FACTORS`.
PAIRED_LAYOUT_FACTORS: Final = ((0.33, 0.25), (1.0, 0.5), (3.0, 0.25))
# Most odd images at once in paired boots; for each number the likeliest sets are weighed. Fewer:
# where more are odd, one is reported as a step; more: each step of a search takes longer.
ODD_SET: Final = 3
# Relative sd of the shift of one k, common to all kernels. Wide, so that in effect only differences
# at the same k count. Smaller: the shift of one k is mistaken for a step.
SHIFT_SD: Final = 0.05
# Relative sd between testboxes of a group, so wide that it says next to nothing. Smaller: a slower
# testbox is mistaken for a step.
TESTBOX_SD: Final = 0.5
# Prior that a testbox wanders: not measured; measured and wandering; measured and stable. Larger:
# true steps are attributed to the testbox; smaller: its drift causes wrong claims.
WANDERS_UNKNOWN: Final = 0.1
WANDERS_SEEN: Final = 0.9
WANDERS_NOT_SEEN: Final = 0.005
# Size of the wandering: (sd, prior) if not measured, (factor of the sd between days, prior) if
# measured. Smaller: drift is mistaken for steps; larger: steps for drift.
WANDER_SD: Final = ((0.7, 0.5), (2.0, 0.5))
WANDER_FACTORS: Final = ((0.5, 0.3), (1.0, 0.5), (2.0, 0.2))
# Boots over which it moves by that much. Only long ones: a drift within a few boots is mistaken for
# a step; only short ones: a slow drift is.
WANDER_BOOTS: Final = (6.0, 40.0)
# Boots beyond which time is ignored, and gaps between measured points beyond which two steps are.
# Lower: a long search mistakes a drift for a step, or misses a second step; higher: the work grows
# with the cube and with the square.
WANDER_MOST_BOOTS: Final = 500
TWO_STEPS_MOST_GAPS: Final = 64

# --- the search ---

# Share of all boots that each end gets. More: boots that most searches do not need; fewer: two
# outliers of an end next to the culprit keep the search among equal kernels forever.
END_SHARE: Final = 1 / 16
# An end with that many boots whose variance exceeds that of their mean by this factor is not booted
# again for its level: its image may be odd, and all its boots share it. Higher: useless boots of
# one end, up to the whole budget.
IMAGE_BOOTS: Final = 6
IMAGE_VARIANCE: Final = 4.0
# P(commit) from which both sides of a commit are examined closely. Larger: the best boot is missed;
# smaller: each choice takes longer.
LIKELY_COMMIT: Final = 0.02
# P(the step is on the other side) below which a kernel needs no more boots. Larger: a kernel that
# could still decide gets none; smaller: each choice takes longer.
SETTLED_SIDE: Final = 1e-3
# P(culprit) from which no kernels are built in advance: existing ones confirm it. Larger: builds
# that no one needs; smaller: the search waits for builds.
NO_BUILDS_AHEAD: Final = 0.9

# --- confirmation ---

# Layout matters if that many sd between builds of equal code exceed the step: then each pair uses
# new builds, and more pairs confirm. Fewer: layout causes wrong claims; more: builds and boots
# where layout cannot explain the step.
LAYOUT_SDS: Final = 8.0
# P(the testbox wanders) from which more pairs confirm. Higher: two pairs agree by chance too often.
WARY_OF_WANDERING: Final = 0.2
# Least effect of the fresh boots, as a share of the minimum effect. Smaller: steps that do not
# matter are named.
CONFIRMED_SHARE: Final = 0.5
# Fresh boots deny a step if their effect plus that many standard errors is less than this share of
# the effect that the search found. Fewer errors, or a larger share: true steps are denied. With 2
# errors and 0.95 for `Policy.no_change`, five of 500 steps of -2 % were lost.
DENIED_ERRORS: Final = 3.0
DENIED_SHARE: Final = 0.5

# --- more than one step ---

# P(no further step) below which a subrange beside a confirmed step is searched too. Higher:
# searches of subranges without a step.
ELSEWHERE_NONE: Final = 0.5

# --- creep ---

# Measured positions, and possible culprits, from which a line is distinguished from a step. Fewer:
# any two steps look like a line.
CREEP_LEAST_POSITIONS: Final = 5
CREEP_LEAST_COMMITS: Final = 8
# P(creep) from which boots are spread over the range until the question is settled. Lower: boots
# that a step does not need.
CREEP_SUSPECT: Final = 0.5
# Places over which they are spread, the ends included, and boots of each before a creep is the
# answer. Fewer: steps in between are mistaken for a line; more: boots.
CREEP_POSITIONS: Final = 9
CREEP_BOOTS: Final = 2
# Boots of each of these places after which the search continues. Higher: boots of kernels that
# layout alone may have moved.
CREEP_MOST_BOOTS: Final = 6
# Prior that any number of steps caused the change, and the expected number. 0: three steps are
# reported as a creep.
CREEP_MANY_PRIOR: Final = 0.03
CREEP_MANY_STEPS: Final = 4.0

# --- what is reported ---

# Shares of the change between the ends that a culprit may explain without a note about the rest.
# Wider: a second change is not mentioned.
EXPLAINED_SHARE: Final = (0.6, 1.6)
# P(the step changes the spread of the boots) from which the answer says so. Lower: two outliers are
# reported as a finding.
SPREAD_CHANGED_P: Final = 0.9
# P(the step changes the spread of the boots) from which ends whose levels do not differ are booted
# again, instead of ending the bisection. Lower: more boots where nothing changed.
SPREAD_SUSPECT: Final = 0.5
# Numbers of fresh pairs after which the spreads of a suspect and its parent are compared, and the
# errors of each comparison; the smallest that shows a change counts in the probability. Fewer
# pairs: a factor of three is not seen; a higher first error: chance is a finding.
SPREAD_PAIRS: Final = (8, 12, 16, 24, 32)
SPREAD_STEP_ALPHA: Final = 0.005
SPREAD_STEP_ALPHAS: Final = (SPREAD_STEP_ALPHA, 0.002, 0.001, 0.0005, 0.0002, 0.0001)
# Total probability of the commits that are listed when the budget is spent. Higher: longer lists;
# lower: the culprit is more often not on it.
LISTED_P: Final = 0.9
# P(culprit) below which a suspect counts as cleared, in "N more boots would clear it". Lower: more
# boots are forecast.
CLEARED_P: Final = 0.5
