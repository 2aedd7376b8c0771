"""Use cases: each loads what it needs in one transaction, asks the core, and records what follows.

ports, faults, checkpoint   what use cases need from outside; what fails in a round; where a process may die
watch, kernel, lab          trees and jobs; variants and builds; testboxes
order, result               work asked for; what came back
detect, compare             swings suspected and proven; comparisons requested and judged
incident, bisect, prove     culprits kept, searched for, proven
report                      mails
tick                        one round of the brain: all steps in order
"""
