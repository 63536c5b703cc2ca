"""The fingerprint of a vertex: a name for what it computes.

State is found by it, over the end of a process and in a circuit that was changed: the same operator on the same inputs
has the same name, whatever else is in the circuit. A nest is named by the vertices inside it.
"""

from __future__ import annotations

import hashlib

from headwater.incremental.dataflow.dataflow import Dataflow

__all__ = ["fingerprints"]


def fingerprints(dataflow: Dataflow) -> list[str]:
    """For each vertex a name that is the same wherever the same is computed of the same inputs.

    Exchanges do not count, so that the names do not depend on the number of shards.
    """
    known = dataflow.fingerprints
    if len(known) == len(dataflow.vertices):  # vertices are only added
        return known
    found: list[str] = []
    seen: dict[str, int] = {}
    for vertex in dataflow.vertices:
        before = [found[v.id] for v in vertex.inputs]
        if vertex.node.kind == "exchange":
            found.append(before[0])
            continue
        text = "\n".join([vertex.node.fingerprint, *before])
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    dataflow.fingerprints = found
    return found
