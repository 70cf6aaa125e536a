"""Perturbations of people in raw tables that are worth a question: at random, and made of the best so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.stability.possible import Possible
from evenhand.types import BoolArray, FloatArray, IntArray

ELITES = 6  # perturbations per person that others are made of
# What is proposed per person and round: one that follows the explanation, some with columns taken back, crosses of two,
# some with one number only, variations, and new ones.
PROPOSALS = 48
FOLLOW, BACK, CROSS, ALONE, VARY, ANEW = 0, slice(1, 5), slice(5, 11), slice(11, 17), slice(17, 40), slice(40, 48)
VARIED = 0.15  # share of the columns that a variation changes, at least


class Known(NamedTuple):
    """What is known of each person so far."""

    best: FloatArray  # (n, d)
    change: FloatArray  # (n, d): by how much the numbers of its explanation moved
    elite: FloatArray  # (n, ELITES, d), best first
    elite_distance: FloatArray  # (n, ELITES), -1 where there is none
    step: FloatArray  # (n,): size of variations


def at_random(
    possible: Possible, streams: list[np.random.Generator], rows: IntArray, count: int
) -> tuple[IntArray, FloatArray]:
    """Random perturbations of some people, and whose they are; most of full size, every third anywhere inside."""
    d = possible.X.shape[1]
    wish, rank = np.empty((len(rows), count, d)), np.empty((len(rows), count, d))
    share = np.ones((len(rows), count))
    for at, (i, rng) in enumerate(zip(rows, streams, strict=True)):
        rank[at] = rng.random((count, d))
        wish[at] = _random_people(possible, rng, int(i), rng.random((count, d)) < rng.random((count, 1)))
        share[at, 2::3] = rng.random(count)[2::3]
    owner, full = np.repeat(rows, count), np.ones(len(rows) * count, dtype=bool)
    return owner, possible.fit(owner, wish.reshape(-1, d), rank.reshape(-1, d), share.ravel(), full)


def variations(
    possible: Possible, known: Known, streams: list[np.random.Generator], rows: IntArray
) -> tuple[IntArray, FloatArray]:
    """Perturbations made of the best ones of each person, and some new ones; and whose they are."""
    d, number = possible.X.shape[1], possible.number
    wish, rank = np.empty((len(rows), PROPOSALS, d)), np.empty((len(rows), PROPOSALS, d))
    share, full = np.ones((len(rows), PROPOSALS)), np.ones((len(rows), PROPOSALS), dtype=bool)
    for at, (i, rng) in enumerate(zip(rows, streams, strict=True)):
        x, best, elite = possible.X[i], known.best[i], known.elite[i]
        parent = (ELITES * rng.random(PROPOSALS) ** 2).astype(np.intp)  # the best ones more often
        there = known.elite_distance[i, parent] >= 0.0
        wish[at] = parents = np.where(there[:, None], elite[parent], best)
        rank[at] = rng.random((PROPOSALS, d))
        changed = rng.random((PROPOSALS, d)) < np.maximum(VARIED, 1.5 / d)
        drawn = _random_people(possible, rng, int(i), np.ones((PROPOSALS, d), dtype=bool))
        wish[at, FOLLOW] = best + known.change[i]
        wish[at, BACK] = np.where(changed[BACK], x, parents[BACK])
        wish[at, CROSS] = np.where(changed[CROSS] | (elite == x), parents[CROSS], elite)
        chance = rank[at, ALONE] + ~(number & possible.free[i])
        single = number & (chance == chance.min(axis=1, keepdims=True))
        wish[at, ALONE] = np.where(single, drawn[ALONE], np.where(number, x, parents[ALONE]))
        nearby = np.where(number, parents[VARY] + known.step[i] * (drawn[VARY] - x), drawn[VARY])
        wish[at, VARY] = np.where(changed[VARY], nearby, parents[VARY])
        rank[at, VARY] -= changed[VARY]  # what is new comes first
        full[at, VARY] = rng.random(full[at, VARY].shape) < 0.7
        share[at, VARY.start] = rng.random()
        many = rng.random((PROPOSALS, 1))
        wish[at, ANEW] = np.where(rng.random((PROPOSALS, d)) < many, drawn, x)[ANEW]
    owner = np.repeat(rows, PROPOSALS)
    people = possible.fit(owner, wish.reshape(-1, d), rank.reshape(-1, d), share.ravel(), full.ravel())
    return owner, people


def _random_people(possible: Possible, rng: np.random.Generator, i: int, chosen: BoolArray) -> FloatArray:
    """Chosen columns of a person as they could be: any other level, numbers in any direction."""
    x, number = possible.X[i], possible.number
    unit = np.where(number, possible.radius[i] / np.where(number, possible.weight, 1.0), 0.0)
    people: FloatArray = np.where(chosen, x + unit * rng.standard_normal(chosen.shape), x)
    for j, price in possible.price.items():
        near = np.flatnonzero(price[i] <= possible.limit[i])
        near = near[near != x[j]]
        drawn = rng.random(len(people))
        if len(near):
            people[:, j] = np.where(chosen[:, j], near[(drawn * len(near)).astype(np.intp)], people[:, j])
    return people
