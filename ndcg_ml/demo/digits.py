"""The embedded data: query by example on scikit-learn's handwritten digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml.demo.problem import Problem, Split

MOST_QUERIES = 300
"""Most training queries that leave enough images to retrieve."""

# The images are in the order in which they were collected, writer by writer. So consecutive stretches (except for the
# writers at the two borders) test on handwriting that was not trained on.
_STRETCHES = {"train": slice(0, 900), "valid": slice(900, 1250), "test": slice(1250, None)}
_SHARE = {"train": 1.0, "valid": 0.25, "test": 0.5}

# The family of each digit by how it is written: 0 and 6 as one round stroke, 1, 4 and 7 as straight strokes, 3, 5, 8
# and 9 with bows to the right; 2 is alone.
_FAMILY = np.array([0, 1, 2, 3, 1, 3, 0, 1, 3, 3])

_RADIUS = 0.03
_LONGEST = 40


def digits_problem(seed: int = 0, queries: int = MOST_QUERIES) -> Problem:
    """A graded retrieval problem made from real images: show me images like this one.

    The images are the 1,797 digits of ``sklearn.datasets.load_digits``, 8 by 8 pixels, nothing downloaded. They are
    cut into three stretches (900, 350, 547 images; different writers), so that no image is in two parts, and in each
    stretch some images are queries and the others are there to be found.

    A first stage retrieves the candidates of a query, as in a real system: the images that have nearly as much ink in
    the left and in the right half as the query, nearest first, at most 40. So lists are ragged; a few queries have a
    single candidate; a few have no relevant candidate at all, and ``Flavor.empty`` decides how those count; and the
    order of the rows means something, so that ``ties="first"`` and ``ties="average"`` differ on a model that ties
    documents. Queries for which the first stage finds nothing are left out.

    The grade is 2 for the same digit, 1 for another digit of its family by shape (0 and 6 round; 1, 4, 7 straight
    strokes; 3, 5, 8, 9 bows to the right; 2 alone), else 0. The 70 features compare the two images: the absolute
    difference of each pixel, the Manhattan and Euclidean distance, the correlation, the Euclidean distance of row sums
    and of column sums, and the smallest Euclidean distance over shifts by one pixel. Which digit an image shows is in
    no feature.

    Parameters
    ----------
    seed : int, default 0
        Draws which images are queries.
    queries : int, default 300
        Training queries, at most 300; validation gets a quarter and test half as many.

    Examples
    --------
    >>> problem = digits_problem(queries=20)
    >>> problem.train.features.shape[1], int(problem.test.labels.max())
    (70, 2)
    """
    from sklearn.datasets import load_digits

    if not 8 <= queries <= MOST_QUERIES:
        raise ValueError(f"queries must be from 8 to {MOST_QUERIES}; got {queries}.")
    digits = load_digits()
    images, shown = digits.images / 16.0, digits.target
    rng = np.random.default_rng(seed)
    parts = {
        name: _split(images[stretch], shown[stretch], round(queries * _SHARE[name]), rng)
        for name, stretch in _STRETCHES.items()
    }
    return Problem("handwritten digits, query by example", parts["train"], parts["valid"], parts["test"])


def _split(images: NDArray[Any], shown: NDArray[Any], n_queries: int, rng: np.random.Generator) -> Split:
    drawn = rng.permutation(len(images))
    queries, pool = drawn[:n_queries], np.sort(drawn[round(MOST_QUERIES / 900 * len(images)) :])
    ink = images.reshape(-1, 8, 2, 4).mean(axis=(1, 3))
    features, labels, sizes = [], [], []
    for query in queries:
        distance = np.linalg.norm(ink[pool] - ink[query], axis=1)
        nearest = np.argsort(distance, kind="stable")[:_LONGEST]
        similar = pool[nearest[distance[nearest] <= _RADIUS]]
        if similar.size == 0:
            continue
        features.append(_compare(images[query], images[similar]))
        same_family = _FAMILY[shown[similar]] == _FAMILY[shown[query]]
        labels.append(same_family.astype(np.int64) + (shown[similar] == shown[query]))
        sizes.append(similar.size)
    return Split(np.concatenate(features), np.concatenate(labels), np.array(sizes))


def _compare(query: NDArray[Any], found: NDArray[Any]) -> NDArray[np.float64]:
    """Features of each found image against the query's image."""
    difference = np.abs(found - query).reshape(len(found), -1)
    profiles = [np.linalg.norm(found.sum(axis=axis + 1) - query.sum(axis=axis), axis=1) for axis in (0, 1)]
    flat, centred = found.reshape(len(found), -1), query.ravel() - query.mean()
    flat = flat - flat.mean(axis=1, keepdims=True)
    correlation = flat @ centred / (np.linalg.norm(flat, axis=1) * np.linalg.norm(centred))
    edge = np.pad(found, ((0, 0), (1, 1), (1, 1)))
    shifted = [
        np.linalg.norm((edge[:, down : down + 8, right : right + 8] - query).reshape(len(found), -1), axis=1)
        for down in range(3)
        for right in range(3)
    ]
    return np.column_stack(
        [
            difference,
            difference.sum(axis=1),
            np.linalg.norm(difference, axis=1),
            correlation,
            *profiles,
            np.min(shifted, axis=0),
        ]
    )
