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

# P of a verdict with a direction if nothing changed. Larger: false alarms; smaller: more boots for
# the same change.
VERDICT_ALPHA: Final = 0.005
# P that the printed interval misses the effect; readers expect 95 %. Larger: narrower intervals
# that miss more often. Verdicts do not depend on it.
INTERVAL_ALPHA: Final = 0.05
# Probability that the planned number of boots detects the change that it is meant to resolve.
# Larger: more boots are planned; smaller: planned comparisons end unclear more often.
POWER: Final = 0.8
# Percent (points for a share): the smallest change that matters in `swingbot stats` if the metric
# does not set one. Smaller: changes of hundredths of a percent are reported; larger: real losses
# are called unclear.
MIN_EFFECT_PCT: Final = 1.0
# The same for a counter that no program describes. Smaller: counters fill the table with changes;
# larger: fewer of them are shown.
UNKNOWN_METRIC_PCT: Final = 5.0
# Lower limit of the relative spread of a boot mean, a pair or a tip. Lower: identical values of a
# repeatable testbox become infinite evidence.
SPREAD_FLOOR: Final = 1e-4
# P at which clean Gaussian runs, or boots, are called wild. Larger: power is lost without need.
WILD_ALPHA: Final = 0.01
# P that a wild value must also reach among the values of its own side alone. Larger: a noisier side
# has wild values; smaller: wild boots among few stay in the mean.
WILD_OWN_P: Final = 0.1
# Distance of a run from the middle of its boot, in sd of runs, from which it is on another path.
# Fewer: heavy tails are a path; more: a path near the others is not seen, and widens the noise.
FAR_RUN_SDS: Final = 5.0
# How far runs of a boot take the path together: (correlation, prior). Only 0: a boot that was
# disturbed for a while looks like a path.
FAR_RUNS_TOGETHER: Final = ((0.0, 0.5), (0.15, 0.3), (0.5, 0.2))
# P that equal kernels have wild runs so unevenly. Larger: a disturbance that hit one side counts as
# its kernel's; smaller: a path that few runs of a kernel take is left out of its level.
SLOW_PATH_P: Final = 0.01
# Share of values that may be wild, and that the trimmed mean leaves out at each end. Larger: a
# second mode is called an outlier.
WILD_SHARE: Final = 0.2
# Minimum boots a side for which one at each end can be dropped; with fewer, none is called wild.
# Smaller: two or three boots lose one of them; larger: a wild boot among few stays in the mean.
FEWEST_WITH_WILD: Final = 5
# P at which steady boots are called drifting, which voids the comparison. Larger: good comparisons
# are thrown away.
TREND_ALPHA: Final = 0.002
# P at which steady boots get a note that they drift, over all headline metrics of a comparison
# together. Larger: meaningless notes; smaller: six boots that rise steadily (p = 0.0083 after three
# looks) go unnoticed.
TREND_NOTE_ALPHA: Final = 0.01
# Minimum boots a side for a direction in an unpaired comparison if no noise record says how far
# boots spread. Boots that fall into two modes, half and half, separate completely in 2 / 4^n: 3 a
# side in 3.1 %, 4 in 0.78 %. Fewer: modes are called changes.
FEWEST_UNPAIRED: Final = 4
# Minimum size of a gap between two modes, in standard deviations within the modes. Smaller:
# Gaussian boots are held to the exact test of counts and lose power (6 points at 2.0, 6 boots a
# side); larger: modes are not noticed.
MODE_GAP: Final = 4.0
# P of a random order below which the boots of a side are taken to have run in blocks. Larger: a
# random order is called blocks and loses power; smaller: blocks of three count as alternating.
BLOCKS_P: Final = 0.1
# P of reporting a change of spread if there is none, over all headline metrics together. Larger:
# boots that fall into modes unevenly are called a change of spread.
SPREAD_CHANGE_P: Final = 0.005
# Minimum boots a side to test for a change of spread. Fewer: boots that fall into modes unevenly
# are called a change of spread.
SPREAD_CHANGE_BOOTS: Final = 8
# Share of its runs that a side may lose and still have a level. Larger: the remaining runs may be a
# biased selection; smaller: one crash voids a side.
LOST_SHARE: Final = 0.25
# P below which boots that are more alike than their runs allow are not taken to be independent.
# Larger: independent boots get wider intervals; smaller: boots that agree by accident of rounding
# are believed.
RUNS_ALIKE_P: Final = 0.05
# Spread between two builds of equal code with different memory layout, as a share of the metric's
# minimum effect. On a testbox that counts instructions, a null change moved page faults and UDP by
# 0.1 %, TCP and hackbench by 0.5 % (minimum effects 2 and 4 %). Smaller: layout is reported as a
# change; larger: small changes need many builds.
LAYOUT_SHARE: Final = 0.05
# Degrees of freedom from which the measured spread between layouts replaces this share. Fewer: the
# interval, by Student's t, is wider than the share makes it.
LAYOUT_DF: Final = 3.0
# Relative difference of memory above which two boots are taken to be from different machines.
# Smaller: a larger kernel, which leaves less memory (hundreds of kB, not a fiftieth), looks like
# another machine.
MEMORY_SLACK: Final = 0.02

# --- rows of a table that hold together (core/stats/family.py) ---
# docs/statistics.md, "Tables of N kernels"

# P at which arms with equal spreads are taken to differ, for the most different arm and for all
# together. Larger: more tables lose the power of a pooled spread; smaller: a noisy arm hides in it.
SPREADS_AGREE_P: Final = 0.05
# Share of the arms that may have a different spread before pooling is abandoned. Larger: the pool
# is a biased selection.
SPREADS_ODD_SHARE: Final = 0.25
# Share of the table's P at which a row's own boots must show a change too if the pooled spread
# shows it; less if one arm is in more than two rows (`core/stats/simultaneous.py`). For up to four
# rows Bonferroni's bound is no wider and decides. Smaller: tables of few boots lose power; larger:
# rows of a noisy arm that looks quiet by chance get directions (0.5: in 0.65 % of tables, not 0.5
# %).
FAMILY_OWN_SHARE: Final = 0.25
# Share of Bonferroni's P (that of the table over its rows) at which a row counts if its arms have a
# different spread: Welch's form is wrong in 0.6 to 0.8 % instead of 0.5 % where one side is three
# times as noisy, and more so at a smaller P. Larger: more wrong directions in tables with many
# noisy arms; smaller: power is lost.
FAMILY_UNLIKE_SHARE: Final = 0.5

# --- stage 1: which metrics of a new tip are worth fresh boots (core/plan/screen.py) ---

# P of the comparison with the history if no later boots test it; the comparisons with older tips
# share the same (`CREEP_P_SHARE`). Larger: unnecessary boots in stage 2; smaller: swings of 3 sd
# are missed.
SCREEN_P: Final = 0.005
# P for the first boots of a tip, where later boots test the alarm. Larger: more tips get
# unnecessary boots.
SCREEN_FIRST_P: Final = 0.01
# P for all boots of such a tip together. Larger: unnecessary boots in stage 2; smaller: alarms of
# the first boots are lost again.
SCREEN_WHOLE_P: Final = 0.008
# P of the comparison with the base, at every number of boots: an unclear row is judged up to four
# times. Larger: equal kernels reach stage 2 through the base alone in more than 1 of 100 cases;
# smaller: small changes need all `SCREEN_BOOTS`.
SCREEN_BASE_P: Final = 0.003
# Additional boots a side for a suspected tip, before any pair is booted; not on a repeatable
# testbox. More: each suspicion costs more; 0: only pairs test the alarm.
SCREEN_MORE_BOOTS: Final = 1
# Share of the alarm that these later boots alone must show. Larger: one unlucky boot drops a true
# change; 0: chance decides.
SCREEN_FRESH_SHARE: Final = 0.3
# Number of earlier tips with which a new one is compared. More: a level that moved long ago still
# counts.
SCREEN_TIPS: Final = 30
# Tips of a branch that are analysed as one history. More: a page of old steps.
HISTORY_TIPS: Final = 400
# Minimum tips for alarms from the history; with fewer, only the comparison with the base raises
# alarms. Fewer: a spread of a few tips is a guess.
SCREEN_FEWEST_TIPS: Final = 10
# Degrees of freedom of Huber's spread relative to a standard deviation's: a history of 30 tips is
# worth 21. Larger: overestimates what the history tells.
HISTORY_EFFICIENCY: Final = 0.7
# Share of the minimum effect that the middle boot must show. Smaller: one wild boot raises an
# alarm.
SCREEN_MIDDLE_SHARE: Final = 0.5
# How many tips back a new tip is compared with to find creep. Further back: slower creep is
# detected (a hundredth of the minimum effect per tip reaches it after 100 tips).
CREEP_TIPS: Final = (10, 30, 100)
# Share of `SCREEN_P` for each of these three comparisons. Larger: false alarms of creep; smaller:
# creep is detected later.
CREEP_P_SHARE: Final = 0.3
# Tips whose median is the level of an anchor. Fewer: two odd tips look like a creep of all later
# ones; more: a short creep is averaged out.
SCREEN_ANCHOR_TIPS: Final = 5
# Share of a creep that the previous tip must show already. Larger: two tips must agree; smaller:
# one odd tip is called a creep.
SCREEN_BEFORE_SHARE: Final = 0.5
# Degrees of freedom, for each level, of the differences between levels: pairs of levels overlap.
# Larger: overestimates what the differences tell.
CREEP_EFFICIENCY: Final = 0.5
# Last tips whose spread between boots is compared with that of the tips before them. Fewer: three
# times the spread is noticed late.
SPREAD_TIPS: Final = (4, 6, 8, 12, 16, 24)
# P of an alarm about the spread for a tip, over all of these comparisons. Larger: pairs are booted
# for nothing, up to 32 of them; smaller: more tips pass before a change is noticed.
SPREAD_TIPS_P: Final = 1e-4
# Factor between the typical spreads before and after from which a change matters. Smaller: changes
# that no affordable number of boots confirms; larger: a doubled spread goes unnoticed.
SPREAD_TIPS_TIMES: Final = 2.0
# Maximum boots a side for an unclear row. More: a noisy metric occupies the testbox for an hour per
# tip.
SCREEN_BOOTS: Final = 12

# --- a whole history of numbers (core/stats/steps.py, core/stats/findings.py) ---

# P of a step in a stretch without one. Larger: more than 1 false step in 1000 points; smaller:
# steps of 1.5 spreads are missed.
STEP_P: Final = 0.02
# P that the ranks of the points of a step must also reach. Larger: steps in heavy tails and where
# many reach a bound; smaller: steps of 1.5 spreads are missed.
STEP_RANK_P: Final = 0.1
# P of each of several steps that are only detected together. Larger: a wandering series is split
# into steps; smaller: a dip is missed.
STEP_TOGETHER_P: Final = 1e-4
# Points of Schwarz's criterion by which steps found all at once must beat those found one by one.
# Smaller: a level that wanders is cut into steps; larger: many steps hide each other.
TOGETHER_MARGIN: Final = 10.0
# P of a level that may have begun in the last points. Larger: more flat histories have one;
# smaller: a new level of two points, three spreads away, is not mentioned.
CANDIDATE_P: Final = 0.2
# Points of the shortest level, and of one with a step up and a step down beside it. Fewer: wild
# points make steps.
STEP_FEWEST: Final = 2
STEP_FEWEST_INSIDE: Final = 4
# Times by which the differences of neighbours must change for the parts of a history to be analysed
# one by one. Smaller: both parts of a quiet history lose power; larger: steps are found in what is
# noise after the change.
LOUDER_TIMES: Final = 4.0
# P of creep and of a change of spread between steps. Larger: false findings in every long history.
HISTORY_TREND_P: Final = 0.001
# P that the ranks of the distances must also reach for a change of spread. Larger: false ones in
# heavy tails and where many reach a bound; smaller: a spread of few points is missed.
SPREAD_RANK_P: Final = 0.03
# Points of Schwarz's criterion by which a line must beat the detected steps: 6 are e^3 to 1.
# Smaller: small steps are called creep; larger: a creep is called a series of steps.
CREEP_MARGIN: Final = 6.0
# Minimum distance of two modes, in spreads within them; the halves of Gaussian points are 2.65
# apart. Smaller: noise is called two modes.
MODES_SDS: Final = 5.0
# Minimum share of the points in the smaller mode. Smaller: wild points are called a mode.
MODE_LEAST_SHARE: Final = 0.1

# --- stage 2: is a suspected swing real (core/stats/evidence.py) ---

# False discovery rate of the swings of one head (e-BH): one metric alone is accepted at a Bayes
# factor of 20. Larger: false alarms; smaller: true changes of 1.4 noise sd need more than 16 pairs.
FALSE_DISCOVERY_RATE: Final = 0.05
# Factor of the required evidence if there is no noise record: few pairs estimate their own noise
# badly. Smaller: false swings on new testboxes; larger: more pairs on them.
UNRECORDED_FACTOR: Final = 2.5
# Minimum number of pairs. Fewer: two wild boots on one side make a swing.
MIN_PAIRS: Final = 4
# The same on a testbox that counts instructions, which has no wild boots that its record would not
# show. More: boots without information.
MIN_PAIRS_REPEATABLE: Final = 2
# Pairs after which a swing is dropped. Fewer: 12 lose a quarter of the true changes of two noise
# sd; more: a noisy metric occupies the testbox.
MAX_PAIRS: Final = 20
# Pairs requested at a time after the first ones. Fewer: more rounds on a noisy testbox, where one
# pair rarely decides.
ROUND_PAIRS: Final = 2
# The same on a repeatable testbox. More: boots after the decision.
ROUND_PAIRS_REPEATABLE: Final = 1
# Additional pairs if boots fail, before the swing is dropped. Fewer: swings of kernels that often
# fail to boot are lost; more: kernels that never boot cost more.
SPARE_PAIRS: Final = 4
# Share of the minimum effect below which no mean difference is accepted, however certain. Smaller:
# true but irrelevant changes are bisected.
SWING_LEAST_SHARE: Final = 0.5
# Sd of the difference of two layouts that a change must exceed: both stages use the same two
# images, so more boots cannot help (1 in 10 000). Smaller: layout is bisected; larger: changes near
# the minimum are dropped where layout matters.
LAYOUT_SDS: Final = 4.0
# P(change of at least half the minimum) at which the pairs stop. Larger: true changes at the
# minimum are dropped.
FUTILE_P: Final = 0.02
# Bayes factor that must remain without the pair with the largest difference. 1: two odd boots are
# enough.
BAYES_WITHOUT_BEST: Final = 5.0
# P at which the pairs refute the noise record (F test) because they are noisier; the record is then
# left out. Larger: good records are dropped; smaller: an old record makes noisy pairs look certain.
PAIRS_NOISIER_P: Final = 0.05
# The same because they are quieter than the record says. Larger: pairs that agree by chance are
# trusted.
PAIRS_QUIETER_P: Final = 1e-4
# Maximum weight of a noise record, in pairs: testboxes change. Larger: an old record outweighs what
# the pairs show.
RECORD_MOST_PAIRS: Final = 16.0
# Prior variance of the change, in noise variances, where the noise is not known beforehand. Larger:
# small changes take longer.
CHANGE_WIDTH: Final = 4.0
# The same, at least, where the noise is known. Larger: small changes take longer.
CHANGE_WIDTH_RECORDED: Final = 2.0

# --- the noise of a testbox (core/plan/noise.py; docs/statistics.md, "Noise records") ---

# Robust standard deviations beyond which a value is wild. Smaller: heavy tails are called wild and
# missing in the record.
RECORD_WILD_SDS: Final = 6.0
# Share of wild values above which they are typical of the metric, and all are kept. Smaller:
# outliers stay in the record; larger: a second mode is left out.
RECORD_WILD_SHARE: Final = 0.2
# Lower limit of the relative spread in a record. Smaller: identical values mean infinite certainty.
RECORD_FLOOR: Final = 1e-5
# Degrees of freedom from which the spread of boots limits the share of a second mode in a
# comparison. Fewer: the boots of a record are in one mode by chance; the limit is so wide that
# Gaussian boots lose power.
RECORD_SHAPE_DF: Final = 20.0
# Share of wild boots above which it does not. Larger: a mode that was left out as wild separates 3
# boots a side in more than 0.5 % of comparisons.
RECORD_SHAPE_WILD: Final = 0.1
# P that boots spread more than the limit taken from the record. Larger: a change made by modes
# passes; smaller: more boots for the same effect.
RECORD_SHAPE_P: Final = 0.05
# Weight of the built-in guess beside a record, in observations. Larger: the guess outweighs the
# first real boots.
GUESS_DF: Final = 0.5
# The same for a pair on a repeatable testbox without a record. As of `GUESS_DF`.
GUESS_PAIR_DF: Final = 1.5
# The same for layout, of which few builds are ever made. As of `GUESS_DF`.
GUESS_LAYOUT_DF: Final = 3.0
# Degrees of freedom from which the measured differences between days are used. Fewer: chance
# decides.
DAYS_DF: Final = 3.0
# Maximum degrees of freedom of a record (±7 %), whatever the number of boots. Larger: a testbox
# that changed is noticed later.
MAX_CERTAINTY: Final = 50.0

# --- is a testbox what it was (core/plan/anchors.py) ---

# P at which the level of a steady testbox is called drifted (four standard deviations). Larger:
# healthy testboxes are quarantined; smaller: a drifted one spoils days of work.
MOVED_LEVEL_P: Final = 6.3e-5
# The same for its spread. As of `MOVED_LEVEL_P`.
MOVED_SPREAD_P: Final = 1e-4
# Share of the metric's minimum effect below which a shift is harmless, however certain. Smaller:
# testboxes are quarantined for shifts that change no verdict.
MOVED_LEAST_SHARE: Final = 0.25

# --- the long screening of a testbox (core/plan/long_screening.py) ---

# Boots that a night must hold. Fewer: a drift, a slow first run or a second mode of the size of the
# minimum effect is often missed.
SCREENING_BOOTS: Final = 40
# Boots of a night at most. More: it costs time that anchors of other days use better.
SCREENING_MOST_BOOTS: Final = 80
# P below which a kind of finding is claimed. Larger: nights of a sound testbox name faults.
SCREENING_P: Final = 1e-3
# Seconds below which no run is shortened. Smaller: runs measure their own start.
SCREENING_RUN_SECONDS: Final = 5

# --- alerts for the operator (core/plan/alerts.py) ---

# Part of the limit to which the share of invalid runs must fall before the alert is over. 1: an
# alert opens and closes with every boot; smaller: it stays open long after the problem.
OVER_SHARE: Final = 0.5

# --- which commit is likely before anything was measured (core/plan/relevance.py) ---

# Prior of a commit that touches no code of the kernel under test, relative to one that does: build
# scripts and Kconfig have been guilty before. Smaller: such a culprit costs many more boots.
PRIOR_NO_CODE: Final = 0.05
# The same for a source without an object of its own beside others that have one: mostly not
# configured, at times included by another file. Smaller: such a culprit costs more boots; larger:
# boots go to code that is not compiled.
PRIOR_MAYBE_COMPILED: Final = 0.25
# Share of the prior that is spread evenly, whatever the paths say. Smaller: a wrong prior costs
# more; larger: the paths help less.
PRIOR_EVEN_SHARE: Final = 0.1
# In a rebased branch: prior of a patch that the tip before had unchanged, relative to a new or
# changed one; it can be guilty only together with something new. Smaller: such a pair costs many
# more boots; larger: the new patches get no lead.
PRIOR_SAME_PATCH: Final = 0.1
# The same for a patch that is unchanged but elsewhere in the branch. As of `PRIOR_SAME_PATCH`.
PRIOR_MOVED_PATCH: Final = 0.3

# --- is a known culprit still in a rebased branch (core/incident/recognise.py) ---
# docs/incidents.md, "Rebased branches"

# Prior probability that the unchanged patch of a culprit still has its effect if the tip shows such
# a change too. Smaller: one pair rarely suffices; larger: a fix elsewhere in the branch is
# overlooked.
STILL_PRIOR: Final = 0.9
# Probability from which it is recognised; below 1 minus this, it is not. Larger: more pairs for
# each rebase.
STILL_SURE: Final = 0.95
# Relative: how far the change of one patch differs from one base to another (sd). Smaller: a
# culprit on a new base is mistaken for another; larger: a commit that weakens it is overlooked.
STILL_SPREAD: Final = 0.2
# Pairs after which the swing is proven and bisected like any other. More: noise costs boots every
# day.
STILL_PAIRS: Final = 4
# Standard errors above which the part of a tip's change that its known culprits do not explain is
# investigated (two-sided P 0.005, as `SCREEN_P`). Smaller: known culprits are bisected again;
# larger: a new change hides behind an old one.
STILL_LEFT_SDS: Final = 2.81

# --- what belongs to a culprit (core/plan/swings.py, core/incident/level.py) ---

# Boots a side of culprit and parent; the printed numbers come from these. More: narrower intervals
# in the mail, for more boots.
ATTRIBUTE_BOOTS: Final = 3
# The same of a culprit that changes the spread between boots, measured on the testbox and with the
# unit job of its bisection alone. Fewer: three times the spread is not shown (20: in 72 %, 24: in
# 87 %).
ATTRIBUTE_SPREAD_BOOTS: Final = 24
# Share of the whole branch's swing above which one commit explains it. Smaller: a second culprit is
# overlooked; larger: known culprits are searched for again.
EXPLAINED_SHARE: Final = 0.6
# Share of a change that may remain when it counts as gone; the counterpart of `EXPLAINED_SHARE`.
# Larger: half a fix closes an incident.
GONE_SHARE: Final = 0.4
# Share of a change from which it counts as still present. Smaller: a change that is neither gone
# nor present is reported as present.
STILL_SHARE: Final = 0.6
# Boots a side of the culprit's parent and of a tip that claims to have the fix. Fewer: fixes are
# confirmed or denied by chance.
FIX_BOOTS: Final = 5
# The same on a repeatable testbox. As of `FIX_BOOTS`.
FIX_BOOTS_REPEATABLE: Final = 3

# --- proof (core/proof; docs/proof.md) ---

# Boots a side at the start of a gate; an unclear gate gets twice as many. Fewer: gates are unclear
# at first; more: each incident costs more.
GATE_BOOTS: Final = 5
# Maximum boots a side of a gate. Fewer: gates end unclear; more: an unclear gate holds the mail
# longer.
GATE_MOST_BOOTS: Final = 20
# As `GATE_BOOTS`, on a repeatable testbox. As of `GATE_BOOTS`.
GATE_BOOTS_REPEATABLE: Final = 3
# As `GATE_MOST_BOOTS`, on a repeatable testbox. As of `GATE_MOST_BOOTS`.
GATE_MOST_BOOTS_REPEATABLE: Final = 12
# Share of the commit's change that another pair of kernels must show. Smaller: another commit may
# have caused most of it.
PRESENT_SHARE: Final = 0.5
# A counter whose change is nearer to the metric's own than this share of it follows the amount of
# work done, and explains nothing. Larger: true clues are left out.
CLUE_FOLLOWS_SHARE: Final = 0.25
# Percent: smaller changes of a counter exist between any two kernels. Smaller: meaningless clues.
CLUE_LEAST_PCT: Final = 2.0

# --- which mails leave by themselves (core/moderation) and when (core/report) ---

# Reports of a class that people must release before the class is sent automatically. Fewer: one
# lucky week makes a class automatic.
EARNED_RELEASED: Final = 20
# Percent of the decided reports of a class that people may have dropped. More: one mail in ten is
# sent that a person would have stopped.
EARNED_DROPPED_PCT: Final = 5
# Weeks after which a digest is no longer sent. More: old news is sent.
DIGEST_WEEKS: Final = 4
# Time after the week's end before its digest is written. Shorter: improvements judged late on
# Sunday may miss their digest.
DIGEST_GRACE: Final = timedelta(hours=6)
