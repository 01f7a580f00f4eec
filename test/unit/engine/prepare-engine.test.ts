import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
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
    // Else it would be the package's own file that is cut here.
    expect(path.dirname(wasmPath)).toBe(path.join(cacheDir, "engine"));
    await writeFile(wasmPath, (await readFile(wasmPath)).subarray(0, 1000));
    await prepareEngine({ cacheDir, kernels: "auto" });
    expect(await sha256Hex(await readFile(wasmPath))).toBe(IMAGE_SHA256);
  });

  it("leaves nothing half-written, also when several daemons start at once", async () => {
    await Promise.all(Array.from({ length: 4 }, () => prepareEngine({ cacheDir, kernels: "auto" })));
    const files = await readdir(path.join(cacheDir, "engine"));
    expect(files.filter((file) => !file.endsWith(".user"))).toEqual([`${IMAGE_SHA256}.wasm`]);
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

  describe("removes images of other versions", () => {
    const other = "0".repeat(64);
    const host = os.hostname().replaceAll(/[^\w-]/g, "-");

    /** Prepares beside an image of another version with this mark, and says what of the two is left. */
    async function leftOf(mark: string | undefined): Promise<string[]> {
      const folder = path.join(cacheDir, "engine");
      await mkdir(folder);
      await writeFile(path.join(folder, `${other}.wasm`), "");
      if (mark !== undefined) await writeFile(path.join(folder, `${other}.${mark}.user`), "");
      await prepareEngine({ cacheDir, kernels: "auto" });
      const files = await readdir(folder);
      expect(files).toContain(`${IMAGE_SHA256}.wasm`);
      return files.filter((file) => file.startsWith(other)).map((file) => file.slice(other.length));
    }

    it("that nobody uses", async () => {
      expect(await leftOf(undefined)).toEqual([]);
    });

    it("whose daemon is gone", async () => {
      const gone = spawnSync(process.execPath, ["--version"]);
      expect(await leftOf(`${host}.${gone.pid}`)).toEqual([]);
    });

    it("but not one that a running daemon uses", async () => {
      expect((await leftOf(`${host}.${process.pid}`)).toSorted()).toEqual([
        `.${host}.${process.pid}.user`,
        ".wasm",
      ]);
    });

    it("but not one that a daemon of another machine may use", async () => {
      expect(await leftOf("elsewhere.1")).toContain(".wasm");
    });
  });
});
