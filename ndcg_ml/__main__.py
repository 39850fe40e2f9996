"""Run ``python -m ndcg_ml`` as the ``ndcg-ml`` command."""

from ndcg_ml.cli import main

if __name__ == "__main__":
    main()
