"""Tools that are made up as training goes: any verb, any object, any parameters. They teach to read a signature."""

from random import Random

from conversations.tool_kinds import Parameter, ToolKind, parameter
from conversations.words import LISTS, QUALITIES, article, invented, pieces, wordings

VERBS, OBJECTS, OTHER_VERBS = LISTS["tool verbs"], LISTS["tool objects"], LISTS["verbs with receivers"]
GIVING, GETTING = LISTS["giving verbs"], LISTS["getting verbs"]
UNITS, STATES = LISTS["units"], LISTS["states"] + QUALITIES
SAID = wordings("made_up")
LOOK_UP_SHARE, COUNTED_SHARE, TO_ONE_SHARE = 0.18, 0.12, 0.22
NATURAL_SHARE = 0.95
"""The odd gifts can be told apart by the description alone."""


class Role:
    """What an argument may be: names for it, its type, and how a user puts it into a sentence."""

    def __init__(self, names: str, kind: str, *says: str) -> None:
        self.names, self.kind, self.says = names.split(), kind, says

    def named(self, name: str) -> dict[str, Parameter]:
        """The argument by one of its names."""
        return {name: parameter([name], self.kind)}

    def name(self, rng: Random, *taken: str) -> str:
        return rng.choice([word for word in self.names if word not in taken])

    def said(self, rng: Random, slot: str) -> str:
        return rng.choice(self.says).format(f"{{{slot}}}")


ROLES = {name: Role(*told) for name, told in wordings("roles").items()}


def roles(names: str) -> list[Role]:
    return [ROLES[name] for name in names.split()]


LOOKED_UP = roles("city country person day colour animal food thing text word code email")
DONE_TO = roles("city country person colour animal food thing text word code")
MEASURED_FOR = roles("city country person day month food thing text word")
NATURAL = [("person", "food"), ("person", "thing"), ("animal", "thing")]
ODD = [("food", "person"), ("thing", "person"), ("thing", "animal")]
"""Who gets what. Food for animals is left out: a held-out tool is about it."""


def filled(forms: list[str], **slots: str) -> tuple[str, ...]:
    """The forms with their slots filled: {v} with a verb, {V} with the same verb and a capital."""
    slots |= {key.upper(): text.capitalize() for key, text in slots.items()}
    return tuple(form.format(**slots) for form in forms)


def described(group: str, **slots: str) -> tuple[str, ...]:
    return filled(SAID["descriptions"][group], **slots)


def tool_name(rng: Random, verb: str, thing: str) -> str:
    """A way to put a deed and its object into one name."""
    return rng.choice(filled(SAID["tool_names"], v=verb, o=thing))


def _said(rng: Random, verb: str) -> str:
    """The verb as a user may say it: as the tool does, or in another word of its meaning."""
    group = next((group.split() for group in SAID["synonyms"] if verb in group.split()), [verb])
    return rng.choice(group) if rng.random() < 0.4 else verb


def made_up_thing(rng: Random, known: list[str] = OBJECTS, new: float = 0.3, unknown: float = 0.45) -> str:
    """One of the known words; or below these shares one that is new, or that is made of tokens."""
    roll = rng.random()
    return invented(rng) if roll < new else pieces(rng, 2).lower() if roll < unknown else rng.choice(known)


def _verb(rng: Random) -> str:
    return invented(rng) if rng.random() < 0.15 else rng.choice(VERBS)


def made_up(rng: Random) -> ToolKind:
    """A new kind of tool with one to four parameters."""
    roll = rng.random()
    if roll < LOOK_UP_SHARE:
        return look_up(rng, made_up_thing(rng))
    if roll < LOOK_UP_SHARE + COUNTED_SHARE:
        return _counted(rng)
    if roll < LOOK_UP_SHARE + COUNTED_SHARE + TO_ONE_SHARE:
        return _to_one(rng)
    return _deed(rng, _verb(rng), made_up_thing(rng))


def made_up_shape(rng: Random) -> ToolKind:
    """A new kind whose wishes have shapes of their own: a need and what follows from it ("The lamp is old. Bring it a
    button."), or a number before its unit ("a 12 page letter for Emma")."""
    return giving(rng) if rng.random() < 0.55 else _measured(rng)


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
    role = rng.choice(LOOKED_UP)
    about = role.name(rng, thing)
    asks = filled(rng.sample(SAID["look_ups"], 3), o=thing, s=f"{{{about}}}")
    names = filled([rng.choice(SAID["look_up_names"])], o=thing)
    descriptions = filled([rng.choice(SAID["look_up_descriptions"])], o=thing)
    answer = f"The {thing} of {{{about}}} is {{{thing}}}."
    return ToolKind(names, descriptions, role.named(about), asks, answer, f"{thing} {{1..9999}}")


def _counted(rng: Random) -> ToolKind:
    """Something done with so many things, or with those of a color: the values stand before the thing."""
    verb, thing = rng.choice(VERBS), made_up_thing(rng)
    parameters: dict[str, Parameter] = {}
    first = rng.choice(filled(SAID["counted_names"], o=thing))
    if rng.random() < 0.75:
        parameters[first] = parameter([first], "number 2-99")
    if rng.random() < 0.6 or not parameters:
        # Often only its place before the thing tells what the value is, not the parameter's name.
        second = invented(rng) if rng.random() < 0.3 else rng.choice(SAID["coloured_names"])
        parameters[second] = parameter([second], "thing" if second == "kind" else "colour")
    before = " ".join(f"{{{name}}}" for name in parameters)
    said = _said(rng, verb)
    asks = filled(rng.sample(SAID["counted"], 3), v=said, o=thing, b=before)
    names, descriptions = (tool_name(rng, verb, thing),), described("counted", v=verb, o=thing)
    return ToolKind(names, descriptions, parameters, asks, f"I have {before} {thing}s now.")


def _to_one(rng: Random) -> ToolKind:
    """Something done to what the user names: the object is itself an argument, and there may be one more."""
    verb = invented(rng) if rng.random() < 0.1 else rng.choice(VERBS + OTHER_VERBS)
    first = rng.choice(DONE_TO)
    second = rng.choice([role for role in ROLES.values() if role is not first])
    one = first.name(rng)
    other = second.name(rng, one)
    parameters, said = first.named(one), _said(rng, verb)
    forms, order = SAID["to_one"], ""
    if rng.random() >= 0.35:
        parameters |= second.named(other)
        forms, order = SAID["to_one_with"], second.said(rng, other)
    asks = filled(rng.sample(forms, 3), v=said, x=f"{{{one}}}", y=f"{{{other}}}", s=order)
    told = rng.choice(list(parameters))
    names, descriptions = (tool_name(rng, verb, told),), described("to_one", v=verb, o=one, told=told)
    return ToolKind(names, descriptions, parameters, asks, "It is done.")


def _deed(rng: Random, verb: str, thing: str) -> ToolKind:
    parameters: dict[str, Parameter] = {}
    said: list[str] = []
    for role in rng.sample(list(ROLES.values()), rng.choice([1, 1, 2, 2, 3, 4])):
        names = [word for word in role.names if word not in parameters]
        name = invented(rng) if rng.random() < 0.15 else rng.choice(names or [invented(rng)])
        # Where the name alone tells which value is meant, the user says it.
        named = name not in role.names or rng.random() < 0.3
        said.append(rng.choice(SAID["named"] if named else role.says).format(f"{{{name}}}", name=name))
        parameters |= role.named(name)
    if rng.random() < 0.25:
        name, values = rng.choice(SAID["choices"]).split(": ")
        if name not in parameters:
            allowed = [invented(rng) for _ in range(3)] if rng.random() < 0.4 else values.split()
            parameters[name] = parameter([name], f"option {', '.join(allowed)}")
            said.append(rng.choice(SAID["named"][:2]).format(f"{{{name}}}", name=name))
    rng.shuffle(said)
    spoken, order = _said(rng, verb), rng.choice([" ", " ", ", "]).join(said)
    asks = filled(rng.sample(SAID["deeds"], 3), v=spoken, o=thing, s=order)
    names, descriptions = (tool_name(rng, verb, thing),), described("deed", v=verb, o=thing)
    return ToolKind(names, descriptions, parameters, asks, f"The {thing} is done.")


def giving(rng: Random) -> ToolKind:
    """Something given to somebody or something, of whom the user also says how they are: that is no argument."""
    natural = rng.random() < NATURAL_SHARE
    receiver, gift = (ROLES[name] for name in rng.choice(NATURAL if natural else ODD))
    one = receiver.name(rng)
    other = gift.name(rng, one)
    verb, state = rng.choice(GIVING), invented(rng) if rng.random() < 0.15 else rng.choice(STATES)
    said = verb if rng.random() < 0.4 else rng.choice(GIVING)
    names = (rng.choice([f"{verb}_{other}", f"{verb}_{one}", verb, tool_name(rng, verb, other)]),)
    descriptions = described("giving", v=verb, o=other, r=one, ao=article(other), ar=article(one))
    asks = filled(rng.sample(SAID["needs"], 6), v=said, x=f"{{{one}}}", y=f"{{{other}}}", a=state)
    parameters = receiver.named(one) | gift.named(other)
    return ToolKind(names, descriptions, parameters, asks, f"The {{{one}}} has {{{other}}} now.")


def _measured(rng: Random) -> ToolKind:
    """Something of so many units, for somebody, somewhere or some time."""
    role, unit = rng.choice(MEASURED_FOR), rng.choice(UNITS)
    thing = invented(rng) if rng.random() < 0.2 else rng.choice(OBJECTS)
    count = rng.choice([f"{unit}s", f"{unit}s", "count", "n", "number", "length", "amount"])
    other = role.name(rng, count, thing)
    verb = rng.choice(GETTING)
    said = verb if rng.random() < 0.5 else rng.choice(GETTING)
    order = role.said(rng, other)
    names = (rng.choice([thing, f"{thing}_{unit}s", tool_name(rng, verb, thing)]),)
    parameters = {count: parameter([count], "number 2-60")} | role.named(other)
    asks = filled(rng.sample(SAID["measured"], 3), v=said, n=f"{{{count}}}", u=unit, o=thing, s=order)
    return ToolKind(names, described("measured", v=verb, o=thing, u=unit), parameters, asks, f"The {thing} is ready.")
