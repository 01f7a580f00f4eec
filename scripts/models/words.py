"""Word lists that the generators draw from, each parted into words for training and words held out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")
HELD_SHARE = 8
"""One entity in so many is held out."""


def is_held(entity: str) -> bool:
    """Whether an entity is kept from training; the same for ever, whatever list it stands in."""
    return zlib.crc32(entity.lower().encode()) % HELD_SHARE == 0


def pick(rng: Random, entities: Sequence[str], held: bool) -> str:
    """A random entity of the wanted side."""
    side = [entity for entity in entities if is_held(entity) == held]
    return rng.choice(side or list(entities))


def templates(options: Sequence[T], held: bool) -> Sequence[T]:
    """The last of three or more templates is held out."""
    if len(options) < 3:
        return options
    return options[-1:] if held else options[:-1]


def choose(rng: Random, options: Sequence[T], held: bool) -> T:
    """A random template of the wanted side."""
    return rng.choice(templates(options, held))


NAMES = (
    "Anna Ben Clara David Emma Felix Grace Henry Iris Jack Kate Leo Mia Noah Olga Paul Rosa Sam Tina Victor Wendy "
    "Max Zoe Adam Bella Carl Dora Eric Fiona Greg Hanna Ivan Julia Karl Lena Mark Nina Oscar Peter Ruth Simon Tom "
    "Vera Will Yara Alex Lucy Martin Sofia Hugo Maria Daniel Laura Robin Sarah Thomas Ella Frank George Helen Ida "
    "James Laila Omar Priya Kenji Aisha Mateo Chen Nora Ravi Elena Dmitri Fatima Jonas Lars Ingrid Pablo Amir Yuki"
).split()
CITIES = (
    "Paris London Berlin Rome Madrid Vienna Oslo Lisbon Athens Dublin Prague Warsaw Tokyo Delhi Cairo Lima Boston "
    "Chicago Seattle Toronto Sydney Geneva Zurich Munich Hamburg Milan Naples Venice Bern Brussels Amsterdam Madras "
    "Copenhagen Stockholm Helsinki Budapest Bucharest Sofia Istanbul Moscow Kyoto Osaka Seoul Beijing Shanghai "
    "Bangkok Hanoi Jakarta Manila Nairobi Lagos Accra Dakar Tunis Casablanca Bogota Quito Santiago Montreal Denver "
    "Dallas Houston Phoenix Miami Atlanta Detroit Portland Austin Melbourne Perth Auckland Glasgow Cardiff Leeds Graz"
).split()
COLOURS = "red blue green yellow orange purple pink brown black white grey silver golden".split()
ANIMALS = (
    "cat dog horse cow pig sheep goat hen duck goose lion tiger bear wolf fox rabbit mouse rat frog fish bird eagle "
    "owl crow snake turtle whale shark seal monkey zebra camel deer bee ant spider snail butterfly elephant donkey"
).split()
FOODS = (
    "apple pear plum cherry lemon orange banana grape melon peach bread butter cheese milk rice soup salad egg "
    "potato tomato onion carrot bean corn cake cookie honey sugar salt pepper tea coffee water juice noodle pizza"
).split()
THINGS = (
    "table chair lamp book pen paper cup plate spoon fork knife bottle box bag key door window wall floor roof house "
    "garden tree flower leaf stone river lake sea hill mountain road bridge car bus train bike boat plane ship wheel "
    "clock phone radio camera picture letter stamp coin ring hat coat shoe shirt sock glove scarf button needle "
    "hammer nail rope ladder bucket broom candle mirror pillow blanket towel soap brush comb basket drum piano violin "
    "guitar flute ball kite doll puzzle map flag tent lantern engine motor robot screen keyboard server printer cable"
).split()
NATURE = (
    "sun moon star sky cloud rain snow wind storm fog ice fire earth sand mud grass forest field valley island beach "
    "desert ocean wave summer winter spring autumn morning evening night shadow light thunder rainbow planet"
).split()
QUALITIES = (
    "big small old new long short high low warm cold hot wet dry soft hard loud quiet fast slow bright dark clean "
    "dirty happy sad kind brave clever gentle strong weak rich poor young heavy sweet sour bitter fresh empty full"
).split()
VERBS = (
    "run walk jump swim fly sing dance read write draw paint cook bake eat drink sleep dream think learn teach play "
    "work build break open close push pull carry throw catch find lose give take buy sell send bring help wait watch "
    "listen speak laugh smile cry climb ride drive travel visit meet follow begin finish"
).split()
WORDS = sorted(set(ANIMALS + FOODS + THINGS + NATURE + QUALITIES + VERBS + COLOURS))
HELD_WORDS = frozenset(word.lower() for word in (*WORDS, *NAMES, *CITIES) if is_held(word))
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
COUNTRIES = (
    "France Germany Italy Spain Poland Norway Sweden Denmark Greece Turkey Egypt Kenya Nigeria India China Japan "
    "Korea Vietnam Australia Canada Mexico Brazil Argentina Chile Peru Austria Belgium Portugal Ireland Iceland "
    "Finland Russia Ukraine Romania Hungary Morocco Ghana Cuba Thailand Indonesia Pakistan Iran Iraq Israel Nepal"
).split()
FIELDS = (
    "physics chemistry biology history geography medicine law economics philosophy astronomy geology football tennis "
    "chess cooking gardening sailing poetry opera painting photography politics religion banking taxes insurance "
    "genetics volcanoes dinosaurs vaccines electricity magnetism gravity evolution democracy inflation architecture "
    "music cinema theatre fashion farming fishing knitting yoga boxing cricket basketball comets atoms rockets"
).split()
LANGUAGES = (
    "French German Italian Spanish Polish Greek Turkish Dutch Swedish Japanese Chinese Russian Latin Arabic".split()
)
NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
SYLLABLES = (
    "ba be bi bo bu ca co da de di do du fa fe fi fo ga ge go gu ha he hi ho ja jo ka ke ki ko la le li lo lu ma me "
    "mi mo mu na ne ni no nu pa pe pi po ra re ri ro ru sa se si so su ta te ti to tu va ve vi vo wa we wi za ze zo"
).split()
ENDINGS = ["", "", "", "n", "r", "s", "l", "th", "x", "m", "ck", "rd", "nt"]


def invented(rng: Random) -> str:
    """A word that nobody knows, so that a model must copy it rather than guess."""
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 3))) + rng.choice(ENDINGS)


def name(rng: Random, held: bool) -> str:
    return invented(rng).capitalize() if rng.random() < 0.5 else pick(rng, NAMES, held)


def city(rng: Random, held: bool) -> str:
    return invented(rng).capitalize() if rng.random() < 0.6 else pick(rng, CITIES, held)


def listed(items: Sequence[str]) -> str:
    """'a, b and c'"""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
