import { concatBytes, section, sized, sizedText, uleb, vector } from "../../../wasm/linker/byte-writer.ts";

const I32 = 0x7f;
const I64 = 0x7e;
const OP = { end: 0x0b, call: 0x10, localGet: 0x20, i32Add: 0x6a, i32Mul: 0x6c, i64Const: 0x42 } as const;

const body = (...code: number[]): Uint8Array => sized(new Uint8Array([0, ...code, OP.end]));

/** Function indices of {@link smallModule}. */
export const ADD = 0;
export const SQUARE = 1;
export const CALL_SQUARE = 2;

/**
 * A module of the kind that the linker extends: memory64 imported with a maximum of 4 pages, the stack pointer as
 * global 0, add(a, b), square(x), and the export call_square, which calls square.
 */
export function smallModule(): Uint8Array<ArrayBuffer> {
  const binary = concatBytes([[0x60], vector([[I32], [I32]]), vector([[I32]])]);
  const unary = concatBytes([[0x60], vector([[I32]]), vector([[I32]])]);
  // Flags: memory64 (4), with a maximum (1).
  const memory = concatBytes([sizedText("env"), sizedText("memory"), [2, 5], uleb(1), uleb(4)]);
  const stackPointer = [I64, 1, OP.i64Const, 0x80, 0x80, 0x04, OP.end];
  return concatBytes([
    [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    section(1, vector([binary, unary])),
    section(2, vector([memory])),
    section(3, vector([[0], [1], [1]])),
    section(6, vector([stackPointer])),
    section(7, vector([concatBytes([sizedText("call_square"), [0], uleb(2)])])),
    section(
      10,
      vector([
        body(OP.localGet, 0, OP.localGet, 1, OP.i32Add),
        body(OP.localGet, 0, OP.localGet, 0, OP.i32Mul),
        body(OP.localGet, 0, OP.call, SQUARE),
      ]),
    ),
    section(0, concatBytes([sizedText("name"), [1, 2, 3]])),
  ]);
}

/**
 * clang-19 --target=wasm64-unknown-unknown -O1 -matomics -mbulk-memory -fno-builtin -nostdlib -c, of:
 *
 *     extern int stock_add(int a, int b);
 *     extern int original_square(int x);
 *     static __attribute__((noinline)) int twice(int x) { volatile int y = x; return y * 2; }
 *     int fast_square(int x) { return x < 0 ? original_square(x) : stock_add(twice(x), x * x - 2 * x); }
 */
export const SQUARE_OBJECT = Buffer.from(
  "AGFzbQEAAAABjICAgAACYAF/AX9gAn9/AX8C1YCAgAAEA2Vudg9fX2xpbmVhcl9tZW1vcnkCBAADZW52D29yaWdpbmFsX3NxdWFyZQAA" +
    "A2VudglzdG9ja19hZGQAAQNlbnYPX19zdGFja19wb2ludGVyA34BA4OAgIAAAgAACsqAgIAAAisAAkAgAEF/Sg0AIAAQgICAgAAPCyAA" +
    "EIOAgIAAIABBfmogAGwQgYCAgAALHAEBfiOAgICAAEIQfSIBIAA2AgwgASgCDEEBdAsAsYCAgAAHbGlua2luZwIIooCAgAAFAAQCC2Zh" +
    "c3Rfc3F1YXJlABAAAAIDBXR3aWNlABABAhAAAJmAgIAACnJlbG9jLkNPREUDBAAPAQAZAgAnAwcyBAC5gICAAAlwcm9kdWNlcnMBDHBy" +
    "b2Nlc3NlZC1ieQEMRGViaWFuIGNsYW5nEjE5LjEuNyAoM35kZWIxMnUxKQDpgICAAA90YXJnZXRfZmVhdHVyZXMHKwdhdG9taWNzKwti" +
    "dWxrLW1lbW9yeSsKbXVsdGl2YWx1ZSsPbXV0YWJsZS1nbG9iYWxzKw9yZWZlcmVuY2UtdHlwZXMrCHNpZ24tZXh0KwhtZW1vcnk2NA==",
  "base64",
);

/** The same, of `int table[4] = {1, 2, 3, 4}; int get(int i) { return table[i]; }`: it has a data segment. */
export const DATA_OBJECT = Buffer.from(
  "AGFzbQEAAAABhoCAgAABYAF/AX8CmICAgAABA2Vudg9fX2xpbmVhcl9tZW1vcnkCBAEDgoCAgAABAAyBgICAAAEKmYCAgAABFwAgAKxC" +
    "AoZCgICAgICAgICAAHwoAgALC5aAgIAAAQBCAAsQAQAAAAIAAAADAAAABAAAAAC3gICAAAdsaW5raW5nAgiTgICAAAIABAADZ2V0AQQF" +
    "dGFibGUAABAFj4CAgAABCy5kYXRhLnRhYmxlBAAAkYCAgAAKcmVsb2MuQ09ERQQBDwoBAAC5gICAAAlwcm9kdWNlcnMBDHByb2Nlc3Nl" +
    "ZC1ieQEMRGViaWFuIGNsYW5nEjE5LjEuNyAoM35kZWIxMnUxKQDTgICAAA90YXJnZXRfZmVhdHVyZXMFKwptdWx0aXZhbHVlKw9tdXRh" +
    "YmxlLWdsb2JhbHMrD3JlZmVyZW5jZS10eXBlcysIc2lnbi1leHQrCG1lbW9yeTY0",
  "base64",
);
