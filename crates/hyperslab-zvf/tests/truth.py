"""Brute-force results of queries, computed from the input: see `cases.py`."""

import json
import pathlib

import numpy as np


class Cases:
    def __init__(self, folder, boxes):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cases, self.boxes = [], boxes

    def path(self, name):
        return str(self.folder / name)

    def add(self, name, positions, links=None, objects=None, groups=None, ordered=True, ids_of_group=None):
        """All queries over one store. `objects`: id -> numbers of vertices in order."""
        rng = np.random.default_rng(len(name))
        positions = np.asarray(positions, dtype="f8")
        low, high = positions.min(0), positions.max(0)
        queries = [dict()]
        for _ in range(self.boxes):
            a, b = rng.uniform(low, high), rng.uniform(low, high)
            queries.append({"box": [np.minimum(a, b).tolist(), np.maximum(a, b).tolist()]})
        # A box whose borders are vertices, an empty one, and one around everything.
        queries.append({"box": [positions[0].tolist(), positions[0].tolist()]})
        queries.append({"box": [(high + 1).tolist(), (high + 2).tolist()]})
        queries.append({"box": [(low - 1e6).tolist(), (high + 1e6).tolist()]})
        if objects:
            some = list(objects)[:: max(1, len(objects) // 3)]
            queries += [{"objects": [some[0]]}, {"objects": some[::-1]}, {"objects": some, "box": queries[1]["box"]}]
        if groups:
            queries += [{"groups": [g]} for g in groups]
        for query in queries:
            chosen = list(query.get("objects", []))
            for group in query.get("groups", []):
                chosen += groups[group]
            if chosen:
                mask = np.zeros(len(positions), bool)
                for one in chosen:
                    mask[objects[one]] = True
            else:
                mask = np.ones(len(positions), bool)
            if "box" in query:
                mask &= ((positions >= query["box"][0]) & (positions <= query["box"][1])).all(1)
            case = {"store": name, "level": 0, "ordered": ordered} | query
            case["vertices"] = np.flatnonzero(mask).tolist()
            if links is not None:
                case["links"] = [list(map(int, link)) for link in links if mask[list(link)].all()]
            if objects is not None:
                paths = {str(i): [int(n) for n in rows if mask[n]] for i, rows in objects.items() if not chosen or i in chosen}
                case["paths"] = {i: rows for i, rows in paths.items() if rows or chosen}
            self.cases.append(case)

    def finish(self):
        (self.folder / "cases.json").write_text(json.dumps(self.cases))
