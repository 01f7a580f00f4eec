import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import type { Engine } from "../../src/engine/engine.ts";
import { restrictedProcess, spawnEngine } from "../../src/engine/launch.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { STOCK_WASM_PATH } from "../../src/engine/engine-image.ts";
import { findCandidates } from "../../src/engine/sandbox/sandbox-finder.ts";
import { tryEngineStart } from "../../src/engine/sandbox/try-engine-start.ts";
import type { Sandbox } from "../../src/engine/sandbox/sandboxes.ts";
import {
  collect,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { ipcAddress } from "../support/ipc-address.ts";
import { FILES_HAVE_LINKS } from "../support/links.ts";
import { listProcesses } from "../support/list-processes.ts";
import { both, need } from "../support/need.ts";
import { PROC } from "../support/proc.ts";
import { spawnTestEngine } from "../support/program.ts";
import { tinyLlama } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

const PROBE = fileURLToPath(new URL("../support/sandbox-probe.mjs", import.meta.url));

const ORPHAN_DAEMON = fileURLToPath(new URL("../support/orphan-daemon.ts", import.meta.url));

const strings = z.record(z.string(), z.string());
const probeSchema = z.object({ results: strings, environment: strings });

const folder = temporaryFolder();
const modelFile = writeModel(folder, "model", tinyLlama({ blocks: 1 }));
const tcp = net.createServer();
const local = net.createServer();
const socket = ipcAddress(folder);
let port = 0;
beforeAll(async () => {
  tcp.listen(0, "127.0.0.1");
  local.listen(socket);
  await Promise.all([once(tcp, "listening"), once(local, "listening")]);
  const address = tcp.address();
  if (typeof address === "object" && address) port = address.port;
  // What the probe sends to the process that started it must not end the test.
  process.on("SIGUSR1", () => {});
});
afterAll(() => {
  tcp.close();
  local.close();
  fs.rmSync(folder, { recursive: true });
});

/** Runs hostile code with the very rights of an engine process. */
async function probe(sandbox: Sandbox | undefined): Promise<z.infer<typeof probeSchema>> {
  const secret = path.join(folder, "secret.txt");
  fs.writeFileSync(secret, "secret");
  const link = path.join(folder, "link.txt");
  fs.rmSync(link, { force: true });
  if (FILES_HAVE_LINKS) fs.symlinkSync(secret, link);
  const { command, args, ...options } = restrictedProcess("host/engine-main", {
    files: [STOCK_WASM_PATH, modelFile, PROBE],
    sandbox,
  });
  const entry = /engine-main\.[jt]s$/;
  const child = spawnEngine(
    command,
    args.map((arg) => (entry.test(arg) ? PROBE : arg)),
    options,
  );
  const facts = { allowed: modelFile, secret, folder, port, socket, daemon: process.pid, link };
  child.stdin?.end(JSON.stringify(facts));
  const [out, problem] = await Promise.all([text(child.stdout!), text(child.stderr!)]);
  if (out === "") throw new Error(problem);
  return probeSchema.parse(JSON.parse(out));
}

/** The attempts of these kinds, and that each was refused. */
function expectRefused(results: Readonly<Record<string, string>>, kinds: readonly string[]): void {
  const attempts = Object.entries(results).filter(([name]) => kinds.includes(name.split(":", 1)[0] ?? ""));
  expect(attempts.length).toBeGreaterThan(0);
  expect(attempts.filter(([, outcome]) => !outcome.startsWith("refused: "))).toEqual([]);
}

/** Kinds of attempts that each sandbox prevents, in addition to Node's permission model. */
const HELD_BACK: Readonly<Record<Sandbox["name"], readonly string[]>> = {
  bubblewrap: ["processes", "network", "files", "calls"],
  "sandbox-exec": ["processes", "network", "files", "calls"],
  namespaces: ["processes", "network"],
};

test("Node keeps hostile code in an engine from files, network, processes and its own inside", async () => {
  vi.stubEnv("HUB_TOKEN", "hf_secret");
  vi.stubEnv("SERVICE_API_KEYS", "secret");
  const { results, environment } = await probe(undefined);
  expect(results["read its own model"]).toBe("done");
  expectRefused(results, ["node"]);
  const seen = JSON.stringify(environment);
  expect(seen).not.toMatch(/secret|HUB|SERVICE/);
  // On Windows Node adds some variables to every environment, PATH and the user's name and folders among them.
  expect(process.platform === "win32" ? "" : seen).not.toMatch(/HOME|PATH|USER/);
});

const found = findCandidates().sandboxes;
const names =
  process.platform === "linux" ? (["bubblewrap", "namespaces"] as const) : found.map(({ name }) => name);

/** Sandbox of this system, and the reason why tests cannot use it. */
async function candidate(name: Sandbox["name"]) {
  const sandbox = found.find((each) => each.name === name);
  const problem = sandbox ? await tryEngineStart({ sandbox }) : "its program is not installed";
  const works = need(`wall of ${name} that works here: ${problem}`, problem === undefined);
  return [`${name}${works.note}`, sandbox!, works] as const;
}

describe.each(await Promise.all(names.map(candidate)))("behind %s", (_what, sandbox, works) => {
  const isSeen = both(works, PROC);

  test.skipIf(works.isMissing)("hostile code gets no further than the sandbox promises", async () => {
    const { results } = await probe(sandbox);
    expect(results["read its own model"]).toBe("done");
    expectRefused(results, ["node", ...HELD_BACK[sandbox.name]]);
  });

  test.skipIf(works.isMissing)(
    "an engine works, says its memory, and is gone when it is closed",
    async () => {
      const engine = await startBehind(sandbox);
      expect(await generateText(engine, promptRequest("It works"))).toBeDefined();
      expect(await engine.memoryUsage()).toBeGreaterThan(10_000_000);
      await engine.close();
      expect(await engine.exited).toMatchObject({ expected: true });
    },
  );

  test.skipIf(works.isMissing)("an engine that is killed ends with its reason", async () => {
    const engine = await startBehind(sandbox);
    const { maxTokens: _, ...endless } = promptRequest("On and on", { sampling: { ignoreEos: true } });
    const generation = generated(engine, endless, NEVER);
    await generation.next();
    process.kill(engine.pid, "SIGKILL");
    await expect(collect(generation)).rejects.toMatchObject({ code: "engine_crashed" });
    expect(await engine.exited).toEqual({
      expected: false,
      reason: expect.stringMatching(/^killed by SIGKILL/),
    });
  });

  test.skipIf(isSeen.isMissing)(
    `a start that is given up ends at any moment, with all its processes${isSeen.note}`,
    async () => {
      for (let ms = 0; ms < 20; ms += 1) {
        const started = await startBehind(sandbox, AbortSignal.timeout(ms)).catch(() => undefined);
        await started?.close();
      }
      await expect.poll(() => processesWith(modelFile)).toEqual([]);
    },
  );

  test.skipIf(isSeen.isMissing)(
    `an engine does not outlive a daemon that is killed${isSeen.note}`,
    async () => {
      const daemon = spawn(process.execPath, [ORPHAN_DAEMON, modelFile, "1", sandbox.name], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(daemon.stdout, "data");
      expect(processesWith(modelFile)).not.toEqual([]);
      daemon.kill("SIGKILL");
      await expect.poll(() => processesWith(modelFile)).toEqual([]);
    },
  );
});

/** Command lines that name a file. */
function processesWith(file: string): string[] {
  return listProcesses()
    .map(({ commandLine }) => commandLine)
    .filter((line) => line.includes(file));
}

async function startBehind(sandbox: Sandbox, signal?: AbortSignal): Promise<Engine> {
  const start = createEngineStarter({
    loadTimeoutMs: 120_000,
    stallTimeoutMs: 120_000,
    findSandbox: async () => sandbox,
    spawn: spawnTestEngine,
  });
  return await start(engineSpec(modelFile, { contextShift: true }), signal && { signal });
}
