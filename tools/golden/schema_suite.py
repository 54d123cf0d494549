#!/usr/bin/env python3
"""Makes tests/golden/schema-suite/table.jsonl: the official JSON-Schema-Test-Suite (draft 2020-12, with the optional parts
and formats) as lines of a schema, instances that are valid and instances that are not.

    pip download --no-binary :all: --no-deps jsonschema==4.26.0 && tar xf jsonschema-4.26.0.tar.gz
    python3 tools/golden/schema_suite.py jsonschema-4.26.0/json

That is the source distribution, which has the suite in it (pip needs hatchling, hatch-vcs and hatch-fancy-pypi-readme).
"""
import json
import pathlib
import shutil
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def main():
    suite = pathlib.Path(sys.argv[1])
    tests = suite / "tests/draft2020-12"
    out = TOP / "tests/golden/schema-suite"
    with open(out / "table.jsonl", "w", encoding="utf-8") as table:
        for path in sorted(tests.rglob("*.json"), key=lambda p: p.relative_to(tests).with_suffix("").parts):
            for case in json.loads(path.read_text(encoding="utf-8")):
                schema = case["schema"]
                if isinstance(schema, dict) and schema.get("$schema") == DRAFT:
                    del schema["$schema"]
                row = {"file": str(path.relative_to(tests).with_suffix("")), "schema": schema}
                for name, valid in (("valid", True), ("invalid", False)):
                    row[name] = [test["data"] for test in case["tests"] if test["valid"] == valid]
                table.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
    shutil.copy(suite / "LICENSE", out / "LICENSE")


if __name__ == "__main__":
    main()
