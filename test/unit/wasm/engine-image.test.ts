import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ADDED_EXPORTS, CHANGES, IMAGE_HEAP_BYTES } from "../../../wasm/changes.ts";
import { buildEngineImage, IMAGE_SHA256, EngineImageError, sha256Hex } from "../../../wasm/engine-image.ts";
import { PINNED_FUNCTIONS } from "../../../wasm/pinned-functions.ts";
import { VEC_DOTS } from "../../../wasm/vec-dots.ts";
import { parseModule } from "../../../wasm/linker/wasm-module.ts";

const wllama = new URL("../../../node_modules/@wllama/wllama/", import.meta.url);
const stock = readFileSync(new URL("esm/wasm/wllama.wasm", wllama));
const kernels = readFileSync(new URL("../../../wasm/kernels.o", import.meta.url));

/** Function names by index, from the symbol map that comes with the package. */
function symbolNames(): (index: number) => string | undefined {
  const source = readFileSync(fileURLToPath(new URL("src/wasm/source-map.ts", wllama)), "utf8");
  const packed = /default[^\n]{0,40}?['"`]([A-Za-z0-9+/=]{1000,})/.exec(source)?.[1] ?? "";
  const map = gunzipSync(Buffer.from(packed, "base64"));
  const [first, functions, count] = [map.readUInt32LE(0), map.readUInt32LE(4), map.readUInt32LE(8)];
  const names: string[] = [];
  let at = 12;
  for (let index = 0; index < count; index++) {
    const length = map.readUInt8(at);
    names.push(map.toString("utf8", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return (index) =>
    index - first < functions ? names[map.readUInt16LE(at + 2 * (index - first))] : undefined;
}

/** How many functions wait in a loop for a barrier to be passed. */
function spins(bytes: Uint8Array): number {
  return parseModule(bytes).bodies.filter((body) => {
    const code = Buffer.from(body).toString("hex");
    // loop, local.get, i32.atomic.load offset=192, local.get, i32.eq, br_if 0, end
    return /0340(20..)+fe1002c001(20..)+460d000b/.test(code);
  }).length;
}

describe("the engine's image", () => {
  it("is a valid module with the stock one's exports and imports, and the tokenizer's", async () => {
    const image = await buildEngineImage(stock, kernels);
    expect(WebAssembly.validate(image)).toBe(true);
    const [before, after] = [parseModule(stock), parseModule(image)];
    expect(after.exports.slice(0, before.exports.length)).toEqual(before.exports);
    const added = after.exports.slice(before.exports.length).map(({ name, index }) => [name, index]);
    expect(Object.fromEntries(added)).toEqual(ADDED_EXPORTS);
    expect(after.imports.length).toBe(before.imports.length);
    const [memory] = after.imports.flatMap(({ limits }) => limits ?? []);
    expect((memory?.maximum ?? 0) * 64 * 1024).toBe(IMAGE_HEAP_BYTES);
    expect(image.length - stock.length).toBeLessThan(480 * 1024);
  });

  it("has no copy left of llama.cpp's barrier, whose threads do not sleep", async () => {
    expect(spins(stock)).toBe(3);
    expect(spins(await buildEngineImage(stock, kernels))).toBe(0);
  });

  it("is the bytes that are pinned", async () => {
    expect(await sha256Hex(await buildEngineImage(stock, kernels))).toBe(IMAGE_SHA256);
  });

  it("is not made of another module or other kernels", async () => {
    const other = new Uint8Array(stock);
    other[stock.length - 1]! ^= 1;
    await expect(buildEngineImage(other, kernels)).rejects.toThrow(EngineImageError);
    await expect(buildEngineImage(stock, kernels.subarray(1))).rejects.toThrow(EngineImageError);
  });

  it("has a test for each change", () => {
    const checks = CHANGES.map(({ check }) => check);
    expect(checks.filter((check) => !existsSync(new URL(`../../../${check}`, import.meta.url)))).toEqual([]);
    expect(new Set(checks).size).toBe(CHANGES.length);
  });

  it("changes no function that is not pinned", () => {
    const pinned: readonly number[] = [...Object.values(PINNED_FUNCTIONS), ...VEC_DOTS].map(
      ({ index }) => index,
    );
    const changed = CHANGES.flatMap(
      ({ replace = {}, originals = {}, imports = {}, exports = {}, splices = [] }) =>
        [replace, originals, imports, exports, splices.map(({ index }) => index)].flatMap((functions) =>
          Object.values(functions),
        ),
    );
    expect(changed.filter((index) => !pinned.includes(index))).toEqual([]);
    expect(pinned.filter((index) => !changed.includes(index))).toEqual([]);
  });

  it("names each pinned function as the package's own symbol map does", () => {
    const nameOf = symbolNames();
    for (const { index, name } of [...Object.values(PINNED_FUNCTIONS), ...VEC_DOTS])
      expect(nameOf(index)).toBe(name);
  });
});
