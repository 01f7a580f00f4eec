import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import type { Engine } from "../../../src/engine/engine.ts";
import { isRunning } from "../../../src/engine/is-running.ts";
import { createEngineStarter } from "../../../src/engine/start-engine.ts";
import {
  collect,
  engineSpec,
  NEVER,
  promptRequest,
  temporaryFolder,
  writeModel,
} from "../../support/engine-fixture.ts";
import { tinyLlama } from "../../support/tiny-models.ts";

const FAKE_ENGINE = fileURLToPath(new URL("../../support/fake-engine.mjs", import.meta.url));

const folder = temporaryFolder();
const modelFile = writeModel(folder, "model", tinyLlama({ blocks: 1 }));
const engines: Engine[] = [];
afterAll(async () => {
  await Promise.all(engines.map((engine) => engine.close()));
  fs.rmSync(folder, { recursive: true });
});

/** Starts a fake engine that plays a part; remembers its process. */
function play(
  part: string,
  timeouts: { loadTimeoutMs?: number; stallTimeoutMs?: number } = {},
): { started: Promise<Engine>; pid: () => number } {
  let pid = 0;
  const start = createEngineStarter({
    loadTimeoutMs: 20_000,
    stallTimeoutMs: 20_000,
    ...timeouts,
    spawn: () => {
      const child = spawn(process.execPath, [FAKE_ENGINE, part], {
        stdio: ["ignore", "pipe", "pipe", "ipc"],
        serialization: "advanced",
      });
      pid = child.pid ?? 0;
      return child;
    },
  });
  const started = start(engineSpec(modelFile, { slots: 2 }));
  started.then((engine) => engines.push(engine)).catch(() => {});
  return { started, pid: () => pid };
}

describe("an engine that fails to load", () => {
  test.each([
    ["silent while loading", { loadTimeoutMs: 300 }, "deadline_exceeded", /no progress in loading/],
    ["forged while loading", {}, "engine_crashed", /not valid/],
    ["premature while loading", {}, "engine_crashed", /not expected: cancelled/],
    ["exits while loading", {}, "engine_crashed", /code 7 \(Error: the disk is on fire\)/],
  ])("(%s) rejects the start and leaves no process behind", async (part, timeouts, code, message) => {
    const { started, pid } = play(part, timeouts);
    await expect(started).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(isRunning(pid())).toBe(false);
  });

  test("rejects the start when the process cannot be started at all", async () => {
    const start = createEngineStarter({
      loadTimeoutMs: 20_000,
      stallTimeoutMs: 20_000,
      runtime: path.join(folder, "no-such-node"),
    });
    await expect(start(engineSpec(modelFile))).rejects.toMatchObject({
      code: "engine_crashed",
      message: expect.stringMatching(/ENOENT/),
    });
  });
});

describe("a loaded engine", () => {
  test.each([
    ["forged", "engine_crashed", /not valid/],
    ["answers another call", "engine_crashed", /not expected: events/],
    ["answers with the wrong kind", "engine_crashed", /not expected: embedded/],
    ["fatal", "engine_crashed", /GGML_ASSERT/],
  ])("that is not to be trusted (%s) is ended, with its calls", async (part, code, message) => {
    const engine = await play(part).started;
    await expect(collect(engine.generate(promptRequest("Hi"), NEVER))).rejects.toMatchObject({
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

  test("that stops answering is ended at the deadline", async () => {
    const engine = await play("silent", { stallTimeoutMs: 300 }).started;
    await expect(collect(engine.generate(promptRequest("Hi"), NEVER))).rejects.toMatchObject({
      code: "deadline_exceeded",
    });
    expect(await engine.exited).toMatchObject({ expected: false });
  });

  test("that ignores a cancel is ended at the deadline, and the caller gets its own reason", async () => {
    const engine = await play("silent", { stallTimeoutMs: 300 }).started;
    const reason = new Error("the client went away");
    const controller = new AbortController();
    const generation = collect(engine.generate(promptRequest("Hi"), controller.signal));
    controller.abort(reason);
    await expect(generation).rejects.toBe(reason);
    expect(await engine.exited).toMatchObject({ expected: false });
  });

  test("that is idle has no deadline", async () => {
    const engine = await play("silent", { stallTimeoutMs: 1 }).started;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(engine.alive).toBe(true);
  });

  test("fails one call and goes on with the next", async () => {
    const engine = await play("fails one call").started;
    await expect(collect(engine.generate(promptRequest("Hi"), NEVER))).rejects.toMatchObject({
      code: "inference_failed",
      message: "too hard",
    });
    expect(await engine.embed("Hi", NEVER)).toEqual({ vector: [1, 0], tokens: 2 });
  });

  test("rejects its calls in flight when it is closed, and every later one", async () => {
    const engine = await play("silent").started;
    const inFlight = engine.embed("Hi", NEVER).catch((error: unknown) => error);
    await engine.close();
    expect(await inFlight).toMatchObject({ code: "engine_crashed" });
    expect(await engine.exited).toEqual({ expected: true, reason: "closed, because the model was unloaded" });
    await expect(engine.embed("Hi", NEVER)).rejects.toMatchObject({ code: "engine_crashed" });
    expect(await engine.memoryUsage()).toBe(0);
  });

  test("takes no more calls than it has slots, and asking for its memory is not one", async () => {
    const engine = await play("silent").started;
    const calls = [engine.embed("1", NEVER), engine.embed("2", NEVER)].map((call) => call.catch(() => {}));
    await expect(engine.embed("3", NEVER)).rejects.toMatchObject({ code: "internal_error" });
    const memory = engine.memoryUsage();
    await engine.close();
    expect(await memory).toBe(0);
    await Promise.all(calls);
  });

  test("refuses a request that would block it, without asking it", async () => {
    const engine = await play("silent").started;
    const request = promptRequest("x".repeat(10_000_000));
    await expect(collect(engine.generate(request, NEVER))).rejects.toMatchObject({
      code: "context_length_exceeded",
    });
  });
});
