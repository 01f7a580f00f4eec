import { execFile } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { type SpawnEngineOptions, spawnEngine } from "../../src/engine/launch.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import {
  engineSpec,
  generateText,
  promptRequest,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { tinyLlama } from "../support/tiny-models.ts";

const PROBE = fileURLToPath(new URL("../support/sandbox-probe.mjs", import.meta.url));

const strings = z.record(z.string(), z.string());
const probeSchema = z.object({ results: strings, environment: strings });

const folder = temporaryFolder();
const server = net.createServer();
let port = 0;
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address === "object" && address) port = address.port;
});
afterAll(() => {
  server.close();
  fs.rmSync(folder, { recursive: true });
});

test("an engine process can read its model and nothing else, and do nothing else", async () => {
  vi.stubEnv("HUB_TOKEN", "hf_secret");
  vi.stubEnv("SERVICE_API_KEYS", "secret");
  const modelFile = writeModel(folder, "model", tinyLlama({ blocks: 1 }));
  const secret = path.join(folder, "secret.txt");
  fs.writeFileSync(secret, "secret");
  let launched: { command: string; args: readonly string[]; options: SpawnEngineOptions } | undefined;
  const start = createEngineStarter({
    loadTimeoutMs: 25_000,
    stallTimeoutMs: 25_000,
    spawn: (command, args, options) => {
      launched = { command, args, options };
      return spawnEngine(command, args, options);
    },
  });
  const engine = await start(engineSpec(modelFile));
  expect(await generateText(engine, promptRequest("It works"))).toBeDefined();
  const environ = process.platform === "linux" ? fs.readFileSync(`/proc/${engine.pid}/environ`, "utf8") : "";
  expect(environ).not.toMatch(/secret|HOME|PATH/);
  await engine.close();

  // The same rights and environment, with a probe in the place of the engine's code.
  const { command, args, options } = launched!;
  const rights = args.filter((arg) => arg.startsWith("--"));
  const { stdout } = await promisify(execFile)(
    command,
    [...rights, `--allow-fs-read=${PROBE}`, PROBE, modelFile, secret, folder, String(port)],
    { env: { ...options.env }, cwd: options.cwd },
  );
  const { results, environment } = probeSchema.parse(JSON.parse(stdout));
  const { readOwn, ...rest } = results;
  expect(readOwn).toBe("done");
  expect(rest).toEqual(
    Object.fromEntries(
      Object.keys(rest).map((attempt) => [
        attempt,
        expect.stringMatching(/^ERR_(ACCESS_DENIED|DLOPEN_DISABLED)$/),
      ]),
    ),
  );
  expect(JSON.stringify(environment)).not.toMatch(/secret|HOME|PATH/);
});
