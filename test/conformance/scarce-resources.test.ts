import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { writeModel } from "../support/engine-fixture.ts";
import { postJson } from "../support/post-json.ts";
import { startDaemon, type DaemonOptions, type TestDaemon } from "../support/start-daemon.ts";
import { memoryGroup, onFullDisk, onReadOnlyDisk, withoutProc } from "../support/system-limits.ts";
import { tinyLlama } from "../support/tiny-models.ts";
import { LINUX_PROC } from "../support/proc.ts";
import { MANY_FILES } from "../support/many-files.ts";
import { both, need, type Need } from "../support/need.ts";

const MIB = 1024 * 1024;

/** Its clients open more files than it may, and what it has open is seen in /proc. */
const CLIENTS_OF_IT = both(MANY_FILES, LINUX_PROC);

const NOTHING_LOADED = ["--models-load", ""];

let folder: string;
let modelFile: string;
const started: TestDaemon[] = [];

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-scarce-"));
  modelFile = writeModel(folder, "own", tinyLlama());
});

afterAll(async () => {
  await Promise.all(started.map((daemon) => daemon.stop()));
  rmSync(folder, { recursive: true });
});

async function start(options: DaemonOptions): Promise<TestDaemon> {
  const daemon = await startDaemon(options);
  started.push(daemon);
  return daemon;
}

interface Answer {
  readonly status: number;
  readonly body: { readonly error?: { readonly code: string; readonly message: string } } & Record<
    string,
    unknown
  >;
}

async function post(daemon: TestDaemon, route: string, body: object): Promise<Answer> {
  const response = await postJson(daemon.url + route, body);
  return { status: response.status, body: JSON.parse(await response.text()) };
}

async function generate(daemon: TestDaemon, model: string): Promise<number> {
  return (await post(daemon, "/api/generate", { model, prompt: "Hi", max_tokens: 2, stream: false })).status;
}

/** Over a connection of its own. */
async function listModels(daemon: TestDaemon): Promise<number> {
  const response = await fetch(`${daemon.url}/api/models`, { headers: { connection: "close" } });
  await response.body?.cancel();
  return response.status;
}

function healthOverSocket(daemon: TestDaemon): Promise<number> {
  return new Promise((resolve, reject) => {
    http
      .get({ socketPath: daemon.socket, path: "/health", agent: false }, (response) => {
        resolve(response.resume().statusCode ?? 0);
      })
      .once("error", reject);
  });
}

/** Opens connections and says of each whether it is closed by now. */
async function connect(daemon: TestDaemon, count: number, text = ""): Promise<net.Socket[]> {
  const sockets = Array.from({ length: count }, () => {
    const socket = net.connect(Number(new URL(daemon.url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    if (text !== "") socket.write(text);
    return socket;
  });
  await Promise.all(sockets.map(async (socket) => await once(socket, "connect")));
  return sockets;
}

describe.skipIf(CLIENTS_OF_IT.isMissing)(`a daemon that may open few files${CLIENTS_OF_IT.note}`, () => {
  const DESCRIPTORS = 128;
  /** Left to start engines with, among other things. */
  const RESERVE = 40;
  /** A request whose body never comes. */
  const UNFINISHED =
    "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
  let daemon: TestDaemon;

  beforeAll(async () => {
    daemon = await start({ args: NOTHING_LOADED, through: ["prlimit", `--nofile=${DESCRIPTORS}`] });
  });

  test("drops idle connections and loads a model all the same", async () => {
    const sockets = await connect(daemon, 2 * DESCRIPTORS);
    expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
    expect(await healthOverSocket(daemon)).toBe(200);
    expect(readdirSync(`/proc/${daemon.pid}/fd`).length).toBeLessThan(DESCRIPTORS - RESERVE);
    // A connection may be idle for a moment before it is closed for a new one.
    await expect.poll(async () => await listModels(daemon)).toBe(200);
    expect((await post(daemon, "/api/models/load", { alias: "own", path: modelFile })).status).toBe(200);
    expect(await generate(daemon, "own")).toBe(200);
    for (const socket of sockets) socket.destroy();
  });

  test("says that its connections are full when none is idle, and is well otherwise", async () => {
    const sockets = await connect(daemon, DESCRIPTORS, UNFINISHED);
    const ask = async (): Promise<Response> =>
      await fetch(`${daemon.url}/api/models`, { headers: { connection: "close" } });
    let refused = await ask();
    // Connections of the previous test may still have been open, and made others possible when they closed.
    const askAgain = async (): Promise<number> => {
      if (refused.status === 503) return 503;
      sockets.push(...(await connect(daemon, RESERVE, UNFINISHED)));
      refused = await ask();
      return refused.status;
    };
    await expect.poll(askAgain).toBe(503);
    await expect.poll(() => daemon.logs()).toMatch(/The connections over TCP are full/);
    expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(refused.headers.get("connection")).toBe("close");
    expect(await refused.json()).toMatchObject({
      error: { code: "overloaded", message: expect.stringMatching(/^All connections .* are in use/) },
    });
    expect((await fetch(`${daemon.url}/health`, { headers: { connection: "close" } })).status).toBe(200);
    expect(await healthOverSocket(daemon)).toBe(200);
    for (const socket of sockets) socket.destroy();
    await expect.poll(async () => await listModels(daemon)).toBe(200);
  });
});

describe.skipIf(process.platform !== "linux")("a load that the system has no memory for says", () => {
  test.each([
    ["address space", "--as=30000000000", /address space.*the limit is 27\.9 GiB \(ulimit -v\)/],
    ["writable memory", "--data=900000000", /writable memory.*the limit is 0\.8 GiB \(ulimit -d\)/],
  ])("which limit of the shell leaves too little %s", async (_what, limit, message) => {
    const daemon = await start({ args: NOTHING_LOADED, through: ["prlimit", limit] });
    const { status, body } = await post(daemon, "/api/models/load", { alias: "daybreak-mini" });
    expect(status).toBe(500);
    expect(body.error?.code).toBe("insufficient_memory");
    expect(body.error?.message).toMatch(message);
  });

  test("what its container has, and who has it", async ({ skip }) => {
    const group = memoryGroup(300 * MIB);
    const right = need("right to make a control group", group !== undefined);
    skip(right.isMissing, right.reason);
    onTestFinished(() => group?.remove());
    const daemon = await startDaemon({ args: NOTHING_LOADED, through: group?.through ?? [] });
    const { status, body } = await post(daemon, "/api/models/load", { alias: "daybreak-mini" });
    await daemon.stop();
    expect(status).toBe(500);
    expect(body.error?.code).toBe("insufficient_memory");
    expect(body.error?.message).toMatch(
      /needs about \d+ MiB: .*of the 300 MiB of this container or control group \(.*memory.*\) the daemon takes \d+ MiB and other programs \d+ MiB, which leaves \d+ MiB for models/,
    );
  });
});

test("a daemon whose cache folder is removed makes its engine again and goes on", async () => {
  const daemon = await start({ args: NOTHING_LOADED });
  rmSync(daemon.cacheDir, { recursive: true });
  expect((await post(daemon, "/api/models/load", { alias: "own", path: modelFile })).status).toBe(200);
  expect(await generate(daemon, "own")).toBe(200);
  expect(readdirSync(path.join(daemon.cacheDir, "engine")).some((name) => name.endsWith(".wasm"))).toBe(true);
  expect(
    (await post(daemon, "/api/models/create", { alias: "made", modelfile: "FROM daybreak-mini" })).status,
  ).toBe(200);
});

/** How these daemons are started. */
function mounts(through: readonly string[] | undefined): Need {
  return need("user namespaces, to mount something in", through !== undefined);
}

describe.skipIf(process.platform !== "linux")("a daemon that cannot see /proc", () => {
  const through = withoutProc();
  const needed = mounts(through);

  test.skipIf(needed.isMissing)(`serves, and tells of its memory${needed.note}`, async () => {
    const daemon = await start({ through: through ?? [] });
    expect(await generate(daemon, "daybreak-mini")).toBe(200);
    expect((await fetch(`${daemon.url}/metrics`)).status).toBe(200);
    const { models } = await (await fetch(`${daemon.url}/api/models`)).json();
    expect(models[0]).toMatchObject({ state: "loaded", memory_bytes: expect.any(Number) });
  });
});

describe.skipIf(process.platform !== "linux").each([
  ["full", onFullDisk, "insufficient_disk", /the disk is full\.$/, true],
  ["read-only", onReadOnlyDisk, "cache_not_writable", /it is read-only\.$/, false],
] as const)("a daemon whose cache folder is %s", (kind, mount, code, message, isOtherFolder) => {
  const cacheDir = path.join(os.tmpdir(), `daybreak-${kind}-${process.pid}`);
  mkdirSync(cacheDir, { recursive: true });
  const through = mount(cacheDir);
  const needed = mounts(through);
  let daemon: TestDaemon | undefined;
  const removeFolder = (): void => rmSync(cacheDir, { recursive: true });
  // Tests that are skipped are not cleaned up after.
  if (needed.isMissing) removeFolder();
  else afterAll(removeFolder);

  test.skipIf(needed.isMissing)(
    `runs what is there, fast, and says what cannot be saved${needed.note}`,
    async () => {
      daemon = await start({ cacheDir, through: through ?? [] });
      expect(await generate(daemon, "daybreak-mini")).toBe(200);
      expect(await (await fetch(`${daemon.url}/api/system/status`)).json()).toMatchObject({
        kernels: "daybreak",
      });
      const [, otherFolder] = /The engine is kept in (\S+) until the daemon exits/.exec(daemon.logs()) ?? [];
      expect(otherFolder !== undefined).toBe(isOtherFolder);
      expect((await post(daemon, "/api/models/load", { alias: "own", path: modelFile })).status).toBe(200);
      expect(await generate(daemon, "own")).toBe(200);
      const made = await post(daemon, "/api/models/create", {
        alias: "made",
        modelfile: "FROM daybreak-mini",
      });
      expect(made.status).toBe(500);
      expect(made.body.error?.code).toBe(code);
      expect(made.body.error?.message).toMatch(message);
      await daemon.stop();
      expect(otherFolder !== undefined && existsSync(otherFolder)).toBe(false);
    },
  );
});
