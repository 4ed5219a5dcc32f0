"""A folder of datasets in versions: the right one is found, and an id never leaves the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.errors import DataError
from auepora_eval.io.loader import EvaluationDatasetLoader, UnreadableFileWarning


def a_file(folder: Path, name: str, **fields: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"dataset_id": "d", "name": "D", "version": "1", "queries": [], "file": path.name}
    path.write_text(json.dumps({**document, **fields}))


def found(folder: Path, *names: str, asked: tuple[str, ...]) -> str:
    for name in names:
        a_file(folder, f"datasets/{name}.eval.json", version=name.rpartition("_")[2])
    return str(EvaluationDatasetLoader(folder).load_dataset(*asked)["file"])


@pytest.mark.parametrize(
    ("names", "asked", "expected"),
    [
        pytest.param(["d_v1.9.0", "d_v1.10.0"], ("d",), "d_v1.10.0", id="numbers, not letters"),
        pytest.param(["d_1.0.0", "d_1.0.0-rc.1"], ("d",), "d_1.0.0", id="a candidate comes before"),
        pytest.param(["d_1.0.0-rc.2", "d_1.0.0-rc.10"], ("d",), "d_1.0.0-rc.10", id="candidates in order"),
        pytest.param(["d", "d_2.0.0"], ("d",), "d", id="the exact name first"),
        pytest.param(["d_v1.0.0"], ("d_v1.0.0",), "d_v1.0.0", id="the version in the name"),
        pytest.param(["d_1.0.0", "d_2.0.0"], ("d", "1.0.0"), "d_1.0.0", id="the version asked for"),
        pytest.param(["d_1.0.0"], ("d", "v1.0"), "d_1.0.0", id="1.0 is 1.0.0"),
        pytest.param(["d_long_v9.0.0", "d_v1.0.0"], ("d",), "d_v1.0.0", id="d_long is another dataset"),
    ],
)
def test_which_file(tmp_path: Path, names: list[str], asked: tuple[str, ...], expected: str) -> None:
    assert found(tmp_path, *names, asked=asked) == f"{expected}.eval.json"


def test_the_exact_name_with_the_version_that_its_document_tells(tmp_path: Path) -> None:
    a_file(tmp_path, "datasets/sample_eval_v1.0.0.eval.json", version="1.0.0")
    a_file(tmp_path, "datasets/plain.eval.json", version="v2.0")
    loader = EvaluationDatasetLoader(tmp_path)
    assert loader.load_dataset("sample_eval_v1.0.0", "1.0.0")["version"] == "1.0.0"
    assert loader.load_dataset("plain", "2.0.0")["version"] == "v2.0"
    for dataset_id, version in (("sample_eval_v1.0.0", "1.0.1"), ("plain", "2.0.1"), ("plain", "x")):
        with pytest.raises(FileNotFoundError, match=f"there is no '{dataset_id} {version}'"):
            loader.load_dataset(dataset_id, version)


@pytest.mark.parametrize("asked", [("d",), ("d", "1.10.0"), ("d", "v1.10")])
def test_two_files_for_one_version_are_refused(tmp_path: Path, asked: tuple[str, ...]) -> None:
    names = ("d_1.9.0", "d_1.10.0", "d_v1.10.0")
    with pytest.raises(
        DataError, match=r"d_1\.10\.0\.eval\.json and d_v1\.10\.0\.eval\.json are of the same"
    ):
        found(tmp_path, *names, asked=asked)
    assert found(tmp_path, *names, asked=("d", "1.9.0")) == "d_1.9.0.eval.json"


@pytest.mark.parametrize(
    "dataset_id", ["../d", "/etc/passwd", "a/b", "a\0b", "x" * 300, "", "*", "..", "a\\b"]
)
def test_an_id_never_leaves_the_folder(tmp_path: Path, dataset_id: str) -> None:
    a_file(tmp_path, "d.eval.json")
    loader = EvaluationDatasetLoader(tmp_path / "inside")
    for load in (loader.load_dataset, loader.load_ground_truth):
        with pytest.raises(DataError, match="cannot be a file name"):
            load(dataset_id)
    with pytest.raises(DataError, match="cannot be a file name"):
        loader.load_dataset("d", "../../d")


def test_what_is_not_there_says_what_is(tmp_path: Path) -> None:
    a_file(tmp_path, "datasets/policies_v1.0.0.eval.json")
    with pytest.raises(FileNotFoundError, match=r"there is no 'policy'. There are policies_v1.0.0.eval.json"):
        EvaluationDatasetLoader(tmp_path).load_dataset("policy")
    with pytest.raises(FileNotFoundError, match=r"there is no 'policies 2.0.0'"):
        EvaluationDatasetLoader(tmp_path).load_dataset("policies", "2.0.0")
    assert not (tmp_path / "ground_truth").exists()


def test_available_datasets(tmp_path: Path) -> None:
    query = {"query_id": "1", "query_text": "q", "relevant_documents": []}
    a_file(tmp_path, "datasets/a_v1.0.0.eval.json", dataset_id="a", description="about a", queries=[query])
    a_file(tmp_path, "datasets/b.eval.json", dataset_id="b")
    (tmp_path / "datasets" / "broken.eval.json").write_text("{")
    with pytest.warns(UnreadableFileWarning, match="left out: broken.eval.json"):
        datasets = EvaluationDatasetLoader(tmp_path).get_available_datasets()
    assert datasets[0] == {
        "dataset_id": "a",
        "name": "D",
        "version": "1",
        "description": "about a",
        "size": 1,
        "file_path": str(tmp_path / "datasets" / "a_v1.0.0.eval.json"),
    }
    assert [entry["dataset_id"] for entry in datasets] == ["a", "b"]
    assert EvaluationDatasetLoader(tmp_path / "nothing").get_available_datasets() == []


def an_annotation(number: int) -> dict[str, Any]:
    return {
        "annotation_id": f"a{number}",
        "query_id": "q",
        "annotator_id": "p",
        "timestamp": "2025-08-30T12:00:00Z",
        "citations": [],
    }


def test_ground_truth_of_one_file_and_of_several_people(tmp_path: Path) -> None:
    folder = tmp_path / "ground_truth"
    for person in (1, 2):
        path = folder / "annotations" / f"annotator_00{person}" / "d_v1.0.0.gt.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(an_annotation(person)))
    loader = EvaluationDatasetLoader(tmp_path)
    both = loader.load_ground_truth("d")
    assert [annotation["annotation_id"] for annotation in both["annotations"]] == ["a1", "a2"]
    (folder / "d_v1.0.0.gt.json").write_text(json.dumps([an_annotation(3)]))
    assert loader.load_ground_truth("d") == {"annotations": [an_annotation(3)]}
    assert loader.load_ground_truth("d", "1.0.0") == {"annotations": [an_annotation(3)]}
    with pytest.raises(FileNotFoundError):
        loader.load_ground_truth("e")


def test_another_version_in_the_file_than_in_its_name_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_file(tmp_path, "datasets/d_v1.3.0.eval.json", version="1.1.0")
    with pytest.warns(UserWarning, match=r"it is '1\.1\.0', but the name of the file says 'v1\.3\.0'"):
        EvaluationDatasetLoader(tmp_path).load_dataset("d", "1.3.0")
    assert main(["dataset", "check", str(tmp_path / "datasets/d_v1.3.0.eval.json")]) == 1
    assert "$.version" in capsys.readouterr().out
