import type { Random } from "../../../scripts/test/withstand/kit/random.ts";
import type { JsonSchema } from "../../../src/engine/protocol/generation.ts";
import { type Form, schemaForm } from "./forms.ts";

const DEEPEST = 3;
const NAMES = ["a", "id", "größe", "名前", "with space", "pattern", "enum", "x-y"];
const TEXTS = ["", "plain", "日本", "é", "😀", 'with "quotes"', "back\\slash", "two\nlines"];
const PATTERNS = [
  "^[a-z]{1,3}$",
  "^\\d{1,4}$",
  "^[^a-z]{2}$",
  "^(ja|nein|oui)$",
  "^[à-ÿ]{1,3}$",
  '^["\\\\]{1,2}$',
  "^\\w+-\\d$",
  "^.{0,5}$",
  "^[😀-🙏]$",
  "^\\s\\S$",
];

/** A form made at random that every model can meet. */
export function randomForm(random: Random): Form {
  return schemaForm("a random schema", randomSchema(random, 0));
}

function randomSchema(random: Random, depth: number): JsonSchema {
  const leaves = [text, pattern, whole, constant, choice, plain];
  const branches = [object, list, anyOf];
  const make = random.pick(depth < DEEPEST && random.chance(depth === 0 ? 0.8 : 0.4) ? branches : leaves);
  return make(random, depth);
}

function object(random: Random, depth: number): JsonSchema {
  const names = NAMES.filter(() => random.chance(0.3));
  return {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, randomSchema(random, depth + 1)])),
    required: names.filter(() => random.chance(0.7)),
    additionalProperties: false,
  };
}

function list(random: Random, depth: number): JsonSchema {
  const minItems = random.int(0, 2);
  return {
    type: "array",
    items: randomSchema(random, depth + 1),
    minItems,
    maxItems: minItems + random.int(0, 2),
  };
}

function anyOf(random: Random, depth: number): JsonSchema {
  const options = Array.from({ length: random.int(1, 3) }, () => randomSchema(random, depth + 1));
  return { anyOf: options };
}

function text(random: Random): JsonSchema {
  const minLength = random.int(0, 6);
  return { type: "string", minLength, maxLength: minLength + random.int(0, 8) };
}

function whole(random: Random): JsonSchema {
  const minimum = random.int(-50, 50);
  return { type: "integer", minimum, maximum: minimum + random.int(0, 500) };
}

const pattern = (random: Random): JsonSchema => ({ type: "string", pattern: random.pick(PATTERNS) });
const constant = (random: Random): JsonSchema => ({ const: random.pick(TEXTS) });
const choice = (random: Random): JsonSchema => ({ enum: [random.pick(TEXTS), random.int(0, 9), null] });
const plain = (random: Random): JsonSchema => ({ type: random.pick(["boolean", "null", "number"]) });
