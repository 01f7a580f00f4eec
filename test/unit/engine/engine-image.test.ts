import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EngineImage, prepareEngine, privateFolder } from "../../../src/engine/engine-image.ts";
import { IMAGE_SHA256, sha256Hex } from "../../../wasm/engine-image.ts";

let cacheDir: string;
beforeEach(async () => {
  cacheDir = await mkdtemp(path.join(os.tmpdir(), "daybreak-image-"));
});
afterEach(async () => {
  await rm(cacheDir, { recursive: true, force: true });
});

describe("preparing the engine", () => {
  it("builds the image once and reuses it", async () => {
    const first = await prepareEngine({ cacheDir, kernels: "auto" });
    expect(first.kernels).toBe("daybreak");
    expect(await sha256Hex(await readFile(first.wasmPath))).toBe(IMAGE_SHA256);
    const { mtimeMs } = await stat(first.wasmPath);
    expect(await prepareEngine({ cacheDir, kernels: "auto" })).toEqual(first);
    expect((await stat(first.wasmPath)).mtimeMs).toBe(mtimeMs);
  });

  it("rebuilds the image when the file is truncated or changed", async () => {
    const { wasmPath } = await prepareEngine({ cacheDir, kernels: "auto" });
    // Otherwise this would truncate the package's own file.
    expect(path.dirname(wasmPath)).toBe(path.join(cacheDir, "engine"));
    await writeFile(wasmPath, (await readFile(wasmPath)).subarray(0, 1000));
    await prepareEngine({ cacheDir, kernels: "auto" });
    expect(await sha256Hex(await readFile(wasmPath))).toBe(IMAGE_SHA256);
  });

  it("leaves no incomplete files when several daemons start at once", async () => {
    await Promise.all(Array.from({ length: 4 }, () => prepareEngine({ cacheDir, kernels: "auto" })));
    const files = await readdir(path.join(cacheDir, "engine"));
    expect(files.filter((file) => !file.endsWith(".user"))).toEqual([`${IMAGE_SHA256}.wasm`]);
  });

  it("uses the stock engine when requested", async () => {
    const { kernels, wasmPath } = await prepareEngine({ cacheDir, kernels: "stock" });
    expect(kernels).toBe("stock");
    expect(path.basename(wasmPath)).toBe("wllama.wasm");
    expect(await readdir(cacheDir)).toEqual([]);
  });

  it("uses the stock engine with an explanation when the package's file has an unexpected hash", async () => {
    const stockPath = path.join(cacheDir, "other.wasm");
    await writeFile(stockPath, "not the engine");
    const prepared = await prepareEngine({ cacheDir, kernels: "auto", stockPath });
    expect(prepared).toMatchObject({ kernels: "stock", wasmPath: stockPath });
    expect(prepared.problem).toMatch(/not the one expected/);
  });

  it("uses the stock engine with an explanation when the cache folder is not writable", async () => {
    await writeFile(path.join(cacheDir, "engine"), "a file where the folder should be");
    const prepared = await prepareEngine({ cacheDir, kernels: "auto" });
    expect(prepared.kernels).toBe("stock");
    expect(prepared.problem).toMatch(/own kernels: a part of its path is not a folder/);
  });

  it("puts the image into a private folder inside a fallback folder when the cache folder is not writable", async () => {
    await writeFile(path.join(cacheDir, "engine"), "a file where the folder should be");
    const fallbacks = [path.join(cacheDir, "no-such-folder"), cacheDir];
    const prepared = await prepareEngine({ cacheDir, kernels: "auto", fallbacks });
    expect(prepared.kernels).toBe("daybreak");
    expect(await sha256Hex(await readFile(prepared.wasmPath))).toBe(IMAGE_SHA256);
    const folder = path.dirname(prepared.wasmPath);
    expect(path.dirname(folder)).toBe(cacheDir);
    // Windows has no such permissions.
    expect(process.platform === "win32" ? 0o700 : (await stat(folder)).mode & 0o777).toBe(0o700);
    expect(prepared.problem).toContain(folder);
    // The second call finds it there.
    expect((await prepareEngine({ cacheDir, kernels: "auto", fallbacks })).wasmPath).toBe(prepared.wasmPath);
  });

  it("removes unfinished images and private folders of killed processes", async () => {
    const gone = spawnSync(process.execPath, ["--version"]).pid;
    const folder = path.join(cacheDir, "engine");
    const unfinished = path.join(folder, `${IMAGE_SHA256}.wasm.${crypto.randomUUID()}.tmp`);
    const fresh = path.join(folder, `${IMAGE_SHA256}.wasm.${crypto.randomUUID()}.tmp`);
    await mkdir(folder);
    await Promise.all([unfinished, fresh].map(async (file) => await writeFile(file, "half")));
    await utimes(unfinished, 1, 1);
    await prepareEngine({ cacheDir, kernels: "auto" });
    const left = (await readdir(folder)).filter((file) => file.endsWith(".tmp"));
    expect(left).toEqual([path.basename(fresh)]);

    const shared = path.join(cacheDir, "shared");
    await mkdir(path.join(shared, `daybreak-engine-${gone}-aBcDeF`), { recursive: true });
    await mkdir(path.join(shared, `daybreak-engine-${process.ppid}-aBcDeF`));
    expect(path.dirname(privateFolder(shared))).toBe(shared);
    const folders = (await readdir(shared)).map((name) => name.split("-")[2]);
    expect(new Set(folders)).toEqual(new Set([String(process.pid), String(process.ppid)]));
  });

  it("rebuilds an image that was removed or changed while the daemon ran", async () => {
    const problems: string[] = [];
    const image = await EngineImage.prepare({ cacheDir, kernels: "auto" }, (problem) =>
      problems.push(problem),
    );
    const { wasmPath } = image.prepared;
    expect(await image.ensure()).toBe(image.prepared);
    await rm(cacheDir, { recursive: true });
    const [one, other] = await Promise.all([image.ensure(), image.ensure()]);
    expect(one).toBe(other);
    expect(await sha256Hex(await readFile(wasmPath))).toBe(IMAGE_SHA256);
    await writeFile(wasmPath, "something else");
    await image.ensure();
    expect(await sha256Hex(await readFile(wasmPath))).toBe(IMAGE_SHA256);
    expect(problems).toEqual([]);
  });

  describe("removes images of other versions", () => {
    const other = "0".repeat(64);
    const host = os.hostname().replaceAll(/[^\w-]/g, "-");

    /** Prepares the engine beside an image of another version with this marker; returns which of the two are left. */
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

    it("that no daemon uses", async () => {
      expect(await leftOf(undefined)).toEqual([]);
    });

    it("whose daemon has ended", async () => {
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
