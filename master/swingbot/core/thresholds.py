"""The numbers that decide what is believed and what is reported, in the order in which a change
meets them.

Each says its unit, what it means, and what happens when it moves. Two more places belong to this
list: how a search decides is in `core/bisect/thresholds.py`, and what an operator may set himself
is in `app/settings.py`. Whatever only limits sizes or makes the arithmetic work stays where it is
used.

"Relative" is a share: 0.01 is 1 %. "P" is a probability of being wrong where nothing changed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# --- comparing two kernels (core/stats; docs/statistics.md, "Comparing two kernels") ---

# P of a verdict with a direction. Larger: false alarms; smaller: more boots for the same change.
VERDICT_ALPHA: Final = 0.005
# P that the printed interval misses. Readers expect 95 %; it decides nothing.
INTERVAL_ALPHA: Final = 0.05
# Probability with which a planned number of boots shows the change that it is said to resolve.
POWER: Final = 0.8
# Percent (points for a share): the smallest change that matters where a metric does not say.
# Smaller: hundredths of a percent get reported; larger: real losses are called unclear.
MIN_EFFECT_PCT: Final = 1.0
# The same for a counter that no program describes.
UNKNOWN_METRIC_PCT: Final = 5.0
# Relative spread of a boot mean, a pair or a tip that no set of samples can go below.
# Lower: identical values of a repeatable testbox become infinite evidence.
SPREAD_FLOOR: Final = 1e-4
# P at which clean Gaussian runs, or boots, are called wild. Larger: power is lost for nothing.
WILD_ALPHA: Final = 0.01
# P of the same beside the values of its own side alone, which a wild value has to reach too.
# Larger: a noisier side has wild values; smaller: wild boots of few stay in the mean.
WILD_OWN_P: Final = 0.1
# Share of values that may be wild, and that the trimmed mean leaves out at each end. More is a
# second mode, not an outlier.
WILD_SHARE: Final = 0.2
# Boots a side from which one at each end can be spared; of fewer values none is called wild.
FEWEST_WITH_WILD: Final = 5
# P at which steady boots are called drifting, which voids the comparison. Larger: good comparisons
# are thrown away.
TREND_ALPHA: Final = 0.002
# P at which steady boots get a note that they drift, over all headline metrics of a comparison
# together. Larger: notes that mean nothing; smaller: six boots that rise steadily (p = 0.0083 after
# three looks) go unnoticed.
TREND_NOTE_ALPHA: Final = 0.01
# Boots a side from which an unpaired comparison may have a direction where nothing is known of the
# noise's shape. Boots that fall into two modes, half and half, separate completely in 2 / 4^n: 3 a
# side in 3.1 %, 4 in 0.78 %. Fewer: modes are called changes.
FEWEST_UNPAIRED: Final = 4
# Standard deviations within the modes that the widest gap between boots must have to be one between
# modes. Smaller: Gaussian boots are held to the exact test of counts and lose power (6 points at
# 2.0, 6 boots a side); larger: modes go unseen.
MODE_GAP: Final = 4.0
# P at which order alone would put the boots of a side together so often that they ran in blocks.
# Larger: a random order is called blocks and loses power; smaller: blocks of three pass as turns.
BLOCKS_P: Final = 0.1
# P of a change of spread where there is none, over all headline metrics together, and the boots a
# side from which it is looked for. Larger, or fewer boots: boots that fall into modes unevenly are
# called a change of spread.
SPREAD_CHANGE_P: Final = 0.005
SPREAD_CHANGE_BOOTS: Final = 8
# A side that lost more of its runs than this has no level: what is left may be the lucky ones.
LOST_SHARE: Final = 0.25
# Boots are not more alike than their runs allow, but for a chance of this. Larger: independent
# boots get wider intervals; smaller: boots that agree by accident of rounding are believed.
RUNS_ALIKE_P: Final = 0.05
# Spread between two builds of equal code, as a share of the metric's minimum effect: they lie
# differently in memory. On a testbox that counts instructions a null change moved page faults and
# UDP
# by 0.1 %, TCP and hackbench by 0.5 % (minimum effects 2 and 4 %). Smaller: layout is reported as a
# change; larger: small changes need many builds.
LAYOUT_SHARE: Final = 0.05
# Relative: machines whose memory differs by more are not the same. A larger kernel leaves less:
# hundreds of kB, not a fiftieth.
MEMORY_SLACK: Final = 0.02

# --- rows of a table that hold together (core/stats/family.py) ---
# docs/statistics.md, "Tables of N kernels"

# P at which arms that spread alike are taken to differ in it, for the arm that differs most and for
# all together. Larger: more tables lose the power of a pooled spread; smaller: a noisy arm hides in
# it.
SPREADS_AGREE_P: Final = 0.05
# Share of the arms that may spread unlike the others before nothing is pooled. Larger: what is
# pooled is a choice.
SPREADS_ODD_SHARE: Final = 0.25
# Share of the table's P at which a row's own boots have to show a change as well, where the pooled
# spread shows it; less where one arm is in more than two rows (core/stats/simultaneous.py).
# Smaller: tables of few boots lose power; larger: rows of a noisy arm that looks quiet by chance
# get directions (0.5: in 0.65 % of tables, not 0.5 %). Up to four rows Bonferroni's bound is no
# wider, and decides.
FAMILY_OWN_SHARE: Final = 0.25
# Share of Bonferroni's P (that of the table over its rows) at which a row counts whose arms do not
# spread like the others: Welch's form is wrong in 0.6 to 0.8 % instead of 0.5 % where one side is
# three times as noisy, and more so at a smaller P. Larger: that shows in tables where many arms are
# noisy; smaller: power.
FAMILY_UNLIKE_SHARE: Final = 0.5

# --- stage 1: which metrics of a new tip are worth fresh boots (core/plan/screen.py) ---

# P of the look at the history where no later boots test it; the looks at older tips share as much
# (CREEP_P_SHARE). Larger: stage 2 boots for nothing; smaller: swings of 3 sd are missed.
SCREEN_P: Final = 0.005
# Where later boots test it: P for the boots that a tip begins with. Larger: more tips get boots for
# nothing.
SCREEN_FIRST_P: Final = 0.01
# P for all of its boots. Larger: as of SCREEN_P; smaller: what passed with the first boots is lost
# again.
SCREEN_WHOLE_P: Final = 0.008
# P of the comparison with the base, at every number of boots: an unclear row is looked at up to
# four times. Larger: equal kernels get to stage 2 by the base alone in more than 1 of 100; smaller:
# small changes need all SCREEN_BOOTS.
SCREEN_BASE_P: Final = 0.003
# Boots a side more for a tip that is suspected, before any pair is booted; not on a repeatable
# testbox.
SCREEN_MORE_BOOTS: Final = 1
# Share of the alarm that these boots alone have to show. Larger: true changes are dropped by one
# unlucky boot; 0: a coin.
SCREEN_FRESH_SHARE: Final = 0.3
# Earlier tips that a new one is held against. More: a level that moved long ago still counts.
SCREEN_TIPS: Final = 30
# Tips of a branch that are looked at as one history. More: a page of forgotten steps.
HISTORY_TIPS: Final = 400
# Tips before which the comparison with the base alone is the screen. Fewer: a spread of a few tips
# is a guess.
SCREEN_FEWEST_TIPS: Final = 10
# Degrees of freedom of Huber's spread for each of a standard deviation: a history of 30 tips is
# worth 21.
HISTORY_EFFICIENCY: Final = 0.7
# Share of the minimum effect that the middle boot has to show. Smaller: one wild boot raises an
# alarm.
SCREEN_MIDDLE_SHARE: Final = 0.5
# Tips back: a creep of a tenth, a thirtieth, a hundredth of the minimum effect a tip adds up to it.
CREEP_TIPS: Final = (10, 30, 100)
# Share of SCREEN_P that each of these three looks gets.
CREEP_P_SHARE: Final = 0.3
# Tips whose median is the level of an anchor. Fewer: two odd tips there are a creep of all that
# follow; more: a short creep is averaged out.
SCREEN_ANCHOR_TIPS: Final = 5
# Share of a creep that the tip before shows already. Larger: two tips have to agree; smaller: one
# odd tip is a creep.
SCREEN_BEFORE_SHARE: Final = 0.5
# Degrees of freedom, for each level, of what levels differ in: pairs of levels overlap.
CREEP_EFFICIENCY: Final = 0.5
# Last tips whose spread between boots is compared with that of the tips before them. Fewer: three
# times the spread is noticed late.
SPREAD_TIPS: Final = (4, 6, 8, 12, 16, 24)
# P of an alarm about the spread for a tip, over all of these comparisons. Larger: pairs are booted
# for nothing (up to SPREAD_PAIRS[-1] of them); smaller: more tips pass before a change is noticed.
SPREAD_TIPS_P: Final = 1e-4
# Factor between the typical spreads before and after from which a change matters. Smaller: what no
# affordable number of boots confirms; larger: a doubled spread goes unnoticed.
SPREAD_TIPS_TIMES: Final = 2.0
# Boots a side that an unclear row may be extended to. More: a noisy metric holds the testbox for an
# hour a tip.
SCREEN_BOOTS: Final = 12

# --- a whole history of numbers (core/stats/steps.py, core/stats/findings.py) ---

# P of a step in a stretch without one. Larger: more than 1 false step in 1000 points; smaller:
# steps of 1.5 spreads are missed.
STEP_P: Final = 0.03
# P of each of several steps that are found only together. Larger: a series that wanders is cut into
# steps; smaller: a dip is missed.
STEP_TOGETHER_P: Final = 1e-4
# Points of the shortest level. Fewer: two odd points are two steps.
STEP_FEWEST: Final = 3
# P of creep and of a change of spread between steps. Larger: every long history has one.
HISTORY_TREND_P: Final = 0.001
# Points of Schwarz's criterion by which a line must be better than steps that were found: 6 are e^3
# to 1. Smaller: small steps are called creep; larger: a creep is a staircase.
CREEP_MARGIN: Final = 6.0
# Spreads within them that two modes lie apart at least; the halves of Gaussian points are 2.65
# apart. Smaller: noise is two modes.
MODES_SDS: Final = 5.0
# Share of the points in the smaller mode. Fewer are wild points.
MODE_LEAST_SHARE: Final = 0.1

# --- stage 2: is a suspected swing real (core/stats/evidence.py) ---

# False discovery rate of the swings of one head (e-BH): one metric alone is accepted at a Bayes
# factor of 20. Larger: false alarms; smaller: true changes of 1.4 noise sd need more than 16 pairs.
FALSE_DISCOVERY_RATE: Final = 0.05
# So many times the evidence is wanted where no noise record helps: few pairs know their own noise
# badly.
UNRECORDED_FACTOR: Final = 2.5
# Pairs before which nothing is accepted. Fewer, and two wild boots on one side are a swing.
MIN_PAIRS: Final = 4
# The same on a testbox that counts instructions, which has no wild boots that its record would not
# show.
MIN_PAIRS_REPEATABLE: Final = 2
# Pairs after which a swing is given up. 12 lose a quarter of the true changes of two noise sd.
MAX_PAIRS: Final = 20
# Pairs asked for at a time once the first ones did not decide; more on a noisy testbox, where one
# rarely does.
ROUND_PAIRS: Final = 2
ROUND_PAIRS_REPEATABLE: Final = 1
# Boots that did not come up make no pair; so many more are tried before the swing is given up.
SPARE_PAIRS: Final = 4
# Share of the minimum effect below which no mean difference is accepted, however sure. Smaller:
# true but idle changes are bisected.
SWING_LEAST_SHARE: Final = 0.5
# A change must be so many sd of the difference of two layouts: both stages see the same two images,
# so more boots never tell (1 in 10 000).
LAYOUT_SDS: Final = 4.0
# P(change of at least half the minimum) at which we stop. Larger: true changes at the minimum are
# dropped.
FUTILE_P: Final = 0.02
# Bayes factor that must remain without the pair that speaks loudest. 1: two odd boots suffice.
BAYES_WITHOUT_BEST: Final = 5.0
# P at which the pairs refute the noise record (F test), which is then left out: because they are
# noisier ...
PAIRS_NOISIER_P: Final = 0.05
# ... or quieter than it says. Larger: pairs that are close by chance are believed.
PAIRS_QUIETER_P: Final = 1e-4
# A record never counts as more pairs than this: testboxes change.
RECORD_MOST_PAIRS: Final = 16.0
# Prior variance of the change, in noise variances, where the noise is not known beforehand ...
CHANGE_WIDTH: Final = 4.0
# ... and at least where it is. Larger: small changes take longer.
CHANGE_WIDTH_RECORDED: Final = 2.0

# --- the noise of a testbox (core/plan/noise.py; docs/statistics.md, "Noise records") ---

# Robust standard deviations beyond which a value is wild. Smaller: heavy tails are called wild and
# missing in the record.
RECORD_WILD_SDS: Final = 6.0
# A larger share is how the metric behaves, not an outlier: all are kept.
RECORD_WILD_SHARE: Final = 0.2
# Relative: nothing is known to repeat better than that.
RECORD_FLOOR: Final = 1e-5
# Degrees of freedom from which the spread of boots in a record limits the share of a second mode in
# a comparison. Fewer: boots of a record fall into one mode by chance, and its upper limit is so
# wide that Gaussian boots lose power.
RECORD_SHAPE_DF: Final = 20.0
# Share of wild boots above which it does not. Larger: a second mode that was left out as wild
# separates 3 boots a side in more than 0.5 % of comparisons.
RECORD_SHAPE_WILD: Final = 0.1
# P that boots spread more than the limit taken from the record. Larger: an effect of modes passes;
# smaller: more boots for the same effect.
RECORD_SHAPE_P: Final = 0.05
# Observations that the built-in guess counts for beside a record ...
GUESS_DF: Final = 0.5
# ... of a pair on a repeatable testbox without a record ...
GUESS_PAIR_DF: Final = 1.5
# ... and of layout, of which few builds are ever made.
GUESS_LAYOUT_DF: Final = 3.0
# Degrees of freedom from which days are believed to differ by what they did. Fewer: chance.
DAYS_DF: Final = 3.0
# Degrees of freedom at most, +-7 %: testboxes change, whatever the number of boots.
MAX_CERTAINTY: Final = 50.0

# --- is a testbox what it was (core/plan/anchors.py) ---

# P of a steady testbox, four standard deviations. Larger: healthy testboxes stand still; smaller: a
# moved one spoils days of work.
MOVED_LEVEL_P: Final = 6.3e-5
MOVED_SPREAD_P: Final = 1e-4
# Share of the metric's minimum effect below which a shift is harmless, however certain.
MOVED_LEAST_SHARE: Final = 0.25

# --- alerts for the operator (core/plan/alerts.py) ---

# A problem is over once its share falls to this part of the limit. At 1, an alert opens and closes
# with every boot; smaller: it stays open long after the problem.
OVER_SHARE: Final = 0.5

# --- which commit is likely before anything was measured (core/plan/relevance.py) ---

# Prior of a commit that touches no code of the kernel under test, relative to one that does: build
# scripts and Kconfig have been guilty before. Smaller: such a culprit costs many more boots.
PRIOR_NO_CODE: Final = 0.05
# A source without an object of its own beside others that have one: mostly left out by the
# configuration, at times included by another file.
PRIOR_MAYBE_COMPILED: Final = 0.25
# Share of the prior that is spread evenly whatever we think we know: a wrong prior must cost
# little.
PRIOR_EVEN_SHARE: Final = 0.1
# In a branch that was rebased: prior of a patch that the tip before had unchanged, relative to a
# new or changed one. It can only be guilty together with something new. Smaller: such a pair costs
# many more boots; larger: the new patches get no lead.
PRIOR_SAME_PATCH: Final = 0.1
# The same for one that is unchanged, but stands elsewhere in the branch.
PRIOR_MOVED_PATCH: Final = 0.3

# --- is a known culprit still in a rebased branch (core/incident/recognise.py) ---
# docs/incidents.md, "Rebased branches"

# Probability, before any pair, that the unchanged patch of a culprit still does what it did, where
# the tip shows such a change too. Smaller: one pair rarely suffices; larger: a fix elsewhere in the
# branch is overlooked.
STILL_PRIOR: Final = 0.9
# Probability from which it is recognised, or (1 - it) given up. Larger: more pairs for each rebase.
STILL_SURE: Final = 0.95
# Relative: how far the change of one patch differs from one base to another (sd).
# Smaller: a culprit on a new base is taken for another; larger: what weakens it is not looked at.
STILL_SPREAD: Final = 0.2
# Pairs after which the swing is proven and bisected like any other. More: noise is paid for every
# day.
STILL_PAIRS: Final = 4
# Standard errors beyond which what a tip shows more than its known culprits is looked for
# (two-sided P 0.005, as SCREEN_P).
STILL_LEFT_SDS: Final = 2.81

# --- what belongs to a culprit (core/plan/swings.py, core/incident/level.py) ---

# Boots a side of culprit and parent: the numbers that are printed come from these.
ATTRIBUTE_BOOTS: Final = 3
# The same of a culprit that changes the spread between boots. Fewer: three times the spread is not
# shown (20: in 72 %, 24: in 87 %).
ATTRIBUTE_SPREAD_BOOTS: Final = 24
# A commit explains a swing of the whole branch if it alone makes at least this share of it.
# Less, and another commit has a part in it.
EXPLAINED_SHARE: Final = 0.6
# A change of which no more than this share is left has gone; the other side of EXPLAINED_SHARE.
# Larger: half a fix closes an incident.
GONE_SHARE: Final = 0.4
# A change of which at least this share is left is still there. Smaller: what is neither gone nor
# there is reported as still present.
STILL_SHARE: Final = 0.6
# Boots a side of the culprit's parent and a tip that is said to have the fix.
FIX_BOOTS: Final = 5
FIX_BOOTS_REPEATABLE: Final = 3

# --- proof (core/proof; docs/proof.md) ---

# Boots a side of a gate to begin with, and at most: a gate that is unclear gets twice as many.
GATE_BOOTS: Final = 5
GATE_MOST_BOOTS: Final = 20
GATE_BOOTS_REPEATABLE: Final = 3
GATE_MOST_BOOTS_REPEATABLE: Final = 12
# Another pair of kernels shows the commit's change if it has at least this share of it.
# Less than half, and something else on the way there has the larger part in the number.
PRESENT_SHARE: Final = 0.5
# A counter whose change is nearer to the metric's own than this share of it follows the amount of
# work done and explains nothing. Larger: true clues are left out.
CLUE_FOLLOWS_SHARE: Final = 0.25
# Percent: smaller changes of a counter are there in any two kernels.
CLUE_LEAST_PCT: Final = 2.0

# --- which mails leave by themselves (core/moderation) and when (core/report) ---

# Reports of a class that a person released before the class leaves by itself. Fewer, and one lucky
# week makes it automatic.
EARNED_RELEASED: Final = 20
# Percent of the decided ones that a person may have dropped. More, and one mail in ten that a
# person would have stopped leaves.
EARNED_DROPPED_PCT: Final = 5
# A digest that is later than this many weeks is news no more.
DIGEST_WEEKS: Final = 4
# After the week's end: what was measured on Sunday night has been judged by then. Shorter: what is
# judged late may miss its digest.
DIGEST_GRACE: Final = timedelta(hours=6)
