/** A storage buffer or uniform that a program binds. */
interface ProgramBinding {
  readonly binding: number;
  /** `storage, read_write` or `uniform`. */
  readonly space: string;
  readonly name: string;
  readonly type: string;
}

/** What fusing a program needs to know of its WGSL. */
export interface WgslProgram {
  readonly code: string;
  /** Threads of a workgroup, in one dimension. */
  readonly threads: number;
  readonly bindings: readonly ProgramBinding[];
  /** `enable f16;` and the like, which precede everything else. */
  readonly directives: readonly string[];
  /** Names of the built-in values that the entry point takes, in order. */
  readonly builtins: readonly string[];
  /** Everything that is declared outside of functions. */
  readonly names: readonly string[];
}

const DIRECTIVE = /^\s*(?:enable|requires|diagnostic)\b[^;]*;/gm;
const BINDING = /@group\(0\)\s*@binding\(([\d\s+]+)\)\s*var<([^>]+)>\s*(\w+)\s*:\s*([^;]+);/g;
const ENTRY = /@compute\s*@workgroup_size\((\d+)\)\s*fn\s+main\(([\s\S]*?)\)\s*\{/;
const PARAMETER = /@builtin\((\w+)\)\s*\w+\s*:\s*[\w<>]+/g;
const ASSIGNMENT = /^(?:\s*\.\w+)*\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--|\[)/;
const NAME = /\b(?:fn|struct|alias|override|const)\s+(\w+)|\bvar\s*<[^>]+>\s*(\w+)/g;

/** Reads one of llama.cpp's programs; undefined if it is written otherwise than they are. */
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

/** Storage bindings that a program may write: whatever it does but read an element of. */
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

/** Where what begins with a bracket ends. */
function afterBracket(code: string, from: number): number {
  let depth = 0;
  for (let at = from; at < code.length; at++) {
    if (code[at] === "[") depth++;
    if (code[at] === "]" && --depth === 0) return at + 1;
  }
  return code.length;
}

/** Calls a function wherever the code reads an element of a binding. */
function readThrough(code: string, name: string, by: string): string {
  let read = code;
  // The last one first: an index may have another one in it.
  for (const { index } of Array.from(
    code.matchAll(new RegExp(String.raw`(?<![.\w])${name}\[`, "g")),
  ).toReversed()) {
    const begin = index + name.length;
    const end = afterBracket(read, begin);
    read = `${read.slice(0, index)}${by}(u32(${read.slice(begin + 1, end - 1)}))${read.slice(end)}`;
  }
  return read;
}

/** What a fused program binds in place of each binding of one of its parts: a number of its own, by the part's number. */
export type Slots = ReadonlyMap<number, number>;

/**
 * The code of a program as a part of another: what it declares has the suffix, its bindings are those of the slots, and its entry
 * point is a function.
 * @param vectors bindings whose slot has the numbers of which it reads vectors
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

/** The variable of a fused program's binding. */
export function slotName(slot: number): string {
  return `slot_${slot}`;
}
