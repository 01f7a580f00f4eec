import { copyFileSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cacheCheck, modelsCheck } from "../../../../src/cli/doctor/storage-checks.ts";
import type { Check, Finding } from "../../../../src/cli/doctor/run-checks.ts";
import { configurationCheck, readConfiguration } from "../../../../src/cli/doctor/all-checks.ts";
import { linkInSnapshot } from "../../../../src/models/hub/cache/repo-cache.ts";
import { FILES_HAVE_LINKS } from "../../../support/links.ts";
import { temporaryFolder } from "../../models/temporary-folder.ts";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const SHIPPED = new URL("../../../../models/daybreak-mini.gguf", import.meta.url);

async function look(check: Check): Promise<readonly Finding[]> {
  return await check.run(new AbortController().signal);
}

const refuse = (): never => {
  throw Object.assign(new Error("EPERM"), { code: "EPERM" });
};

describe("cacheCheck", () => {
  const tools = { measure: async () => 50e9, symlink: () => {}, link: refuse };

  it("leaves the cache folder unchanged", async () => {
    const folder = await temporaryFolder();
    expect(await look(cacheCheck(folder, tools))).toEqual([
      { name: "Cache folder", verdict: "ok", message: `${folder}, 50.0 GB free` },
    ]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("does not create the cache folder", async () => {
    const folder = await temporaryFolder();
    const [finding] = await look(cacheCheck(path.join(folder, "not", "yet"), tools));
    expect(finding).toMatchObject({
      verdict: "ok",
      message: expect.stringContaining("created when needed"),
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  it("reports a cache folder that is not writable", async () => {
    const file = path.join(await temporaryFolder(), "file");
    writeFileSync(file, "");
    const findings = [
      ...(await look(cacheCheck(file, tools))),
      // Windows reports this only when something is created there.
      ...(process.platform === "win32" ? [] : await look(cacheCheck(`${file}/below`, tools))),
    ];
    for (const finding of findings)
      expect(finding).toMatchObject({ verdict: "problem", cure: expect.any(String) });
  });

  it.each([
    [100e6, "problem"],
    [2e9, "note"],
    [undefined, "ok"],
  ])("with %s free bytes is %s", async (free, verdict) => {
    const folder = await temporaryFolder();
    const [finding] = await look(cacheCheck(folder, { ...tools, measure: async () => free }));
    expect(finding?.verdict).toBe(verdict);
  });

  it("notes a file system without links", async () => {
    const folder = await temporaryFolder();
    const [finding] = await look(cacheCheck(folder, { ...tools, symlink: refuse }));
    expect(finding).toMatchObject({
      verdict: "note",
      message: expect.stringContaining("does not support links"),
    });
  });
});

/** Creates a cache with a downloaded model; returns the file of its content. */
async function cacheWithModel(): Promise<{ cache: string; repo: string; blob: string }> {
  const cache = await temporaryFolder();
  const repo = path.join(cache, "models--owner--tiny");
  const snapshot = path.join(repo, "snapshots", COMMIT);
  for (const folder of ["blobs", "refs", path.join("snapshots", COMMIT)]) {
    mkdirSync(path.join(repo, folder), { recursive: true });
  }
  const blob = path.join(repo, "blobs", "abcd");
  copyFileSync(SHIPPED, blob);
  await linkInSnapshot(blob, path.join(snapshot, "tiny.gguf"), path.join(repo, ".next"));
  writeFileSync(path.join(repo, "refs", "main"), COMMIT);
  return { cache, repo, blob };
}

describe("modelsCheck", () => {
  it("accepts no models, and intact ones", async () => {
    expect((await look(modelsCheck(path.join(await temporaryFolder(), "none"))))[0]?.verdict).toBe("ok");
    const { cache } = await cacheWithModel();
    expect(await look(modelsCheck(cache))).toEqual([
      {
        name: "Models",
        verdict: "ok",
        message: "1 downloaded, none damaged or incomplete, besides those that ship",
      },
    ]);
  });

  it("notes a cache folder that cannot be read", async () => {
    const file = path.join(await temporaryFolder(), "file");
    writeFileSync(file, "");
    expect(await look(modelsCheck(file))).toMatchObject([{ name: "Models", verdict: "note" }]);
  });

  it("reports a truncated model", async () => {
    const { cache, blob } = await cacheWithModel();
    truncateSync(blob, 1_000_000);
    const [finding] = await look(modelsCheck(cache));
    expect(finding).toMatchObject({ verdict: "problem", message: expect.stringContaining("truncated") });
    expect(finding?.cure).toContain("daybreak pull hf:owner/tiny:tiny.gguf");
  });

  it.skipIf(!FILES_HAVE_LINKS)("reports a model whose content is missing", async () => {
    const { cache, blob } = await cacheWithModel();
    rmSync(blob);
    expect(await look(modelsCheck(cache))).toEqual([
      {
        name: "Models",
        verdict: "problem",
        message: "owner/tiny: the content of tiny.gguf is gone",
        cure: "daybreak pull hf:owner/tiny:tiny.gguf",
      },
    ]);
  });

  it("notes an interrupted download", async () => {
    const { cache, repo } = await cacheWithModel();
    writeFileSync(path.join(repo, "blobs", "ef01.incomplete"), Buffer.alloc(5000));
    const [finding] = await look(modelsCheck(cache));
    expect(finding).toMatchObject({
      verdict: "note",
      message: "owner/tiny: a download was interrupted after 5.0 kB",
    });
  });

  it("notes a registered file that no longer exists", async () => {
    const { cache } = await cacheWithModel();
    const files = [{ alias: "mine", path: path.join(cache, "mine.gguf") }];
    writeFileSync(path.join(cache, "models.json"), JSON.stringify({ version: 1, files, definitions: [] }));
    const [finding] = await look(modelsCheck(cache));
    expect(finding).toMatchObject({ verdict: "note", cure: "daybreak rm mine forgets it." });
  });
});

describe("configurationCheck", () => {
  it("reports an invalid configuration and continues with the defaults", async () => {
    const file = path.join(await temporaryFolder(), "daybreak.toml");
    writeFileSync(file, "[http]\nport = 1234\n");
    const good = readConfiguration({}, { config: file });
    expect(good.config.http.port).toBe(1234);
    expect((await look(configurationCheck(good, {})))[0]).toMatchObject({
      verdict: "ok",
      message: `valid: ${file}`,
    });
    writeFileSync(file, "[http]\nport = 'x'\n");
    const bad = readConfiguration({}, { config: file });
    expect(bad.config.http.port).toBe(8080);
    const [finding] = await look(configurationCheck(bad, {}));
    expect(finding).toMatchObject({ verdict: "problem", message: expect.stringContaining(file) });
  });

  it("notes unknown SERVICE_ variables", async () => {
    const env = { XDG_CONFIG_HOME: "/nonexistent", SERVICE_PROT: "1" };
    const [finding] = await look(configurationCheck(readConfiguration(env, {}), env));
    expect(finding).toMatchObject({ verdict: "note", cure: expect.stringContaining("SERVICE_PROT") });
  });
});
