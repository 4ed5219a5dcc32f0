"""A task for annotators: a folder that can be copied, and that needs nothing else.

task.json                the question, the labels, the people
items.jsonl              what is judged, with its texts
annotations/NAME.db      what one person said (`labels`)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Literal

import msgspec

from ..errors import DataError, StorageError
from ..io.files import file_name, written_together
from ..io.jsonl import encoded_lines, read_records
from ..text.label_terms import ACCURATE, LABELS

Kind = Literal["answers", "claims", "documents", "pairs"]

TASK, ITEMS, FOLDER = "task.json", "items.jsonl", "annotations"
MOST_LABELS = 9  # the keys 1 to 9


class Label(msgspec.Struct, frozen=True):
    """A label: its name, and its value from 0 (worst) to 1 (best)."""

    name: str
    value: float


class Passage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A document that an answer was made of."""

    doc_id: str
    text: str
    title: str = ""


class Item(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is judged. `text` is the answer, the claim or the document; of a pair it is the first answer."""

    item_id: str
    sample_id: str
    query: str
    text: str
    second: str = ""  # the second answer of a pair
    answer: str = ""  # the whole answer that a claim is from
    reference: str = ""
    documents: tuple[Passage, ...] = ()
    doc_id: str = ""  # of a document
    runs: tuple[str, ...] = ()  # hidden from annotators
    slices: dict[str, str] = {}
    scores: dict[str, float] = {}  # of the sample, from 0 to 1, higher is better


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged and by whom. The question, the people and the overlap may be edited in the file."""

    kind: Kind
    question: str
    labels: tuple[Label, ...]
    runs: tuple[str, ...]
    dataset: str
    people: tuple[str, ...]
    # Share of the items that everybody judges; the others are judged by one person each.
    overlap: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    out_of: int  # items that they were chosen from


# The question and the labels of each kind, the worst first: the higher the key, the better.
DEFAULTS: dict[Kind, tuple[str, tuple[str, ...]]] = {
    "answers": ("Do the documents support everything that the answer says?", ("not supported", "supported")),
    "claims": ("Do the documents support this claim?", ("not supported", "supported")),
    "documents": (
        "Does this document help to answer the question?",
        ("not relevant", "partly relevant", "relevant"),
    ),
    "pairs": ("Which answer is better?", ("first", "second", "equally good")),
}
# The value is the score of the first run: its mean is the share of wins, with ties as one half.
_PREFERENCES = (Label("first", 1.0), Label("second", 0.0), Label("equally good", 0.5))


def labels_of(kind: Kind, names: Sequence[str] = ()) -> tuple[Label, ...]:
    """Return the labels of a task: those of the names, the worst first, or the usual ones of the kind."""
    if kind == "pairs":
        if names:
            raise DataError("--labels", "pairs have the labels first, second and equally good.")
        return _PREFERENCES
    names = names or DEFAULTS[kind][1]
    if not 2 <= len(names) <= MOST_LABELS or not all(names) or len(set(names)) < len(names):
        what = f"{', '.join(names)!r:.80} are not from 2 to {MOST_LABELS} different labels."
        raise DataError("--labels", what, fix="Name them from the worst to the best: bad,fair,good.")
    if set(names) <= set(LABELS):  # of label sets: they have no order, and only one of them is good
        return tuple(Label(name, float(name == ACCURATE)) for name in names)
    return tuple(Label(name, place / (len(names) - 1)) for place, name in enumerate(names))


def check_people(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names; DataError if file names cannot be made of them, or two would share a file."""
    for name in names:
        file_name(name, "the name of an annotator")
    # In some file systems, Ada and ada are one file.
    if not names or len({name.casefold() for name in names}) < len(names):
        what = f"{', '.join(names)!r:.80} are not the names of different people."
        raise DataError("--people", what, fix="Use distinct names.")
    return tuple(names)


def create_task(folder: Path, task: Task, items: Sequence[Item]) -> None:
    """Write a new task; StorageError if the folder has one already."""
    paths = [folder / ITEMS, folder / TASK]
    with written_together(paths) as files:  # task.json last: a folder without it is not a task
        files[paths[0]].write(encoded_lines(items))
        files[paths[1]].write(msgspec.json.format(msgspec.json.encode(task)) + b"\n")


def is_task(folder: Path) -> bool:
    """Return whether a folder has a task."""
    return (folder / TASK).is_file()


def read_task(folder: Path) -> tuple[Task, list[Item]]:
    """Return the task of a folder and its items; DataError if they were edited and cannot be used."""
    path = folder / TASK
    try:
        task = msgspec.json.decode(path.read_bytes(), type=Task)
        items = [msgspec.convert(record, Item) for _, record in read_records(folder / ITEMS)]
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(str(folder), f"is not a task: {error}.", fix="Create the task again.") from None
    check_people(task.people)  # the file may come from somebody else, and names become paths
    return task, items


def queue_of(task: Task, items: Sequence[Item], person: str) -> list[str]:
    """Return the ids of the items that a person judges, in an order of their own.

    The share `overlap` is for everybody, the rest is dealt out in turn. Every copy of the task gives the same
    queues.
    """
    ids = [item.item_id for item in items]
    # Seeded by a text: Python gives the same order for it in every version and process.
    Random("queues").shuffle(ids)  # noqa: S311 - an order, not a secret
    shared = round(task.overlap * len(ids))
    own = ids[:shared] + ids[shared + task.people.index(person) :: len(task.people)]
    Random(person).shuffle(own)  # noqa: S311
    return own


def is_swapped(task: Task, person: str, item_id: str) -> bool:
    """Return whether a person sees the second answer of a pair first."""
    # By person, too: a preference for the left side must not favour the same run with everybody.
    return task.kind == "pairs" and Random(f"{person}/{item_id}").random() < 0.5  # noqa: S311
