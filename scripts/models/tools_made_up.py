"""Tools that are made up as training goes: any verb, any object, any parameters. They teach to read a signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from made_up_wordings import (
    BEFORE_OBJECT,
    BEGINNINGS,
    GET_DESCRIPTIONS,
    GET_NAMES,
    LOOK_UPS,
    OTHER_VERBS,
    SYNONYMS,
    TO_ONE,
    TO_ONE_WITH,
)
from tool_kind import Parameter, ToolKind, Value, email_address, number_result, plain_ok, some_text, whole_number
from word_pieces import pieces
from words import ANIMALS, COLOURS, COUNTRIES, DAYS, FOODS, MONTHS, THINGS, WORDS, city, invented, name, pick

VERBS = (
    "create add update set send get find check start stop open close register assign publish submit export store "
    "list count move copy mark archive approve cancel enable disable print scan sync upload share build plan wash "
    "repair collect sort watch measure test review choose mix fill empty pack rent sell hide lock connect "
    "book reserve arrange order prepare"
).split()
OBJECTS = (
    "task ticket report invoice record user team project page label item device camera sensor job backup group list "
    "bike house garden phone book box room lamp engine game song video table cake message plan store shop course "
    "ticket contract letter parcel receipt meeting lesson exam patient doctor hotel trip tour taxi bus ship crane pump "
    "valve filter robot printer scanner router server disk folder archive image photo map poll vote survey quiz puzzle "
    "recipe menu meal drink snack shirt shoe jacket blanket sofa desk shelf mirror carpet curtain oven fridge heater "
    "fan tree flower lawn hedge pond fence gate bridge road tunnel tower station platform harbour beach farm field "
    "river lake hill forest island height width weight depth age speed price cost rate score rank level volume area "
    "budget salary tax fee loan account wallet card coin prize medal badge club member guest visitor driver pilot nurse"
).split()


@dataclass(frozen=True)
class Role:
    """What an argument may be: names for it, its type, its values, and how a user puts it into a sentence."""

    names: str
    kind: str
    value: Callable[[Random, bool], Value]
    says: str


def _either(words: list[str]) -> Callable[[Random, bool], Value]:
    return lambda rng, _: invented(rng) if rng.random() < 0.4 else pick(rng, words, False)


def _code(rng: Random, _: bool) -> str:
    return f"{invented(rng)[:3].upper()}{rng.randint(1, 999)}"


ROLES = [
    Role("city place location town area destination", "string", city, "in {} | near {} | to {} | for the city {}"),
    Role("country state nation land", "string", _either(COUNTRIES), "in {} | of {} | from {}"),
    Role("person user owner name who contact", "string", name, "for {} | with {} | of {}"),
    Role("day date when", "string", _either(DAYS), "on {} | for {} | this {}"),
    Role("month period", "string", _either(MONTHS), "in {} | for {}"),
    Role("time at hour", "string", lambda rng, _: f"{rng.randint(0, 23)}:{rng.randint(10, 59)}", "at {} | by {}"),
    Role("colour color", "string", _either(COLOURS), "in {} | in the colour {} | painted {}"),
    Role("animal pet creature", "string", _either(ANIMALS), "for the {} | with a {} | like a {} | to the {}"),
    Role("food product meal dish", "string", _either(FOODS), "with {} | made of {} | and some {}"),
    Role("item thing part", "string", _either(THINGS), "with the {} | for the {} | next to the {}"),
    Role(
        "title text topic note label subject content message",
        "string",
        some_text,
        "called {} | about {} | with the title {}",
    ),
    Role("word key tag", "string", _either(WORDS), "named {} | tagged {} | with the word {}"),
    Role("id code number ref", "string", _code, "{} | with the code {} | number {}"),
    Role("email address mail", "string", email_address, "to {} | for {} | at {}"),
    Role("count amount quantity n", "integer", whole_number(1, 999), "{} times | with {} pieces | of {} pieces"),
    Role("minutes duration", "integer", whole_number(1, 120), "for {} minutes | in {} minutes | within {} minutes"),
    Role("size width length", "integer", whole_number(1, 400), "of size {} | {} cm long | with size {}"),
    Role("price cost budget", "number", whole_number(1, 900), "for {} euros | at a price of {} | with a budget of {}"),
    Role("level priority", "integer", whole_number(1, 9), "at level {} | with level {}"),
]
CHOICES = [
    ("mode", "fast slow safe"),
    ("kind", "small large medium"),
    ("state", "on off"),
    ("format", "pdf text html"),
    ("unit", "km mile"),
    ("priority", "low high normal"),
    ("side", "left right"),
]
LOOK_UP_SHARE, BEFORE_OBJECT_SHARE, TO_ONE_SHARE = 0.18, 0.12, 0.22


def tool_name(rng: Random, verb: str, thing: str) -> str:
    """A way to put a deed and its object into one name."""
    return rng.choice(
        [
            f"{verb}_{thing}",
            f"{verb}_{thing}",
            f"{thing}_{verb}",
            f"{verb}{thing.capitalize()}",
            f"{verb}-{thing}",
            verb,
            f"{thing}.{verb}",
        ]
    )


def deed_descriptions(verb: str, thing: str) -> tuple[str, ...]:
    """Ways to describe a tool that does something to a thing."""
    return (f"{verb.capitalize()} a {thing}", f"Used to {verb} the {thing}", f"{thing.capitalize()}: {verb}")


def _said(rng: Random, verb: str) -> str:
    """The verb as a user may say it: as the tool does, or in another word of its meaning."""
    group = next((group.split() for group in SYNONYMS if verb in group.split()), [verb])
    return rng.choice(group) if rng.random() < 0.4 else verb


def made_up_thing(rng: Random) -> str:
    roll = rng.random()
    return invented(rng) if roll < 0.3 else pieces(rng, 2).lower() if roll < 0.45 else rng.choice(OBJECTS)


def _verb(rng: Random) -> str:
    return invented(rng) if rng.random() < 0.15 else rng.choice(VERBS)


def made_up(rng: Random) -> ToolKind:
    """A new kind of tool with one to four parameters."""
    roll = rng.random()
    if roll < LOOK_UP_SHARE:
        return look_up(rng, made_up_thing(rng))
    if roll < LOOK_UP_SHARE + BEFORE_OBJECT_SHARE:
        return _counted(rng)
    if roll < LOOK_UP_SHARE + BEFORE_OBJECT_SHARE + TO_ONE_SHARE:
        return _to_one(rng)
    return _deed(rng, _verb(rng), made_up_thing(rng))


def made_up_alike(rng: Random, count: int) -> list[ToolKind]:
    """New kinds with one verb or one object: which is meant, the other word alone tells."""
    verb, thing = _verb(rng), made_up_thing(rng)
    roll = rng.random()
    if roll < LOOK_UP_SHARE:
        return [look_up(rng, made_up_thing(rng)) for _ in range(count)]
    if roll < 0.6:
        return [_deed(rng, other, thing) for other in rng.sample(VERBS, count)]
    return [_deed(rng, verb, made_up_thing(rng)) for _ in range(count)]


def look_up(rng: Random, thing: str) -> ToolKind:
    """Something to know of one thing."""
    role = rng.choice(ROLES[:4] + ROLES[6:14])
    parameter = rng.choice([word for word in role.names.split() if word != thing])
    asks = tuple(ask.format(O=thing.capitalize(), o=thing, s=f"{{{parameter}}}") for ask in rng.sample(LOOK_UPS, 3))
    return ToolKind(
        (rng.choice(GET_NAMES).format(thing),),
        (rng.choice(GET_DESCRIPTIONS).format(thing),),
        {parameter: Parameter((parameter,), role.kind, role.value)},
        asks,
        number_result(thing, 1, 9999),
        f"The {thing} of {{{parameter}}} is {{{thing}}}.",
        True,
    )


def _counted(rng: Random) -> ToolKind:
    """Something done with so many things, or with those of a colour: the values stand before the thing."""
    verb, thing = rng.choice(VERBS), made_up_thing(rng)
    parameters: dict[str, Parameter] = {}
    first = rng.choice(["count", "n", "amount", "quantity", "number", f"{thing}s"])
    if rng.random() < 0.75:
        parameters[first] = Parameter((first,), "integer", whole_number(2, 99))
    if rng.random() < 0.6 or not parameters:
        # Often only its place before the thing tells what the value is, not the parameter's name.
        second = invented(rng) if rng.random() < 0.3 else rng.choice("colour color shade kind look finish dye".split())
        words = THINGS if second == "kind" else COLOURS
        parameters[second] = Parameter((second,), "string", _either(words))
    before = " ".join(f"{{{parameter}}}" for parameter in parameters)
    said = _said(rng, verb)
    asks = tuple(ask.format(V=said.capitalize(), v=said, o=thing, b=before) for ask in rng.sample(BEFORE_OBJECT, 3))
    descriptions = (f"{verb.capitalize()} some {thing}s", f"{verb.capitalize()} a {thing}", f"Used to {verb} a {thing}")
    answer = f"I have {before} {thing}s now."
    return ToolKind((tool_name(rng, verb, thing),), descriptions, parameters, asks, plain_ok, answer, True)


def _to_one(rng: Random) -> ToolKind:
    """Something done to what the user names: the object is itself an argument, and there may be one more."""
    verb = invented(rng) if rng.random() < 0.1 else rng.choice(VERBS + OTHER_VERBS)
    # Numbers and times are done nothing to.
    first = rng.choice(ROLES[:3] + ROLES[6:13])
    second = rng.choice([role for role in ROLES if role is not first])
    one = rng.choice(first.names.split())
    other = rng.choice([word for word in second.names.split() if word != one])
    parameters = {one: Parameter((one,), first.kind, first.value)}
    said = _said(rng, verb)
    words = {"V": said.capitalize(), "v": said, "x": f"{{{one}}}"}
    if rng.random() < 0.35:
        asks = tuple(ask.format(**words) for ask in rng.sample(TO_ONE, 3))
    else:
        parameters[other] = Parameter((other,), second.kind, second.value)
        order = rng.choice(second.says.split(" | ")).replace("{}", f"{{{other}}}")
        words |= {"y": f"{{{other}}}", "s": order, "S": order}
        asks = tuple(ask.format(**words) for ask in rng.sample(TO_ONE_WITH, 3))
    told = rng.choice(list(parameters))
    descriptions = (f"{verb.capitalize()} a {one}", f"{verb.capitalize()} some {told}", f"Used to {verb} the {one}")
    return ToolKind((tool_name(rng, verb, told),), descriptions, parameters, asks, plain_ok, "It is done.", True)


def _deed(rng: Random, verb: str, thing: str) -> ToolKind:
    parameters: dict[str, Parameter] = {}
    said: list[str] = []
    for role in rng.sample(ROLES, rng.choice([1, 1, 2, 2, 3, 4])):
        names = [word for word in role.names.split() if word not in parameters]
        parameter = invented(rng) if rng.random() < 0.15 else rng.choice(names or [invented(rng)])
        options = role.says.split(" | ")
        # Where the name alone tells which value is meant, the user says it.
        named = parameter not in role.names.split() or rng.random() < 0.3
        slot = f"{{{parameter}}}"
        forms = [f"with {parameter} {slot}", f"{parameter} {slot}", f"and {parameter} {slot}", f"({parameter}: {slot})"]
        said.append(rng.choice(forms) if named else rng.choice(options).replace("{}", slot))
        parameters[parameter] = Parameter((parameter,), role.kind, role.value)
    if rng.random() < 0.25:
        parameter, values = rng.choice(CHOICES)
        if parameter not in parameters:
            options = tuple(invented(rng) for _ in range(3)) if rng.random() < 0.4 else tuple(values.split())
            parameters[parameter] = Parameter((parameter,), options, lambda rng, _: rng.choice(options))
            said.append(rng.choice([f"with {parameter} {{{parameter}}}", f"{parameter} {{{parameter}}}"]))
    rng.shuffle(said)
    spoken, order = _said(rng, verb), rng.choice([" ", " ", ", "]).join(said)
    asks = tuple(
        begin.format(V=spoken.capitalize(), v=spoken, O=thing.capitalize(), o=thing, s=order, S=order)
        for begin in rng.sample(BEGINNINGS, 3)
    )
    answer = f"The {thing} is done."
    names, descriptions = (tool_name(rng, verb, thing),), deed_descriptions(verb, thing)
    return ToolKind(names, descriptions, parameters, asks, plain_ok, answer, True)
