"""Read models: the documents behind pages, `--json` and scripts, described in docs/json.md.

Each function takes an open connection and returns plain dicts that `json.dumps` accepts: times are
ISO 8601 in UTC, ids have their letter, missing values are None. Read-only. An id or name that does
not exist raises NotFound.
"""

from __future__ import annotations

from swingbot.core.model.lookup import NotFound
from swingbot_db.probe import check
from swingbot_db.scope import can_limit

from .access import access_events, testbox_groups, tokens
from .bisections import bisection, list_bisections
from .boot_order import boot_order
from .changes import list_of_changes, table_of_changes
from .choices import LISTS, list_choices
from .compilers import list_compilers
from .cover import counted_boots, counted_calls
from .estimate import LabQueue, mean_boot_seconds
from .history import history, levels
from .incidents import incident, list_incidents, list_reports, report
from .kernel_names import kernel_names, release_commits
from .kernels import kernel_builds
from .metric_history import known_names, metric_history, metric_places
from .moderation import moderated, outgoing, report_classes, switch, waiting
from .news import testbox_news, tree_news
from .orders import boot, first_samples_of_boot, kernel, list_orders, metrics_of_boot, order
from .overview import REACHABLE, open_work, queue_end, reachable, status
from .people import person
from .posted import posted
from .proof import gates
from .raw import (
    raw_manifest,
    sample_pages,
    samples,
)
from .results import (
    boot_times,
    build_time,
    found_culprits,
    measured_kernels,
    named_kernels,
    result_tree,
    results,
    trees_with_results,
)
from .search import search
from .table_metrics import (
    headline_metrics_of_table,
    headlines_of_table,
    judged_in_table,
    metric_of_table,
    other_metrics_of_table,
    with_aliases,
)
from .tables import (
    boot_means_of_table,
    list_comparisons,
    list_experiments,
    measured_in_table,
    metric_pieces,
    samples_of_table,
    table,
)
from .testbox_status import controller
from .trees import list_metrics, list_testboxes, list_trees, testbox, tree, variant
from .why import means_of_boots, why_of_metric, why_of_table

__all__ = [
    "LISTS",
    "REACHABLE",
    "LabQueue",
    "NotFound",
    "access_events",
    "bisection",
    "boot",
    "boot_means_of_table",
    "boot_order",
    "boot_times",
    "build_time",
    "can_limit",
    "check",
    "controller",
    "counted_boots",
    "counted_calls",
    "first_samples_of_boot",
    "found_culprits",
    "gates",
    "headline_metrics_of_table",
    "headlines_of_table",
    "history",
    "incident",
    "judged_in_table",
    "kernel",
    "kernel_builds",
    "kernel_names",
    "known_names",
    "levels",
    "list_bisections",
    "list_choices",
    "list_comparisons",
    "list_compilers",
    "list_experiments",
    "list_incidents",
    "list_metrics",
    "list_of_changes",
    "list_orders",
    "list_reports",
    "list_testboxes",
    "list_trees",
    "mean_boot_seconds",
    "means_of_boots",
    "measured_in_table",
    "measured_kernels",
    "metric_history",
    "metric_of_table",
    "metric_pieces",
    "metric_places",
    "metrics_of_boot",
    "moderated",
    "named_kernels",
    "open_work",
    "order",
    "other_metrics_of_table",
    "outgoing",
    "person",
    "posted",
    "queue_end",
    "raw_manifest",
    "reachable",
    "release_commits",
    "report",
    "report_classes",
    "result_tree",
    "results",
    "sample_pages",
    "samples",
    "samples_of_table",
    "search",
    "status",
    "switch",
    "table",
    "table_of_changes",
    "testbox",
    "testbox_groups",
    "testbox_news",
    "tokens",
    "tree",
    "tree_news",
    "trees_with_results",
    "variant",
    "waiting",
    "why_of_metric",
    "why_of_table",
    "with_aliases",
]
