"""Malformed files written by hand: what is special to lines, YAML, CSV, annotations, manifests and tables."""

from __future__ import annotations

import json
from typing import Any

Cases = list[tuple[str, bytes]]

_SAMPLE = '{"sample_id": "1", "query": "Which boat?", "relevant_docs": ["a"], "reference_answer": "x"}\n'
_DATASET = '{"dataset_id": "boats", "name": "Boats", "version": "1.0.0", "queries": [%s]}\n'
_QUERY = '{"query_id": "1", "query_text": "Which boat?", "relevant_documents": ["a"]%s}'
_YAML = "dataset_id: boats\nname: Boats\nversion: 1.0.0\nqueries:\n"
_YAML_QUERY = "- query_id: '1'\n  query_text: Which boat?\n  relevant_documents: [a]\n"
_HEADING = "query_id,query_text,query_type,relevant_documents,citations\n"


def _lines(**changes: Any) -> bytes:
    return json.dumps({"sample_id": "1", "query": "Which boat?", **changes}).encode() + b"\n"


def _prediction(**changes: Any) -> bytes:
    return json.dumps({"sample_id": "1", "retrieved": ["a"], "answer": "x", **changes}).encode() + b"\n"


def _query(further: str) -> bytes:
    return (_DATASET % (_QUERY % f", {further}")).encode()


LINES: Cases = [
    ("the_third_line.jsonl", (_SAMPLE + _SAMPLE.replace('"1"', '"2"') + '{"sample_id": "3"\n').encode()),
    ("an_id_twice.jsonl", (_SAMPLE + _SAMPLE).encode()),
    ("an_empty_id.jsonl", _lines(sample_id=" ")),
    ("a_number_as_id.jsonl", _lines(sample_id=17)),
    ("no_query.jsonl", b'{"sample_id": "1"}\n'),
    ("null_as_query.jsonl", _lines(query=None)),
    ("a_text_as_documents.jsonl", _lines(relevant_docs="a")),
    ("a_number_as_document.jsonl", _lines(relevant_docs=["a", 5])),
    ("a_document_without_id.jsonl", _lines(relevant_docs=[{"text": "t"}])),
    ("a_reference_without_text.jsonl", _lines(reference_answer={"structured": {}})),
    (
        "alternatives_of_numbers.jsonl",
        _lines(reference_answer={"text": "x", "metadata": {"alternatives": [1]}}),
    ),
    ("labels_in_a_list.jsonl", _lines(labels=["x"])),
    ("nul_bytes.jsonl", b"\0" * 64),
    ("bytes_behind_a_record.jsonl", _SAMPLE.encode() + b"\0\xff\xfe"),
    ("a_text_on_a_line.jsonl", b'"sample"\n'),
    ("single_quotes.jsonl", b"{'sample_id': '1', 'query': 'q'}\n"),
    ("a_comma_too_many.jsonl", b'{"sample_id": "1", "query": "q",}\n'),
    ("a_comment.jsonl", b'// samples\n{"sample_id": "1", "query": "q"}\n'),
    ("a_leading_zero.jsonl", b'{"sample_id": "1", "query": "q", "labels": {"n": 01}}\n'),
    ("a_bad_escape.jsonl", rb'{"sample_id": "\x41", "query": "q"}' + b"\n"),
    ("a_record_over_two_lines.jsonl", b'{"sample_id": "1",\n"query": "q"}\n'),
    ("old_mac_line_ends.jsonl", _SAMPLE.encode().replace(b"\n", b"\r") * 2),
    ("a_long_key.jsonl", json.dumps({"k" * 5000: 1}).encode() + b"\n"),
    ("a_document_twice.jsonl", b'{"document": {"doc_id": "a"}}\n' * 2 + _SAMPLE.encode()),
    ("a_document_behind_samples.jsonl", _SAMPLE.encode() + b'{"document": {"doc_id": "a", "text": "t"}}\n'),
    ("a_description_that_is_none.jsonl", b'{"dataset": "boats"}\n' + _SAMPLE.encode()),
    ("only_a_description.jsonl", b'{"dataset": {"dataset_id": "boats"}}\n'),
    (
        "neither_answer_nor_documents.predictions.jsonl",
        b'{"sample_id": "1", "response": null, "answer": null}\n',
    ),
    ("two_of_a_rank.jsonl", _prediction(retrieved=[{"doc_id": "a", "rank": 1}, {"doc_id": "b", "rank": 1}])),
    ("a_negative_time.jsonl", _prediction(timings={"end_to_end": -1})),
    ("a_text_as_time.jsonl", _prediction(timings={"end_to_end": "fast"})),
    ("a_text_as_score.jsonl", _prediction(retrieved=[{"doc_id": "a", "score": "high"}])),
    ("half_a_rank.jsonl", _prediction(retrieved=[{"doc_id": "a", "rank": 1.5}])),
    ("an_answer_in_a_list.jsonl", _prediction(answer=["x"])),
    ("a_prediction_twice.jsonl", _prediction() + _prediction()),
]

# Hostile, and yet data: an id is only ever shown, after it was made harmless, and never part of a path.
HOSTILE: Cases = [
    ("ids_with_control_characters.jsonl", _lines(sample_id="a\0b\x1b[2J\r\nc\u202e", relevant_docs=["\x07"])),
    ("ids_that_climb.jsonl", _lines(sample_id="../../../etc/passwd", relevant_docs=["/dev/zero", "C:\\con"])),
    ("ids_that_climb.eval.json", _query('"metadata": {}').replace(b'"boats"', b'"../../boats"')),
    ("an_empty_key.jsonl", _lines(labels={"": 1, "\0": 2})),
    ("numbers_at_the_edge.jsonl", _lines(labels={"a": 1e308, "b": -5e-324, "c": 2**63, "d": -0.0})),
]

DATASETS: Cases = [
    ("an_id_twice.eval.json", (_DATASET % ", ".join([_QUERY % ""] * 2)).encode()),
    (
        "a_document_twice.eval.json",
        json.dumps(
            {
                "dataset_id": "boats",
                "name": "Boats",
                "version": "1.0.0",
                "queries": [],
                "documents": [{"document_id": "a", "content": "t"}] * 2,
            }
        ).encode(),
    ),
    (
        "a_span_that_ends_first.eval.json",
        _query('"citations": [{"file_name": "a", "start_char": 9, "end_char": 3}]'),
    ),
    (
        "a_span_before_the_start.eval.json",
        _query('"citations": [{"file_name": "a", "start_char": -1, "end_char": 3}]'),
    ),
    (
        "a_confidence_of_two.eval.json",
        _query('"citations": [{"file_name": "a", "start_char": 0, "end_char": 3, "confidence_score": 2}]'),
    ),
    ("a_misspelt_difficulty.eval.json", _query('"difficulty": "esay"')),
    (
        "an_impossible_date.eval.json",
        _query('"metadata": {}').replace(b'"version"', b'"created_at": "2025-02-30T12:00:00Z", "version"'),
    ),
    ("queries_misspelt.eval.json", _query('"metadata": {}').replace(b'"queries"', b'"querys"')),
    ("ten_errors.eval.json", (_DATASET % ", ".join(['{"query_id": 1}'] * 4)).encode()),
    ("lines_in_a_document.eval.json", _SAMPLE.encode() * 2),
    (
        "totals_that_do_not_add_up.results.json",
        json.dumps(
            {
                "evaluation_id": "first",
                "timestamp": "2025-08-30T12:00:00Z",
                "dataset_id": "boats",
                "summary": {"total_queries": 5, "successful_queries": 1, "failed_queries": 1},
                "retrieval_metrics": {},
            }
        ).encode(),
    ),
    (
        "a_later_version.results.json",
        json.dumps(
            {
                "schema_version": "99.0",
                "evaluation_id": "first",
                "timestamp": "2025-08-30T12:00:00Z",
                "dataset_id": "boats",
                "retrieval_metrics": {},
                "summary": {"total_queries": 1, "successful_queries": 1, "failed_queries": 0},
            }
        ).encode(),
    ),
    ("a_negative_duration.benchmark.json", b'{"operation": "s", "timestamp": 0, "duration": -1}\n'),
    ("nothing_that_is_known.benchmark.json", b"{}\n"),
    (
        "a_score_beyond_one.gt.json",
        (b'{"annotation_id": "1", "query_id": "1", "answer_text": "x", "quality_scores": {"clear": 7}}\n'),
    ),
    (
        "an_id_twice.gt.json",
        (
            b'[{"annotation_id": "1", "query_id": "1", "citations": []},'
            b' {"annotation_id": "1", "query_id": "2", "citations": []}]\n'
        ),
    ),
    ("an_unknown_setting.config.json", b'{"datset": "boats.jsonl"}\n'),
    ("a_negative_limit.config.json", b'{"limit": -1}\n'),
    (
        "traffic_that_is_not_all.config.json",
        (
            b'{"ab_testing": {"experiment_id": "e", "variants": [{"variant_id": "a"}],'
            b' "traffic_allocation": {"a": 0.5}}}\n'
        ),
    ),
]

YAML: Cases = [
    ("empty.eval.yaml", b""),
    ("only_a_comment.eval.yaml", b"# nothing yet\n"),
    ("a_text.eval.yaml", b"boats\n"),
    ("a_list.eval.yaml", b"- boats\n- ferries\n"),
    (
        "an_error_page.eval.yaml",
        b"<!DOCTYPE html>\n<html><head><title>404: Not Found</title></head></html>\n",
    ),
    ("a_python_tag.eval.yaml", b"dataset_id: !!python/object/apply:os.system ['true']\n"),
    ("a_tag_of_its_own.eval.yaml", b"dataset_id: !boat x\n"),
    ("a_date_tag.eval.yaml", b"dataset_id: !!timestamp 2025-08-30\n"),
    ("a_binary_tag.eval.yaml", b"dataset_id: !!binary aGk=\n"),
    ("an_alias.eval.yaml", b"dataset_id: &name boats\nname: *name\n"),
    ("an_unknown_alias.eval.yaml", b"dataset_id: *nowhere\n"),
    (
        "a_laugh_of_aliases.eval.yaml",
        b"".join(
            b"%s: &%s [%s]\n" % (new, new, b", ".join([b"*" + old] * 9))
            for old, new in zip([b"x", b"a", b"b", b"c", b"d"], [b"a", b"b", b"c", b"d", b"e"], strict=True)
        ),
    ),
    ("a_merge_key.eval.yaml", b"dataset_id: boats\n<<: {name: Boats}\n"),
    ("two_documents.eval.yaml", b"dataset_id: boats\n---\ndataset_id: ferries\n"),
    ("a_key_twice.eval.yaml", (_YAML + _YAML_QUERY + "name: Ferries\n").encode()),
    ("a_number_as_key.eval.yaml", (_YAML + _YAML_QUERY + "17: x\n").encode()),
    ("a_list_as_key.eval.yaml", b"? [a, b]\n: c\n"),
    ("a_tab.eval.yaml", b"queries:\n\t- query_id: '1'\n"),
    ("an_open_quote.eval.yaml", b'dataset_id: "boats\nname: Boats\n'),
    ("an_open_bracket.eval.yaml", b"queries: [a, b\n"),
    ("bad_indentation.eval.yaml", b"dataset_id: boats\n  name: Boats\n"),
    ("nan.eval.yaml", (_YAML + _YAML_QUERY + "  metadata: {n: .nan}\n").encode()),
    ("infinity.eval.yaml", (_YAML + _YAML_QUERY + "  metadata: {n: -.inf}\n").encode()),
    ("beyond_a_float.eval.yaml", (_YAML + _YAML_QUERY + "  metadata: {n: 1e999}\n").encode()),
    ("a_thousand_digits.eval.yaml", (_YAML + _YAML_QUERY + f"  metadata: {{n: {'9' * 1000}}}\n").encode()),
    ("too_deep.eval.yaml", b"queries: " + b"[" * 150 + b"]" * 150 + b"\n"),
    ("too_deep_by_dashes.eval.yaml", b"queries:\n" + b"- " * 150 + b"a\n"),
    ("latin_1.eval.yaml", "name: Bäte\n".encode("latin-1")),
    ("a_control_character.eval.yaml", b"name: a\x07b\n"),
    ("half_a_pair.eval.yaml", b'name: "\\ud800"\n'),
    ("a_version_to_come.eval.yaml", b"%YAML 9.9\n---\ndataset_id: boats\n"),
    ("an_id_without_quotes.eval.yaml", (_YAML + _YAML_QUERY.replace("'1'", "1")).encode()),
    ("an_alias.gt.yaml", b"annotation_id: &a x\nquery_id: *a\n"),
    ("no_query.gt.yaml", b"annotation_id: x\ncitations: []\n"),
    ("cut.results.yaml", b"evaluation_id: first\ntimestamp: '2025-08-30T12\n"),
    ("nothing_but_an_id.results.yaml", b"evaluation_id: first\n"),
    ("a_python_tag.config.yaml", b"dataset: !!python/name:os.system\n"),
    ("an_unknown_setting.config.yaml", b"dataset: boats.jsonl\nmetrix: [mrr]\n"),
    ("a_wrong_type.config.yaml", b"top_k: five\n"),
    ("a_list.config.yaml", b"- dataset: boats.jsonl\n"),
    ("a_yes_for_a_number.config.yaml", b"limit: true\n"),
    ("a_key_twice.config.yaml", b"top_k: 5\ntop_k: 6\n"),
    ("a_duration_in_words.benchmark.yaml", b"operation: s\ntimestamp: 0\nduration: long\n"),
]

CSV: Cases = [
    ("empty.csv", b""),
    ("only_a_heading.csv", _HEADING.encode()),
    ("an_error_page.csv", b"<!DOCTYPE html>\n<html><head><title>404, Not Found</title></head></html>\n"),
    ("other_columns.csv", b"number,topic\n1,Which boat?\n"),
    ("semicolons.csv", b"number;topic\n1;Which boat?\n"),
    ("a_column_twice.csv", b"query_id,query_id\n1,2\n"),
    ("too_many_cells.csv", _HEADING.encode() + b"1,Which boat, and when?,factual,a,,\n"),
    ("an_open_quote.csv", _HEADING.encode() + b'1,"Which boat?,factual,a,\n'),
    ("a_quote_inside.csv", _HEADING.encode() + b'1,"Which" boat?,factual,a,\n'),
    ("a_nul.csv", _HEADING.encode() + b"1,Which\0boat?,factual,a,\n"),
    ("latin_1.csv", _HEADING.encode() + "1,Was ist älter?,factual,a,\n".encode("latin-1")),
    ("utf16.csv", ("\ufeff" + _HEADING + "1,Which boat?,factual,a,\n").encode("utf-16-le")),
    ("old_mac_line_ends.csv", (_HEADING + "1,Which boat?,factual,a,\n").replace("\n", "\r").encode()),
    ("no_id.csv", _HEADING.encode() + b",Which boat?,factual,a,\n"),
    ("an_id_twice.csv", _HEADING.encode() + b"1,Which boat?,factual,a,\n" * 2),
    ("an_unknown_type.csv", _HEADING.encode() + b"1,Which boat?,fatual,a,\n"),
    ("no_json_in_a_cell.csv", _HEADING.encode() + b"1,Which boat?,factual,a,a.txt:0-5\n"),
    ("ids_cut_off.csv", _HEADING.encode() + b'1,Which boat?,factual,"[""a""",\n'),
    ("ids_of_numbers.csv", _HEADING.encode() + b"1,Which boat?,factual,[1],\n"),
    (
        "a_span_that_ends_first.csv",
        _HEADING.encode()
        + (b'1,Which boat?,factual,a,"[{""file_name"": ""a"", ""start_char"": 9, ""end_char"": 3}]"\n'),
    ),
    ("empty.results.csv", b""),
    ("no_id.results.csv", b"query_id,recall@5\n,0.5\n"),
    ("a_score_in_words.results.csv", b"query_id,recall@5\n1,high\n"),
    ("a_score_that_is_none.results.csv", b"query_id,recall@5\n1,NaN\n"),
    ("no_json_in_a_cell.results.csv", b"query_id,error\n1,{timeout}\n"),
    ("further_is_a_list.results.csv", b"query_id,further\n1,[]\n"),
    ("an_id_twice.results.csv", b"query_id,recall@5\n1,0.5\n1,0.6\n"),
]

_BUILT = {"version": "v1", "generated_at_utc": "2025-08-30T12:00:00Z", "source_offline_dataset": "o.jsonl"}


def _manifest(**changes: Any) -> bytes:
    return json.dumps(_BUILT | changes, indent=1).encode() + b"\n"


MANIFESTS: Cases = [
    ("climbs/manifest.json", _manifest(splits={"qa": {"path": "../../../etc/passwd", "count": 1}})),
    ("absolute/manifest.json", _manifest(splits={"qa": {"path": "/etc/passwd", "count": 1}})),
    ("no_path/manifest.json", _manifest(splits={"qa": {"count": 1}})),
    ("count_in_words/manifest.json", _manifest(splits={"qa": {"path": "qa.jsonl", "count": "many"}})),
    ("splits_in_a_list/manifest.json", _manifest(splits=[])),
    ("no_version/manifest.json", json.dumps({k: v for k, v in _BUILT.items() if k != "version"}).encode()),
]

SPLITS: Cases = [
    ("an_id_twice.jsonl", b'{"task_id": "1", "task_type": "qa", "question": "q", "answer": "a"}\n' * 2),
    (
        "contexts_without_sources.jsonl",
        (
            b'{"task_id": "1", "task_type": "qa", "question": "q", "reference_answer": "a", "rag_prompt": "",'
            b' "contexts": ["[1] c"], "sources": [], "retrieved": [], "citations": []}\n'
        ),
    ),
    ("an_empty_question.jsonl", b'{"task_id": "1", "task_type": "qa", "question": " ", "answer": "a"}\n'),
    ("no_answer.jsonl", b'{"task_id": "1", "task_type": "qa", "question": "q", "rag": {}}\n'),
    ("no_contexts.jsonl", b'{"task_id": "1", "task_type": "qa", "question": "q", "reference_answer": "a"}\n'),
    ("a_number_as_id.jsonl", b'{"task_id": 17, "task_type": "qa", "question": "q", "answer": "a"}\n'),
    (
        "chunks_that_are_texts.jsonl",
        (b'{"task_id": "1", "task_type": "qa", "question": "q", "answer": "a", "retrieved": ["x"]}\n'),
    ),
    (
        "contexts_of_numbers.jsonl",
        (
            b'{"task_id": "1", "task_type": "qa", "question": "q", "answer": "a", "contexts": [1],'
            b' "sources": ["s"]}\n'
        ),
    ),
]

# A Parquet file ends in its footer, the footer's length in four bytes, and PAR1 again.
TABLES: Cases = [
    ("only_the_start.parquet", b"PAR1"),
    ("no_end.parquet", b"PAR1" + b"\x15\0" * 30),
    ("a_footer_of_nothing.parquet", b"PAR1" + b"\0\0\0\0" + b"PAR1"),
    ("a_footer_longer_than_the_file.parquet", b"PAR1" + b"\x15\0" * 30 + b"\xff\xff\xff\x7f" + b"PAR1"),
    ("a_footer_of_garbage.parquet", b"PAR1" + b"garbage!" * 8 + b"\x40\0\0\0" + b"PAR1"),
    ("an_encrypted_footer.parquet", b"PARE" + b"garbage!" * 8 + b"\x40\0\0\0" + b"PARE"),
    ("not_a_table.parquet", _SAMPLE.encode()),
    ("empty.parquet", b""),
    ("a_footer_of_garbage.benchmark.parquet", b"PAR1" + b"garbage!" * 8 + b"\x40\0\0\0" + b"PAR1"),
    ("only_the_start.benchmark.h5", b"\x89HDF\r\n\x1a\n"),
    ("garbage.benchmark.h5", b"\x89HDF\r\n\x1a\n" + b"garbage!" * 40),
    ("not_a_table.benchmark.h5", b'{"operation": "s"'),
    ("empty.benchmark.h5", b""),
]

TEXTS: dict[str, Cases] = {
    "lines": LINES,
    "hostile_but_valid": HOSTILE,
    "documents": DATASETS,
    "yaml": YAML,
    "csv": CSV,
    "manifests": MANIFESTS,
    "splits": SPLITS,
    "tables": TABLES,
}
