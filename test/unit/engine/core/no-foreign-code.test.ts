import { resolveObjectURL } from "node:buffer";
import { expect, onTestFinished, test, vi } from "vitest";
import { buildLoadParameters } from "../../../../src/engine/core/load-parameters.ts";
import type { EnginePlatform, EngineWorker } from "../../../../src/engine/core/platform.ts";
import { WllamaSession } from "../../../../src/engine/core/wllama-session.ts";
import { engineSpec } from "../../../support/engine-fixture.ts";

const OWN_WASM = "file:///our/wllama.wasm";

/** A platform whose worker never runs, and which records the worker's script. */
function recordingPlatform(): { platform: EnginePlatform; script: Promise<string> } {
  const started = Promise.withResolvers<string>();
  const startWorker = (scriptUrl: string): EngineWorker => {
    const worker: EngineWorker = {
      postMessage: () => {},
      terminate: () => {},
      onMessage: () => {},
      onError: () => {},
    };
    const read = async (): Promise<void> => {
      started.resolve((await resolveObjectURL(scriptUrl)?.text()) ?? "");
      worker.onError(new Error("this worker does not run"));
    };
    void read();
    return worker;
  };
  return {
    platform: {
      wasmUrl: OWN_WASM,
      startWorker,
      decodeWebp: () => Promise.reject(new Error("no image")),
      log: () => {},
    },
    script: started.promise,
  };
}

test("fetches no code from a CDN if a WebAssembly feature is missing", async () => {
  // As in a runtime without JSPI, for which wllama would fetch another build from a CDN.
  vi.stubGlobal("WebAssembly", Object.create(WebAssembly, { Suspending: { value: undefined } }));
  vi.stubGlobal("self", globalThis);
  vi.stubGlobal("location", { href: OWN_WASM });
  const fetched = vi.spyOn(globalThis, "fetch").mockRejectedValue(new Error("unexpected fetch"));
  onTestFinished(() => {
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });
  const { platform, script } = recordingPlatform();
  const parameters = buildLoadParameters(engineSpec("model.gguf"), [], false);
  const file = new File(["GGUF"], "model.gguf");
  const start = WllamaSession.start(platform, { blobs: [file], extra: new Map(), patches: [] }, parameters);
  await expect(start).rejects.toThrow("this worker does not run");
  expect(fetched).not.toHaveBeenCalled();
  const runOptions = /const RUN_OPTIONS = ([^;]*);/.exec(await script)?.[1] ?? "";
  expect(runOptions).toContain(OWN_WASM);
  expect(runOptions).not.toMatch(/https?:/);
});
