"""YAML from untrusted files: bounded in size and depth, all values as texts."""

from typing import Any, TypeAlias

from tfm.data.errors import format_names

MAX_YAML_BYTES = 2**20
MAX_DEPTH = 50
YamlNode: TypeAlias = str | list["YamlNode"] | dict[str, "YamlNode"]


def parse_yaml(text: str) -> YamlNode:
    """The first document in a YAML text; a mapping's keys that are no texts are left out.

    The events are put together here, since the composer of PyYAML calls itself at each level, in C without a bound.

    Raises:
        ValueError: it is no YAML, or too large or nested too deeply.
    """
    import yaml

    if len(text) > MAX_YAML_BYTES:
        raise ValueError(f"its YAML is longer than {MAX_YAML_BYTES:,} characters")
    try:
        return _first_document(yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)), yaml)
    except yaml.YAMLError as error:
        raise ValueError(f"its YAML is damaged: {format_names(str(error).split(), ' ')}") from None


def _first_document(events: Any, yaml: Any) -> YamlNode:
    anchors: dict[str, YamlNode] = {}
    levels: list[list[YamlNode]] = [[]]
    kinds: list[tuple[bool, str | None]] = []
    for event in events:
        node: YamlNode
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if len(levels) > MAX_DEPTH:
                raise ValueError("its YAML is nested too deeply")
            levels.append([])
            kinds.append((isinstance(event, yaml.MappingStartEvent), event.anchor))
            continue
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            node = nodes = levels.pop()
            is_mapping, anchor = kinds.pop()
            if is_mapping:
                node = {key: value for key, value in zip(nodes[::2], nodes[1::2], strict=True) if isinstance(key, str)}
        elif isinstance(event, yaml.ScalarEvent):
            node, anchor = event.value, event.anchor
        elif isinstance(event, yaml.AliasEvent):
            node, anchor = anchors.get(event.anchor, ""), None
        elif isinstance(event, yaml.DocumentEndEvent):
            break
        else:
            continue
        if anchor is not None:
            anchors[anchor] = node
        levels[-1].append(node)
    return levels[0][0] if levels[0] else ""
