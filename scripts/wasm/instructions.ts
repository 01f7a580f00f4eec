import { ByteReader } from "../../wasm/linker/byte-reader.ts";

/** One instruction of a function: what it does, and its immediate numbers (see {@link ImmediateKind}). */
export interface Instruction {
  /** Opcode; those after a prefix byte are `prefix << 16 | number`. */
  readonly opcode: number;
  /** Meaning of {@link numbers}. */
  readonly kind: ImmediateKind;
  /** An offset of memory, a local, a function, a constant of integers as the bits of a signed number; or none. */
  readonly number: number;
}

/** offset: of a load or store; local, function, constant; other: what need not be compared number by number. */
export type ImmediateKind = "none" | "offset" | "local" | "function" | "constant" | "other";

const [PREFIX_MISC, PREFIX_SIMD, PREFIX_ATOMIC] = [0xfc, 0xfd, 0xfe];
const ATOMIC_FENCE = 3;
const SIMD_CONSTANT = 12;
const SIMD_SHUFFLE = 13;
const HAS_MEMORY_INDEX = 0x40;

/**
 * The instructions of a function's body, without its list of locals.
 * @throws TypeError when it holds an instruction that this decoder does not know
 */
export function decodeBody(body: Uint8Array): Instruction[] {
  const reader = new ByteReader(body);
  for (let groups = reader.uleb(); groups > 0; groups--) {
    reader.uleb();
    reader.u8();
  }
  const instructions: Instruction[] = [];
  while (!reader.done) instructions.push(decode(reader));
  return instructions;
}

function decode(reader: ByteReader): Instruction {
  const first = reader.u8();
  if (first === PREFIX_MISC) return miscellaneous(reader);
  if (first === PREFIX_SIMD) return simd(reader);
  if (first === PREFIX_ATOMIC) return atomic(reader);
  const made = (kind: ImmediateKind, number = 0): Instruction => ({ opcode: first, kind, number });
  // block, loop, if, try
  if (first === 0x02 || first === 0x03 || first === 0x04 || first === 0x06)
    return made("other", reader.sleb());
  // call, return_call
  if (first === 0x10 || first === 0x12) return made("function", reader.uleb());
  // call_indirect, return_call_indirect
  if (first === 0x11 || first === 0x13) return made("other", skip(reader, 2));
  if (first === 0x0e) {
    for (let targets = reader.uleb(); targets >= 0; targets--) reader.uleb();
    return made("other");
  }
  if (first === 0x1c) {
    for (let types = reader.uleb(); types > 0; types--) reader.u8();
    return made("other");
  }
  if (first === 0x1f) return made("other", tryTable(reader));
  if (first >= 0x20 && first <= 0x22) return made("local", reader.uleb());
  if (first >= 0x28 && first <= 0x3e) return made("offset", offsetOf(reader));
  if (first === 0x41 || first === 0x42) return made("constant", reader.sleb());
  if (first === 0x43) return made("other", skipBytes(reader, 4));
  if (first === 0x44) return made("other", skipBytes(reader, 8));
  // br, br_if, catch, throw, rethrow, delegate, global.get, global.set, table.get, table.set, memory.size and memory.grow
  if (ONE_INDEX.has(first)) return made("other", skip(reader, 1));
  // ref.func
  if (first === 0xd2) return made("function", reader.uleb());
  if (first <= 0x01 || first === 0x05 || WITHOUT_IMMEDIATE.has(first) || (first >= 0x45 && first <= 0xc4)) {
    return made("none");
  }
  throw new TypeError(`unknown instruction 0x${first.toString(16)} at byte ${reader.offset - 1}`);
}

const ONE_INDEX = new Set([0x0c, 0x0d, 0x07, 0x08, 0x09, 0x18, 0x23, 0x24, 0x25, 0x26, 0x3f, 0x40, 0xd0]);
/** end, return, throw_ref, catch_all, drop, select, ref.is_null */
const WITHOUT_IMMEDIATE = new Set([0x0b, 0x0f, 0x0a, 0x19, 0x1a, 0x1b, 0xd1]);

function skip(reader: ByteReader, count: number): number {
  for (let at = 0; at < count; at++) reader.uleb();
  return 0;
}

function skipBytes(reader: ByteReader, count: number): number {
  reader.take(count);
  return 0;
}

function offsetOf(reader: ByteReader): number {
  if (reader.uleb() & HAS_MEMORY_INDEX) reader.uleb();
  return reader.uleb();
}

function tryTable(reader: ByteReader): number {
  reader.sleb();
  for (let clauses = reader.uleb(); clauses > 0; clauses--) {
    const isForAll = reader.u8() >= 2;
    skip(reader, isForAll ? 1 : 2);
  }
  return 0;
}

function miscellaneous(reader: ByteReader): Instruction {
  const number = reader.uleb();
  const indices = number <= 7 ? 0 : number === 9 || number === 11 || number === 13 || number >= 15 ? 1 : 2;
  skip(reader, indices);
  return { opcode: (PREFIX_MISC << 16) | number, kind: "other", number: 0 };
}

function simd(reader: ByteReader): Instruction {
  const number = reader.uleb();
  const opcode = (PREFIX_SIMD << 16) | number;
  const isMemory = number <= 11 || number === 92 || number === 93;
  if (isMemory) return { opcode, kind: "offset", number: offsetOf(reader) };
  if (number >= 84 && number <= 91) {
    const offset = offsetOf(reader);
    reader.u8();
    return { opcode, kind: "offset", number: offset };
  }
  if (number === SIMD_CONSTANT || number === SIMD_SHUFFLE) skipBytes(reader, 16);
  else if (number >= 21 && number <= 34) reader.u8();
  return { opcode, kind: "other", number: 0 };
}

function atomic(reader: ByteReader): Instruction {
  const number = reader.uleb();
  const opcode = (PREFIX_ATOMIC << 16) | number;
  if (number !== ATOMIC_FENCE) return { opcode, kind: "offset", number: offsetOf(reader) };
  reader.u8();
  return { opcode, kind: "other", number: 0 };
}
