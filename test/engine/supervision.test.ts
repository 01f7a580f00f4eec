import { once } from "node:events";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isRunning } from "../../src/engine/child-process.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import {
  collect,
  engineSpec,
  NEVER,
  promptRequest,
  startEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { spawnTestEngine } from "../support/program.ts";
import { tinyLlama } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

const ORPHAN_DAEMON = fileURLToPath(new URL("../support/orphan-daemon.ts", import.meta.url));

const folder = temporaryFolder();
let modelFile: string;
beforeAll(() => {
  modelFile = writeModel(folder, "model", tinyLlama());
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Request without an end. */
const { maxTokens: _, ...endless } = promptRequest("On and on", {
  sampling: { temperature: 0, ignoreEos: true },
});

describe("an engine process", () => {
  test("killed from outside rejects all running calls", async () => {
    const engine = await startEngine(engineSpec(modelFile, { contextShift: true }));
    const calls = [1, 2, 3].map(() =>
      collect(generated(engine, endless, NEVER)).catch((error: unknown) => error),
    );
    const first = generated(engine, endless, NEVER);
    await first.next();
    process.kill(engine.pid, "SIGKILL");
    for (const call of [...calls, collect(first).catch((error: unknown) => error)]) {
      expect(await call).toMatchObject({
        code: "engine_crashed",
        message: expect.stringMatching(/SIGKILL/),
      });
    }
    expect(await engine.exited).toEqual({ expected: false, reason: "killed by SIGKILL" });
  });

  test.skipIf(process.platform === "win32")(
    "is out of reach of Ctrl-C in the daemon's terminal",
    async () => {
      const engine = await startEngine(engineSpec(modelFile));
      // A terminal signals a process group, so the engine must have its own.
      expect(() => process.kill(-engine.pid, 0)).not.toThrow();
      await engine.close();
    },
  );

  test.skipIf(process.platform === "win32")("that hangs is killed at the deadline", async () => {
    const start = createEngineStarter({
      loadTimeoutMs: 120_000,
      stallTimeoutMs: 500,
      spawn: spawnTestEngine,
    });
    const engine = await start(engineSpec(modelFile, { contextShift: true }));
    process.kill(engine.pid, "SIGSTOP");
    await expect(collect(generated(engine, endless, NEVER))).rejects.toMatchObject({
      code: "deadline_exceeded",
    });
    await engine.exited;
    expect(isRunning(engine.pid)).toBe(false);
  });

  test("that cannot start threads reports it instead of hanging", async () => {
    const start = createEngineStarter({
      loadTimeoutMs: 120_000,
      stallTimeoutMs: 120_000,
      spawn: (command, args, options) =>
        spawnTestEngine(
          command,
          args.filter((arg) => arg !== "--allow-worker"),
          options,
        ),
    });
    await expect(start(engineSpec(modelFile))).rejects.toMatchObject({
      code: "model_load_failed",
      message: expect.stringMatching(/restricted/),
    });
  });

  test("is killed when the load is cancelled", async () => {
    const pids: number[] = [];
    const start = createEngineStarter({
      loadTimeoutMs: 120_000,
      stallTimeoutMs: 120_000,
      spawn: (command, args, options) => {
        const child = spawnTestEngine(command, args, options);
        pids.push(child.pid ?? 0);
        return child;
      },
    });
    const controller = new AbortController();
    const reason = new Error("no longer wanted");
    const started = start(engineSpec(modelFile), {
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    });
    await expect(started).rejects.toBe(reason);
    expect(pids.map(isRunning)).toEqual([false]);
  });

  test.each([1, 2])("does not outlive a daemon that is killed while %i threads compute", async (threads) => {
    const daemon = spawn(process.execPath, [ORPHAN_DAEMON, modelFile, String(threads)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(daemon.stdout, "data");
    const pid = Number(String(line));
    expect(isRunning(pid)).toBe(true);
    daemon.kill("SIGKILL");
    await expect.poll(() => isRunning(pid)).toBe(false);
  });
});

describe("a cancelled generation", () => {
  test("throws the signal's reason and frees its slot", async () => {
    const engine = await startEngine(engineSpec(modelFile, { slots: 1, contextShift: true }));
    for (let round = 0; round < 3; round += 1) {
      const controller = new AbortController();
      const reason = new Error(`round ${round}`);
      const generation = generated(engine, endless, controller.signal);
      await generation.next();
      controller.abort(reason);
      await expect(collect(generation)).rejects.toBe(reason);
    }
    expect((await collect(generated(engine, promptRequest("Hi"), NEVER))).at(-1)).toMatchObject({
      type: "done",
    });
    await engine.close();
  });

  test("includes one whose consumer stops reading", async () => {
    const engine = await startEngine(engineSpec(modelFile, { slots: 1, contextShift: true }));
    for await (const event of generated(engine, endless, NEVER)) if (event.type === "text-delta") break;
    expect((await engine.embed("Hi", NEVER)).vector).toHaveLength(64);
    await engine.close();
  });

  test("that never started has no effect", async () => {
    const engine = await startEngine(engineSpec(modelFile, { slots: 1 }));
    const reason = new Error("too late");
    await expect(collect(generated(engine, endless, AbortSignal.abort(reason)))).rejects.toBe(reason);
    await engine.close();
  });
});

describe.skipIf(process.platform === "win32")(
  "a client that cancels on an engine that does not react",
  () => {
    test("frees its slot before the engine is killed for later requests", async () => {
      const engine = await startEngine(engineSpec(modelFile, { slots: 1, contextShift: true }));
      await collect(generated(engine, promptRequest("How long steps take here"), NEVER));
      const controller = new AbortController();
      const generation = generated(engine, endless, controller.signal);
      await generation.next();
      process.kill(engine.pid, "SIGSTOP");
      controller.abort(new Error("the client went away"));
      await expect(collect(generation)).rejects.toThrow("the client went away");
      expect(engine.alive).toBe(true);
      // The engine still runs the call, so the next one waits, but not for long.
      await expect(collect(generated(engine, promptRequest("Next"), NEVER))).rejects.toMatchObject({
        code: "engine_crashed",
        retryable: true,
        message: expect.stringMatching(/did not stop a cancelled request/),
      });
      expect((await engine.exited).expected).toBe(false);
    });

    test("does not kill a slow engine: the next call waits for the step", async () => {
      const engine = await startEngine(engineSpec(modelFile, { slots: 1, contextShift: true }));
      const controller = new AbortController();
      const generation = generated(engine, endless, controller.signal);
      const first = generation.next();
      process.kill(engine.pid, "SIGSTOP");
      controller.abort(new Error("the client went away"));
      await expect(first).rejects.toThrow("the client went away");
      const next = collect(generated(engine, promptRequest("Next"), NEVER));
      process.kill(engine.pid, "SIGCONT");
      expect((await next).at(-1)).toMatchObject({ type: "done" });
      await engine.close();
    });
  },
);
