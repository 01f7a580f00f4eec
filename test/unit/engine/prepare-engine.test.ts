import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { prepareEngine } from "../../../src/engine/prepare-engine.ts";
import { IMAGE_SHA256, sha256Hex } from "../../../wasm/engine-image.ts";

let cacheDir: string;
beforeEach(async () => {
  cacheDir = await mkdtemp(path.join(os.tmpdir(), "daybreak-image-"));
});
afterEach(async () => {
  await rm(cacheDir, { recursive: true, force: true });
});

describe("preparing the engine", () => {
  it("makes the image once and finds it again", async () => {
    const first = await prepareEngine({ cacheDir, kernels: "auto" });
    expect(first.kernels).toBe("daybreak");
    expect(await sha256Hex(await readFile(first.wasmPath))).toBe(IMAGE_SHA256);
    const { mtimeMs } = await stat(first.wasmPath);
    expect(await prepareEngine({ cacheDir, kernels: "auto" })).toEqual(first);
    expect((await stat(first.wasmPath)).mtimeMs).toBe(mtimeMs);
  });

  it("makes it anew when the copy was cut or changed", async () => {
    const { wasmPath } = await prepareEngine({ cacheDir, kernels: "auto" });
    await writeFile(wasmPath, (await readFile(wasmPath)).subarray(0, 1000));
    await prepareEngine({ cacheDir, kernels: "auto" });
    expect(await sha256Hex(await readFile(wasmPath))).toBe(IMAGE_SHA256);
  });

  it("leaves nothing half-written, also when several daemons start at once", async () => {
    await Promise.all(Array.from({ length: 4 }, () => prepareEngine({ cacheDir, kernels: "auto" })));
    expect(await readdir(path.join(cacheDir, "engine"))).toEqual([`${IMAGE_SHA256}.wasm`]);
  });

  it("runs the stock engine when asked to", async () => {
    const { kernels, wasmPath } = await prepareEngine({ cacheDir, kernels: "stock" });
    expect(kernels).toBe("stock");
    expect(path.basename(wasmPath)).toBe("wllama.wasm");
    expect(await readdir(cacheDir)).toEqual([]);
  });

  it("runs the stock engine and says why when the package's file is not the expected one", async () => {
    const stockPath = path.join(cacheDir, "other.wasm");
    await writeFile(stockPath, "not the engine");
    const prepared = await prepareEngine({ cacheDir, kernels: "auto", stockPath });
    expect(prepared).toMatchObject({ kernels: "stock", wasmPath: stockPath });
    expect(prepared.problem).toMatch(/not the one expected/);
  });

  it("runs the stock engine and says why when the cache folder cannot be written", async () => {
    await writeFile(path.join(cacheDir, "engine"), "a file where the folder should be");
    const prepared = await prepareEngine({ cacheDir, kernels: "auto" });
    expect(prepared.kernels).toBe("stock");
    expect(prepared.problem).toMatch(/ENOTDIR|EEXIST/);
  });
});
