import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ADDED_EXPORTS, CHANGES, IMAGE_HEAP_BYTES, SLOT_KERNELS } from "../../../wasm/changes.ts";
import { buildEngineImage, IMAGE_SHA256, EngineImageError, sha256Hex } from "../../../wasm/engine-image.ts";
import { uleb } from "../../../wasm/linker/byte-writer.ts";
import { QUANTIZER_FUNCTIONS } from "../../../wasm/quantizer-image.ts";
import { FUNCTIONS } from "../../../wasm/llama-cpp-build.ts";
import { parseModule } from "../../../wasm/linker/wasm-module.ts";

const wllama = new URL("../../../node_modules/@wllama/wllama/", import.meta.url);
const stock = readFileSync(new URL("esm/wasm/wllama.wasm", wllama));
const kernels = readFileSync(new URL("../../../wasm/kernels.o", import.meta.url));

/** Number of functions that wait in a loop for a barrier. */
function spins(bytes: Uint8Array): number {
  return parseModule(bytes).bodies.filter((body) => {
    const code = Buffer.from(body).toString("hex");
    // loop, local.get, i32.atomic.load offset=192, local.get, i32.eq, br_if 0, end
    return /0340(20..)+fe1002c001(20..)+460d000b/.test(code);
  }).length;
}

describe("the engine image", () => {
  it("is a valid module with the stock exports and imports, and those for the tokenizer and slots", async () => {
    const image = await buildEngineImage(stock, kernels);
    expect(WebAssembly.validate(image)).toBe(true);
    const [before, after] = [parseModule(stock), parseModule(image)];
    expect(after.exports.slice(0, before.exports.length)).toEqual(before.exports);
    const added = after.exports.slice(before.exports.length).map(({ name, index }) => [name, index]);
    const tokenizer = Object.entries(ADDED_EXPORTS).map(([name, original]) => [name, FUNCTIONS[original]]);
    expect(added.slice(0, tokenizer.length)).toEqual(tokenizer);
    expect(added.slice(tokenizer.length).map(([name]) => name)).toEqual([...SLOT_KERNELS]);
    expect(after.imports.length).toBe(before.imports.length);
    const [memory] = after.imports.flatMap(({ limits }) => limits ?? []);
    expect((memory?.maximum ?? 0) * 64 * 1024).toBe(IMAGE_HEAP_BYTES);
    expect(image.length - stock.length).toBeLessThan(640 * 1024);
  });

  it("has no inlined copy of llama.cpp's spinning barrier", async () => {
    expect(spins(stock)).toBe(3);
    expect(spins(await buildEngineImage(stock, kernels))).toBe(0);
  });

  it("has the pinned hash", async () => {
    expect(await sha256Hex(await buildEngineImage(stock, kernels))).toBe(IMAGE_SHA256);
  });

  it("is not built from another module or other kernels", async () => {
    const other = new Uint8Array(stock);
    other[stock.length - 1]! ^= 1;
    await expect(buildEngineImage(other, kernels)).rejects.toThrow(EngineImageError);
    await expect(buildEngineImage(stock, kernels.subarray(1))).rejects.toThrow(EngineImageError);
  });

  it("has an existing test file for each change", () => {
    const checks = CHANGES.map(({ check }) => check);
    expect(checks.filter((check) => !existsSync(new URL(`../../../${check}`, import.meta.url)))).toEqual([]);
    expect(new Set(checks).size).toBe(CHANGES.length);
  });

  it("uses every pinned function of llama.cpp", () => {
    const used = CHANGES.flatMap(({ replace = {}, imports = {}, exports = {} }) =>
      [replace, imports, exports].flatMap((functions) => Object.values(functions)),
    );
    const splices = CHANGES.flatMap((change) => change.splices ?? []);
    const changed = new Set(splices.map(({ index }) => index));
    const code = splices.map(({ find, behind = [] }) => `${[...find, 0, ...behind].join()},`).join();
    const isCalled = (index: number): boolean => code.includes(`,${[0x10, ...uleb(index)].join()},`);
    const spliced = Object.entries(FUNCTIONS).flatMap(([name, index]) =>
      changed.has(index) || isCalled(index) ? name : [],
    );
    expect(new Set(Object.keys(FUNCTIONS))).toEqual(new Set([...used, ...spliced, ...QUANTIZER_FUNCTIONS]));
  });
});
