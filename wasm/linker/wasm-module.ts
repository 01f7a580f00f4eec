import { ByteReader } from "./byte-reader.ts";

/** Section ids of the WebAssembly binary format. */
export const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  memory: 5,
  export: 7,
  code: 10,
  data: 11,
} as const;

/** Kinds of imports and exports. */
export const KIND = { function: 0, table: 1, memory: 2, global: 3, tag: 4 } as const;

const MAGIC = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00] as const;
const LIMIT_HAS_MAXIMUM = 0x01;

interface Section {
  readonly id: number;
  /** Range of the content, after id and size. */
  readonly start: number;
  readonly end: number;
}

interface MemoryLimits {
  readonly flags: number;
  readonly minimum: number;
  readonly maximum: number | undefined;
}

interface Import {
  readonly module: string;
  readonly name: string;
  readonly kind: number;
  /** For functions: the type index. */
  readonly typeIndex: number | undefined;
  /** For memories. */
  readonly limits: MemoryLimits | undefined;
  /** The whole entry in the import section. */
  readonly start: number;
  readonly end: number;
}

interface Export {
  readonly name: string;
  readonly kind: number;
  readonly index: number;
}

/** A WebAssembly module cut into the parts that linking touches; everything else stays as bytes. */
export interface WasmModule {
  readonly bytes: Uint8Array;
  readonly sections: readonly Section[];
  readonly imports: readonly Import[];
  /** How many functions are imported: defined function `i` has the index `importedFunctions + i`. */
  readonly importedFunctions: number;
  /** Number of entries of the type section, and its entries as bytes. */
  readonly typeCount: number;
  readonly typeBytes: Uint8Array;
  /** Type index of each defined function. */
  readonly functionTypes: readonly number[];
  /** Body of each defined function, without its size. */
  readonly bodies: readonly Uint8Array[];
  readonly exports: readonly Export[];
}

/**
 * Parses a module or an object file as far as the linker needs it.
 * @throws RangeError or TypeError when the bytes are not a WebAssembly module
 */
export function parseModule(bytes: Uint8Array): WasmModule {
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) throw new TypeError("not a WebAssembly module");
  const sections = parseSections(bytes);
  const reader = (id: number): ByteReader => {
    const section = sections.find((candidate) => candidate.id === id);
    return section ? new ByteReader(bytes, section.start, section.end) : new ByteReader(new Uint8Array([0]));
  };
  const imports = parseImports(reader(SECTION.import));
  const types = reader(SECTION.type);
  const typeCount = types.uleb();
  const functions = reader(SECTION.function);
  const code = reader(SECTION.code);
  const exports = reader(SECTION.export);
  return {
    bytes,
    sections,
    imports,
    importedFunctions: imports.filter((entry) => entry.kind === KIND.function).length,
    typeCount,
    typeBytes: types.take(types.end - types.offset),
    functionTypes: Array.from({ length: functions.uleb() }, () => functions.uleb()),
    bodies: Array.from({ length: code.uleb() }, () => code.take(code.uleb())),
    exports: Array.from({ length: exports.uleb() }, () => ({
      name: exports.name(),
      kind: exports.u8(),
      index: exports.uleb(),
    })),
  };
}

function parseSections(bytes: Uint8Array): Section[] {
  const reader = new ByteReader(bytes, MAGIC.length);
  const sections: Section[] = [];
  while (!reader.done) {
    const id = reader.u8();
    const length = reader.uleb();
    const start = reader.offset;
    reader.take(length);
    sections.push({ id, start, end: reader.offset });
  }
  return sections;
}

function parseImports(reader: ByteReader): Import[] {
  return Array.from({ length: reader.uleb() }, () => {
    const start = reader.offset;
    const module = reader.name();
    const name = reader.name();
    const kind = reader.u8();
    let typeIndex: number | undefined;
    let limits: MemoryLimits | undefined;
    if (kind === KIND.function) typeIndex = reader.uleb();
    else if (kind === KIND.table) {
      reader.u8();
      parseLimits(reader);
    } else if (kind === KIND.memory) limits = parseLimits(reader);
    else if (kind === KIND.global) reader.take(2);
    else if (kind === KIND.tag) {
      reader.u8();
      typeIndex = reader.uleb();
    } else throw new TypeError(`unknown kind ${kind} of import ${module}.${name}`);
    return { module, name, kind, typeIndex, limits, start, end: reader.offset };
  });
}

function parseLimits(reader: ByteReader): MemoryLimits {
  const flags = reader.u8();
  const minimum = reader.uleb();
  return { flags, minimum, maximum: flags & LIMIT_HAS_MAXIMUM ? reader.uleb() : undefined };
}

/** Content of a custom section, after its name; undefined when there is none. */
export function customSection(module: WasmModule, name: string): ByteReader | undefined {
  for (const { id, start, end } of module.sections) {
    if (id !== SECTION.custom) continue;
    const reader = new ByteReader(module.bytes, start, end);
    if (reader.name() === name) return reader;
  }
  return undefined;
}

/** Encodes a function type as hexadecimal digits, equal for equal types. */
export function functionTypeText(module: WasmModule, typeIndex: number | undefined): string {
  const types = splitFunctionTypes(module);
  const type = typeIndex === undefined ? undefined : types[typeIndex];
  if (!type) throw new TypeError(`no function type ${typeIndex}`);
  return Array.from(type, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const FUNCTION_TYPE = 0x60;

function splitFunctionTypes(module: WasmModule): Uint8Array[] {
  const bytes = module.typeBytes;
  const types: Uint8Array[] = [];
  let offset = 0;
  for (let count = 0; count < module.typeCount; count++) {
    const start = offset;
    if (bytes[offset++] !== FUNCTION_TYPE) throw new TypeError("only plain function types are supported");
    // Parameter and result counts are below 128 and every value type is one byte in this module.
    for (let list = 0; list < 2; list++) offset += 1 + bytes[offset]!;
    types.push(bytes.subarray(start, offset));
  }
  if (offset !== bytes.length) throw new TypeError("the type section holds more than plain function types");
  return types;
}
