import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { createServices } from "../../../src/daemon/create-services.ts";

const WARN = 40;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-services-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Services of a daemon without models, and its warnings. */
async function compose(config: ConfigInput = {}) {
  const logged: { level: number; msg: string }[] = [];
  const logger = pino({}, { write: (line: string) => logged.push(JSON.parse(line)) });
  const services = await createServices(
    // The tests do not depend on the sandboxes of this machine.
    configSchema.parse({ cache_dir: folder, gpu: { mode: "off" }, sandbox: "off", ...config }),
    {
      logger,
      draining: new AbortController().signal,
      shutdown: () => undefined,
    },
  );
  await services.close();
  return { services, warnings: logged.filter(({ level }) => level >= WARN).map(({ msg }) => msg) };
}

test("uses Daybreak's kernels without a warning", async () => {
  const { services, warnings } = await compose();
  expect(services.kernels).toBe("daybreak");
  expect(warnings).toEqual([]);
});

test("stores the engine image in a fallback folder with a warning if the cache folder is unusable", async () => {
  writeFileSync(path.join(folder, "engine"), "a file where the folder should be");
  const { services, warnings } = await compose();
  expect(services.kernels).toBe("daybreak");
  expect(warnings).toEqual([
    expect.stringMatching(/^The engine is kept in \S+ until the daemon exits, because .*engine/),
  ]);
});

test("uses the stock kernels without a warning when they are configured", async () => {
  const { services, warnings } = await compose({ engine: { kernels: "stock" } });
  expect(services.kernels).toBe("stock");
  expect(warnings).toEqual([]);
});
