#!/usr/bin/env python3
"""Checks reports that people send in (tests/reports/submitted): each must be one of peridot bench, measured and not
made, with the checksum that it was saved with, and no larger than such a report is. Arguments: files, or folders of
them. Says what is wrong with which; succeeds where nothing is."""
import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from bench_reports import checksum  # noqa: E402

LARGEST = 2 << 20
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}\.json")


def keys_of(text):
    """The report or set; raises what json does, or ValueError."""
    def once(pairs):
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key is there twice")
        return dict(pairs)

    def number(text):
        raise ValueError(f"{text} is no number")
    root = json.loads(text, object_pairs_hook=once, parse_constant=number)
    if not isinstance(root, dict):
        raise ValueError("it is no object")
    return root


def faults(path):
    if not NAME.fullmatch(path.name):
        yield "its name is to be of small letters, digits, dots and dashes"
    if path.is_symlink() or not path.is_file():
        yield "it is no file"
        return
    if path.stat().st_size > LARGEST:
        yield f"it is larger than {LARGEST >> 20} MB"
        return
    try:
        text = path.read_bytes().decode()
        root = keys_of(text)
    except (ValueError, RecursionError) as error:
        yield f"it is no JSON: {error}"
        return
    if "checksum" not in root:
        yield "it has no checksum"
    elif list(root)[-1] != "checksum" or root["checksum"] != checksum(text):
        yield "its checksum is wrong: it is not as peridot bench saved it"
    reports = root.get("reports", [root])
    if root.get("schema") not in (2, 3) or not isinstance(reports, list) or not 1 <= len(reports) <= 8:
        yield "it is no report of schema 2, and no set of some of schema 3"
        return
    for report in reports:
        if not isinstance(report, dict) or report.get("schema") != 2 or not report.get("tests"):
            yield "it has a report without tests"
        elif report.get("made"):
            yield "it was made and not measured"


def main():
    n = 0
    for argument in map(pathlib.Path, sys.argv[1:]):
        for path in sorted(argument.glob("*.json")) if argument.is_dir() else [argument]:
            for fault in faults(path):
                print(f"{path}: {fault}")
                n += 1
    sys.exit(n > 0)


if __name__ == "__main__":
    main()
