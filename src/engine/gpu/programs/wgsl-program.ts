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

/** What a fused program binds in place of each binding of one of its parts: a number of its own, by the part's number. */
export type Slots = ReadonlyMap<number, number>;

/**
 * The code of a program as a part of another: what it declares has the suffix, its bindings are those of the slots, and its entry
 * point is a function.
 */
export function asPart({ code, names, bindings }: WgslProgram, suffix: string, slots: Slots): string {
  const slotOf = new Map(bindings.map(({ name, binding }) => [name, slots.get(binding)]));
  return code
    .replace(BINDING, "")
    .replace(ENTRY, (entry) =>
      entry.replace(/@compute\s*@workgroup_size\(\d+\)/, "").replaceAll(/@builtin\(\w+\)/g, ""),
    )
    .replaceAll(/(?<![.\w])[A-Za-z_]\w*/g, (word) => {
      if (!names.includes(word)) return word;
      const slot = slotOf.get(word);
      return slot === undefined ? `${word}${suffix}` : slotName(slot);
    });
}

/** The variable of a fused program's binding. */
export function slotName(slot: number): string {
  return `slot_${slot}`;
}
