"""Score predictions with DuckDB: metrics of retrieved ids over JSON Lines or Parquet, millions of samples.

DuckDB reads both files, pairs samples with predictions, and finds the judged documents in each list. The
metrics then compute values, intervals and coverage from these columns as they always do. Only ids, ranks,
grades, clusters and errors are read. A file with anything unusual is an error that names the normal way.
"""
# ruff: noqa: S608 - the names of files are quoted, all the rest of the SQL is constant

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ..core.matching import BY_ID
from ..core.metrics_base import Metric
from ..core.scores import Batch, Note, alone
from ..core.types import EvaluationSample, MetricResult, Response, SystemOutputs
from ..errors import DataError, MissingDependencyError, PlanError, warn_user
from ..io.datasets.predictions import missing_output
from ..io.detect import kind_of_file
from ..metrics.retrieval_basic import JudgedHits, RetrievalMetric, VariantMetric, judged_hits
from ..stats.arrays import np

_NORMAL_WAY = "Leave out --engine duckdb: the normal way reads it, or says what is wrong."
_COLUMNS = {
    "sample_id": "JSON",
    "relevant_docs": "JSON",
    "retrieved": "JSON",
    "error": "JSON",
    "metadata": "JSON",
    "dataset": "JSON",
    "document": "JSON",
}
# A list of documents is ["d1", "d2"], [{"doc_id": "d1", ...}, ...] or {"doc_id": ["d1", "d2"], ...}.
# A column of a Parquet file that has only ids is `plain`.
_IDS = """CASE
    WHEN plain IS NOT NULL THEN plain
    WHEN json_type({0}) = 'OBJECT' THEN json_extract_string({0}, '$.doc_id[*]')
    WHEN len(json_extract({0}, '$[*].doc_id')) = 0 THEN json_extract_string({0}, '$[*]')
    WHEN len(json_extract({0}, '$[*].doc_id')) = json_array_length({0})
    THEN json_extract_string({0}, '$[*].doc_id')
    ELSE [coalesce(doc->>'$.doc_id', doc->>'$') FOR doc IN from_json({0}, '["JSON"]')]
    END"""
# Neither a text nor an object with an id, or an id that is not a text.
_HAS_OTHERS = """((json_type({0}) = 'ARRAY' AND len(json_extract({0}, '$[*].doc_id'))
    < len([kind FOR kind IN json_type({0}, '$[*]') IF kind <> 'VARCHAR']))
    OR len([kind FOR kind IN json_type({0}, '$[*].doc_id') || json_type({0}, '$.doc_id[*]')
        IF kind <> 'VARCHAR']) > 0)"""
_HAS_NO_ID = "NOT has_text_id OR trim(sample_id) = ''"
_SAMPLES = f"""CREATE TABLE samples AS SELECT
    sample_id,
    {_IDS.format("relevant_docs")} AS gold,
    CASE WHEN len(json_type(relevant_docs, '$[*].metadata.relevance')) > 0
    THEN [coalesce(try_cast(doc->'$.metadata.relevance' AS DOUBLE), 1)
        FOR doc IN from_json(relevant_docs, '["JSON"]')]
    END AS grades,
    metadata->>'$.cluster' AS cluster,
    {_HAS_NO_ID} OR (sample_id IS NULL AND dataset IS NULL AND document IS NULL)
    OR (document->'$.metadata.relevance') IS NOT NULL
    OR json_type(relevant_docs) <> 'ARRAY' OR {_HAS_OTHERS.format("relevant_docs")}
    OR len([kind FOR kind IN json_type(relevant_docs, '$[*].metadata.relevance')
        IF kind NOT IN ('UBIGINT', 'BIGINT', 'DOUBLE')]) > 0 AS is_unusual
    FROM {{source}} WHERE sample_id IS NOT NULL OR is_unusual"""
_PREDICTIONS = f"""CREATE TABLE predictions AS SELECT * EXCLUDE (listed, ranks) FROM (SELECT
    sample_id,
    {_IDS.format("retrieved")} AS listed,
    json_extract(retrieved, '$[*].rank')::INT[] AS ranks,
    CASE WHEN coalesce(len(ranks), 0) = 0 OR ranks = range(1, len(listed) + 1) THEN listed
    ELSE [pair[2] FOR pair IN list_sort(list_zip(ranks, listed))]
    END AS ids,
    error,
    {_HAS_NO_ID} OR sample_id IS NULL OR (listed IS NULL AND error IS NULL)
    OR {_HAS_OTHERS.format("retrieved")}
    OR (len(ranks) > 0 AND len(list_distinct(ranks)) < len(listed))
    OR len([kind FOR kind IN json_type(retrieved, '$[*].rank') IF kind NOT LIKE '%BIGINT']) > 0 AS is_unusual
    FROM {{source}})"""
# Each judged document once, with its highest grade, and its first place in the list of its sample.
_HITS = """SELECT place, sample, grade FROM (
    SELECT sample, max(coalesce(grade, 1)) AS grade, any_value(list_position(ids, doc_id)) - 1 AS place
    FROM (
        SELECT samples.rowid AS sample, unnest(gold) AS doc_id, unnest(grades) AS grade, ids
        FROM samples LEFT JOIN predictions USING (sample_id)
    ) GROUP BY sample, doc_id
) ORDER BY sample, place"""
_FAILED = """SELECT samples.rowid AS sample,
    coalesce(error->>'$.type', 'error') AS type, coalesce(error->>'$.message', error->>'$', '') AS message,
    predictions.sample_id IS NULL AS is_missing
    FROM samples LEFT JOIN predictions USING (sample_id)
    WHERE predictions.sample_id IS NULL OR error IS NOT NULL"""


class DuckdbScores(NamedTuple):
    """The results of metrics, without the scores of single samples, and what the failures were."""

    results: list[MetricResult]
    samples: int
    failures: Counter[tuple[str, str]]
    longest: int  # documents of the longest list


def score_with_duckdb(
    dataset: str | Path, predictions: str | Path, metrics: Sequence[Metric]
) -> DuckdbScores:
    """Score the predictions of a file; DataError or PlanError if only the normal way can."""
    checked = [_checked(metric) for metric in metrics]
    duckdb = _import_duckdb()
    # A database in a file: what does not fit into memory stays on the disk.
    with (
        TemporaryDirectory(prefix="auepora-") as folder,
        duckdb.connect(f"{folder}/scores.duckdb") as database,
    ):
        try:
            _load(database, _SAMPLES, Path(dataset), "relevant_docs")
            _load(database, _PREDICTIONS, Path(predictions), "retrieved")
            _check(database, Path(dataset).name, Path(predictions).name)
            batch = _Columns(database)
            [(longest,)] = database.execute("SELECT coalesce(max(len(ids)), 0) FROM predictions").fetchall()
        except duckdb.Error as error:
            what = f"DuckDB cannot read them: {str(error).splitlines()[0]:.200}"
            raise DataError(f"{dataset}, {predictions}", what, fix=_NORMAL_WAY) from error
    if not len(batch.hits.sample):
        warn_user("No retrieved document id equals a relevant one: check that both files name them alike.")
    results = [replace(metric.summarise(metric.score_batch(batch)), scores=[]) for metric in checked]
    return DuckdbScores(results, len(batch), batch.failures, longest)


def _checked(metric: Metric) -> RetrievalMetric:
    """Return the metric if it is computed from the places of judged ids alone; otherwise raise PlanError."""
    is_variant = isinstance(metric, VariantMetric) and metric.variant is not None
    # One with hits of its own (bpref) reads more of the samples.
    if (
        not isinstance(metric, RetrievalMetric)
        or type(metric).hits is not RetrievalMetric.hits
        or is_variant
        or metric.match != BY_ID
    ):
        raise PlanError(
            f"{metric.name} is not computed by DuckDB, which has recall, precision, f1, hit, mrr, map, ndcg "
            "and the like, matched by id. Leave out --engine duckdb, or the metric."
        )
    return metric


def _import_duckdb() -> Any:
    try:
        return import_module("duckdb")
    except ImportError as error:
        message = "--engine duckdb needs DuckDB: pip install 'auepora-eval[duckdb]'"
        raise MissingDependencyError(message) from error


def _load(database: Any, statement: str, path: Path, documents: str) -> None:
    """Read the columns that are needed; rows keep the order of the file, and rowid counts them."""
    # DuckDB takes a name for a pattern.
    name = re.sub(r"[*?\[]", r"[\g<0>]", str(path)).replace("'", "''")
    plain = "NULL::VARCHAR[]"
    if kind_of_file(path) == "parquet":
        table = f"read_parquet('{name}')"
        kinds = {row[0]: row[1] for row in database.execute(f"DESCRIBE FROM {table}").fetchall()}
        if kinds.get(documents) == "VARCHAR[]":
            plain = documents
            del kinds[documents]
        columns = ", ".join(f"{_parquet_column(one, kinds.get(one))} AS {one}" for one in _COLUMNS)
        columns += f", {kinds.get('sample_id') == 'VARCHAR'} AS has_text_id"
    else:
        given = ", ".join(f"{one}: '{kind}'" for one, kind in _COLUMNS.items())
        table = f"read_json('{name}', format='newline_delimited', columns={{{given}}})"
        columns = "* REPLACE (sample_id->>'$' AS sample_id), json_type(sample_id) = 'VARCHAR' AS has_text_id"
    database.execute(statement.format(source=f"(SELECT {columns}, {plain} AS plain FROM {table})"))


def _parquet_column(name: str, kind: str | None) -> str:
    """Return the expression of a column as JSON; the library's own files keep metadata as JSON texts."""
    if kind is None:
        return f"NULL::{_COLUMNS[name]}"
    if name == "sample_id":
        return f"{name}::VARCHAR"
    if "metadata VARCHAR" in kind and kind.endswith("[]"):
        return f"to_json([{{doc_id: doc.doc_id, metadata: json(doc.metadata)}} FOR doc IN {name}])"
    return f"json({name})" if name == "metadata" and kind == "VARCHAR" else f"to_json({name})"


def _check(database: Any, dataset: str, predictions: str) -> None:
    """Raise DataError if the normal way would refuse a file, or read it in a way that is not known here."""

    def first(query: str) -> str | None:
        row = database.execute(f"{query} LIMIT 1").fetchone()
        return None if row is None else f"{row[0]!r:.80}"

    for table, where in (("samples", dataset), ("predictions", predictions)):
        if name := first(f"SELECT sample_id FROM {table} WHERE is_unusual"):
            raise DataError(where, f"the line of {name} is not one that DuckDB scores.", fix=_NORMAL_WAY)
        if name := first(f"SELECT sample_id FROM {table} GROUP BY sample_id HAVING count(*) > 1"):
            raise DataError(where, f"{name} is there twice.", fix="Keep one line per sample.")
    if first("SELECT sample_id FROM samples") is None:
        raise DataError(dataset, "there are no samples in it.", fix="Write one JSON object per line.")
    if name := first("SELECT sample_id FROM predictions ANTI JOIN samples USING (sample_id)"):
        raise DataError(
            predictions, f"the dataset has no sample {name}.", fix="Are the files of one dataset?"
        )


class _Columns(Batch):
    """All samples as one batch, of which only the columns exist that the metrics read."""

    def __init__(self, database: Any) -> None:
        [(size, has_clusters)] = database.execute("SELECT count(*), count(cluster) FROM samples").fetchall()
        sample, output = EvaluationSample("", ""), SystemOutputs([], Response(""))
        super().__init__([sample] * size, [output] * size)
        self.hits = _judged_hits(database, size)
        self._results[(judged_hits,)] = self.hits
        self._notes: dict[int, Note] = {}
        self.failures: Counter[tuple[str, str]] = Counter()
        missing = missing_output().error
        for place, kind, message, is_missing in database.execute(_FAILED).fetchall():
            failure = (missing.type, missing.message) if is_missing and missing else (kind, message)
            self.failures[failure] += 1
            self._notes[place] = Note(f"{failure[0]}: {failure[1]}", failed=True)
        without = database.execute("SELECT rowid FROM samples WHERE coalesce(len(gold), 0) = 0").fetchall()
        # A sample without relevant documents is skipped, also where its call failed.
        self._notes |= dict.fromkeys((place for (place,) in without), Note("the sample has no relevant_docs"))
        self._clusters: list[Hashable] | None = None
        if has_clusters:
            names = database.execute("SELECT cluster FROM samples ORDER BY rowid").fetchall()
            self._clusters = [alone(str(n)) if name is None else name for n, (name,) in enumerate(names)]

    def unscorable(self, requires: tuple[str, ...], *, scores_failures: bool = False) -> dict[int, Note]:
        return self._notes

    def sample_ids(self) -> list[str]:
        return [""] * len(self)

    def clusters(self) -> list[Hashable] | None:
        return self._clusters


def _judged_hits(database: Any, size: int) -> JudgedHits:
    columns = database.execute(_HITS).fetchnumpy()
    sample, grade = np.asarray(columns["sample"], np.intp), np.asarray(columns["grade"], np.float64)
    place = np.ma.getdata(columns["place"])
    is_hit = ~np.ma.getmaskarray(columns["place"])
    return JudgedHits(size, sample[is_hit], place[is_hit].astype(np.intp), grade[is_hit], sample, grade, {})
