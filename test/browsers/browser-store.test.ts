import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { startFixtureHub } from "../support/fixture-hub.ts";
import { type InterruptingProxy, startInterruptingProxy } from "../support/interrupting-proxy.ts";
import { need } from "../support/need.ts";
import { startStaticServer } from "../support/static-server.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const offerSchema = z.object({ files: z.array(z.object({ sha256: z.string(), size_bytes: z.number() })) });
const storedSchema = z.array(z.object({ name: z.string(), size: z.number(), stored: z.number() }));

describe.skipIf(CHROMIUM.isMissing)(`models in the browser's storage${CHROMIUM.note}`, () => {
  let page: BrowserPage;
  let daemon: TestDaemon;
  let proxy: InterruptingProxy;
  /** Size of the model in bytes. */
  let size = 0;
  beforeAll(async () => {
    daemon = await startDaemon();
    proxy = await startInterruptingProxy(daemon.url, /\/files\/\d+$/);
    page = await BrowserPage.open(chromium!, `${proxy.url}/ui/`);
    await open();
    const offer = await (await fetch(`${daemon.url}/api/models/daybreak-mini/files`)).json();
    size = offerSchema.parse(offer).files.reduce((sum, file) => sum + file.size_bytes, 0);
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await proxy?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });
  afterEach(async () => {
    await page.evaluate(
      `(async () => { for (const { name } of await store.list()) await store.delete(name); })()`,
    );
    proxy.ranges.length = 0;
    proxy.interruptions.length = 0;
  });

  /** Loads the module in a page that was opened or reloaded. */
  async function open(): Promise<void> {
    await page.until("document.readyState === 'complete'");
    await page.evaluate(`(async () => {
      globalThis.daybreak = await import("/browser/daybreak.js");
      globalThis.store = new daybreak.ModelStore();
      globalThis.progress = [];
      globalThis.download = (name, options = {}) =>
        store.download(name, { onProgress: (share) => progress.push(share), ...options })
          .then((stored) => ({ stored }), (error) => ({ code: typeof error.code === "string" ? error.code : error.name, message: error.message }));
    })()`);
  }
  const download = (name = "daybreak-mini") => page.evaluate(`download(${JSON.stringify(name)})`);
  const list = async () => storedSchema.parse(await page.evaluate("store.list()"));
  const blobs = async () =>
    z.array(z.string()).parse(
      await page.evaluate(`(async () => {
        const root = await navigator.storage.getDirectory();
        const folder = await (await root.getDirectoryHandle("daybreak")).getDirectoryHandle("blobs");
        return (await Array.fromAsync(folder.keys())).sort();
      })()`),
    );

  test("are downloaded from the daemon once, and run without it", async () => {
    expect(await download()).toEqual({ stored: { name: "daybreak-mini", size, stored: size } });
    expect(await list()).toEqual([{ name: "daybreak-mini", size, stored: size }]);
    const requests = proxy.ranges.length;
    expect(await download()).toMatchObject({ stored: { stored: size } });
    expect(proxy.ranges).toHaveLength(requests);
    const answer = await page.evaluate(`(async () => {
      const engine = await daybreak.createEngine(await store.open("daybreak-mini"));
      const body = JSON.stringify({ messages: [{ role: "user", content: "What is Daybreak?" }], max_tokens: 4 });
      const headers = { "content-type": "application/json" };
      const answer = await (await engine.fetch("/v1/chat/completions", { method: "POST", headers, body })).json();
      engine.close();
      return answer.choices[0].message.content;
    })()`);
    expect(answer).toEqual(expect.stringMatching(/\w/));
  });

  test("report increasing progress during a download", async () => {
    await page.evaluate("progress.length = 0");
    await download();
    const progress = z.array(z.number()).parse(await page.evaluate("progress"));
    expect(progress.at(-1)).toBe(1);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  });

  test("resume a download after a broken connection", async () => {
    proxy.interruptions.push({ afterBytes: 300_000, how: "hold" }, { afterBytes: 200_000, how: "hold" });
    await page.evaluate("progress.length = 0");
    const result = download();
    for (const share of [0, 300_000 / size]) {
      await page.until(`progress.at(-1) > ${share}`);
      await expect.poll(() => proxy.cut()).toBe(1);
    }
    expect(await result).toMatchObject({ stored: { stored: size } });
    const [first, second, third] = proxy.ranges;
    expect(first).toBe("");
    expect(second).toMatch(/^bytes=[1-9]\d*-$/);
    expect(Number(third?.match(/\d+/)?.[0])).toBeGreaterThan(Number(second?.match(/\d+/)?.[0]));
  });

  test("resume a download after the tab was closed", async () => {
    proxy.interruptions.push({ afterBytes: 400_000, how: "hold" });
    await page.evaluate("progress.length = 0; void download('daybreak-mini')");
    await page.until("progress.at(-1) > 0");
    await page.evaluate("location.reload()");
    await open();
    const [partial] = await list();
    expect(partial!.stored).toBeGreaterThan(0);
    expect(partial!.stored).toBeLessThan(size);
    await expect(page.evaluate(`store.open("daybreak-mini")`)).rejects.toThrow("not completely");
    expect(await download()).toMatchObject({ stored: { stored: size } });
    expect(proxy.ranges.at(-1)).toBe(`bytes=${partial!.stored}-`);
  });

  test("are rejected if they were damaged during the download, and nothing is stored", async () => {
    proxy.interruptions.push({ afterBytes: 500_000, how: "damage" });
    expect(await download()).toMatchObject({ code: "checksum_mismatch" });
    expect((await list())[0]?.stored).toBe(0);
    expect(await download()).toMatchObject({ stored: { stored: size } });
  });

  test("are rejected with an explanation if the browser has no space", async () => {
    await page.overrideQuota(proxy.url, 1_000_000);
    expect(await download()).toEqual({
      code: "insufficient_disk",
      message: expect.stringContaining("The browser has no more space for models."),
    });
    await page.overrideQuota(proxy.url);
    expect(await download()).toMatchObject({ stored: { stored: size } });
  });

  test("are downloaded once if two downloads of the same model run concurrently", async () => {
    const both = await page.evaluate(`Promise.all([download("daybreak-mini"), download("daybreak-mini")])`);
    expect(both).toMatchObject([{ stored: { stored: size } }, { stored: { stored: size } }]);
    expect(proxy.ranges).toHaveLength(1);
  });

  test("share files, which are deleted with the last model that uses them", async () => {
    await download("daybreak-mini");
    await download("daybreak-mini-pirate");
    const shared = await blobs();
    const [base, pirate] = await Promise.all(
      ["daybreak-mini", "daybreak-mini-pirate"].map(async (name) => {
        const offer = await (await fetch(`${daemon.url}/api/models/${name}/files`)).json();
        return offerSchema.parse(offer).files.map(({ sha256 }) => sha256);
      }),
    );
    expect(shared).toEqual([...new Set([...base!, ...pirate!])].toSorted());
    await page.evaluate(`store.delete("daybreak-mini")`);
    expect(await blobs()).toEqual(pirate!.toSorted());
    await page.evaluate(`store.delete("daybreak-mini-pirate")`);
    expect(await blobs()).toEqual([]);
  });

  test("can be added from local files", async () => {
    const stored = await page.evaluate(`(async () => {
      const blob = await (await fetch("/api/models/daybreak-mini/files/0")).blob();
      await store.add("mine", [new File([blob], "mine.gguf")]);
      const { model } = await store.open("mine");
      return model[0].size === blob.size;
    })()`);
    expect(stored).toBe(true);
    const offer = await (await fetch(`${daemon.url}/api/models/daybreak-mini/files`)).json();
    expect(await blobs()).toEqual([offerSchema.parse(offer).files[0]!.sha256]);
  });

  test("keep the partial file if a download is aborted", async () => {
    proxy.interruptions.push({ afterBytes: 400_000, how: "hold" });
    const abandoned = await page.evaluate(`(async () => {
      const controller = new AbortController();
      const onProgress = () => controller.abort();
      return await download("daybreak-mini", { signal: controller.signal, onProgress });
    })()`);
    expect(abandoned).toMatchObject({ code: "AbortError" });
    expect((await list())[0]!.stored).toBeLessThan(size);
    expect(await download()).toMatchObject({ stored: { stored: size } });
  });

  test("report used and free space", async () => {
    await download();
    const usage = z
      .object({ used: z.number(), free: z.number(), persistent: z.boolean() })
      .parse(await page.evaluate("store.usage()"));
    expect(usage.used).toBeGreaterThanOrEqual(size);
    expect(usage.free).toBeGreaterThan(size);
  });

  test("can be downloaded from the hub, on a page without a daemon", async () => {
    const weights = readFileSync(new URL("../../models/daybreak-mini.gguf", import.meta.url));
    const parts = [weights.subarray(0, 1_000_000), weights.subarray(1_000_000)];
    const files = parts.map((part, index) => [`tiny-0000${index + 1}-of-00002.gguf`, part]);
    const hub = await startFixtureHub({
      pageSize: 1,
      repos: { "owner/tiny": { files: Object.fromEntries(files) } },
    });
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-store-"));
    try {
      for (const name of ["daybreak.js", "store-worker.js"]) {
        writeFileSync(path.join(folder, name), await (await fetch(`${daemon.url}/browser/${name}`)).text());
      }
      writeFileSync(path.join(folder, "index.html"), "<!doctype html>");
      await using server = await startStaticServer(folder);
      await using own = await page.openTab(`${server.url}/`);
      await own.until("document.readyState === 'complete' && location.protocol === 'http:'");
      await own.evaluate(`(async () => {
        const { ModelStore } = await import("/daybreak.js");
        globalThis.store = new ModelStore();
        globalThis.get = (repo, file) => store.downloadFromHub(repo, file, { hub: ${JSON.stringify(hub.url)} })
          .catch(({ code }) => code);
      })()`);
      hub.failNext(/GET .*00002/, { status: 503 });
      const stored = { name: "tiny", size: weights.length, stored: weights.length };
      expect(await own.evaluate(`get("owner/tiny", "tiny-00001-of-00002.gguf")`)).toEqual(stored);
      expect(await own.evaluate("store.list()")).toEqual([stored]);
      const digest = await own.evaluate(`(async () => {
        const { model } = await store.open("tiny");
        const bytes = await new Blob(model).arrayBuffer();
        return [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))];
      })()`);
      expect(digest).toEqual([...createHash("sha256").update(weights).digest()]);
      expect(await own.evaluate(`get("owner/nothing", "x.gguf")`)).toMatch(/^hub_/);
      expect(await own.evaluate(`get("owner/tiny", "x.gguf")`)).toBe("no_gguf_in_repo");
    } finally {
      rmSync(folder, { recursive: true, force: true });
      await hub.close();
    }
  });

  test("are rejected with model_not_found if the daemon does not have them", async () => {
    expect(await download("no-such-model")).toMatchObject({ code: "model_not_found" });
    expect(await list()).toEqual([]);
  });
});
