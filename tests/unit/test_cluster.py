"""Clusters: their files, the jobs that they take, and what two boots together came to."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs.language.expand import expand
from swingbot_jobs.language.job import JobError
from swingbot_jobs.testbox.definition import ClusterDriver, Testbox
from swingbot_jobs.testbox.file import load, load_file
from swingbot_jobs.testbox.table import TestboxError
from swingbot_jobs.testbox.wire import CLIENT, SERVER
from tests.programs import PROGRAMS

NODE = (
    "name: {name}\ntbox_group: {name}\ndriver: qemu\nmodel: some VM\nnr_cpu: 2\nmemory_mb: "
    "512\nqemu: {{accel: tcg}}\n"
)
IRON = """\
name: {name}
tbox_group: rack
driver: ssh
model: iron
nr_cpu: 2
memory_mb: 512
ssh: {{host: {name}.example, key: /k, known_hosts: /h, enter: kexec, console: {{device: /dev/ttyS0}}, power: none}}
"""
CLUSTER = """\
name: pair
tbox_group: cs-pair
driver: cluster
model: two of them
nr_cpu: 2
memory_mb: 512
cluster:
  nodes: {server: a, client: b}
"""
CARDS = '  wire: {cards: {server: "3C:EC:EF:00:00:01", client: eth1}}\n'
JOB = (
    "cluster: cs-pair\nif role server:\n  netserver:\nif role client:\n  netperf:\n    test: "
    "TCP_RR\n    nr_threads: 50%\n"
)


def beside(folder: Path, text: str, **nodes: str) -> Testbox:
    """The testbox of `text` in a folder with these others."""
    for name, other in nodes.items():
        (folder / f"{name}.yaml").write_text(other.format(name=name))
    (folder / "pair.yaml").write_text(text)
    return load_file(folder / "pair.yaml")


def driver(testbox: Testbox) -> ClusterDriver:
    assert isinstance(testbox.driver, ClusterDriver)
    return testbox.driver


def test_a_cluster_is_one_testbox_made_of_two(tmp_path: Path) -> None:
    testbox = beside(tmp_path, CLUSTER, a=NODE, b=NODE)
    assert (testbox.nodes, testbox.virtual, testbox.cluster) == (("a", "b"), True, "cs-pair")
    assert {role: node.name for role, node in driver(testbox).nodes.items()} == {
        SERVER: "a",
        CLIENT: "b",
    }
    assert testbox.to_json()["cluster"]["nodes"] == {"server": "a", "client": "b"}


def test_testboxes_are_leased_in_one_order_whatever_their_roles(tmp_path: Path) -> None:
    assert beside(
        tmp_path, CLUSTER.replace("server: a, client: b", "server: b, client: a"), a=NODE, b=NODE
    ).nodes == ("a", "b")


def test_one_description_makes_two_virtual_machines(tmp_path: Path) -> None:
    assert beside(tmp_path, CLUSTER.replace("client: b", "client: a"), a=NODE).nodes == ("a",)


def test_cards_of_iron_are_known_by_their_address_or_name(tmp_path: Path) -> None:
    testbox = beside(
        tmp_path, CLUSTER + CARDS + "  kconfig_needed: [CONFIG_IXGBE]\n", a=IRON, b=IRON
    )
    assert not testbox.virtual
    assert driver(testbox).cards == {SERVER: "3c:ec:ef:00:00:01", CLIENT: "eth1"}
    assert driver(testbox).kconfig_needed == ("IXGBE",)


def test_addresses_are_those_for_benchmarks_unless_the_file_has_others(tmp_path: Path) -> None:
    assert driver(beside(tmp_path, CLUSTER, a=NODE, b=NODE)).address(SERVER) == "198.18.0.1"
    other = driver(
        beside(
            tmp_path,
            CLUSTER + "  wire: {ipv4: {server: 10.9.8.1/24, client: 10.9.8.7/24}}\n",
            a=NODE,
            b=NODE,
        )
    )
    assert (other.address(CLIENT), other.address(SERVER, "ipv6")) == ("10.9.8.7", "2001:2::1")


@pytest.mark.parametrize(
    ("text", "nodes", "says"),
    [
        (
            CLUSTER,
            {"a": NODE},
            "pair.yaml:8: there is no testbox 'b' in the directory of this file",
        ),
        (CLUSTER, {"a": IRON, "b": NODE}, "pair.yaml:8: a and b cannot have a wire between them"),
        (
            CLUSTER.replace("client: b", "client: a"),
            {"a": IRON},
            "pair.yaml:8: server and client are both a; a wire has two ends",
        ),
        (CLUSTER, {"a": IRON, "b": IRON}, "pair.yaml:7: wire is missing: name the card"),
        (CLUSTER + CARDS, {"a": NODE, "b": NODE}, "pair.yaml:9: cards are for bare metal"),
        (
            CLUSTER + CARDS.replace("eth1", "a b"),
            {"a": IRON, "b": IRON},
            "pair.yaml:9: client is 'a b', must be a card's hardware address",
        ),
        (
            CLUSTER.replace("nr_cpu: 2", "nr_cpu: 4"),
            {"a": NODE, "b": NODE},
            "pair.yaml:5: nr_cpu is 4, but its client, testbox b, has 2",
        ),
        (
            CLUSTER + "tuning_without: []\n",
            {"a": NODE, "b": NODE},
            "pair.yaml:9: tuning_without belongs in the files of the two testboxes",
        ),
        (
            CLUSTER + "accepts: untrusted\n",
            {"a": NODE, "b": NODE},
            "pair.yaml:9: accepts is untrusted, but testbox a accepts trusted kernels only",
        ),
        (
            CLUSTER + "  wire: {ipv4: {server: 10.0.0.1/24, client: 10.0.1.1/24}}\n",
            {"a": NODE, "b": NODE},
            "pair.yaml:9: ipv4 must have two addresses of one network",
        ),
        (
            CLUSTER + "  wire: {ipv6: {server: here, client: there}}\n",
            {"a": NODE, "b": NODE},
            "pair.yaml:9: ipv6 must have two addresses",
        ),
        (
            CLUSTER + "  speed: fast\n",
            {"a": NODE, "b": NODE},
            "pair.yaml:9: cluster: key 'speed' is unknown here",
        ),
        (
            CLUSTER,
            {
                "a": NODE,
                "b": NODE.replace("tcg", "icount").replace("nr_cpu: 2", "nr_cpu: 1")
                + "repeatable: true\n",
            },
            "has an instruction-count clock",
        ),
        (
            CLUSTER,
            {
                "a": NODE,
                "b": CLUSTER.replace("pair", "{name}").replace(
                    "{server: a, client: b}", "{{server: a, client: c}}"
                ),
            },
            "there is no testbox 'a'",
        ),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_its_line(
    tmp_path: Path, text: str, nodes: dict[str, str], says: str
) -> None:
    with pytest.raises(TestboxError) as refused:
        beside(tmp_path, text, **nodes)
    assert says in str(refused.value)


def test_a_job_for_a_cluster_has_its_roles_and_the_clients_cpus(tmp_path: Path) -> None:
    [job] = expand(JOB, "jobs/wire.yaml", beside(tmp_path, CLUSTER, a=NODE, b=NODE), PROGRAMS)
    assert (job.name, job.params["cluster"], job.params["nr_threads"]) == (
        "wire-cs-pair-50%-TCP_RR",
        "cs-pair",
        "1",
    )


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (
            JOB.replace("cs-pair", "cs-localhost"),
            (
                "jobs/j.yaml:1: cluster 'cs-localhost': testbox pair is a cluster of two, "
                "where it has to be cs-pair"
            ),
        ),
        (JOB.partition("\n")[2], "testbox pair is a cluster of two: set cluster: cs-pair"),
        (
            "hackbench:\ncluster: cs-pair\n",
            "jobs/j.yaml:2: cluster 'cs-pair': hackbench has no server for another testbox",
        ),
    ],
)
def test_a_job_that_a_cluster_cannot_run_is_refused_with_its_line(
    tmp_path: Path, job: str, says: str
) -> None:
    with pytest.raises(JobError) as refused:
        expand(job, "jobs/j.yaml", beside(tmp_path, CLUSTER, a=NODE, b=NODE), PROGRAMS)
    assert says in str(refused.value)


def test_a_job_for_a_cluster_is_refused_on_one_testbox() -> None:
    with pytest.raises(
        JobError,
        match=(
            "testbox a is one testbox, where only cs-localhost is; choose a testbox of the group "
            "cs-pair"
        ),
    ):
        expand(JOB, "jobs/j.yaml", load(NODE.format(name="a"), "a.yaml"), PROGRAMS)
