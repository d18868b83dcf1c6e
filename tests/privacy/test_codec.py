from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privada.exceptions import InputError
from privada.privacy.codec import (
    Form,
    inlined,
    mapping_of,
    one_of,
    only_of,
    read_fields,
    several_of,
    write_fields,
)


class Shape(Form):
    pass


@dataclass(frozen=True)
class Dot(Shape):
    at: tuple[float, ...] = (0.0,)
    form: ClassVar[str] = "dot"


@dataclass(frozen=True, eq=False)
class Cloud(Shape):
    points: Any
    name: str | None = None
    form: ClassVar[str] = "cloud"


@dataclass(frozen=True)
class Group(Shape):
    members: tuple[Shape, ...] = field(metadata=several_of(Shape))
    form: ClassVar[str] = "group"


@dataclass(frozen=True)
class Framed(Shape):
    inner: Shape = field(metadata=only_of(Shape, key="shapes", path=""))
    form: ClassVar[str] = "framed"


class Stranger(Form):
    form: ClassVar[str] = "stranger"


class Impostor(Dot):
    """Of a form's name that another class has already."""

    form: ClassVar[str] = "cloud"


@dataclass(frozen=True)
class Ink:
    colour: str
    width: float = 1.0


@dataclass(frozen=True)
class Drawing:
    shapes: tuple[Shape, ...] = field(metadata=several_of(Shape, path=""))
    ink: Ink = field(metadata=mapping_of(Ink))
    map: Cloud = field(metadata=inlined(Cloud))
    title: Shape | None = field(default=None, metadata=one_of(Shape, path="t/"))
    scale: int = 1


def read(plain, arrays):
    return read_fields(Drawing, Drawing, plain, arrays)


def example():
    cloud = Cloud(points=np.arange(3.0))
    shapes = (Dot((1.0, 2.0)), Group((cloud, Framed(cloud))))
    return Drawing(shapes=shapes, ink=Ink("red"), map=Cloud(np.ones(2), name="m"), title=cloud, scale=3)


def test_every_kind_of_field_has_its_place():
    plain, arrays = write_fields(example())
    assert plain["ink"] == {"colour": "red", "width": 1.0}
    assert plain["name"] == "m"
    assert plain["title"] == {"form": "cloud", "plain": {"name": None}}
    assert [entry["form"] for entry in plain["shapes"]] == ["dot", "group"]
    assert set(arrays) == {"points", "t/points", "1/members/0/points", "1/members/1/0/points"}


def test_what_was_written_is_read_back_through_json():
    import json

    plain, arrays = write_fields(example())
    value = read(json.loads(json.dumps(plain)), arrays)
    again = write_fields(value)
    assert again[0] == plain
    assert {name: array.tolist() for name, array in again[1].items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert value.shapes[0] == Dot((1.0, 2.0)), "a list in the file is a tuple"


shapes = st.recursive(
    st.builds(Dot, st.tuples(st.floats(0, 9))),
    lambda inner: st.builds(Group, st.lists(inner, max_size=3).map(tuple)) | st.builds(Framed, inner),
    max_leaves=6,
)


@given(st.lists(shapes, max_size=3))
def test_any_nesting_is_read_back(several):
    group = Group(tuple(several))
    assert Group.from_parts(*group.parts()) == group


@pytest.mark.parametrize(
    "change",
    [
        lambda plain, arrays: plain.update(more=1),
        lambda plain, arrays: arrays.update(more=np.ones(1)),
        lambda plain, arrays: arrays.update({"7/points": np.ones(1)}),
        lambda plain, arrays: arrays.update({"0/points": np.ones(1)}),
        lambda plain, arrays: arrays.update({"t/more": np.ones(1)}),
        lambda plain, arrays: plain.update(points=[1.0]),
        lambda plain, arrays: plain["ink"].update(more=1),
        lambda plain, arrays: plain["title"].update(more=1),
        lambda plain, arrays: plain["shapes"].append({"form": "stranger", "plain": {}}),
        lambda plain, arrays: plain["shapes"].append({"form": "nothing", "plain": {}}),
        lambda plain, arrays: plain["shapes"].append({"form": ["dot"], "plain": {}}),
        lambda plain, arrays: plain.update(title=None),
    ],
)
def test_parts_that_hold_anything_else_are_refused(change):
    plain, arrays = write_fields(example())
    change(plain, arrays)
    with pytest.raises((InputError, TypeError)):
        read(plain, arrays)


def test_many_values_are_read_in_one_pass():
    class Counted(dict):
        looks = 0

        def __iter__(self):
            Counted.looks += 1
            return super().__iter__()

    several = tuple(Cloud(np.array([float(i)])) for i in range(12))
    codec = Group.__dataclass_fields__["members"].metadata["privada.codec"]
    plain, arrays = {}, {}
    codec.write("members", several, plain, arrays)
    members = codec.read("members", plain, Counted(arrays))
    assert Counted.looks == 1
    assert [shape.points[0] for shape in members] == list(range(12))


def test_no_class_takes_the_name_of_another():
    value = read(*write_fields(example()))
    assert type(value.title) is Cloud


def test_a_field_that_is_not_there_has_its_default():
    plain, arrays = write_fields(example())
    del plain["scale"]
    assert read(plain, arrays).scale == 1
    del plain["shapes"]
    with pytest.raises(TypeError, match="shapes"):
        read(plain, {name: array for name, array in arrays.items() if not name.startswith("1/")})
