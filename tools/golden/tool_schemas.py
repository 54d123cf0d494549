#!/usr/bin/env python3
"""Makes tests/golden/tool-schemas.jsonl: JSON Schemas as tools emit them, one a line, each with texts that are valid and
texts that are not.

    python3 tools/golden/tool_schemas.py     # needs pydantic 2 with its e-mail addresses: pip install "pydantic[email]"

Those of pydantic are of the models below; their texts are what the models accept and reject, checked here. Those of
others are written as zod-to-json-schema and OpenAPI generators write them.
"""
import datetime
import decimal
import ipaddress
import json
import pathlib
import typing
import uuid

import pydantic

TOP = pathlib.Path(__file__).resolve().parents[2]


class Cat(pydantic.BaseModel):
    kind: typing.Literal["cat"]
    lives: typing.Annotated[int, pydantic.Field(ge=1, le=9)] = 9


class Dog(pydantic.BaseModel):
    kind: typing.Literal["dog"]
    weight: float


class Order(pydantic.BaseModel):
    """An order, with what a shop keeps of it."""
    model_config = pydantic.ConfigDict(extra="forbid")
    price: decimal.Decimal
    at: datetime.datetime
    day: datetime.date | None = None
    wait: datetime.timedelta | None = None
    id: uuid.UUID
    host: ipaddress.IPv4Address
    mail: pydantic.EmailStr
    page: pydantic.AnyUrl


class Basket(pydantic.BaseModel):
    code: typing.Annotated[str, pydantic.Field(pattern="^[A-Z]{3}$", title="Code", examples=["ABC"])]
    dozens: typing.Annotated[int, pydantic.Field(multiple_of=12)]
    counts: dict[str, int]
    limits: dict[typing.Annotated[str, pydantic.Field(pattern="^[a-z]+$")], float] = {}
    sizes: typing.Annotated[dict[typing.Literal["S", "M"], int], pydantic.Field(min_length=1)]
    tags: set[typing.Literal["new", "sale", "last"]]
    pet: typing.Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    note: str | None = pydantic.Field(None, deprecated=True)
    secret: pydantic.SecretStr = ""
    path: pathlib.Path = pathlib.Path(".")
    pair: tuple[int, str] = (1, "")


ORDER = {"price": 1.5, "at": "2024-05-05T01:02:03Z", "day": None, "wait": "PT5M",
         "id": "123e4567-e89b-12d3-a456-426614174000", "host": "10.0.0.1", "mail": "a@example.com",
         "page": "https://example.com/"}
BASKET = {"code": "ABC", "dozens": 24, "counts": {"a": 1}, "limits": {"x": 1.5}, "sizes": {"M": 3},
          "tags": ["sale", "new"], "pet": {"kind": "cat", "lives": 3}, "note": None, "secret": "s", "path": "/a",
          "pair": [1, "b"]}
MODELS = [
    (Order, ORDER, [{"at": "today"}, {"id": "x"}, {"host": "1.2.3"}, {"mail": "a"}, {"page": "a b"}, {"day": "2024-02-30"}]),
    (Basket, BASKET, [{"code": "AB"}, {"dozens": 25}, {"counts": {"a": "b"}}, {"limits": {"X": 1}}, {"sizes": {}},
                      {"sizes": {"L": 1}}, {"tags": ["other"]}, {"pet": {"kind": "cow"}}, {"pair": [1]}]),
]

# name, schema, valid texts, invalid ones
OTHERS = [
    ("zod: tuple, record and union", {
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False,
        "properties": {
            "point": {"type": "array", "minItems": 2, "maxItems": 2, "items": [{"type": "number"}, {"type": "number"}]},
            "scores": {"type": "object", "additionalProperties": {"type": "integer", "exclusiveMinimum": 0}},
            "maybe": {"anyOf": [{"not": {}}, {"type": "string", "format": "uri"}]}},
        "required": ["point", "scores"]},
     ['{"point":[1,2],"scores":{"a":1},"maybe":"https://a.b/"}'],
     ['{"point":[1],"scores":{}}', '{"point":[1,2],"scores":{"a":0}}', '{"point":[1,2],"scores":{},"maybe":"x"}']),
    ("pydantic 2.11: Decimal", {
        "title": "Price", "anyOf": [{"type": "number"}, {"type": "string", "pattern": "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"}]},
     ["1.5"], ['"abc"', '"-"', "null"]),
    ("zod for OpenAPI 3: nullable, exclusiveMinimum as true", {
        "type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                                         "s": {"type": "string", "nullable": True, "enum": ["a", None]}},
        "required": ["n", "s"], "additionalProperties": False},
     ['{"n":1,"s":null}', '{"n":1,"s":"a"}'], ['{"n":0,"s":"a"}', '{"n":1,"s":"b"}']),
    ("OpenAPI 3: formats, discriminator, xml", {
        "type": "object", "description": "A pet", "xml": {"name": "pet"}, "externalDocs": {"url": "https://a.b"},
        "x-internal": True, "required": ["id", "photo"],
        "properties": {"id": {"type": "integer", "format": "int64", "readOnly": True},
                       "photo": {"type": "string", "format": "binary"},
                       "price": {"type": "number", "format": "double", "multipleOf": 0.01},
                       "password": {"type": "string", "format": "password", "writeOnly": True, "nullable": True}}},
     ['{"id":1,"photo":"x","price":1.25,"password":null}'], ['{"id":1}', '{"id":1,"photo":"x","price":1.255}']),
    ("a function of OpenAI's, strict", {
        "type": "object", "strict": True, "additionalProperties": False, "required": ["location", "unit"],
        "properties": {"location": {"type": "string", "description": "City"},
                       "unit": {"type": ["string", "null"], "enum": ["C", "F", None], "enumNames": ["a", "b", "c"],
                                "markdownDescription": "**unit**"}}},
     ['{"location":"Bern","unit":null}'], ['{"location":"Bern"}', '{"location":"Bern","unit":"K"}']),
    ("a tool of MCP's", {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"path": {"type": "string", "format": "path"},
                       "data": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
                       "edits": {"type": "array", "uniqueItems": True, "items": {"enum": ["cut", "paste"]}},
                       "env": {"type": "object", "propertyNames": {"pattern": "^[A-Z_]+$"},
                               "additionalProperties": {"type": "string"}, "maxProperties": 2},
                       "from": {"type": "string"}, "to": {"type": "string"}},
        "required": ["path"], "dependentRequired": {"from": ["to"]}},
     ['{"path":"/a","data":"eA==","edits":["paste","cut"],"env":{"A":"b"},"from":"a","to":"b"}'],
     ['{"path":"a","edits":["cut","cut"]}', '{"path":"a","env":{"a":"b"}}', '{"path":"a","from":"b"}',
      '{"path":"a","env":{"A":"","B":"","C":""}}']),
]


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def check(model, text, valid):
    try:
        model.model_validate_json(text)
    except pydantic.ValidationError:
        assert not valid, text
    else:
        assert valid, text


def main():
    rows = []
    for model, instance, damages in MODELS:
        valid, invalid = [compact(instance)], [compact({**instance, **damage}) for damage in damages]
        for text in valid:
            check(model, text, True)
        for text in invalid:
            check(model, text, False)
        rows.append((f"pydantic: {model.__name__}", model.model_json_schema(), valid, invalid))
    with open(TOP / "tests/golden/tool-schemas.jsonl", "w", encoding="utf-8") as out:
        for name, schema, valid, invalid in rows + OTHERS:
            out.write(compact({"name": name, "schema": schema, "valid": valid, "invalid": invalid}) + "\n")


if __name__ == "__main__":
    main()
