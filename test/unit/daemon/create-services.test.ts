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

/** The services of a daemon that has loaded nothing, and what has been logged. */
async function compose(config: ConfigInput = {}) {
  const logged: { level: number; msg: string }[] = [];
  const logger = pino({}, { write: (line: string) => logged.push(JSON.parse(line)) });
  const services = await createServices(
    // What walls this machine has is not a part of what these tests describe.
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

test("our own kernels run without a word", async () => {
  const { services, warnings } = await compose();
  expect(services.kernels).toBe("daybreak");
  expect(warnings).toEqual([]);
});

test("a daemon that cannot keep its engine in the cache keeps it elsewhere, says so, and runs our own kernels", async () => {
  writeFileSync(path.join(folder, "engine"), "a file where the folder should be");
  const { services, warnings } = await compose();
  expect(services.kernels).toBe("daybreak");
  expect(warnings).toEqual([
    expect.stringMatching(/^The engine is kept in \S+ until the daemon exits, because .*engine/),
  ]);
});

test("a daemon that was told to run the stock one does not complain of it", async () => {
  const { services, warnings } = await compose({ engine: { kernels: "stock" } });
  expect(services.kernels).toBe("stock");
  expect(warnings).toEqual([]);
});
