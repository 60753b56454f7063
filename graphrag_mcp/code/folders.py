"""Files of source code grouped by folder; their titles are paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import commonprefix

from graphrag_mcp.index.communities import MOST_LEVELS, MOST_TOPICS, ClusterParams, Leaf
from graphrag_mcp.text.terms import lists_of

SMALL = 3  # text units; smaller files and folders that lie beside each other are one community
_Path = tuple[str, ...]


def by_folder(files: Mapping[str, str], params: ClusterParams) -> Iterator[Leaf]:
    """The leaves; `files`: uri by text unit."""
    units = lists_of((tuple(files[unit].split("/")), unit) for unit in sorted(files))
    todo: list[tuple[list[_Path], tuple[int, ...], tuple[str, ...]]] = [(sorted(units), (), ())]
    while todo and units:
        paths, way, titles = todo.pop()
        groups = [paths]
        size = sum(len(units[path]) for path in paths)
        if len(way) < MOST_LEVELS and size > params.max_cluster_size:
            groups = _siblings(paths, units)
        if not way and (len(groups) > MOST_TOPICS or len(commonprefix(paths)) > 1):
            groups = [paths]  # a folder with all of it is a community itself
        if len(groups) > 1 or not way:
            for place, group in enumerate(groups):
                title = _title(group, paths, len(groups) > 1)
                todo.append((group, (*way, place), (*titles, title)))
        else:
            yield Leaf([unit for path in paths for unit in units[path]], way, titles)


def _siblings(paths: Sequence[_Path], by_path: Mapping[_Path, Sequence[str]]) -> list[list[_Path]]:
    """The files by what lies in their common folder; small ones together."""
    depth = len(commonprefix(paths))
    groups = lists_of((path[depth : depth + 1], path) for path in paths)
    size = {name: sum(len(by_path[path]) for path in group) for name, group in groups.items()}
    small = {name for name, units in size.items() if units < SMALL}
    together = [path for name in sorted(small) for path in groups[name]]
    others = [groups[name] for name in sorted(groups.keys() - small)]
    return [*others, together] if together else others


def _title(group: Sequence[_Path], paths: Sequence[_Path], divided: bool) -> str:
    """The path of a file or folder without its source; of small ones also their names."""
    common, above = commonprefix(group), commonprefix(paths)
    title = "/".join(common[1:] or common)
    if not divided or len(common) > len(above):
        return title
    names = sorted({path[len(above)] for path in group})
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{title}: {', '.join(names[:3])}{more}"
