from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.tools import schema

PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "examples": ["notes.md"]},
        "offset": {"type": "integer", "minimum": 1},
        "timeout": {"type": "number", "minimum": 1, "maximum": 60},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
        "force": {"type": "boolean"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "names": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}
ALIASES = {"file_path": "path", "elsewhere": "nothing"}


@pytest.mark.parametrize(
    ("given_args", "expected"),
    [
        ({"path": "a"}, {"path": "a"}),
        ({"file_path": "a"}, {"path": "a"}),
        ({"path": "a", "file_path": "b"}, {"path": "a"}),
        ({"file_path": "b", "path": "a"}, {"path": "a"}),
        ({"path": "a", "offset": "12"}, {"path": "a", "offset": 12}),
        ({"path": "a", "offset": 3.0}, {"path": "a", "offset": 3}),
        ({"path": "a", "timeout": " 2.5 "}, {"path": "a", "timeout": 2.5}),
        ({"path": "a", "offset": None}, {"path": "a"}),
        ({"path": "a", "force": "True"}, {"path": "a", "force": True}),
        ({"path": "a", "env": '{"A": "1"}'}, {"path": "a", "env": {"A": "1"}}),
        ({"path": [{"type": "text", "text": "a"}, {"text": "b"}]}, {"path": "ab"}),
        ({"path": "a", "names": ["x"]}, {"path": "a", "names": ["x"]}),
    ],
)
def test_fitting_arguments_are_converted(
    given_args: dict[str, object], expected: dict[str, object]
) -> None:
    checked = schema.check(PARAMETERS, given_args, ALIASES)
    assert checked.problems == ()
    assert checked.arguments == expected


@pytest.mark.parametrize(
    ("given_args", "words"),
    [
        ({}, ["Missing required parameter(s): path (path or file_path)"]),
        ({"path": 7}, ["`path`", "expected a string", "got number 7"]),
        ({"path": None}, ["`path`", "expected a string", "got null"]),
        ({"path": "a", "offset": 0}, ["`offset`", "at least 1", "number 0"]),
        ({"path": "a", "offset": "x1"}, ["`offset`", "whole number", 'string "x1"']),
        ({"path": "a", "offset": True}, ["`offset`", "whole number", "boolean true"]),
        ({"path": "a", "offset": "²"}, ["`offset`", "whole number"]),
        ({"path": "a", "offset": "9" * 5000}, ["`offset`", "whole number"]),
        ({"path": "a", "timeout": 61}, ["`timeout`", "from 1 to 60"]),
        ({"path": "a", "timeout": "nan"}, ["`timeout`"]),
        ({"path": "a", "mode": "medium"}, ["`mode`", '"fast", "slow"']),
        ({"path": "a", "force": 1}, ["`force`", "true or false"]),
        ({"path": "a", "env": ["A=1"]}, ["`env`", "an object", "list"]),
        ({"path": "a", "env": {"A": 1}}, ["`env`", "whose `A` is a string"]),
        ({"path": "a", "colour": "red"}, ["Unknown parameter `colour`", "path, offset"]),
    ],
)
def test_problems_name_parameter_given_and_expected(
    given_args: dict[str, object], words: list[str]
) -> None:
    problems = " ".join(schema.check(PARAMETERS, given_args, ALIASES).problems)
    for word in words:
        assert word in problems


def test_long_values_are_cut_in_problems() -> None:
    (problem,) = schema.check(PARAMETERS, {"path": ["x" * 5000, 1]}).problems
    assert len(problem) < 200


def test_example_is_accepted_by_its_own_schema() -> None:
    example = schema.example(PARAMETERS)
    assert example == {"path": "notes.md"}
    assert schema.check(PARAMETERS, example).problems == ()


def test_examples_do_not_reach_the_model() -> None:
    assert "examples" not in str(schema.without_examples(PARAMETERS))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*PARAMETERS["properties"], "other"]), json_values))
def test_any_json_either_fits_or_is_explained(args: dict[str, object]) -> None:
    checked = schema.check(PARAMETERS, args, ALIASES)
    if not checked.problems:
        assert isinstance(checked.arguments["path"], str)
        assert isinstance(checked.arguments.get("offset", 1), int)
