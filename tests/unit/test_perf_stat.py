from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swingbot_jobs.reading.perf_stat import Count, plain_number, read_perf_stat
from swingbot_jobs.reading.result import ParseError

CSV = """# started on Sat Nov 21 21:39:52 2026

3413.28,msec,task-clock,3413276777,100.00,1.628,CPUs utilized
8961,,context-switches,3413276777,100.00,2.625,K/sec
0,,cpu-migrations,3413276777,100.00,0.000,/sec
<not supported>,,cycles,0,100.00,,
<not counted>,,instructions,0,100.00,,
"""
COUNTS = {
    "task-clock": Count(3413.28, "msec"),
    "context-switches": Count(8961, ""),
    "cpu-migrations": Count(0, ""),
}

# The counters published with "slub: prefetch next freelist pointer", as perf printed them under a
# locale with decimal comma and spaces.
LISTS_2011 = """
 Performance counter stats for './hackbench 50 process 4000' (32 runs):

     327577,471718 task-clock                #   15,821 CPUs utilized            ( +-  0,64% )
        28 866 491 context-switches          #    0,088 M/sec                    ( +-  1,80% )
         1 506 929 CPU-migrations            #    0,005 M/sec                    ( +-  3,24% )
           127 151 page-faults               #    0,000 M/sec                    ( +-  0,16% )
   829 399 813 448 cycles                    #    2,532 GHz                      ( +-  0,64% )
   580 664 691 740 stalled-cycles-frontend   #   70,01% frontend cycles idle     ( +-  0,64% )

      20,705679994 seconds time elapsed                                          ( +-  0,64% )
"""


@pytest.mark.parametrize("separator", [",", ";", "|", "\t", "!", " ", "~"])
def test_separated_output_is_read_whatever_the_separator(separator: str) -> None:
    assert read_perf_stat(CSV.replace(",", separator)) == COUNTS


def test_what_perf_could_not_count_is_missing_and_a_counted_zero_is_not() -> None:
    counts = read_perf_stat(CSV)
    assert "cycles" not in counts
    assert "instructions" not in counts
    assert counts["cpu-migrations"].value == 0


def test_the_extra_column_of_repeated_runs_is_their_standard_error() -> None:
    text = (
        "1305.47,msec,task-clock,34.11%,1305474982,100.00,1.079,CPUs utilized\n"
        "537,,context-switches,18.65%,22359592,100.00,24.809,K/sec\n"
    )
    assert read_perf_stat(text) == {
        "task-clock": Count(1305.47, "msec", 34.11),
        "context-switches": Count(537, "", 18.65),
    }


def test_comma_as_separator_and_as_decimal_sign_is_distinguished_by_the_columns() -> None:
    text = (
        "3413,28,msec,task-clock,3413276777,100,00,1,628,CPUs utilized\n"
        "8961,,context-switches,3413276777,100,00,2,625,K/sec\n"
    )
    assert read_perf_stat(text) == {
        "task-clock": Count(3413.28, "msec"),
        "context-switches": Count(8961, ""),
    }


def test_an_event_with_commas_inside_is_one_event() -> None:
    assert read_perf_stat("5,,cpu/event=0x3c,umask=0x0/u,100,100.00,,\n") == {
        "cpu/event=0x3c,umask=0x0/u": Count(5, "")
    }


def test_the_halves_of_a_hybrid_cpu_are_added_up() -> None:
    assert read_perf_stat("5,,cpu_core/cycles/,9,100.00,,\n7,,cpu_atom/cycles/,9,100.00,,\n") == {
        "cycles": Count(12, "")
    }


def test_json_lines_are_read_with_and_without_repetition() -> None:
    line = (
        '{"counter-value" : "40.217725", "unit" : "msec", "event" : "task-clock", '
        '%s"event-runtime" : 40217725, "pcnt-running" : 100.00}\n'
    )
    none = (
        '{"counter-value" : "<not supported>", "unit" : "", "event" : "cycles", '
        '"event-runtime" : 0}\n'
    )
    assert read_perf_stat(line % "" + none) == {"task-clock": Count(40.217725, "msec")}
    assert read_perf_stat(line % '"variance" : 8.00, ') == {
        "task-clock": Count(40.217725, "msec", 8.0)
    }


def test_a_json_line_that_holds_a_ratio_and_no_count_is_passed_over() -> None:
    text = (
        '{"metric-value" : "1.6", "metric-unit" : "insn per cycle"}\n{"counter-value" : '
        '"5.0", "unit" : "", "event" : "cycles"}\n'
    )
    assert read_perf_stat(text) == {"cycles": Count(5, "")}


def test_json_that_a_decimal_comma_broke_is_read_all_the_same() -> None:
    text = (
        '{"counter-value" : "40,217725", "unit" : "msec", "event" : "task-clock", '
        '"event-runtime" : 40217725, "pcnt-running" : 100,00}\n'
    )
    assert read_perf_stat(text) == {"task-clock": Count(40.217725, "msec")}


@pytest.mark.parametrize(
    "text",
    [
        "500,,cycles,1000,25.00,1.2,GHz\n7,,page-faults,4000,100.00,,\n",
        "500,,cycles,1.00%,1000,25.00,1.2,GHz\n7,,page-faults,0.00%,4000,100.00,,\n",
        (
            " Performance counter stats for 'x':\n\n   500      cycles      #  1.2 GHz      "
            "(25.00%)\n     7      page-faults\n"
        ),
        '{"counter-value" : "500.0", "unit" : "", "event" : "cycles", "event-runtime" : 1000, '
        '"pcnt-running" : 25.00}\n'
        '{"counter-value" : "7.0", "unit" : "", "event" : "page-faults", "event-runtime" : '
        '4000, "pcnt-running" : 100.00}\n',
    ],
)
def test_an_event_that_shared_its_counter_is_taken_as_perf_scaled_it(text: str) -> None:
    assert {event: count.value for event, count in read_perf_stat(text).items()} == {
        "cycles": 500,
        "page-faults": 7,
    }


def test_the_counts_of_a_group_are_read_like_any_other() -> None:
    text = (
        "9,,cycles,10,100.00,,\n<not counted>,,instructions,0,0.00,,\n"
        "3,,page-faults,10,100.00,,\n"
    )  # -e {cycles,instructions},page-faults
    assert read_perf_stat(text) == {"cycles": Count(9, ""), "page-faults": Count(3, "")}


def test_text_of_an_older_perf_in_another_locale_gives_the_published_numbers() -> None:
    assert read_perf_stat(LISTS_2011) == {
        "task-clock": Count(327577.471718, "", 0.64),
        "context-switches": Count(28866491, "", 1.80),
        "CPU-migrations": Count(1506929, "", 3.24),
        "page-faults": Count(127151, "", 0.16),
        "cycles": Count(829399813448, "", 0.64),
        "stalled-cycles-frontend": Count(580664691740, "", 0.64),
        "seconds-elapsed": Count(20.705679994, "s", 0.64),
    }


@pytest.mark.parametrize("group", ["'", "\u2019", "\u00a0", "\u202f", " "])
def test_thousands_are_grouped_by_any_sign_a_locale_has(group: str) -> None:
    text = f" Performance counter stats for 'x':\n\n    1{group}234{group}567      page-faults\n"
    assert read_perf_stat(text) == {"page-faults": Count(1234567, "")}


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ("1,234", 1234),
        ("1.234", 1234),
        ("1,234.56", 1234.56),
        ("1.234,56", 1234.56),
        ("12,34", 12.34),
        ("1,234,567", 1234567),
        ("327577,471718", 327577.471718),
        ("17", 17),
        ("1 234,50", 1234.5),
    ],
)
def test_a_printed_number_is_read_by_how_perf_rounds_and_groups(
    printed: str, number: float
) -> None:
    assert float(plain_number(printed)) == number


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no perf stat counters found"),
        ("hello\n1\n", "no perf stat counters found"),
        (
            "     0.100150683,0.56,msec,task-clock,562228,100.00,0.006,CPUs utilized\n",
            "by intervals",
        ),
        ("     1.000123456       1.02 msec task-clock\n", "by intervals"),
        ('{"interval" : 0.100, "counter-value" : "1", "event" : "x"}\n', "by intervals"),
        ("CPU0,1234,,cycles,100,100.00,,\n", "by CPU or socket"),
        ("S0-D0-C1,2,1234,,cycles,100,100.00,,\n", "by CPU or socket"),
        ("5,,cycles,1,100.00,,\n6,,cycles,1,100.00,,\n", "'cycles' twice"),
        ('{"counter-value" : "nan", "event" : "x"}\n', "'nan' for 'x', which is not a number"),
        ('{"counter-value" : "1e999", "event" : "x"}\n', "which is not a number"),
        ("x" * 2_000_000, "characters"),
        ("".join(f"1,,e{n},1,100.00,,\n" for n in range(2001)), "2001 events"),
    ],
)
def test_what_can_not_be_read_without_guessing_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read_perf_stat(text)


def test_events_that_all_were_not_counted_are_no_error() -> None:
    assert read_perf_stat("<not supported>,,cycles,0,100.00,,\n") == {}


def test_long_hostile_text_is_read_in_time_that_grows_with_its_length() -> None:
    for text in (
        "\n" * 1_000_000,
        " " * 1_000_000,
        "1 " * 500_000,
        ("1 234 " * 300 + "\n") * 500,
        ("1,a/" + "a" * 1900 + "\n") * 500,
    ):
        with pytest.raises(ParseError):
            read_perf_stat(text)


NUMBERS = ["1", "2,5", "<not counted>"]
WORDS = [
    *NUMBERS,
    ",",
    ";",
    " ",
    "msec",
    "task-clock",
    "cycles",
    "\n",
    "{",
    '"counter-value" : "',
    '"',
    "+-",
    "%",
    "seconds time elapsed",
    "CPU0",
]
PIECES = st.sampled_from(WORDS)


@given(st.text(max_size=300) | st.lists(PIECES, max_size=30).map("".join))
@example("1,,a,+-5%")
def test_arbitrary_text_is_counts_or_a_parse_error(text: str) -> None:
    try:
        counts = read_perf_stat(text)
    except ParseError:
        return
    assert all(isinstance(count.value, float) for count in counts.values())
