"""To whom a report goes: what get_maintainer.pl says, what an operator allows, and what a
hostile tree can do about it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swingbot.adapters.maintainers import maintainers_of, no_walls
from swingbot.core.mail.addresses import plain_address
from swingbot.core.mail.message import PostedMail
from swingbot.core.mail.posting import posted_as
from swingbot.core.mail.recipients import (
    BadMaintainers,
    MaintainerEntry,
    NoMaintainers,
    RecipientRules,
    choose,
    read_maintainers,
)
from swingbot.core.mail.trailers import people_in_trailers
from tests.amount import examples

PRINTED = """\
Ada Example <ada@example.org> (maintainer:MEMORY MANAGEMENT)
"Bob, the Builder" <bob@example.org> (reviewer:MEMORY MANAGEMENT - CORE (SLAB))
Carl Signer <carl@example.org> (commit_signer:3/4=75%)
linux-mm@lists.example.org (open list:MEMORY MANAGEMENT)
closed@lists.example.org (subscriber list:MEMORY MANAGEMENT)
slow@lists.example.org (moderated list:SLOW)
linux-kernel@lists.example.org (open list)
"""
ADA, BOB = (
    MaintainerEntry(address="ada@example.org", role="maintainer"),
    MaintainerEntry(address="bob@example.org", role="maintainer"),
)
MM = MaintainerEntry(address="linux-mm@lists.example.org", role="list")
AUTHOR = "Jörg Beispiel <joerg@example.org>"


def test_maintainers_reviewers_and_lists_that_take_our_mail_are_read() -> None:
    assert [(item.address.partition("@")[0], item.role) for item in read_maintainers(PRINTED)] == [
        ("ada", "maintainer"),
        ("bob", "maintainer"),
        ("linux-mm", "list"),
        ("slow", "list"),
        ("linux-kernel", "list"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "rubbish",
        "a@b.org",
        "<a@b.org>",
        "A <a@b> c@d (maintainer:X)",
        "x" * 5000,
        "a b@example.org (open list)",
        "\x1b[2J (open list)",
    ],
)
def test_of_rubbish_nobody_is_believed(line: str) -> None:
    with pytest.raises(BadMaintainers, match="not an address with a role"):
        read_maintainers(PRINTED + line + "\n")


def test_a_maintainers_file_that_loops_is_no_list_of_recipients() -> None:
    with pytest.raises(BadMaintainers, match="printed 600 lines"):
        read_maintainers("a@example.org (open list)\n" * 600)


@settings(max_examples=examples(200))
@given(st.text(alphabet="a@b.<>(): \r\n\t\"',漢", max_size=80))
def test_whatever_is_printed_gives_plain_addresses_or_a_clear_error(text: str) -> None:
    try:
        found = read_maintainers(text)
    except BadMaintainers:
        return
    assert all(plain_address(item.address) == item.address for item in found)


def test_the_author_is_written_to_and_the_others_get_a_copy() -> None:
    chosen = choose(AUTHOR, [ADA, BOB, MM], RecipientRules())
    assert chosen.to == ("joerg@example.org",)
    assert chosen.cc == ("ada@example.org", "bob@example.org", "linux-mm@lists.example.org")
    assert chosen.lists == ("linux-mm@lists.example.org",)
    assert chosen.left_out == ()


@pytest.mark.parametrize(
    "author",
    [
        "",
        "No One",
        "No One <>",
        "x <a@b\r\nBcc: c@d>",
        "Eve <eve@example.org> <mal@example.org>",
        "x <" + "a" * 10_000 + "@b.org>",
    ],
)
def test_without_an_author_address_the_maintainers_are_written_to(author: str) -> None:
    chosen = choose(author, [ADA, MM], RecipientRules())
    assert (chosen.to, chosen.cc) == (("ada@example.org",), ("linux-mm@lists.example.org",))
    assert "no author address" in chosen.left_out[0][1]
    assert choose(author, [MM], RecipientRules()).cc == ()  # a list alone is not written to


def test_an_author_who_maintains_it_gets_one_mail() -> None:
    assert choose("A <ADA@example.org>", [ADA], RecipientRules()).cc == ()


def test_of_a_private_tree_its_author_alone_hears() -> None:
    chosen = choose(AUTHOR, [ADA, MM], RecipientRules(author_only=True))
    assert (chosen.to, chosen.cc) == (("joerg@example.org",), ())
    assert {reason for _, reason in chosen.left_out} == {"private tree: its author only"}


def test_who_is_named_by_the_commit_alone_is_marked_or_left_out() -> None:
    chosen = choose(AUTHOR, [ADA, MM], RecipientRules(), ("Ada@example.org", "eve@example.org"))
    assert chosen.commit_only == ("joerg@example.org",)
    assert chosen.left_out == (
        ("eve@example.org", "only the commit's own trailers name this address"),
    )
    assert "eve@example.org" not in (*chosen.to, *chosen.cc)
    assert choose("A <ADA@example.org>", [ADA, MM], RecipientRules()).commit_only == ()


def test_people_in_trailers_are_read_and_bounded() -> None:
    people = people_in_trailers(
        "mm: x\n\nCc: in the text <no@example.org>\n\nSigned-off-by: A <a@example.org>\n"
        "Reviewed-by: B <b@example.org>\nCC: <c@example.org> # 6.1\nCc: rubbish\n"
        "Signed-off-by: A <A@example.org>\nLink: https://example.org/d@example.org\n"
    )
    assert people == ("a@example.org", "b@example.org", "c@example.org")
    many = "x\n\n" + "".join(f"Cc: p{n}@example.org\n" for n in range(10_000))
    assert len(people_in_trailers(many)) == 20


def test_who_wants_no_mail_gets_none() -> None:
    chosen = choose(
        AUTHOR, [ADA, MM], RecipientRules(opt_outs=("Joerg@Example.org", "@lists.example.org"))
    )
    assert (chosen.to, chosen.cc) == (("ada@example.org",), ())
    assert ("joerg@example.org", "opted out of mail") in chosen.left_out


def test_recipients_are_capped_people_before_lists() -> None:
    many = [MaintainerEntry(address=f"m{n}@example.org", role="maintainer") for n in range(20)]
    chosen = choose(AUTHOR, [MM, *many], RecipientRules(most=15))
    assert len(chosen.to) + len(chosen.cc) == 15
    assert MM.address not in chosen.cc
    assert len(chosen.left_out) == 7


@pytest.mark.parametrize(
    ("message", "identity"),
    [
        (
            (
                "mm: x\n\nText.\n\nSigned-off-by: A <a@b>\nLink: "
                "https://lore.kernel.org/r/20260102.1-2-a@example.org\n"
            ),
            "<20260102.1-2-a@example.org>",
        ),
        (
            "mm: x\n\nLink: https://patch.msgid.link/a%2Bb@example.org\nSigned-off-by: A <a@b>",
            "<a+b@example.org>",
        ),
        (
            (
                "mm: x\n\nLink: https://lore.kernel.org/all/old@x.org/ [1]\nLink: "
                "https://lkml.kernel.org/r/new@x.org"
            ),
            "<new@x.org>",
        ),
        ("mm: x\n\nMessage-ID: <m@x.org>", "<m@x.org>"),
        ("mm: x\n\nLink: https://lore.kernel.org/r/text@x.org\n\nSigned-off-by: A <a@b>", None),
        ("mm: x\n\nLink: https://bugzilla.example.org/show_bug.cgi?id=1@2", None),
        ("mm: x\n\nLink: https://lore.kernel.org/r/a%0d%0aBcc:%20x@y.org", None),
        ("", None),
    ],
)
def test_the_mail_that_a_commit_was_posted_as_is_in_its_trailers(
    message: str, identity: str | None
) -> None:
    assert posted_as(message) == (PostedMail(message_id=identity) if identity else None)


needs_walls = pytest.mark.skipif(
    no_walls() is not None, reason="the walls around get_maintainer.pl cannot be had here"
)


def a_tree(path: Path, script: str, *, maintainers: str = "none\n") -> Path:
    def git(*arguments: str) -> None:
        subprocess.run(
            [
                "git",
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@example.org",
                "-C",
                str(path),
                *arguments,
            ],
            check=True,
            capture_output=True,
        )

    (path / "scripts").mkdir(parents=True)
    git("init", "-q", "-b", "master")
    (path / "MAINTAINERS").write_text(maintainers)
    (path / "scripts/get_maintainer.pl").write_text(script)
    (path / "a.c").write_text("int a;\n")
    git("add", ".")
    git("commit", "-q", "-m", "root")
    (path / "a.c").write_text("int b;\n")
    git("commit", "-q", "-a", "-m", "mm: change")
    git("tag", "change")
    git("checkout", "-q", "-b", "side", "HEAD~1")
    (path / "b.c").write_text("int c;\n")
    git("add", ".")
    git("commit", "-q", "-m", "side")
    git("merge", "-q", "-m", "merge", "master")
    return path / ".git"


READS = """my $patch = do { local @ARGV = ($ARGV[-1]); local $/; <> };
print "Ada <ada\\@example.org> (maintainer:X)\\n" if $patch =~ m{^\\+\\+\\+ b/a\\.c}m && -e "MAINTAINERS";
"""


@needs_walls
def test_the_trees_own_script_is_asked_about_the_commits_patch(tmp_path: Path) -> None:
    assert maintainers_of(a_tree(tmp_path / "t", READS), "change", "change~1") == (ADA,)


PICKS = """print "victim$_\\@example.org (maintainer:X)\\n" for (1..15);
"""


@needs_walls
def test_a_commit_does_not_choose_whom_its_report_goes_to(tmp_path: Path) -> None:
    repository = a_tree(tmp_path / "t", READS)

    def git(*arguments: str) -> None:
        words = ["git", "-c", "user.name=E", "-c", "user.email=e@example.org", *arguments]
        subprocess.run(words, cwd=tmp_path / "t", check=True, capture_output=True)

    git("checkout", "-q", "-b", "evil", "change~1")
    (tmp_path / "t/scripts/get_maintainer.pl").write_text(PICKS)
    (tmp_path / "t/MAINTAINERS").write_text("M: victim@example.org\n")
    (tmp_path / "t/a.c").write_text("int evil;\n")
    git("commit", "-q", "-a", "-m", "mm: evil")
    assert len(maintainers_of(repository, "evil", "evil")) == 15  # what it would pick
    assert maintainers_of(repository, "evil", "evil~1") == (ADA,)


@needs_walls
def test_the_script_sees_neither_the_mirror_nor_the_state_directory(tmp_path: Path) -> None:
    outside = tmp_path / "state"
    outside.mkdir()
    (outside / "secret").write_text("x")
    hidden = [
        tmp_path / "t/.git/HEAD",
        outside / "secret",
        "/etc/passwd",
        "/proc/1/root/etc/passwd",
    ]
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o555)
    script = "".join(f'die "sees {path}" if -e "{path}";' for path in hidden) + READS
    assert maintainers_of(a_tree(tmp_path / "t", script), "change", "change~1") == (ADA,)


@needs_walls
def test_the_script_reaches_no_server_of_this_host(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        script = f"""use IO::Socket::INET;
IO::Socket::INET->new(PeerAddr => "127.0.0.1:{server.getsockname()[1]}");
{READS}"""
        assert maintainers_of(a_tree(tmp_path / "t", script), "change", "change~1") == (ADA,)
        with pytest.raises(BlockingIOError):
            server.accept()


@needs_walls
def test_the_script_is_nobody_without_network_and_cannot_change_what_it_was_given(
    tmp_path: Path,
) -> None:
    script = """open(my $net, "<", "/proc/self/net/dev") or die; my @lines = <$net>;
die "network" if grep { /:/ && !/^\\s*lo:/ && !/^\\s*(sit|tunl|gre|erspan|ip6)/ } @lines;
die "root" if $> == 0; die "writes" if open(my $f, ">", "MAINTAINERS"); die "secrets" if grep { /SECRET/ } keys %ENV;
print "ada\\@example.org (open list)\\n";
"""
    assert maintainers_of(a_tree(tmp_path / "t", script), "change", "change~1") == (
        MaintainerEntry(address="ada@example.org", role="list"),
    )


@needs_walls
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("sleep 60;", "did not end within 2 s"),
        ("if (fork() == 0) { setpgrp(0, 0); sleep 60; } sleep 60;", "did not end within 2 s"),
        ('print "rubbish\\n";', "not an address with a role"),
        (
            'print "a\\@example.org (open list)\\n" while 1;',
            "get_maintainer.pl: it printed more than",
        ),
        ('die "MAINTAINERS: line 1 includes itself\\n";', "MAINTAINERS: line 1 includes itself"),
        ("my $x = 'x' x 4000000000;", "it needed more than 512 MB of memory; the limit is 512 MB$"),
        (
            "for (1..6) { if (!fork()) { my $x = 'x' x 150000000; sleep 20; exit } } sleep 20;",
            "of memory; the limit is 512 MB$",
        ),
        (
            "for (1..100) { if (!fork()) { sleep 20; exit } } sleep 20;",
            "it needed more than 32 processes; the limit is 32$",
        ),
        (
            "open(F, '>', '/tmp/x'); unlink '/tmp/x'; my $x = 'x' x 1000000;"
            "for (1..64) { syswrite(F, $x) }",
            "ended with 153: .*File size limit exceeded",
        ),
    ],
)
def test_a_script_that_hangs_or_floods_or_dies_names_nobody_and_says_why(
    tmp_path: Path, script: str, why: str
) -> None:
    seconds = 2 if "not end within" in why else 60
    with pytest.raises(NoMaintainers, match=why):
        maintainers_of(a_tree(tmp_path / "t", script), "change", "change~1", seconds=seconds)


@needs_walls
@pytest.mark.parametrize(
    ("commit", "why"),
    [("side", "is a merge"), ("master~1", "has no parent"), ("f" * 40, "is not a commit")],
)
def test_a_merge_the_root_and_an_unknown_commit_have_no_maintainers(
    tmp_path: Path, commit: str, why: str
) -> None:
    with pytest.raises(NoMaintainers, match=why):
        maintainers_of(a_tree(tmp_path / "t", READS), commit, "change~1")


AS_NOBODY = """
import sys
from pathlib import Path
from swingbot.adapters.maintainers import maintainers_of, no_walls
missing = no_walls()
print(missing or maintainers_of(Path(sys.argv[1]), "change", "change~1")[0].address)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_service_that_is_not_root_sees_its_own_files_and_the_script_does_not() -> None:
    with tempfile.TemporaryDirectory() as place:
        secret = Path(place) / "secret"
        secret.write_text("x")
        script = (
            f'die "it reads our files" if -e "{secret}" || -e "/etc/passwd"; print '
            f'"ada\\@example.org (open list)\\n" if -e "MAINTAINERS";'
        )
        repository = a_tree(Path(place) / "t", script)
        for path in (Path(place), *Path(place).rglob("*")):
            os.chown(path, 65534, 65534)
        try:
            ran = subprocess.run(
                [sys.executable, "-c", AS_NOBODY, str(repository)],
                user=65534,
                group=65534,
                extra_groups=[],
                env={"HOME": place},
                capture_output=True,
                text=True,
            )
        except PermissionError:  # as below /root
            pytest.skip("another user cannot run this checkout")
    if ran.returncode != 0 and "Permission denied" in ran.stderr and "site-packages" in ran.stderr:
        pytest.skip("another user cannot read this checkout")
    if "walls are missing on this host" in ran.stdout:
        pytest.skip(ran.stdout)
    assert (ran.stdout.strip(), ran.returncode) == ("ada@example.org", 0), ran.stderr


@pytest.mark.parametrize("odd", ["<" + ":" * 1900 + ">", ":" * 1900, "a" * 101 + "@x", "<" * 1900])
def test_an_author_without_a_valid_address_has_none(odd: str) -> None:
    """The parser of addresses of email calls itself for each colon."""
    assert plain_address(odd) is None
    assert people_in_trailers(f"x\n\nSigned-off-by: {odd}\nCc: <a@example.org> # 6.1") == (
        "a@example.org",
    )
