import { describe, expect, test } from "vitest";
import type { Fusible, Step } from "../../../../../src/engine/gpu/programs/fusible.ts";
import { packPlan, planSteps } from "../../../../../src/engine/gpu/programs/plan-steps.ts";
import type { WgslProgram } from "../../../../../src/engine/gpu/programs/wgsl-program.ts";

type Kind = Fusible["kind"];
/** Buffer range that a step reads or writes. */
type Range = readonly [
  buffer: "weights" | "values" | "cache" | "errors" | "parameters",
  at: number,
  size: number,
];

const BUFFERS = { weights: {}, values: {}, cache: {}, errors: {}, parameters: {} };
const ROWS = 4;

/** Types of the storage buffers of each kind of program, and which of them it writes. */
const PROGRAMS: Readonly<
  Record<Kind, { readonly types: readonly string[]; readonly writes: readonly number[] }>
> = {
  product: { types: ["array<u32>", "array<f32>", "array<f32>"], writes: [2] },
  activation: { types: ["array<f32>", "array<f32>", "array<f32>"], writes: [2] },
  addition: { types: ["array<f32>", "array<f32>"], writes: [0] },
  norm: { types: ["array<f32>", "array<f32>", "array<f32>"], writes: [2] },
  rotation: { types: ["array<f32>", "array<i32>", "array<f32>"], writes: [2] },
  "cache-write": {
    types: ["array<vec4<f32>>", "array<u32>", "array<vec4<f16>>", "atomic<u32>"],
    writes: [2],
  },
};

function step(kind: Kind, ranges: readonly Range[], workgroups = 1, threads = 256): Step {
  const { types, writes } = PROGRAMS[kind];
  const bindings = types.map((type, binding) => ({
    binding,
    type,
    space: "storage, read_write",
    name: `b${binding}`,
  }));
  const program: WgslProgram = {
    code: "",
    threads,
    bindings: [...bindings, { binding: types.length, type: "Params", space: "uniform", name: "params" }],
    directives: [],
    builtins: ["global_invocation_id"],
    names: [],
  };
  const all: readonly Range[] = [...ranges, ["parameters", 0, 256]];
  return {
    fusible: { kind, program, writes, rows: kind === "product" ? ROWS : 0 },
    workgroups,
    entries: all.map(([buffer, offset, size], binding) => ({
      binding,
      resource: { buffer: BUFFERS[buffer], offset, size },
    })),
  };
}

// Buffers as llama.cpp allocates them: values are in the buffer of the unrotated queries.
const INPUT: Range = ["values", 8192, 1024];
const QUERY: Range = ["values", 12_288, 1024];
const ROTATED_QUERY: Range = ["values", 16_384, 1024];
const VALUE: Range = ["values", 12_288, 512];
const KEY: Range = ["values", 20_480, 512];
const ROTATED_KEY: Range = ["values", 8192, 512];
const POSITION: Range = ["values", 0, 4];
const weight = (at: number): Range => ["weights", at * 65_536, 65_536];
const bias = (at: number, size: number): Range => ["weights", 655_360 + at * 1024, size];

const product = (at: number, to: Range): Step => step("product", [weight(at), INPUT, to], to[2] / 4 / ROWS);
const addition = (at: number, to: Range): Step => step("addition", [to, bias(at, to[2])]);
const rotation = (from: Range, to: Range): Step => step("rotation", [from, POSITION, to]);
const write = (from: Range, at: number): Step =>
  step("cache-write", [from, ["values", 256 * at, 8], ["cache", 65_536 * at, 65_536], ["errors", 0, 4]]);

/** Steps of Llama. */
const LLAMA: readonly Step[] = [
  product(0, QUERY),
  rotation(QUERY, ROTATED_QUERY),
  product(1, VALUE),
  product(2, KEY),
  rotation(KEY, ROTATED_KEY),
  write(ROTATED_KEY, 1),
  write(VALUE, 2),
];
/** Steps of Qwen 2, with biases. */
const QWEN2: readonly Step[] = [
  product(0, QUERY),
  addition(0, QUERY),
  rotation(QUERY, ROTATED_QUERY),
  product(1, VALUE),
  addition(1, VALUE),
  product(2, KEY),
  addition(2, KEY),
  rotation(KEY, ROTATED_KEY),
  write(ROTATED_KEY, 1),
  write(VALUE, 2),
];
/** Steps of Qwen 3, with norms of heads. */
const QWEN3: readonly Step[] = [
  product(0, QUERY),
  step("norm", [QUERY, bias(0, 256), ROTATED_QUERY], 4),
  rotation(ROTATED_QUERY, ROTATED_QUERY),
  product(1, VALUE),
  product(2, KEY),
  step("norm", [KEY, bias(1, 256), ROTATED_KEY], 2),
  rotation(ROTATED_KEY, ROTATED_KEY),
  write(ROTATED_KEY, 1),
  write(VALUE, 2),
];

const LIMITS = { storageBuffers: 16, workgroups: 65_535 };

/** Kinds of the steps of each program, with commas between blocks; undefined: nothing is fused. */
function programs(steps: readonly (Step | undefined)[], limits = LIMITS): string[] | undefined {
  const plan = planSteps(steps);
  return (
    plan &&
    packPlan(plan, limits)?.map(({ steps: numbers, blocks }) =>
      blocks
        .map(({ parts }) => parts.map((part) => plan.steps[numbers[part]!]!.fusible.kind).join(" "))
        .join(", "),
    )
  );
}

function changed(steps: readonly Step[], at: number, by: Step): Step[] {
  return steps.with(at, by);
}

test("queries, keys and values are computed in one program, and rotated and written in another", () => {
  const last = "rotation, rotation cache-write, cache-write";
  expect(programs(LLAMA)).toEqual(["product, product, product", last]);
  expect(programs(QWEN2)).toEqual(["product addition, product addition, product addition", last]);
  expect(programs(QWEN3)).toEqual(["product, product, product", "norm, norm", last]);
});

function range(of: Step | undefined, binding: number): unknown {
  return of?.entries[binding]?.resource;
}

test("queries are moved to a buffer that values do not overwrite", () => {
  const { steps } = planSteps(LLAMA)!;
  expect(range(steps[0], 2)).toEqual(range(LLAMA[1], 2));
  expect(range(steps[1], 0)).toEqual(range(LLAMA[1], 2));
  expect(steps.slice(2)).toEqual(LLAMA.slice(2));
});

test("more programs are used if the GPU binds few buffers", () => {
  const few = { ...LIMITS, storageBuffers: 8 };
  expect(programs(LLAMA, few)).toEqual([
    "product, product, product",
    "rotation, rotation cache-write",
    "cache-write",
  ]);
  expect(programs(QWEN2, few)).toEqual([
    "product addition, product addition",
    "product addition",
    "rotation, rotation cache-write",
    "cache-write",
  ]);
  expect(programs(LLAMA, { ...LIMITS, storageBuffers: 2 })).toBeUndefined();
  expect(programs(LLAMA, { ...LIMITS, workgroups: 64 })?.slice(0, 2)).toEqual([
    "product",
    "product, product",
  ]);
});

describe("a dependent step runs after the other:", () => {
  const pair = ["product, product", "cache-write"];
  test.each<[string, readonly Step[], string[] | undefined]>([
    [
      // An adapter adds to the product of the weights and the input.
      "an adapter's addition",
      [product(0, QUERY), product(1, ["values", 28_672, 64]), ...LLAMA.slice(1)],
      undefined,
    ],
    [
      "keys of another input, which a product makes",
      changed(LLAMA, 3, step("product", [weight(2), VALUE, KEY], 32)),
      undefined,
    ],
    [
      "queries that something in between reads",
      changed(LLAMA, 2, step("product", [weight(1), QUERY, VALUE], 32)),
      undefined,
    ],
    ["rotated queries that overwrite the input", changed(LLAMA, 1, rotation(QUERY, INPUT)), undefined],
    [
      "a value that is put where rotated queries are",
      changed(LLAMA, 2, product(1, ROTATED_QUERY)),
      undefined,
    ],
    [
      "a key that is written before it is rotated",
      [...LLAMA.slice(2, 4), write(KEY, 1), rotation(KEY, KEY)],
      pair,
    ],
    [
      "a write to the cache that the other reads",
      [write(VALUE, 1), write(["cache", 65_536, 512], 2)],
      undefined,
    ],
    ["two writes to the same cache", [write(VALUE, 1), write(KEY, 1)], undefined],
    [
      "a bias that a product makes",
      [product(0, QUERY), step("addition", [QUERY, INPUT]), ...LLAMA.slice(2)],
      undefined,
    ],
  ])("%s", (_what, steps, expected) => {
    const found = programs(steps);
    expect(expected ? found : (found?.[0]?.includes("product, product, product") ?? false)).toEqual(
      expected ?? false,
    );
  });
});

test("an addition of another shape, or to another buffer, does not count as a bias", () => {
  const broadcast = step("addition", [QUERY, bias(0, 4)]);
  expect(programs([product(0, QUERY), broadcast])).toBeUndefined();
  expect(programs([product(0, QUERY), addition(0, KEY)])).toBeUndefined();
  expect(programs([product(0, QUERY), addition(0, QUERY)])).toEqual(["product addition"]);
});

test("a step on a product's rows needs one thread per row", () => {
  const narrow = (threads: number): Step[] => [
    step("product", [weight(0), INPUT, QUERY], QUERY[2] / 4 / ROWS, threads),
    addition(0, QUERY),
  ];
  expect(programs(narrow(ROWS))).toEqual(["product addition"]);
  expect(programs(narrow(ROWS / 2))).toBeUndefined();
});

/** Most GPUs have 1024 threads, but products take 256. */
function withMostThreads(each: Step): Step {
  if (each.fusible.kind === "product") return each;
  const program = { ...each.fusible.program, threads: 1024 };
  return { ...each, fusible: { ...each.fusible, program } };
}

test("steps with another number of threads run in another program, and an unknown step ends the plan", () => {
  const wide = step("product", [weight(2), INPUT, KEY], 32, 128);
  expect(programs([...LLAMA.slice(2, 3), wide])).toBeUndefined();
  expect(
    programs([...LLAMA.slice(1, 2), ...LLAMA.slice(2, 4), undefined, ...LLAMA.slice(4)]),
  ).toBeUndefined();
  expect(programs([...LLAMA.slice(2, 4), undefined, ...LLAMA.slice(4)])).toEqual(["product, product"]);
  expect(programs(LLAMA.map(withMostThreads))).toEqual(programs(LLAMA));
  expect(programs(QWEN2.map(withMostThreads))).toEqual(programs(QWEN2));
});

test("gate, up and their activation are computed row by row", () => {
  const [gate, up, both]: Range[] = [
    ["values", 32_768, 2048],
    ["values", 36_864, 2048],
    ["values", 40_960, 2048],
  ];
  const products = [product(3, gate!), product(4, up!)];
  expect(programs([...products, step("activation", [gate!, up!, both!])])).toEqual([
    "product product activation",
  ]);
  const shifted: Range = ["values", 40_960, 1024];
  expect(programs([...products, step("activation", [gate!, up!, shifted])])).toEqual(["product, product"]);
});

test("an addition and a norm of one row run one after the other in one workgroup", () => {
  const sum = step("addition", [INPUT, QUERY], 2);
  expect(programs([sum, step("norm", [INPUT, bias(0, 1024), KEY])])).toEqual(["addition norm"]);
  expect(programs([sum, step("norm", [INPUT, bias(0, 1024), KEY], 2)])).toBeUndefined();
});

test("a chain of steps in one workgroup needs equal numbers of threads", () => {
  const sum = step("addition", [INPUT, QUERY], 2);
  expect(programs([sum, step("norm", [INPUT, bias(0, 1024), KEY], 1, 128)])).toBeUndefined();
  const chain = "rotation cache-write";
  const { fusible, ...ranges } = LLAMA[5]!;
  const wide = { ...ranges, fusible: { ...fusible, program: { ...fusible.program, threads: 512 } } };
  expect(programs(LLAMA)?.join()).toContain(chain);
  expect(programs(changed(LLAMA, 5, wide))?.join()).not.toContain(chain);
});

test("queries are not moved if a later step reads them again", () => {
  const placeOfQueries = (steps: readonly Step[]): unknown => range(planSteps(steps)?.steps[0], 2);
  const moved = range(LLAMA[1], 2);
  expect(placeOfQueries(LLAMA)).toEqual(moved);
  // Keys are computed from them before values overwrite them.
  const read = changed(LLAMA, 3, step("product", [weight(2), QUERY, KEY], 32));
  const [query, rotated, value, key, ...rest] = read;
  expect(placeOfQueries([query!, rotated!, key!, value!, ...rest])).not.toEqual(moved);
  // A norm that reads them and overwrites them with its result.
  const norm = step("norm", [QUERY, bias(0, 256), QUERY], 4);
  expect(placeOfQueries([query!, rotated!, product(1, KEY), norm])).not.toEqual(moved);
});
