import fs from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Engine } from "../../../src/engine/engine.ts";
import { spawnEngine } from "../../../src/engine/launch.ts";
import { isRunning } from "../../../src/engine/child-process.ts";
import { createEngineStarter } from "../../../src/engine/start-engine.ts";
import {
  collect,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  temporaryFolder,
  writeModel,
} from "../../support/engine-fixture.ts";
import { tinyLlama } from "../../support/tiny-models.ts";
import { generated } from "../../support/generated.ts";
import { Deadline } from "../../../src/inference/deadline.ts";
import { GenerationStream } from "../../../src/inference/generation-stream.ts";
import { PROC } from "../../support/proc.ts";

const FAKE_ENGINE = fileURLToPath(new URL("../../support/fake-engine-process.mjs", import.meta.url));

/** Timeout that only a hanging engine reaches, even on the slowest machine. */
const HANG_MS = 120_000;

const folder = temporaryFolder();
const modelFile = writeModel(folder, "model", tinyLlama({ blocks: 1 }));
const engines: Engine[] = [];
afterAll(async () => {
  await Promise.all(engines.map((engine) => engine.close()));
  // Windows unlocks the files of an ended process with a delay.
  fs.rmSync(folder, { recursive: true, maxRetries: 10 });
});

/** Starts a fake engine with this behavior; remembers its process. */
function play(
  part: string,
  timeouts: { loadTimeoutMs?: number; stallTimeoutMs?: number } = {},
): { started: Promise<Engine>; pid: () => number } {
  let pid = 0;
  const start = createEngineStarter({
    loadTimeoutMs: HANG_MS,
    stallTimeoutMs: HANG_MS,
    ...timeouts,
    spawn: () => {
      const child = spawnEngine(process.execPath, [FAKE_ENGINE, part], { env: {}, cwd: folder });
      pid = child.pid ?? 0;
      return child;
    },
  });
  const started = start(engineSpec(modelFile, { slots: 2 }));
  started.then((engine) => engines.push(engine)).catch(() => {});
  return { started, pid: () => pid };
}

/** Like bubblewrap that is killed during setup: its child keeps waiting, with the pipes open. */
function halfUp(script: string, loadTimeoutMs: number): Promise<Engine> {
  const start = createEngineStarter({
    loadTimeoutMs,
    stallTimeoutMs: HANG_MS,
    spawn: () => spawnEngine("/bin/sh", ["-c", script], { env: {}, cwd: folder }),
  });
  return start(engineSpec(modelFile));
}

describe.skipIf(process.platform === "win32")("an engine whose sandbox process ends first", () => {
  test.each([
    ["ended by the daemon", "sleep 1000 & wait", 300, "deadline_exceeded"],
    ["ended by itself", "sleep 1000 & exit 3", HANG_MS, "engine_crashed"],
  ])("(%s) counts as ended", async (_, script, loadTimeoutMs, code) => {
    await expect(halfUp(script, loadTimeoutMs)).rejects.toMatchObject({ code });
  });
});

test("an engine without the permission model ends before it reads a file, and the message explains it", async () => {
  const start = createEngineStarter({
    loadTimeoutMs: HANG_MS,
    stallTimeoutMs: HANG_MS,
    // Like other runtimes that ignore unknown flags.
    spawn: (command, args, options) =>
      spawnEngine(
        command,
        args.filter((arg) => !/^--(permission|allow-)/.test(arg)),
        options,
      ),
  });
  await expect(start(engineSpec(modelFile))).rejects.toMatchObject({
    code: "model_load_failed",
    message: expect.stringMatching(/lacks Node.s permission model.*Start Daybreak with Node 24\.20 or later/),
  });
});

describe("an engine that fails to load", () => {
  test.each([
    ["silent while loading", { loadTimeoutMs: 300 }, "deadline_exceeded", /no progress in loading/],
    ["forged while loading", {}, "engine_crashed", /invalid message/],
    ["premature while loading", {}, "engine_crashed", /unexpected message: cancelled/],
    ["exits while loading", {}, "engine_crashed", /code 7 \(Error: the disk is on fire\)/],
  ])("(%s) rejects the start and leaves no process behind", async (part, timeouts, code, message) => {
    const { started, pid } = play(part, timeouts);
    await expect(started).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(isRunning(pid())).toBe(false);
  });

  test("rejects the start when the process cannot be started", async () => {
    const start = createEngineStarter({
      loadTimeoutMs: HANG_MS,
      stallTimeoutMs: HANG_MS,
      spawn: (_command, args, options) => spawnEngine(path.join(folder, "no-such-node"), args, options),
    });
    await expect(start(engineSpec(modelFile))).rejects.toMatchObject({
      code: "model_load_failed",
      message: expect.stringMatching(/its program no longer exists \(.*no-such-node\)\. Restart the daemon/),
    });
  });

  test("names the exhausted resource when the system cannot start a process", async () => {
    const start = createEngineStarter({
      loadTimeoutMs: HANG_MS,
      stallTimeoutMs: HANG_MS,
      spawn: () => {
        throw Object.assign(new Error("spawn ENOMEM"), { code: "ENOMEM", errno: -12, syscall: "spawn" });
      },
    });
    await expect(start(engineSpec(modelFile))).rejects.toMatchObject({
      code: "resources_exhausted",
      message: expect.stringMatching(/^The model's engine cannot be started: the system has no memory left/),
    });
  });
});

describe("a loaded engine", () => {
  test.each([
    ["forged", "engine_crashed", /invalid message/],
    ["answers another call", "engine_crashed", /unexpected message: events/],
    ["answers with the wrong kind", "engine_crashed", /unexpected message: embedded/],
    ["writes garbage", "engine_crashed", /does not begin like a message/],
    ["announces an endless message", "engine_crashed", /announces 4294967295 bytes of JSON/],
    ["announces endless bytes beside it", "engine_crashed", /announces 4294967295 bytes of attachments/],
    ["announces more attachments than there are", "engine_crashed", /announces 3 attachments/],
    ["writes what is not JSON", "engine_crashed", /is not JSON/],
    ["writes one kind in the frame of another", "engine_crashed", /not of the kind that its frame states/],
    ["nests an object 3,000 deep", "engine_crashed", /nested more than \d+ levels/],
    ["writes a hundred thousand values", "engine_crashed", /more than \d+ values/],
    ["writes what Node's own channel obeys", "engine_crashed", /does not begin like a message/],
    ["leaves half a message", "engine_crashed", /exited with code 3/],
  ])("that misbehaves (%s) is ended, and its calls fail", async (part, code, message) => {
    const engine = await play(part).started;
    await expect(collect(generated(engine, promptRequest("Hi"), NEVER))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
    expect(await engine.exited).toMatchObject({
      expected: false,
      reason: expect.stringMatching(message),
    });
    expect(engine.alive).toBe(false);
    expect(isRunning(engine.pid)).toBe(false);
  });

  test("that aborts in llama.cpp has an understandable message; the original one is logged", async () => {
    const engine = await play("fatal").started;
    await expect(collect(generated(engine, promptRequest("Hi"), NEVER))).rejects.toMatchObject({
      code: "engine_crashed",
      message: expect.stringMatching(/request ran: llama.cpp failed an internal check/),
    });
    expect(await engine.exited).toMatchObject({ reason: expect.stringMatching(/GGML_ASSERT/) });
  });

  test("that stops answering is ended at the deadline", async () => {
    const engine = await play("silent", { stallTimeoutMs: 300 }).started;
    await expect(collect(generated(engine, promptRequest("Hi"), NEVER))).rejects.toMatchObject({
      code: "deadline_exceeded",
    });
    expect(await engine.exited).toMatchObject({ expected: false });
  });

  test("that answers is not ended because its daemon was suspended", async () => {
    const engine = await play("dribbles", { stallTimeoutMs: 300 }).started;
    const answer = generateText(engine, promptRequest("Hi"));
    // Like SIGSTOP, in a tick of the event loop whose timers are next.
    await new Promise(setImmediate);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    expect(await answer).toBe("slow");
  });

  test("that ignores a cancellation is ended at the deadline, and the caller gets its own reason", async () => {
    const engine = await play("silent", { stallTimeoutMs: 300 }).started;
    const reason = new Error("the client went away");
    const controller = new AbortController();
    const generation = collect(generated(engine, promptRequest("Hi"), controller.signal));
    controller.abort(reason);
    await expect(generation).rejects.toBe(reason);
    expect(await engine.exited).toMatchObject({ expected: false });
  });

  test("whose answer ends before its cancellation arrives frees the slot", async () => {
    const engine = await play("ends before the cancel").started;
    // The engine may confirm late.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    for (let round = 0; round < 3; round += 1) {
      const controller = new AbortController();
      const generation = collect(generated(engine, promptRequest("Hi"), controller.signal));
      controller.abort(new Error("the client went away"));
      await expect(generation).rejects.toThrow("the client went away");
    }
    // A call that never ended would occupy one of the two slots.
    const soon = AbortSignal.timeout(60_000);
    const answers = await Promise.all([engine.embed("1", soon), engine.embed("2", soon)]);
    expect(answers).toMatchObject([{ tokens: 2 }, { tokens: 2 }]);
    await engine.close();
  });

  test.skipIf(PROC.isMissing)(
    `that floods its daemon neither fills its memory nor holds it up, and loses its call${PROC.note}`,
    async () => {
      const engine = await play("floods").started;
      const before = process.memoryUsage().rss;
      const generation = await GenerationStream.begin({
        run: async (onEvent, signal) => await engine.generate(promptRequest("Hi"), onEvent, signal),
        filters: [],
        deadline: new Deadline(NEVER, Number.POSITIVE_INFINITY),
        resources: new DisposableStack(),
        onPrompt: () => undefined,
        onToken: () => undefined,
        fail: () => undefined,
        finish: (done) => ({ ...done, totalMs: 0, tokensPerSecond: 0 }),
      });
      const delays = monitorEventLoopDelay({ resolution: 5 });
      delays.enable();
      // The reader is far too slow for the endless output.
      const slowly = async (): Promise<void> => {
        for await (const _ of generation) await setTimeout(200);
      };
      await expect(slowly()).rejects.toMatchObject({ code: "overloaded" });
      delays.disable();
      expect(process.memoryUsage.rss() - before).toBeLessThan(128 * 1024 * 1024);
      // A tick takes a few milliseconds; it would be seconds on any machine if the output blocked the daemon.
      expect(delays.percentile(50) / 1e6).toBeLessThan(1000);
    },
  );

  test("that does not read is ended, instead of buffering more and more messages", async () => {
    const engine = await play("does not read").started;
    const text = "x".repeat(1024 * 1024);
    const options = { addSpecial: false, parseSpecial: false };
    const calls = Array.from({ length: 100 }, () => engine.tokenize(text, options, NEVER));
    expect(await Promise.allSettled(calls)).toEqual(
      calls.map(() => expect.objectContaining({ status: "rejected" })),
    );
    expect(await engine.exited).toEqual({ expected: false, reason: "did not read what it was sent" });
  });

  test("may send its messages in single bytes", async () => {
    const engine = await play("dribbles").started;
    expect(await generateText(engine, promptRequest("Hi"))).toBe("slow");
  });

  test("that is idle has no deadline", async () => {
    const engine = await play("silent", { stallTimeoutMs: 1 }).started;
    await setTimeout(200);
    expect(engine.alive).toBe(true);
  });

  test("continues after a failed call", async () => {
    const engine = await play("fails one call").started;
    await expect(collect(generated(engine, promptRequest("Hi"), NEVER))).rejects.toMatchObject({
      code: "inference_failed",
      message: "too hard",
    });
    expect(await engine.embed("Hi", NEVER)).toEqual({ vector: [1, 0], tokens: 2 });
  });

  test("rejects its calls in flight when it is closed, and every later one", async () => {
    const engine = await play("silent").started;
    const inFlight = engine.embed("Hi", NEVER).catch((error: unknown) => error);
    await engine.close();
    expect(await inFlight).toMatchObject({ code: "model_not_loaded" });
    expect(await engine.exited).toEqual({ expected: true, reason: "closed, because the model was unloaded" });
    await expect(engine.embed("Hi", NEVER)).rejects.toMatchObject({ code: "model_not_loaded" });
    expect(await engine.memoryUsage()).toBe(0);
  });

  test("rejects more calls than it has slots; a request for its memory does not count", async () => {
    const engine = await play("silent").started;
    const calls = [engine.embed("1", NEVER), engine.embed("2", NEVER)].map((call) => call.catch(() => {}));
    await expect(engine.embed("3", NEVER)).rejects.toMatchObject({ code: "internal_error" });
    const memory = engine.memoryUsage();
    await engine.close();
    expect(await memory).toBe(0);
    await Promise.all(calls);
  });

  test("rejects a request that would block it, without sending it", async () => {
    const engine = await play("silent").started;
    const request = promptRequest("x".repeat(10_000_000));
    await expect(collect(generated(engine, request, NEVER))).rejects.toMatchObject({
      code: "context_length_exceeded",
    });
  });
});
