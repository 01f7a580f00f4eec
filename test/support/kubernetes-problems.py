"""Checks manifests with Kubernetes' own types, as the Python client of Debian (python3-kubernetes) has them.

Reads YAML from stdin, and prints what is wrong, one problem a line: fields that are missing, of the wrong type, or unknown.
"""

import json
import sys
import types

import yaml
from kubernetes import client

API = client.ApiClient()


def type_of(manifest):
    group, _, version = manifest["apiVersion"].rpartition("/")
    for prefix in (version, group.partition(".")[0] + version, version + "beta2"):
        name = prefix[0].upper() + prefix[1:] + manifest["kind"]
        if hasattr(client, name):
            return getattr(client, name)
    return None


def lost(given, kept, at):
    """What is in the manifest and not in the object that was made of it: the type has no such field."""
    if isinstance(given, dict):
        for key, value in given.items():
            if isinstance(kept, dict) and key in kept:
                yield from lost(value, kept[key], f"{at}.{key}")
            else:
                yield f"{at}.{key}: is unknown"
    elif isinstance(given, list):
        for index, value in enumerate(given):
            yield from lost(value, kept[index], f"{at}[{index}]")
    elif given != kept:
        yield f"{at}: {given!r} was read as {kept!r}"


def problems(manifest):
    name = f'{manifest["kind"]} {manifest["metadata"]["name"]}'
    kind = type_of(manifest)
    if kind is None:
        return [f"{name}: {manifest['apiVersion']} has no such kind"]
    try:
        read = API.deserialize(types.SimpleNamespace(data=json.dumps(manifest)), kind)
    except (ValueError, TypeError, AttributeError) as error:
        return [f"{name}: {error}"]
    return list(lost(manifest, API.sanitize_for_serialization(read), name))


for each in yaml.safe_load_all(sys.stdin):
    for problem in problems(each):
        print(problem)
