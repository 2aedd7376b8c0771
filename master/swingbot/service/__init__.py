"""Use cases: each loads what it needs in one transaction, asks the core, and records the decision.

ports, faults, checkpoint   interfaces to the outside; faults in a round; crash points for tests
watch, kernel, lab          trees and jobs; variants and builds; testboxes
order, result               orders to workers; their results
detect, compare             swings suspected and proven; comparisons requested and judged
incident, bisect, prove     culprits recorded, searched for, proven
report                      mails
tick                        one round of the service loop: all steps in order
"""
