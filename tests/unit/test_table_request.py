"""Requests of tables: what becomes a row and in which order, what a plan says, who may ask."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from swingbot.adapters.git import Mirror
from swingbot.app.commands import table
from swingbot.app.commands.table_kernels import kernels_of
from swingbot.app.commands.table_options import Options, in_order, read_file
from swingbot.core.access.roles import Person, Role
from swingbot.core.table.layout import Axis
from swingbot.core.table.references import references_of
from swingbot.service.ports import RequestError
from swingbot.service.table.cancel import cancel_table
from swingbot.service.table.extend import ExtensionRequest, extend
from swingbot.service.table.kernels import at
from swingbot.service.table.plan_text import plan_lines
from swingbot.service.table.request import TableRequest
from tests.fakes.memory_lab import MemoryLab
from tests.patch_series import Change, git, mailbox, make_repo
from tests.table_requests import comparing, plan_table, request_table
from tests.unit.test_experiment_kernels import CHANGES, World, a_tree

PRODUCT = Path(__file__).parents[2]
# They lead from an id to its table and list tables by the letter of their ids.
ADDRESSES = {"core/model/ids.py", "swingbot_db/read/search.py", "swingbot_db/read/tables.py"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A tree of three commits on main, and a testbox called box."""
    repo = tmp_path / "repo.git"
    commits = make_repo(repo, CHANGES)
    lab = MemoryLab().lab
    lab = replace(lab, tools=replace(lab.tools, git=Mirror(tmp_path / "mirror.git")))
    with lab.transaction("add") as tx:
        tx.testboxes.sync([(testbox, {}) for testbox in lab.catalogue.testboxes.present.values()])
    tree = a_tree(lab, "fake", str(repo), commits[0], commits[-1])
    lab.tools.git.fetch_branch("fake", str(repo), "main")
    lab.tools.git.call("fake", "base", commits[0])
    return World(repo=repo, commits=commits, lab=lab, tree=tree)


def given(*words: str) -> Options:
    """The options of a command line, as `swingbot compare` reads them."""
    context = table.compare.make_context("compare", list(words))
    return in_order(context.meta["order"], context.params)


def rows(world: World, request: TableRequest) -> list[str]:
    return [arm.name for arm in plan_table(world.lab, request).arms]


def patches(world: World, directory: Path) -> list[Path]:
    """The two commits after the base, as numbered files of one series."""
    git(world.repo, "format-patch", "-2", "-o", str(directory), "main")
    return sorted(directory.glob("*.patch"))


# -- rows


def test_rows_stand_in_the_order_given_whatever_option_names_them(
    world: World, tmp_path: Path
) -> None:
    mbox = tmp_path / "two.mbx"
    mbox.write_bytes(mailbox(world.repo, 2))
    first, second = (commit[:12] for commit in world.commits[1:])
    words = ["--variant", f"z={second}", "--series", str(mbox), "--head", first]
    kernels = kernels_of(given(*words), [world.commits[0]])
    assert rows(world, TableRequest(kernels=kernels)) == [
        world.commits[0][:12],
        "z",
        "1/2",
        "2/2",
        first,
    ]


@pytest.mark.parametrize(
    ("refs", "expected"),
    [
        (["base", "tip"], ["base", "tip"]),
        (["base", "tip~1", "tip"], ["base", "tip~1", "tip"]),
        (["base..tip"], ["base", "1", "2"]),
    ],
)
def test_two_kernels_a_range_and_three_kernels_are_one_command(
    world: World, refs: list[str], expected: list[str]
) -> None:
    short = [commit[:12] for commit in world.commits]
    expected = [short[int(name)] if name.isdigit() else name for name in expected]
    for command in (table.compare, table.experiment):
        context = command.make_context("x", list(refs))
        assert context.params["refs"] == tuple(refs)
    kernels = kernels_of(Options(), refs)
    assert rows(world, TableRequest(kernels=kernels)) == expected


def test_both_verbs_have_the_same_options() -> None:
    compare, experiment = (
        [(param.name, param.opts) for param in command.params]
        for command in (table.compare, table.experiment)
    )
    assert compare == experiment


def test_a_numbered_patch_of_a_series_is_a_row_alone(world: World, tmp_path: Path) -> None:
    first, second = patches(world, tmp_path / "out")
    kernels = kernels_of(given("--variant", f"b={second}", "--variant", f"a={first}"), ["base"])
    plan = plan_table(world.lab, TableRequest(kernels=kernels))
    assert [arm.name for arm in plan.arms] == ["base", "b", "a"]
    assert [variant.subject for variant in plan.variants[1:]] == [
        "mm: b becomes B",
        "mm: a becomes A",
    ]
    with pytest.raises(RequestError, match="patch 1/2 is missing"):
        kernels_of(given("--series", str(second)), ["base"])


def test_two_series_are_rows_of_one_table_under_their_own_names(
    world: World, tmp_path: Path
) -> None:
    for name in ("v2.mbx", "v3.mbx"):
        (tmp_path / name).write_bytes(mailbox(world.repo, 2))
    words = ["--series", str(tmp_path / "v2.mbx"), "--series", f"new={tmp_path / 'v3.mbx'}"]
    request = TableRequest(kernels=kernels_of(given(*words), ["base"]), against=["first", "v2 2/2"])
    plan = plan_table(world.lab, request)
    assert [arm.name for arm in plan.arms] == ["base", "v2 1/2", "v2 2/2", "new 1/2", "new 2/2"]
    assert references_of("v2 2/2", plan.arms) == [(2, 0), (2, 1), (2, 3), (2, 4)]


def test_patches_are_applied_to_the_last_kernel_named(world: World, tmp_path: Path) -> None:
    first, _ = patches(world, tmp_path / "out")
    kernels = kernels_of(given("--patch", str(first)), ["base", "base"])
    assert rows(world, TableRequest(kernels=kernels)) == ["base", "base+patch"]
    kernels = kernels_of(given("--patch", str(first)), ["base"])
    assert rows(world, TableRequest(kernels=kernels)) == ["base", "base+patch"]


def test_kernels_of_one_commit_are_refused(world: World) -> None:
    with pytest.raises(RequestError, match="base and tip~2 are the same commit"):
        plan_table(world.lab, comparing("base", "tip~2"))


# -- references


def test_the_reference_can_be_any_row_by_name(world: World) -> None:
    plan = plan_table(world.lab, comparing("base", "tip~1", "tip", against=["tip~1", "first"]))
    assert plan.against == ("tip~1", "first")
    assert references_of("tip~1", plan.arms) == [(1, 0), (1, 2)]
    with pytest.raises(RequestError, match="no row 'x' to compare with.* base, tip~1, tip$"):
        plan_table(world.lab, comparing("base", "tip~1", "tip", against=["x"]))


# -- the same request


def test_a_request_is_the_same_through_either_verb_and_under_other_names(world: World) -> None:
    base, _, tip = world.commits
    compared = request_table(world.lab, comparing("base", "tip", boots=3))
    assert (compared.id[0], compared.new) == ("c", True)
    again = request_table(world.lab, comparing(base, tip, boots=3, kind="experiment"))
    assert (again.id, again.new) == (compared.id, False)
    other = request_table(world.lab, comparing(base, tip, boots=4, kind="experiment"))
    assert (other.id[0], other.new) == ("e", True)
    assert cancel_table(world.lab.transaction, other.id) == "waiting"
    renewed = request_table(world.lab, comparing(base, tip, boots=4, kind="experiment"))
    assert renewed.new and renewed.id != other.id


def test_a_comparison_of_two_kernels_gets_a_third_row(world: World) -> None:
    compared = request_table(world.lab, comparing("base", "tip", boots=3))
    extended = extend(world.lab, ExtensionRequest(id=compared.id, boots=2, rows=[at("tip~1")]))
    assert (extended.rows, [arm.name for arm in extended.added]) == (3, ["tip~1"])


# -- plans


def test_a_plan_names_settings_of_all_rows_drained_testboxes_and_mails_left_out(
    world: World, tmp_path: Path
) -> None:
    with world.lab.transaction("drain") as tx:
        tx.testboxes.set_state("box", "drained", "new fans")
    mbox = tmp_path / "two.mbx"
    mbox.write_bytes(mailbox(world.repo, 2, "--cover-letter"))
    options = given("--series", str(mbox), "--cmdline", "never=transparent_hugepage=never")
    axes = [Axis(name="cmdline", values=(("never", "transparent_hugepage=never"),))]
    plan = plan_table(world.lab, TableRequest(kernels=kernels_of(options, ["base"]), axes=axes))
    notes = [
        "every row has cmdline never: transparent_hugepage=never",
        "left out: [PATCH 0/2] *** SUBJECT HERE *** by C <c@example.org> (cover letter)",
        "box is drained (new fans): its boots wait for `swingbot testbox resume`",
    ]
    assert list(plan.notes) == notes == plan.to_json()["notes"]
    assert set(notes) < set(plan_lines(plan))


# -- who asks


@pytest.mark.parametrize("role", [Role.SUBMITTER, Role.OPERATOR])
def test_over_the_web_patches_are_not_trusted_and_rows_are_few(world: World, role: Role) -> None:
    ada = Person(who="Ada", role=role, token=1)
    axes = [Axis(name="fragment", values=(("a", ""), ("b", "")))]
    asked = comparing("base", "tip", vouched=True, axes=axes, overrides={"runs": "9"})
    assert len(plan_table(world.lab, asked).arms) == 4
    assert len(plan_table(world.lab, replace(asked, asked_by=ada)).arms) == 4
    many = [Axis(name="layout", values=tuple((f"l{n}", str(n)) for n in range(30)))]
    with pytest.raises(RequestError, match="60 rows; at most 50"):
        plan_table(world.lab, replace(asked, axes=many, asked_by=ada))
    other = [Change(files={"x": b"x\n"}, message="other")]
    foreign = make_repo(world.repo.parent / "other.git", other)[0]
    with pytest.raises(RequestError, match="only fetched commits|is not in branch main"):
        plan_table(world.lab, replace(comparing("base", foreign), asked_by=ada))


# -- files


def plan_of_file(world: World, path: Path) -> None:
    options = read_file(path)
    try:
        plan_table(world.lab, table.request_of(options, (), "asked"))
    except RequestError as error:
        raise options.located(error) from None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("base: base\nboot: 3\n", ":2: unknown key 'boot'; keys are range, base"),
        ("base: base\nboots: none\n", ":2: boots must be an integer from 1 to 1000"),
        ("base: base\nboots: 1001\n", ":2: boots must be an integer from 1 to 1000"),
        ("base: base\nmin-effect: low\n", ":2: min-effect must be a number of percent"),
        ("base: base\nhead: tip\nmin-effect: 0\n", ":3: min-effect: the minimum effect must be"),
        ("base: base\nlayout: [1, x]\n", ":2: layout x: layouts are numbered from 0"),
        ("base: 6.1\n", ":1: base must be a single string"),
        ("base: base\nbase: tip\n", ":2: base occurs twice"),
        ("head:\n- tip\n- [yes]\n", ":3: head 'True' is not a string"),
        ("trusted: 1\n", ":1: trusted must be true or false"),
        ("base: [\n", ":2: not valid YAML"),
        ("- base\n", ": a table is a mapping; its keys are range, base"),
        ("base: base\nvariant: x\n", ":2: variant x: write it as NAME=FILE or NAME=REF"),
        ("base: base\nvariant:\n  x: no.patch\n", ":3: variant x=no.patch: file no.patch does"),
        ("base: base\nvariant:\n  x: nowhere\n", ":3: variant: x: "),
        ("base: base\nhead: tip\nfragment:\n  a: nosuch\n", ":4: fragment: "),
        ("base: base\nhead: tip\nagainst:\n- left\n", ":4: against: there is no row 'left'"),
        ("base: base\nhead: tip\nexclude:\n- compiler: gcc\n", ":4: exclude: exclude: there is no"),
        ("base: base\nhead: tip\nwith: nothing\n", ":3: with: there is no column 'nothing'"),
        ("base: base\nhead: tip\ntestbox: nobox\n", ":3: testbox: testbox or group 'nobox'"),
        ("base: base\nhead: tip\ntree: other\n", ":3: tree: tree 'other' does not exist"),
        ("base: nowhere\nhead: tip\n", ":1: base: "),
        ("range: tip..base\n", ":1: range: tip..base is empty"),
        ("base: base\nhead: tip\ncompiler:\n- a=b=c\n- a=x\n", "two values of compiler"),
    ],
)
def test_an_error_of_a_file_names_file_line_and_key(
    world: World, tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    with pytest.raises(RequestError) as refused:
        plan_of_file(world, path)
    assert str(refused.value).startswith(str(path))
    assert sentence in str(refused.value), refused.value


def test_a_file_gives_what_the_command_line_gives(tmp_path: Path) -> None:
    (tmp_path / "slow.patch").write_text("x")
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "head: [a, b]\nvariant: {slow: slow.patch}\nwith: size,locks\nboots: 3\nmin-effect: 0.5\n"
        "layout: [0, 3]\ntrusted: true\n"
    )
    words = ["--head", "a", "--head", "b", "--variant", f"slow={tmp_path / 'slow.patch'}"]
    words += ["--with", "size,locks", "--boots", "3", "--min-effect", "0.5"]
    words += ["--layout", "0", "--layout", "3", "--trusted"]
    assert [(one.key, one.text) for one in read_file(path).given] == [
        (one.key, "true" if one.key == "trusted" else one.text) for one in given(*words).given
    ]


# -- one noun


def test_nothing_asks_whether_a_table_is_a_comparison_or_an_experiment() -> None:
    asks = re.compile(
        r"""\bkind\b.{0,20}(==|!=|<>).{0,12}["'](asked|experiment|comparison)["']"""
        r"""|(?<!for )\bkind in \(["'](asked|experiment|comparison)|\bexperiment: bool"""
    )
    found = [
        f"{path.relative_to(PRODUCT)}: {line.strip()}"
        for root in ("master/swingbot", "db/swingbot_db")
        for path in sorted((PRODUCT / root).rglob("*.py"))
        if not str(path).endswith(tuple(ADDRESSES))
        for line in path.read_text().splitlines()
        if asks.search(line)
    ]
    assert not found
