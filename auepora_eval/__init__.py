"""auepora_eval: evaluation of retrieval-augmented generation.

    import auepora_eval as ae

    run = ae.evaluate(my_rag, "questions.jsonl", metrics="recall@5,mrr,token_f1", top_k=5)
    print(run)

Names are imported when they are first used, so `import auepora_eval` loads none of them. They are listed in
`__init__.pyi`, which editors and type checkers read too.
"""

from importlib import import_module


def _homes() -> dict[str, str]:
    """Return the module of each public name, from lines such as "from .api import evaluate as evaluate"."""
    with open(f"{__file__}i", encoding="utf-8") as stub:  # noqa: PTH123 - importing pathlib takes longer
        words = [line.split() for line in stub if line.startswith("from .")]
    return {name: module for _, module, _, name, *_ in words}


_HOME = _homes()
__all__ = sorted(_HOME)  # noqa: PLE0605 - the names are in __init__.pyi


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("auepora-eval")
    if name not in _HOME:
        raise AttributeError(f"module 'auepora_eval' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value  # so that the next use is not looked up
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
