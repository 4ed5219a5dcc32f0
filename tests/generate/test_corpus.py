"""Folders of documents, good and hostile."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.builder.corpus import html_text, read_corpus
from auepora_eval.errors import DataError, install_command

PROSE = "The north pier is 40 metres long."


def write_files(place: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = place / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


def test_every_kind_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    lines = (
        '{"doc_id": "a", "text": "One.", "metadata": {"title": "First"}}\n\n{"_id": 7, "contents": "Two."}\n'
    )
    write_files(
        tmp_path,
        b_dot_txt=PROSE,
        a_dot_md="# The pier\n\n" + PROSE,
        sub__c_dot_html="<title>Piers</title><p>One &amp; two.",
        d_dot_jsonl=lines,
    )
    corpus = read_corpus(tmp_path)
    assert [(each.name, each.source_path, each.title) for each in corpus.documents] == [
        ("a.md", "a.md", "The pier"),
        ("b.txt", "b.txt", ""),
        ("d.jsonl#a", "d.jsonl#a", "First"),
        ("d.jsonl#7", "d.jsonl#7", ""),
        ("sub/c.html", "sub/c.html", "Piers"),
    ]
    assert corpus.documents[-1].text == "One & two."
    assert corpus.left_out == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"\x00\x01binary", "is not text: it holds zero bytes", id="binary"),
        pytest.param(b"caf\xe9 noir", "is not UTF-8 text (byte 4)", id="latin-1"),
        pytest.param(b" \n\t", "holds no text", id="blank"),
    ],
)
def test_file_without_text_is_left_out_with_its_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    write_files(tmp_path, good_dot_txt=PROSE, bad_dot_txt=content)
    corpus = read_corpus(tmp_path)
    assert [each.name for each in corpus.documents] == ["good.txt"]
    assert [(left.name, left.reason) for left in corpus.left_out] == [("bad.txt", reason)]


def test_bad_lines_are_left_out_one_by_one(tmp_path: Path) -> None:
    write_files(tmp_path, d_dot_jsonl='{"text": "One."}\n{"text": \n{"no": "text"}\n[1]\n{"text": "Two."}\n')
    corpus = read_corpus(tmp_path)
    assert [each.name for each in corpus.documents] == ["d.jsonl#1", "d.jsonl#5"]
    assert [left.name for left in corpus.left_out] == ["d.jsonl:2", "d.jsonl:3", "d.jsonl:4"]


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "secret.txt"
    outside.write_text("A secret.")
    folder = write_files(tmp_path / "docs", good_dot_txt=PROSE)
    (folder / "leak.txt").symlink_to(outside)
    (folder / "inside.txt").symlink_to(folder / "good.txt")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.txt")
    corpus = read_corpus(folder)
    assert [each.name for each in corpus.documents] == ["good.txt", "inside.txt"]
    assert {left.name: left.reason for left in corpus.left_out} == {
        "leak.txt": "is a link out of the folder",
        "pipe.txt": "is not a plain file",
        "up": "is a link to a folder",
    }


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "a\n\x1b[31mb.txt").write_text(PROSE)
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/c\xff.txt"))).write_text(PROSE)
    names = [each.name for each in read_corpus(tmp_path).documents]
    assert names == ["a%0A%1B[31mb.txt", "c%FF.txt"]
    assert all(name.isprintable() for name in names)


def test_empty_folder_is_an_error_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no document in it\. Put \.txt"):
        read_corpus(tmp_path)
    write_files(tmp_path, photo_dot_png=b"\x89PNG")
    with pytest.raises(DataError, match="1 left out: not one of"):
        read_corpus(tmp_path)
    for name in ("nowhere", "nul\0l"):
        with pytest.raises(DataError, match="there is no such file or folder"):
            read_corpus(tmp_path / name)


def test_html_becomes_text_with_headings_and_lists() -> None:
    page = b"""<html><head><title> The  pier </title><style>p {}</style></head><body>
    <h2>Size</h2><p>It is <b>40</b> metres<br>long.<script>alert("no")</script>
    <ul><li>one<li>two</ul><table><tr><td>a<td>b</table>"""
    content = html_text(page, "page.html")
    assert content.title == " The  pier "
    assert content.text.splitlines()[0] == "## Size"
    assert "It is 40 metres\nlong." in content.text
    assert "- one\n- two" in content.text
    assert "alert" not in content.text
    assert "p {}" not in content.text


@given(st.text(alphabet="<>/!-abpli \"'=&;#x0", max_size=300))
def test_broken_html_gives_text(page: str) -> None:
    assert isinstance(html_text(page.encode(), "x.html").text, str)


def test_form_feeds_separate_pages(tmp_path: Path) -> None:
    write_files(tmp_path, p_dot_txt="One.\fTwo.\fThree.")
    document = read_corpus(tmp_path).documents[0]
    assert document.page_starts == (0, 5, 10)
    assert [document.page_at(offset) for offset in (0, 4, 5, 9, 10, 15)] == [1, 1, 2, 2, 3, 3]


@pytest.mark.skipif(find_spec("pypdf") is not None, reason="pypdf is installed")
def test_missing_pypdf_names_the_extra(tmp_path: Path) -> None:
    write_files(tmp_path, a_dot_pdf=pdf("One."), b_dot_txt=PROSE)
    assert read_corpus(tmp_path).left_out[0].reason == f"needs pypdf: {install_command('pdf')}"


@pytest.mark.skipif(find_spec("pypdf") is None, reason="needs pypdf (the extra pdf)")
def test_pdf_has_pages_and_a_broken_one_is_left_out(tmp_path: Path) -> None:
    whole = pdf("The north pier is long.", "The south pier is short.")
    write_files(
        tmp_path, a_dot_pdf=whole, b_dot_pdf=b"%PDF-1.4\n%%EOF", c_dot_pdf=whole[:150], d_dot_pdf=b"no"
    )
    corpus = read_corpus(tmp_path)
    (document,) = corpus.documents
    assert document.text == "The north pier is long.\n\nThe south pier is short."
    assert [document.page_at(document.text.index(word)) for word in ("north", "south")] == [1, 2]
    assert {left.name for left in corpus.left_out} == {"b.pdf", "c.pdf", "d.pdf"}


def pdf(*pages: str) -> bytes:
    """Return a small PDF with a line of text on each page."""
    streams = [f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET" for page in pages]
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for place, stream in enumerate(streams):
        fonts = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {fonts} /Contents {5 + 2 * place} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, offsets = "%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    return f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")
