"""Directed graphs: breadth-first search and topological order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from vitrify.errors import BuildRefused

Node = TypeVar("Node", bound=Hashable)


def reached(
    starts: Iterable[Node], follow: Callable[[Node], Iterable[Node]], max_nodes: int | None = None, refusal: str = ""
) -> dict[Node, tuple[Node, ...]]:
    """Return every node reachable from the starts with its successors, in breadth-first order.

    `follow` returns the successors of a node. More than `max_nodes` nodes raise BuildRefused with the text `refusal`.

    >>> reached([1], lambda n: [2 * n, n + 1] if n < 3 else [])
    {1: (2, 2), 2: (4, 3), 4: (), 3: ()}
    """
    seen = dict.fromkeys(starts)
    queue, successors = list(seen), {}
    for node in queue:  # grows during the loop
        successors[node] = targets = tuple(follow(node))
        queue += [target for target in dict.fromkeys(targets) if target not in seen]
        seen |= dict.fromkeys(targets)
        if max_nodes is not None and len(queue) > max_nodes:
            raise BuildRefused(refusal)
    return successors


def children_first(
    edges: Mapping[Node, Iterable[Node]], roots: Iterable[Node]
) -> tuple[tuple[Node, ...], tuple[Node, ...] | None]:
    """Return the nodes reachable from the roots, children before parents, and a cycle among them or None.

    A cycle ends with its first node.

    >>> children_first({"S": ["A", "B"], "A": ["B"], "B": []}, ["S"])
    (('B', 'A', 'S'), None)
    >>> children_first({"S": ["A"], "A": ["B"], "B": ["A"]}, ["S"])[1]
    ('A', 'B', 'A')
    """
    done: dict[Node, None] = {}
    cycle: tuple[Node, ...] | None = None
    for root in roots:
        path, on_path = [root], {root}
        pending = [iter(edges.get(root, ()))] if root not in done else []
        while pending:
            for child in pending[-1]:
                if child in on_path:
                    cycle = cycle or (*path[path.index(child) :], child)
                elif child not in done:
                    path.append(child)
                    on_path.add(child)
                    pending.append(iter(edges.get(child, ())))
                    break
            else:
                pending.pop()
                done[path[-1]] = None
                on_path.remove(path.pop())
    return tuple(done), cycle
