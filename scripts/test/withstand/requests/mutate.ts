import type { Random } from "../kit/random.ts";

const EDGES: readonly unknown[] = [
  null,
  true,
  "",
  " ",
  "\u0000",
  "\ud800",
  "é".repeat(300),
  "x".repeat(70_000),
  "__proto__",
  "-1",
  "1e400",
  0,
  -1,
  1,
  0.5,
  -0.1,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  -(2 ** 53),
  1e308,
  5e-324,
  [],
  [[]],
  [null],
  {},
  { a: {} },
  [{}, 1, "a"],
  { type: "object" },
  { $ref: "#" },
];
/** Invalid JSON. */
const RAW = [
  '{"__proto__":{"polluted":true}}',
  "1e400",
  "-0",
  '{"a":1,"a":2}',
  '"\\ud800"',
  "[".repeat(150) + "]".repeat(150),
  '{"a":'.repeat(99) + "1" + "}".repeat(99),
  `"${'{\\"a\\":'.repeat(4000)}1${"}".repeat(4000)}"`,
  `[${"1,".repeat(20_000)}1]`,
  `[${'"a",'.repeat(17_000)}"a"]`,
];
const MARK = "\u0001raw";

/** A valid body with one to three damaged values, as JSON text that is sometimes damaged as well. */
export function mutatedBody(valid: unknown, random: Random): string {
  const raws: string[] = [];
  let value = structuredClone(valid);
  for (let times = random.int(0, 3); times > 0; times -= 1) value = damaged(value, random, raws);
  const text = (JSON.stringify(value) ?? "").replaceAll(
    /"\\u0001raw(\d+)"/g,
    (_, index: string) => raws[Number(index)] ?? "null",
  );
  if (random.chance(0.85)) return text;
  const at = random.int(0, text.length);
  return random.chance(0.5)
    ? text.slice(0, at)
    : text.slice(0, at) + random.pick(["{", "]", '"', ",", "\\", "\ud83d"]) + text.slice(at);
}

function damaged(value: unknown, random: Random, raws: string[]): unknown {
  if (Array.isArray(value) && value.length > 0 && random.chance(0.8)) {
    const at = random.int(0, value.length - 1);
    return value.with(at, damaged(value[at], random, raws));
  }
  if (typeof value === "object" && value !== null && Object.keys(value).length > 0 && random.chance(0.85)) {
    const copy: Record<string, unknown> = { ...value };
    const name = random.pick(Object.keys(copy));
    const how = random.int(0, 9);
    if (how === 0) delete copy[name];
    else if (how === 1) copy[`${name}\u0000`] = copy[name];
    else copy[name] = damaged(copy[name], random, raws);
    return copy;
  }
  if (random.chance(0.3)) return `${MARK}${raws.push(random.pick(RAW)) - 1}`;
  return random.pick(EDGES);
}
