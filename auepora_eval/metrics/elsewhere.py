"""Why a number moved on migration: how other tools' metrics of the same name differ from ours."""

from __future__ import annotations

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "recall": (
        "trec_eval, ranx, ir_measures: the same.",
        "ragas context recall: counts the reference's statements that the texts support, not documents.",
    ),
    "precision": (
        "trec_eval, ranx: the same; empty places count as misses.",
        "tools that divide by the number retrieved, or by min(k, relevant), print more for short lists.",
    ),
    "map": (
        "trec_eval, ranx: the same, divided by all relevant documents.",
        "ragas context precision: divides by the relevant documents retrieved, so a miss costs nothing.",
        "MultiHop-RAG: divides by min(k, relevant) and adds new hits / rank, not the running precision.",
    ),
    "mrr": ("trec_eval recip_rank, ir_measures RR: the same.",),
    "ndcg": (
        "trec_eval, ranx ndcg: the same, linear gains.",
        "ranx ndcg_burges and tools with gains of 2^grade - 1: our ndcg_exp.",
        "tools whose ideal list holds only what was retrieved print more; a miss then costs nothing.",
    ),
    "hit": ("trec_eval success: the same.",),
    "bpref": ("trec_eval: the same.",),
    "rouge1": ("rouge-score: the same on ASCII; it drops every other letter.",),
    "rouge2": ("rouge-score: the same on ASCII; it drops every other letter.",),
    "rougeL_answer": (
        "rouge-score with use_stemmer=True: the same on ASCII; identical Chinese texts score 0 there.",
        "tools that do not stem: rougeL_answer[stem=false].",
    ),
    "bleu": (
        "sacrebleu corpus_bleu: the same, 0 to 100.",
        "tools that average sentence BLEU, or print 0 to 1, or divide by the brevity penalty, differ.",
    ),
    "chrf": ("sacrebleu corpus_chrf: the same, 0 to 100.",),
    "exact_match": (
        "SQuAD evaluate-v2.0: the same.",
        "tools that compare the raw strings are stricter: case, punctuation and articles count there.",
    ),
    "token_f1": ("SQuAD evaluate-v2.0: the same.", "CDQA calls shared words / words of the reference an F1."),
    "semantic_similarity": ("ragas answer similarity: the same cosine, of another model's vectors.",),
    "grounding_overlap": (
        "MTRAG's k_prec counts all words and their repetitions; ours counts content words once.",
    ),
    "citation_precision": (
        "tools that count marks within range over all marks measure form; ours needs gold citations.",
    ),
    "citation_recall": ("tools that divide by all shown passages punish a system for citing selectively.",),
    "alce_citation_recall": (
        "ALCE: the same rule, but not the same value: there a model of 11 billion weights judges, NLTK cuts",
        "the sentences, and no more than three citations of a sentence count.",
    ),
    "alce_citation_precision": ("ALCE: as for alce_citation_recall.",),
    "trec_support_recall": (
        "TREC RAG 2024 judged the first citation of a sentence; the same where a sentence has one.",
        "open-rag-eval averages by cited passage and by answer part first, which is another estimate.",
    ),
    "trec_support_precision": ("TREC RAG 2024 judged the first citation of a sentence only.",),
    "rejection_rate": ("RGB adds correct answers to rejections at noise 1.0; ours does not.",),
    "latency": ("numpy.quantile (linear): the same. Nearest-rank tools print a value that was seen.",),
}
