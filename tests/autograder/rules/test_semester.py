"""The rules of a semester: read as written, refused by key and value, and their effects."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.model.submission import SubmissionKey
from autograder.rules.lateness import Attempt, attempt_that_counts, days_late, lateness, sentence
from autograder.rules.semester import Late, Receipt, Semester, Student, read_semester
from autograder.store.out_folder import OutFolder
from tests.grading import LAB01, LAB05, SEARCH

DUE = datetime.fromisoformat("2026-11-20T23:59:00+01:00")
WHOLE = f"""
attempts = "best"
roster = "roster.csv"
receipts = "receipts.csv"
extensions = "extensions.csv"
[due]
{LAB05} = 2026-11-20T23:59:00+01:00
[late]
grace_minutes = 15
percent_per_day = 10
most_percent = 50
[waived]
{SEARCH} = "Its bound was not the one in the text."
"""
ROSTER = "id,first_name,last_name,email\nada,Ada,Lovelace,ada@uni.example\nlin,,,\n"
RECEIPTS = f"student,lab,received,folder\nada,{LAB05},2026-11-20T20:00:00+01:00,monday\n"
EXTENSIONS = f"student,lab,due\nada,{LAB05},2026-11-22T23:59:00+01:00\n"


def write(folder, settings=WHOLE, **files):
    texts = {"roster": ROSTER, "receipts": RECEIPTS, "extensions": EXTENSIONS} | files
    (folder / "semester.toml").write_text(settings, encoding="utf-8")
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def test_all_of_it_is_read(tmp_path):
    semester = read_semester(OutFolder(write(tmp_path)))
    assert semester == Semester(
        attempts="best",
        due={LAB05: DUE},
        late=Late(timedelta(minutes=15), 10, 50),
        extensions={SubmissionKey("ada", LAB05): DUE + timedelta(days=2)},
        receipts=(Receipt("ada", LAB05, DUE - timedelta(hours=3, minutes=59), "monday"),),
        roster=(Student("ada", "Ada", "Lovelace", "ada@uni.example"), Student("lin")),
        waived={SEARCH: "Its bound was not the one in the text."},
    )


def test_a_lab_may_be_named_by_its_beginning(tmp_path):
    short = {"receipts": RECEIPTS, "extensions": EXTENSIONS}
    short = {name: text.replace(LAB05, "lab05") for name, text in short.items()}
    write(tmp_path, WHOLE.replace(f"{LAB05} =", "lab05 ="), **short)
    whole = tmp_path / "whole"
    whole.mkdir()
    assert read_semester(OutFolder(tmp_path)) == read_semester(OutFolder(write(whole)))


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffid,first_name\r\nada,Zoë\r\n",
        "\ufeffid;first_name\r\nada;Zoë\r\n;\r\n",
        "id\tfirst_name\tof no use\nada\tZoë\n\n",
        " id , first_name \n\nada , Zoë,,\n",
    ],
)
def test_a_roster_is_read_as_spreadsheets_write_it(tmp_path, text):
    assert read_semester(OutFolder(write(tmp_path, roster=text))).roster == (Student("ada", "Zoë"),)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_in_another_encoding_is_named_with_the_remedy(tmp_path, encoding):
    write(tmp_path)
    (tmp_path / "roster.csv").write_bytes("id,first_name\nada,Zoë\n".encode(encoding))
    with pytest.raises(
        ValueError, match=r"roster\.csv is not UTF-8 text .* save it as `CSV UTF-8`"
    ):
        read_semester(OutFolder(tmp_path))


def test_settings_are_read_with_a_byte_order_mark_and_times_in_quotes(tmp_path):
    written = "\ufeff" + WHOLE.replace("2026-11-20T23:59:00+01:00", '"2026-11-20T23:59:00+01:00"')
    assert read_semester(OutFolder(write(tmp_path, written))).due == {LAB05: DUE}


def test_the_guides_example_is_what_it_says(repository, tmp_path):
    guide = (repository / "docs" / "semester.md").read_text(encoding="utf-8")
    example = guide.partition("```toml\n")[2].partition("```")[0]
    semester = read_semester(OutFolder(write(tmp_path, example)))
    assert semester.late == Late(timedelta(minutes=15), 10, 50)
    assert (semester.attempts, semester.due) == ("best", {LAB05: DUE})
    assert list(semester.waived) == ["lab05-batch_norm_gap"]


def test_without_the_file_nothing_is_ruled(tmp_path):
    assert read_semester(OutFolder(tmp_path)) == Semester()


@pytest.mark.parametrize(
    ("settings", "key", "value", "expected"),
    [
        ('attempts = "first"', "attempts", "'first'", "last, best, on_time"),
        ("late = 3", "late", "3", "[late]"),
        ("lat = 3", "lat", "3", "late"),
        ("roster = 3", "roster", "3", "path"),
        ('receipts = "receipts.csv"\n[due]\nlab55 = 2026-11-20', "due.lab55", "2026", LAB05),
        (f"receipts = 'receipts.csv'\n[due]\n{LAB05} = 2026-11-20", f"due.{LAB05}", "2026", "UTC"),
        (
            f"receipts = 'receipts.csv'\n[due]\n{LAB05} = 2026-11-20T12:00:00",
            f"due.{LAB05}",
            "12:00",
            "UTC",
        ),
        (
            f"receipts = 'receipts.csv'\n[due]\n{LAB05} = 2026-11-20T12:00:00Z\n"
            "lab05 = 2026-11-21T12:00:00Z",
            "due.lab05",
            "11-21",
            f"one due time for {LAB05}",
        ),
        (f"[due]\n{LAB05} = 2026-11-20T12:00:00Z", "receipts", "missing", "receipt times"),
        ("[late]\npercent_per_day = 10", "due", "{}", "due time"),
        (WHOLE.replace("= 10", "= -1"), "late.percent_per_day", "-1", "from 0 to 100"),
        (WHOLE.replace("= 50", "= true"), "late.most_percent", "True", "from 0 to 100"),
        (WHOLE.replace("= 15", "= nan"), "late.grace_minutes", "nan", "number"),
        (WHOLE.replace("percent_per_day", "percent"), "late.percent", "10", "percent_per_day"),
        ('[waived]\nlab05-nothing = "why"', "waived.lab05-nothing", "'why'", SEARCH),
        ('[waived]\nlab99-x = "why"', "waived.lab99-x", "'why'", "id"),
        (f'[waived]\n{SEARCH} = ""', f"waived.{SEARCH}", "''", "reason"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(tmp_path, settings, key, value, expected):
    with pytest.raises(ValueError, match="expected") as error:
        read_semester(OutFolder(write(tmp_path, settings)))
    for said in ("semester.toml", f": {key} ", value, expected):
        assert said in str(error.value)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"roster": "name\nada\n"}, "a column id"),
        ({"roster": "id\n../eve\n"}, "row 2: id is '../eve'"),
        ({"roster": "id\nada\nada\n"}, "row 3: id 'ada' is already in row 2"),
        ({"roster": "id\nAda\nada\n"}, "row 3: id 'ada' is already in row 2"),
        ({"roster": ""}, "roster.csv is empty"),
        ({"roster": "id,email,email\n"}, "'email' twice"),
        ({"roster": "id,last_name,first_name\nada,Love,lace,Ada\n"}, "row 2: it has 4 cells"),
        ({"roster": 'id,last_name\nada,"Love\nlin,\n'}, "row 2: it can't be read as CSV"),
        ({"roster": "Student,ID,SIS Login ID\n"}, "rename `SIS Login ID` to id"),
        ({"extensions": EXTENSIONS.replace("11-22", "11-02")}, f"after that of {LAB05}"),
        ({"extensions": EXTENSIONS.replace(LAB05, LAB01)}, f"{LAB01} has no due time"),
        ({"receipts": RECEIPTS.replace("+01:00", "")}, "row 2: received is '2026"),
        ({"receipts": RECEIPTS.replace(LAB05, "lab55")}, "row 2: lab is 'lab55'"),
        ({"receipts": RECEIPTS.replace(LAB05, "lab0")}, "row 2: lab is 'lab0'"),
        ({"extensions": EXTENSIONS.replace(LAB05, "")}, "row 2: lab is ''"),
        ({"receipts": RECEIPTS.replace("monday", "..")}, "row 2: folder is '..'"),
        ({"extensions": EXTENSIONS.replace("2026-11-22", "Sunday")}, "row 2: due is 'Sunday"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, files, said):
    with pytest.raises(ValueError, match=r"row|column") as error:
        read_semester(OutFolder(write(tmp_path, **files)))
    assert said in str(error.value)


def test_a_file_that_is_not_there_and_text_that_is_no_toml_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"roster is 'none.csv'"):
        read_semester(OutFolder(write(tmp_path, 'roster = "none.csv"')))
    with pytest.raises(ValueError, match=r"semester.toml is not a TOML file"):
        read_semester(OutFolder(write(tmp_path, "attempts = ")))


def attempt(hours, points=10.0, student="ada"):
    """An attempt this many hours after the due time."""
    return Attempt(Receipt(student, LAB05, DUE + timedelta(hours=hours), f"at {hours}"), points)


def rules(attempts="last", per_day=10.0, most=50.0, **more):
    late = Late(timedelta(minutes=15), per_day, most)
    return Semester(attempts, {LAB05: DUE}, late, **more)


@pytest.mark.parametrize(
    ("hours", "off"), [(-1, 0), (0, 0), (0.25, 0), (0.26, 10), (24, 10), (24.1, 20), (1000, 50)]
)
def test_days_cost_up_to_the_cap_after_the_grace(hours, off):
    assert lateness(rules(), attempt(hours).receipt).percent_off == off


def test_an_extension_moves_the_due_time_of_one_student_and_never_forward():
    later, earlier = DUE + timedelta(days=2), DUE - timedelta(days=2)
    semester = rules(
        extensions={SubmissionKey("ada", LAB05): later, SubmissionKey("lin", LAB05): earlier}
    )
    assert lateness(semester, attempt(30).receipt).percent_off == 0
    assert lateness(semester, attempt(30, student="eve").receipt).percent_off == 20
    assert lateness(semester, attempt(-1, student="lin").receipt).percent_off == 0


@pytest.mark.parametrize(("rule", "hours"), [("last", 30), ("on_time", -1), ("best", 5)])
def test_the_attempt_that_counts(rule, hours):
    attempts = [attempt(5, 10), attempt(-9, 3), attempt(30, 11), attempt(-1, 8)]
    assert attempt_that_counts(rules(rule), attempts) == next(
        a for a in attempts if a.receipt.folder == f"at {hours}"
    )


def test_where_all_were_late_the_last_counts_and_of_equals_the_later():
    assert attempt_that_counts(rules("on_time"), [attempt(30), attempt(5)]) == attempt(30)
    assert attempt_that_counts(rules("best"), [attempt(-2), attempt(-1)]) == attempt(-1)


@given(
    hours=st.floats(-100, 1000),
    more=st.floats(0, 100),
    per_day=st.floats(0, 100),
    most=st.floats(0, 100),
)
def test_later_never_costs_less_and_never_more_than_the_cap(hours, more, per_day, most):
    semester = rules(per_day=per_day, most=most)
    first, then = (
        lateness(semester, attempt(h).receipt).percent_off for h in (hours, hours + more)
    )
    assert 0 <= first <= then <= most


def test_days_are_counted_from_the_due_time_across_a_change_of_clocks():
    due = datetime.fromisoformat("2026-10-24T23:59:00+02:00")
    assert days_late(datetime.fromisoformat("2026-10-25T22:59:00+01:00"), due) == 1
    assert days_late(datetime.fromisoformat("2026-10-25T23:00:00+01:00"), due) == 2


def test_students_are_told_when_it_came_and_what_that_costs():
    assert sentence(rules(), attempt(30).receipt, 1) == (
        "Received 2026-11-22 05:59 (UTC+0100), 2 days late, so 20% of the points are taken off."
    )
    assert sentence(rules("best"), attempt(-1).receipt, 3) == (
        "Received 2026-11-20 22:59 (UTC+0100), on time. "
        "It is the best of 3 attempts, and the one that counts."
    )
    assert "the last of 2 attempts" in sentence(rules("on_time"), attempt(30).receipt, 2)
