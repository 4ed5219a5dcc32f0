"""The markup builder: text is text, wherever it comes from."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.pages.components.markup import Attribute, Markup, Node, join, raw_element, tag


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        pytest.param("a < b & c", "<p>a &lt; b &amp; c</p>", id="text"),
        pytest.param(Markup("<b>x</b>"), "<p><b>x</b></p>", id="markup"),
        pytest.param(["a", [None, 3, tag("i", "<")]], "<p>a3<i>&lt;</i></p>", id="nested"),
        pytest.param("gnp\u202e.exe\x00", "<p>gnp.exe</p>", id="what cannot be seen"),
        pytest.param("\ud800", "<p></p>", id="half of a surrogate pair"),
        pytest.param("می\u200cخواهم", "<p>می\u200cخواهم</p>", id="a joiner is a letter of Persian"),
    ],
)
def test_children(child: Node, expected: str) -> None:
    assert str(tag("p", child)) == expected


def test_attributes() -> None:
    made = tag("input", class_="a", data_id='"><script>', disabled=True, hidden=False, value=None, size=0.5)
    assert str(made) == '<input class="a" data-id="&quot;&gt;&lt;script&gt;" disabled size="0.5"/>'
    assert str(tag("svg", attrs={"viewBox": "0 0 1 1"})) == '<svg viewBox="0 0 1 1"></svg>'


@pytest.mark.parametrize(
    "attrs",
    [
        {"onclick": "x()"},
        {"OnClick": "x()"},
        {"hx-on:click": "x()"},
        {"hx-on": "x()"},
        {"style": "color: red"},
        {"srcdoc": "<script>"},
        {"a b": "c"},
        {'x">': "c"},
        {"href": "javascript:alert(1)"},
        {"href": "//elsewhere.example"},
        {"href": "/\\elsewhere.example"},
        {"src": "https://elsewhere.example"},
        {"formaction": " javascript:alert(1)"},
    ],
)
def test_attributes_that_do_something(attrs: dict[str, Attribute]) -> None:
    with pytest.raises(ValueError, match=r"attribute here|out of the page"):
        tag("a", attrs=attrs)


@pytest.mark.parametrize("name", ["script", "style", "a b", "p><script", ""])
def test_names_of_elements(name: str) -> None:
    with pytest.raises(ValueError, match="name of an element"):
        tag(name)


@pytest.mark.parametrize("address", ["#s-1", "?by=recall", "/run/a", "./x", "../x"])
def test_addresses_within_the_page(address: str) -> None:
    assert str(tag("a", href=address)) == f'<a href="{address}"></a>'


def test_raw_text_cannot_end_its_element() -> None:
    assert str(raw_element("script", "a < b")) == "<script>a < b</script>"
    for text in ("</script>", "x</SCRIPT ", "<!-- x"):
        with pytest.raises(ValueError, match="cannot have this text"):
            raw_element("script", text)
    with pytest.raises(ValueError, match="cannot have this text"):
        raw_element("div", "text")


class _Reader(HTMLParser):
    """What a parser sees: the elements, and the text outside of them."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.values: list[str | None] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from("<>&\"'/=- ")))
def test_a_parser_reads_back_what_was_written(text: str) -> None:
    reader = _Reader()
    reader.feed(str(join(tag("p", text, title=text), tag("li", text), "end")))
    reader.close()
    assert reader.elements == ["p", "li"]
    seen = re.sub(r"\s+", "", "".join(sign for sign in text if sign.isprintable()))
    assert [re.sub(r"\s+", "", value or "") for value in reader.values] == [seen]
    assert re.sub(r"\s+", "", reader.text) == f"{seen}{seen}end"
