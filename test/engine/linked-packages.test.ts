import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { engineSpec, promptRequest, temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { linkedInstallation } from "../support/linked-installation.ts";
import { tinyLlama } from "../support/tiny-models.ts";

test("an engine runs with linked packages, as pnpm installs them", async () => {
  const folder = temporaryFolder();
  const home = linkedInstallation(folder);
  const script = `
    const { createEngineStarter } = await import(${JSON.stringify(pathToFileURL(path.join(home, "src/engine/start-engine.ts")).href)});
    const start = createEngineStarter({ loadTimeoutMs: 120_000, stallTimeoutMs: 120_000 });
    const engine = await start(${JSON.stringify(engineSpec(writeModel(folder, "model", tinyLlama())))});
    const onEvent = ({ type }) => type === "done" && console.log(type);
    await engine.generate(${JSON.stringify(promptRequest("Once"))}, onEvent, new AbortController().signal);
    await engine.close();
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  expect(stdout).toBe("done\n");
  fs.rmSync(folder, { recursive: true });
});
