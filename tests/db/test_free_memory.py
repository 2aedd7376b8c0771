"""The tables of free memory on the pages of a boot and of a comparison."""

from __future__ import annotations

import re

from tests import builders as make
from tests.db.test_web import Site, own_site, page

__all__ = ["own_site"]

# 3 blocks of order 0 and 1, and after the run as many of order 1 as the boot's k says more
_ADD = """
SELECT r.id AS run, 'buddyinfo.' || m.moment || '.Node.0.zone.DMA32.' || o.n AS metric, 0 AS seq,
       CASE WHEN m.moment = 'after' AND o.n = 1 THEN 3 + x.k ELSE 3 END AS value
FROM run r JOIN boot x ON x.id = r.boot
CROSS JOIN (VALUES ('before'), ('after')) AS m (moment) CROSS JOIN generate_series(0, 1) AS o (n)
WHERE r.status = 'ok'
"""


def with_free_memory(site: Site) -> Site:
    make.add_samples(site.conn, _ADD)
    site.conn.commit()
    return site


def cells(text: str) -> list[str]:
    """The cells of the table of free memory, without tags."""
    [section] = re.findall(r"<section><h2>Free memory</h2>.*?</section>", text, re.DOTALL)
    found = re.findall(r"<td[^>]*>(.*?)</td>", section, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", cell).replace("\u00a0", " ").strip() for cell in found]


def test_a_boot_shows_blocks_and_what_is_unusable_of_them(own_site: Site) -> None:
    site = with_free_memory(own_site)
    k = site.client.get(f"/boot/x{site.lab.boot}.json").json()["k"]
    unusable = f"{100 * 3 / (3 + 2 * (3 + k)):.1f} %"
    assert cells(page(site, f"/boot/x{site.lab.boot}"))[:16] == [
        *["before", "blocks", "3", "3", "", "unusable", "0.0 %", "33.3 %"],
        *["after", "blocks", "3", f"{3 + k}", "", "unusable", "0.0 %", unusable],
    ]


def test_a_comparison_shows_the_mean_over_the_boots_of_each_side(own_site: Site) -> None:
    site = with_free_memory(own_site)
    comparison = site.client.get(f"/comparison/c{site.lab.comparison}.json").json()
    ks = [boot["k"] for boot in comparison["boot_list"] if boot["arm"] == 0]
    found = cells(page(site, f"/comparison/c{site.lab.comparison}"))
    assert [cell for cell in found if "n=" in cell][:4] == [
        *[f"base n={len(ks)}"] * 2,
        *[f"head n={len(ks)}"] * 2,
    ]
    after = found[found.index("after") :]
    assert float(after[3]) == 3 + sum(ks) / len(ks)


def test_without_the_monitor_there_is_no_table(own_site: Site) -> None:
    assert "Free memory" not in page(own_site, f"/boot/x{own_site.lab.boot}")
    assert "Free memory" not in page(own_site, f"/comparison/c{own_site.lab.comparison}")
