from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, field

from claw_engine.shapes import Before, Extra, Faults, Shape, Stated, read


class Inner(Shape, frozen=True, kw_only=True):
    need_this: Annotated[str, Meta(min_length=1, max_length=4, pattern="^[a-z]+$")]
    ratio: Annotated[float, Meta(ge=0, lt=1)] | None = None


class Outer(Shape, frozen=True, kw_only=True):
    count: Annotated[int, Meta(gt=0, le=9)] = 1
    colour: Literal["red", "blue"] | Literal[False] = "red"
    yes: bool = False
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    table: dict[str, list[int]] = field(default_factory=dict)
    word: Annotated[str, Before(lambda value: str(value) if isinstance(value, int) else value)] = ""
    either: str | int | None = None
    hidden: str = field(default="mine", name="(hidden)")

    def __post_init__(self) -> None:
        if self.yes and self.colour == "blue":
            raise ValueError("blue says no")


class Lax(Stated, frozen=True):
    lax: ClassVar[bool] = True
    extra: ClassVar[Extra] = "ignore"
    count: int = 0
    ratio: float = 0.5
    yes: bool = False


class Keeping(Shape, frozen=True, kw_only=True):
    extra: ClassVar[Extra] = "keep"
    key: str
    rest: dict[str, object] = field(default_factory=dict, name="(rest)")


def test_a_good_value_is_an_object_with_its_defaults() -> None:
    raw = {"count": 9, "colour": False, "many": [{"needThis": "ab", "ratio": 0}],
           "table": {"a": [1]}, "word": 5, "either": "5"}  # fmt: skip
    assert read(Outer, raw) == Outer(
        count=9, colour=False, many=(Inner(need_this="ab", ratio=0.0),),
        table={"a": [1]}, word="5", either="5",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "kind", "path", "expected"),
    [
        ([], "wrong", (), "an object: { … }"),
        ({"count": True}, "wrong", ("count",), "a number"),
        ({"count": 1.0}, "wrong", ("count",), "a whole number"),
        ({"count": "1"}, "wrong", ("count",), "a whole number"),
        ({"count": 0}, "wrong", ("count",), "a number greater than 0"),
        ({"count": 10}, "wrong", ("count",), "a number at most 9"),
        ({"count": None}, "wrong", ("count",), "a whole number"),
        ({"colour": "rde"}, "wrong", ("colour",), "one of 'red' or 'blue'"),
        ({"yes": 1}, "wrong", ("yes",), "true or false"),
        ({"inner": {}}, "missing", ("inner", "needThis"), ""),
        ({"inner": {"needThis": ""}}, "wrong", ("inner", "needThis"), "a text that is not empty"),
        ({"inner": {"needThis": "abcde"}}, "wrong", ("inner", "needThis"),
         "a text of at most 4 characters"),
        ({"inner": {"needThis": "A"}}, "wrong", ("inner", "needThis"),
         "a text that matches ^[a-z]+$"),
        ({"inner": {"needThis": "a", "ratio": 1}}, "wrong", ("inner", "ratio"),
         "a number less than 1"),
        ({"inner": {"needThis": "a", "ratio": float("nan")}}, "wrong", ("inner", "ratio"),
         "a number"),
        ({"many": {}}, "wrong", ("many",), "a list: [ … ]"),
        ({"many": [{"needThis": "a"}, 5]}, "wrong", ("many", 1), "an object: { … }"),
        ({"table": {"a": [1, "x"]}}, "wrong", ("table", "a", 1), "a whole number"),
        ({"either": []}, "wrong", ("either",), "a text in quotes"),
        ({"colour": "blue", "yes": True}, "rule", (), "blue says no"),
        ({"hidden": "x"}, "unexpected", ("hidden",), ""),
        ({"(hidden)": "x"}, "unexpected", ("(hidden)",), ""),
        ({"need_this": "x"}, "unexpected", ("need_this",), ""),
    ],
)  # fmt: skip
def test_one_fault_says_where_and_what(
    raw: object, kind: str, path: tuple[str | int, ...], expected: str
) -> None:
    with pytest.raises(Faults) as refused:
        read(Outer, raw)
    (fault,) = refused.value.all
    assert (fault.kind, fault.path, fault.expected) == (kind, path, expected)


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(Faults) as refused:
        read(Outer, {"count": 0, "yes": "no", "inner": {"x": 1}, "many": [1, 2]})
    assert [fault.path for fault in refused.value.all] == [
        ("count",), ("yes",), ("inner", "needThis"), ("inner", "x"), ("many", 0), ("many", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "is_read_as"),
    [
        ({"count": "8"}, Lax(count=8, stated=frozenset({"count"}))),
        ({"count": 8.0}, Lax(count=8, stated=frozenset({"count"}))),
        ({"ratio": "1e2"}, Lax(ratio=100.0, stated=frozenset({"ratio"}))),
        ({"yes": "TRUE"}, Lax(yes=True, stated=frozenset({"yes"}))),
        ({"yes": 0}, Lax(yes=False, stated=frozenset({"yes"}))),
        ({"whoever": 1}, Lax()),
    ],
)
def test_a_lax_shape_reads_what_variables_give(raw: object, is_read_as: Lax) -> None:
    assert read(Lax, raw) == is_read_as


@pytest.mark.parametrize("raw", [{"count": 1.5}, {"count": "x"}, {"yes": 2}, {"ratio": "inf"}])
def test_a_lax_shape_refuses_what_has_no_such_meaning(raw: object) -> None:
    with pytest.raises(Faults):
        read(Lax, raw)


def test_a_shape_may_keep_what_it_does_not_know() -> None:
    assert read(Keeping, {"key": "k", "more": [1]}).rest == {"more": [1]}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["count", "inner", "many", "needThis", "table", "either", "x"]), inner
        )
    ),
    max_leaves=8,
)


@given(anything)
def test_any_value_is_read_or_refused_with_reasons(raw: object) -> None:
    try:
        built = read(Outer, raw)
    except Faults as faults:
        assert faults.all
    else:
        assert isinstance(built, Outer)
