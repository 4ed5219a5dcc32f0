"""Sentences: a table to check by eye, exact places for any text, and linear time for hostile ones."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.text.sentences import sentence_spans, sentences

LONG = "The ferry to the outer islands leaves the harbour at the northern"  # a line that a margin may break


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param(["It cost 3.5 million.", "It rose."], id="a decimal"),
        pytest.param(["Water got 6.4.", "Ferries got 8.1."], id="a decimal at the end"),
        pytest.param(["By L. K. A. Brae and P. Smith.", "They left."], id="more initials"),
        pytest.param(["We eat fruit, e.g. apples.", "Not bread, i.e. toast."], id="e.g. and i.e."),
        pytest.param(["U.S. law applies.", "The U.S. Senate met."], id="U.S. inside"),
        pytest.param(["They live in the U.S.", "The Senate met."], id="U.S. at the end"),
        pytest.param(["George W. Bush met J. K. Rowling.", "They left."], id="initials"),
        pytest.param(["Take vitamin C.", "It helps."], id="a letter that is no initial"),
        pytest.param(
            ["Dr. Brae saw Mr. Smith at 5 p.m.", "They left at 6 a.m. on Monday."], id="titles, hours"
        ),
        pytest.param(["Smith et al. found it.", "Apple Inc. is large."], id="et al., Inc."),
        pytest.param(
            ["See Fig. 3.", "No. 5 is alive.", "The answer is No.", "It ends."], id="before numbers"
        ),
        pytest.param(["1. The boat sank.", "2. It rose."], id="numbered items"),
        pytest.param(['He said "It works."', "Then he left."], id="a quote"),
        pytest.param(['"Really?" he asked.', "Yes!"], id="a question within"),
        pytest.param(["(It sank.)", "It rose."], id="brackets"),
        pytest.param(["Well... maybe.", "Wait…", "What?"], id="ellipses"),
        pytest.param(["See https://a.b/c?d=e.f.", "It is at x.com/a.html today."], id="addresses"),
        pytest.param(["It moors there.[1]", "It left.[2][3]", "Done. [4]", "End [5]."], id="citations"),
        pytest.param(["Done.[a.pdf:1:2-30]", "Next."], id="a citation of a span"),
        pytest.param(["Am 3. Oktober 1990 kam er.", "Im Jahr 1911.", "Er ging."], id="German dates"),
        pytest.param(["यह है।", "वह है।"], id="danda"),
        pytest.param(["He paid $5.", "10 boats left."], id="a number begins"),
        pytest.param(["The iPhone rose.", "iPad sales fell.", "eBay did not."], id="a small letter first"),
        pytest.param(["Hello .", "World !"], id="tokenised"),
        pytest.param(["all is small here.", "no capitals at all.", "really?"], id="without capitals"),
    ],
)
def test_sentences_on_one_line(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "东京塔很高。真的吗？是的！好", ["东京塔很高。", "真的吗？", "是的！", "好"], id="Chinese"
        ),
        pytest.param(
            "彼は「行く？」と言った。次。", ["彼は「行く？」と言った。", "次。"], id="Japanese quote"
        ),
        pytest.param("３．５です。次", ["３．５です。", "次"], id="wide digits"),
        pytest.param(
            "Features:\n- one\n- two.\n1) three\n", ["Features:", "- one", "- two.", "1) three"], id="list"
        ),
        pytest.param("A title\n\nThe text", ["A title", "The text"], id="paragraphs"),
        pytest.param("Piers\nThe text", ["Piers", "The text"], id="a short line"),
        pytest.param(f"{LONG}\nHarbour Office. Next", [f"{LONG}\nHarbour Office.", "Next"], id="wrapped"),
        pytest.param("the boat\nleaves", ["the boat\nleaves"], id="goes on in small letters"),
        pytest.param("One.\r\nTwo.\r\n\r\nThree", ["One.", "Two.", "Three"], id="CRLF"),
        pytest.param("etc.\n\nNext", ["etc.", "Next"], id="an empty line outweighs an abbreviation"),
        pytest.param(" \n ", [], id="nothing"),
        pytest.param("", [], id="empty"),
    ],
)
def test_sentences_of_a_text(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text() | st.text(alphabet="aA1 .!?…。\n\r\t\"'()[]-・と\u2028"))
def test_the_pieces_and_their_places_give_the_text_back(text: str) -> None:
    end = 0
    for start, stop in sentence_spans(text):
        assert text[end:start].strip() == ""
        assert text[start:stop] == text[start:stop].strip() != ""
        end = stop
    assert text[end:].strip() == ""


# Pieces that a text is made of, repeated; | parts them.
HOSTILE = (
    """.|?!|\n| .|. |.[|[.|a.|. a|A. |.)|。|。」|1. |.[1] |a\r|. (|."|.[x|\u2028|.\u2028|…|b\n|. \t|e.g. """
)


@pytest.mark.parametrize("hostile", [*HOSTILE.split("|"), "x" * 40 + "\n"])
def test_time_is_linear_in_whatever_comes(hostile: str) -> None:
    def seconds(size: int) -> float:
        text = hostile * (size // len(hostile))
        best = 9e9
        for _ in range(2):
            start = time.process_time()
            sentence_spans(text)
            best = min(best, time.process_time() - start)
        return best

    # Eight times the text; a quadratic search would take sixty-four times as long.
    assert seconds(40_000) < 24 * max(seconds(5_000), 0.002)
