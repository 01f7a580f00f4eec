import { ByteReader } from "../../wasm/linker/byte-reader.ts";
import { SECTION } from "../../wasm/linker/wasm-module.ts";
import type { Instruction } from "./instructions.ts";
import type { StockModule } from "./stock-module.ts";

const MEMORY_INIT = (0xfc << 16) | 8;
const PASSIVE = 1;

/** Returns the initial memory of a thread by address, as far as the module's data segments define it. */
export function initialMemory(stock: StockModule): Uint8Array {
  const segments = dataSegments(stock);
  const addresses = segmentAddresses(stock);
  if (addresses.length !== segments.length)
    throw new TypeError(`the module has ${segments.length} pieces of data and fills ${addresses.length}`);
  const end = Math.max(...segments.map((bytes, at) => addresses[at]! + bytes.length));
  const memory = new Uint8Array(end);
  for (const [at, bytes] of segments.entries()) memory.set(bytes, addresses[at]);
  return memory;
}

/** With shared memory a function copies each segment: its address, 0, its length, memory.init. */
function segmentAddresses(stock: StockModule): number[] {
  const [start] = stock.named("__wasm_init_memory");
  if (start === undefined) throw new TypeError("the module has no __wasm_init_memory");
  const code = stock.code(start);
  return code.flatMap((each: Instruction, at) =>
    each.opcode === MEMORY_INIT ? [code[at - 3]?.number ?? 0] : [],
  );
}

function dataSegments({ module }: StockModule): Uint8Array[] {
  const section = module.sections.find(({ id }) => id === SECTION.data);
  if (!section) return [];
  const reader = new ByteReader(module.bytes, section.start, section.end);
  return Array.from({ length: reader.uleb() }, () => {
    if (reader.uleb() !== PASSIVE) throw new TypeError("only passive pieces of data are supported");
    return reader.take(reader.uleb());
  });
}

/**
 * Finds a table of names in C, an array of pointers that begins with certain ones, and numbers the names in it.
 * @returns name → number; undefined when there is no such table
 */
export function numberedNames(
  memory: Uint8Array,
  first: readonly string[],
): ReadonlyMap<string, number> | undefined {
  const view = new DataView(memory.buffer, memory.byteOffset, memory.byteLength);
  const nameAt = (table: number, index: number): string | undefined => {
    const at = table + index * POINTER_BYTES;
    return at + POINTER_BYTES <= memory.length ? text(memory, view.getBigUint64(at, true)) : undefined;
  };
  for (let table = 0; table + POINTER_BYTES <= memory.length; table += POINTER_BYTES) {
    if (!first.every((name, index) => nameAt(table, index) === name)) continue;
    const names = new Map<string, number>();
    for (let index = 0; ; index++) {
      const name = nameAt(table, index);
      if (name === undefined || names.has(name)) return names;
      names.set(name, index);
    }
  }
  return undefined;
}

const POINTER_BYTES = 8;
const LONGEST_NAME = 32;

/** Reads the name of an operator at an address; undefined if there is none. */
function text(memory: Uint8Array, address: bigint): string | undefined {
  const start = Number(address);
  if (start === 0 || start >= memory.length) return undefined;
  const end = memory.indexOf(0, start);
  if (end < 0 || end - start > LONGEST_NAME) return undefined;
  const found = String.fromCharCode(...memory.subarray(start, end));
  return /^[A-Z][A-Z0-9_]*$/.test(found) ? found : undefined;
}
