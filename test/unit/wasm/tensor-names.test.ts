import { describe, expect, it } from "vitest";
import { type WholeModule, wholeModules } from "../../support/whole-modules.ts";

const { stock, image } = await wholeModules("ggml_format_name");

/** Offset and size of a tensor's name. */
const NAME = { at: 256, bytes: 64 } as const;

/** Bytes of a tensor's name for a format and arguments: numbers, or texts by address. */
function nameOf(module: WholeModule, format: string, values: (string | number)[]): string {
  const { view } = module;
  const place = (text: string): number => {
    const bytes = new TextEncoder().encode(`${text}\0`);
    const at = module.allocate(bytes.length);
    for (const [index, byte] of bytes.entries()) view.setUint8(at + index, byte);
    return at;
  };
  const tensor = module.allocate(400);
  for (let at = 0; at < 400; at += 1) view.setUint8(tensor + at, 0x55);
  const list = module.allocate(8 * values.length + 8);
  let next = list;
  for (const value of values) {
    if (typeof value === "number") {
      view.setInt32(next, value, true);
      next += 4;
      continue;
    }
    next = Math.ceil(next / 8) * 8;
    view.setBigUint64(next, BigInt(place(value)), true);
    next += 8;
  }
  expect(module.call(BigInt(tensor), BigInt(place(format)), BigInt(list))).toBe(BigInt(tensor));
  const bytes = Array.from({ length: 400 }, (_, at) => view.getUint8(tensor + at));
  // Up to the final zero; the rest is undefined.
  const end = bytes.indexOf(0, NAME.at);
  expect(bytes.slice(NAME.at + NAME.bytes).every((byte) => byte === 0x55)).toBe(true);
  return Buffer.from(bytes.slice(NAME.at, end)).toString("latin1");
}

describe("names of tensors", () => {
  it.each<[string, (string | number)[], string | undefined]>([
    ["%s-%d", ["Qcur", 7], "Qcur-7"],
    ["%s (view)", ["cache_k_l12"], "cache_k_l12 (view)"],
    ["%s (reshaped)", ["größe"], undefined],
    ["plain", [], "plain"],
    ["", [], ""],
    ["%d%d %s %d", [0, -1, "x", 2_147_483_647], "0-1 x 2147483647"],
    ["%d", [-2_147_483_648], "-2147483648"],
    ["%s#%s#%d", ["WebGPU", "inp_embd", 0], "WebGPU#inp_embd#0"],
    ["%s-%d", ["n".repeat(61), 1234], `${"n".repeat(61)}-1`],
    ["%s", ["n".repeat(300)], "n".repeat(63)],
    ["%s%%%05d|%x", ["a", 42, 255], "a%00042|ff"],
    ["100%", [], undefined],
  ])("of the format %j with %j equal llama.cpp's", (format, values, expected) => {
    const name = nameOf(image, format, values);
    expect(name).toBe(nameOf(stock, format, values));
    expect(name).toBe(expected ?? name);
  });
});
