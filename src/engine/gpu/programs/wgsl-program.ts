interface ProgramBinding {
  readonly binding: number;
  /** `storage, read_write` or `uniform`. */
  readonly space: string;
  readonly name: string;
  readonly type: string;
}

/** Parsed WGSL of a program, as far as fusing needs it. */
export interface WgslProgram {
  readonly code: string;
  /** Threads of a workgroup, in one dimension. */
  readonly threads: number;
  readonly bindings: readonly ProgramBinding[];
  /** `enable f16;` and the like, which precede everything else. */
  readonly directives: readonly string[];
  /** Names of the built-in values that the entry point takes, in order. */
  readonly builtins: readonly string[];
  /** Names of all declarations outside of functions. */
  readonly names: readonly string[];
}

const DIRECTIVE = /^\s*(?:enable|requires|diagnostic)\b[^;]*;/gm;
const BINDING = /@group\(0\)\s*@binding\(([\d\s+]+)\)\s*var<([^>]+)>\s*(\w+)\s*:\s*([^;]+);/g;
const ENTRY = /@compute\s*@workgroup_size\((\d+)\)\s*fn\s+main\(([\s\S]*?)\)\s*\{/;
const PARAMETER = /@builtin\((\w+)\)\s*\w+\s*:\s*[\w<>]+/g;
const ASSIGNMENT = /^(?:\s*\.\w+)*\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--|\[)/;
const NAME = /\b(?:fn|struct|alias|override|const)\s+(\w+)|\bvar\s*<[^>]+>\s*(\w+)/g;

/** Parses a program of llama.cpp; undefined if it is written in another style. */
export function readProgram(given: string): WgslProgram | undefined {
  const code = given.replace(/\/\/.*$/gm, "");
  const [, threads, parameters] = ENTRY.exec(code) ?? [];
  if (threads === undefined || parameters === undefined) return undefined;
  const names = Array.from(code.matchAll(NAME), ([, declared, variable]) => declared ?? variable ?? "");
  return {
    code: code.replace(DIRECTIVE, ""),
    threads: Number(threads),
    bindings: Array.from(code.matchAll(BINDING), ([, sum = "", space = "", name = "", type = ""]) => ({
      binding: sum.split("+").reduce((total, part) => total + Number(part), 0),
      space: space.replaceAll(/\s/g, ""),
      name,
      type: type.trim(),
    })),
    directives: Array.from(code.matchAll(DIRECTIVE), ([text]) => text.trim()),
    builtins: Array.from(parameters.matchAll(PARAMETER), ([, builtin = ""]) => builtin),
    names: [...new Set(names)],
  };
}

/** Storage bindings that a program may write: all uses other than reading an element count as writes. */
export function writtenBindings({ code, bindings }: WgslProgram): number[] {
  const body = code.replace(BINDING, "");
  const isWritten = (name: string): boolean => {
    for (const { index } of body.matchAll(new RegExp(String.raw`(?<![.\w])${name}\b`, "g"))) {
      const next = index + name.length;
      if (body[next] !== "[" || /&\s*$/.test(body.slice(Math.max(0, index - 8), index))) return true;
      if (ASSIGNMENT.test(body.slice(afterBracket(body, next)))) return true;
    }
    return false;
  };
  return bindings
    .filter(
      ({ space, type, name }) => space.startsWith("storage") && !type.startsWith("atomic") && isWritten(name),
    )
    .map(({ binding }) => binding);
}

/** Index after the bracket that closes the one at `from`. */
function afterBracket(code: string, from: number): number {
  let depth = 0;
  for (let at = from; at < code.length; at++) {
    if (code[at] === "[") depth++;
    if (code[at] === "]" && --depth === 0) return at + 1;
  }
  return code.length;
}

/** Replaces each read of an element of a binding by a call of a function. */
function readThrough(code: string, name: string, by: string): string {
  let read = code;
  // From the last to the first, because reads may be nested.
  for (const { index } of Array.from(
    code.matchAll(new RegExp(String.raw`(?<![.\w])${name}\[`, "g")),
  ).toReversed()) {
    const begin = index + name.length;
    const end = afterBracket(read, begin);
    read = `${read.slice(0, index)}${by}(u32(${read.slice(begin + 1, end - 1)}))${read.slice(end)}`;
  }
  return read;
}

/** Binding numbers of a fused program, by the binding numbers of one of its parts. */
type Slots = ReadonlyMap<number, number>;

/**
 * Rewrites the code of a program as a part of another: its declarations get the suffix, its bindings are those of the
 * slots, and its entry point becomes a function.
 * @param vectors bindings of vectors whose slot is declared as an array of numbers
 */
export function asPart(
  { code, names, bindings }: WgslProgram,
  suffix: string,
  slots: Slots,
  vectors: ReadonlySet<number>,
): string {
  const slotOf = new Map(bindings.map(({ name, binding }) => [name, slots.get(binding)]));
  let body = code.replace(BINDING, "");
  const readers: string[] = [];
  for (const { name, binding } of bindings) {
    if (!vectors.has(binding)) continue;
    const slot = slotName(slots.get(binding) ?? 0);
    const reader = `${slot}_vector${suffix}`;
    const four = [0, 1, 2, 3].map((at) => `${slot}[4u * at + ${at}u]`).join(", ");
    body = readThrough(body, name, reader);
    readers.push(`fn ${reader}(at: u32) -> vec4<f32> { return vec4<f32>(${four}); }\n`);
  }
  const part = body
    .replace(ENTRY, (entry) =>
      entry.replace(/@compute\s*@workgroup_size\(\d+\)/, "").replaceAll(/@builtin\(\w+\)/g, ""),
    )
    .replaceAll(/(?<![.\w])[A-Za-z_]\w*/g, (word) => {
      if (!names.includes(word)) return word;
      const slot = slotOf.get(word);
      return slot === undefined ? `${word}${suffix}` : slotName(slot);
    });
  return readers.join("") + part;
}

function slotName(slot: number): string {
  return `slot_${slot}`;
}

/**
 * Parts of a fused program that run one after the other within a workgroup; the blocks of a program run in parallel.
 *
 * - `alone`: one part, unchanged.
 * - `rows`: each workgroup computes some rows of the products, and then the same rows of the part that is no product, whose
 *   number of threads does not matter.
 * - `chain`: one workgroup computes all parts completely.
 */
export interface Block {
  readonly how: "alone" | "rows" | "chain";
  readonly parts: readonly number[];
}

export interface FusedPart {
  readonly program: WgslProgram;
  readonly slots: Slots;
  /** Bindings of vectors of four that another part binds as an array of numbers. */
  readonly vectors: ReadonlySet<number>;
  /** Rows of a workgroup of a product; 0 for others. */
  readonly rows: number;
}

/** WGSL expressions for the built-in values of a part. */
type Builtins = Readonly<Record<string, string>>;

const THREAD_BUILTINS: Readonly<Record<string, string>> = {
  local_invocation_id: "vec3<u32>",
  subgroup_id: "u32",
  subgroup_invocation_id: "u32",
  num_subgroups: "u32",
  subgroup_size: "u32",
};

/** Built-in values of a part that runs as workgroup `group` of `groups`. */
function builtinsOf({ threads }: WgslProgram, group: string, groups: string): Builtins {
  return {
    ...Object.fromEntries(Object.keys(THREAD_BUILTINS).map((name) => [name, name])),
    workgroup_id: `vec3<u32>(${group}, 0u, 0u)`,
    num_workgroups: `vec3<u32>(${groups}, 1u, 1u)`,
    global_invocation_id: `vec3<u32>(${group} * ${threads}u + local_invocation_id.x, 0u, 0u)`,
  };
}

/** Built-in values of a part of which each thread computes one row. */
const ROW_BUILTINS: Builtins = {
  global_invocation_id: "vec3<u32>(row, 0u, 0u)",
  num_workgroups: "vec3<u32>(1u)",
};

/** True for a program that uses only {@link ROW_BUILTINS}. */
export function canRunPerRow({ builtins }: WgslProgram): boolean {
  return builtins.every((name) => name in ROW_BUILTINS);
}

/** True for a program that uses only built-in values that a part can get. */
export function canBeFused(program: WgslProgram): boolean {
  const known = builtinsOf(program, "", "");
  return program.builtins.every((name) => name in known);
}

/** Binding number of the uniform with the parts' numbers of workgroups. */
export function countsSlot(parts: readonly FusedPart[]): number {
  return Math.max(...parts.flatMap(({ slots }) => [...slots.values()])) + 1;
}

/** WGSL of the program that computes all of the parts. */
export function fuse(blocks: readonly Block[], parts: readonly FusedPart[]): string {
  const threads = parts[0]?.program.threads ?? 0;
  const counts = slotName(countsSlot(parts));
  const countOf = (part: number): string => `${counts}[${part >> 2}][${part & 3}]`;
  const call = (part: number, builtins: Builtins): string =>
    `main_${part}(${parts[part]?.program.builtins.map((name) => builtins[name]).join(", ") ?? ""});`;
  const run = (part: number, group: string): string => {
    const { program } = parts[part] ?? {};
    return program ? call(part, builtinsOf(program, group, countOf(part))) : "";
  };
  const afterAll = "storageBarrier();\nworkgroupBarrier();";
  const bodies: Record<Block["how"], (of: readonly number[], group: string) => string> = {
    alone: ([part = 0], group) => run(part, group),
    rows: (of, group) => {
      const products = of.filter((part) => parts[part]?.rows);
      const rows = parts[of[0] ?? 0]?.rows ?? 0;
      return [
        ...products.map((part) => run(part, group)),
        afterAll,
        // Threads without a row get an index past the end, so that the next part ignores them.
        `let row = select(0xffffffffu, ${group} * ${rows}u + local_invocation_id.x, local_invocation_id.x < ${rows}u);`,
        ...of.filter((part) => !products.includes(part)).map((part) => call(part, ROW_BUILTINS)),
      ].join("\n");
    },
    chain: (of) =>
      of
        .map((part) => `for (var each = 0u; each < ${countOf(part)}; each++) { ${run(part, "each")} }`)
        .join(`\n${afterAll}\n`),
  };
  // An automatic layout has only bindings that the code uses, so the code always uses this one.
  const body: string[] = [`_ = ${counts}[0];`, "var group = workgroup_id.x;"];
  for (const [at, { how, parts: of }] of blocks.entries()) {
    const size = how === "chain" ? "1u" : countOf(of[0] ?? 0);
    const code = bodies[how](of, "group");
    body.push(at < blocks.length - 1 ? `if (group < ${size}) { ${code} return; }\ngroup -= ${size};` : code);
  }
  const threadBuiltins = Object.entries(THREAD_BUILTINS).filter(
    ([name]) =>
      name === "local_invocation_id" || parts.some(({ program }) => program.builtins.includes(name)),
  );
  const parameters = [["workgroup_id", "vec3<u32>"], ...threadBuiltins];
  return [
    ...new Set([
      "diagnostic(off, subgroup_uniformity);",
      ...parts.flatMap(({ program }) => program.directives),
    ]),
    ...declarations(parts),
    declare(countsSlot(parts), "uniform", `array<vec4<u32>, ${(parts.length + 3) >> 2}>`),
    ...parts.map(({ program, slots, vectors }, at) => asPart(program, `_${at}`, slots, vectors)),
    `@compute @workgroup_size(${threads})`,
    `fn main(${parameters.map(([name, type]) => `@builtin(${name}) ${name}: ${type}`).join(", ")}) {`,
    ...body,
    "}",
  ].join("\n");
}

function declare(slot: number, space: string, type: string): string {
  return `@group(0) @binding(${slot}) var<${space}> ${slotName(slot)}: ${type};`;
}

/** The bindings of all parts, each once. A type that a part declares has its suffix. */
function declarations(parts: readonly FusedPart[]): Iterable<string> {
  const declared = new Map<number, string>();
  for (const [at, { program, slots }] of parts.entries()) {
    for (const { binding, space, type } of program.bindings) {
      const slot = slots.get(binding);
      if (slot === undefined || declared.has(slot)) continue;
      declared.set(slot, declare(slot, space, program.names.includes(type) ? `${type}_${at}` : type));
    }
  }
  return declared.values();
}
