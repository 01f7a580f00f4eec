import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { compareResults } from "../../src/experiments/experiments.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { chromiumWithGpu, WITH_GPU } from "../support/chromium-gpu.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { GPU_TEST_TIMEOUT_MS, testGpu } from "../support/test-gpu.ts";
import { type ExperimentResult, experimentResultSchema } from "../../src/api/wire/native.ts";

const CHROMIUM = need(
  "Chromium with WebGPU and a GPU adapter",
  chromiumWithGpu !== undefined && testGpu !== undefined,
);

/**
 * Maximum difference between log-probabilities on CPU and GPU. A GPU adds in another order, and partly uses 16-bit
 * floats.
 */
const ROUNDING = 0.05;

const BODY = {
  model: "daybreak-mini",
  messages: [{ role: "user", content: "What is Daybreak?" }],
  temperature: 0,
  max_tokens: 40,
};

const startedSchema = z.object({
  info: z.object({ layers: z.number(), gpuLayers: z.number() }),
  gpu: z.object({ adapter: z.string().optional(), problem: z.string().optional() }),
});

describe.skipIf(CHROMIUM.isMissing)(`the engine in a page with WebGPU${CHROMIUM.note}`, () => {
  let daemon: TestDaemon;
  let page: BrowserPage;
  beforeAll(async () => {
    const gpu = { SERVICE_GPU_MODE: "require", SERVICE_GPU_ADAPTER: testGpu?.name ?? "" };
    daemon = await startDaemon({ args: ["--auto-load"], env: gpu });
    page = await BrowserPage.open(chromiumWithGpu!, `${daemon.url}/ui/`, WITH_GPU);
    await page.until("document.readyState === 'complete'");
    await page.evaluate(`(async () => {
      const { createEngine } = await import("/browser/daybreak.js");
      globalThis.start = async (gpu) => {
        const model = await (await fetch("/api/models/daybreak-mini/files/0")).blob();
        globalThis.engine = await createEngine({ name: "daybreak-mini", model, gpu });
        return { info: engine.info, gpu: engine.gpu };
      };
      globalThis.experiment = async (body, send = engine.fetch) => {
        const headers = { "content-type": "application/json" };
        const answer = await send("/api/experiment", { method: "POST", headers, body: JSON.stringify(body) });
        return await answer.json();
      };
    })()`);
  }, GPU_TEST_TIMEOUT_MS);
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });

  const start = async (gpu: boolean | "software"): Promise<z.output<typeof startedSchema>> =>
    startedSchema.parse(await page.evaluate(`start(${JSON.stringify(gpu)})`));
  const inPage = async (): Promise<ExperimentResult> =>
    experimentResultSchema.parse(await page.evaluate(`experiment(${JSON.stringify(BODY)})`));

  let onCpu: ExperimentResult | undefined;

  test("runs on the CPU with an explanation if the only adapter is a software adapter", async () => {
    const { info, gpu } = await start(true);
    expect(info.gpuLayers).toBe(0);
    expect(gpu).toEqual({ problem: expect.stringMatching(/swiftshader, computes on the CPU/) });
    onCpu = await inPage();
    await page.evaluate("engine.close()");
  });

  test(
    "generates the same as the daemon on the same GPU, and nearly the same as on the CPU",
    async () => {
      const { info, gpu } = await start("software");
      expect(gpu).toEqual({ adapter: "google swiftshader" });
      expect(info.gpuLayers).toBe(info.layers + 1);
      const here = await inPage();
      const there = experimentResultSchema.parse(
        await page.evaluate(`experiment(${JSON.stringify(BODY)}, (path, init) => fetch(path, init))`),
      );
      expect(here.text).toMatch(/daybreak/i);
      expect(compareResults(here, there)).toMatchObject({ isSame: true, logprobDifference: 0 });
      expect(compareResults(here, onCpu!)).toMatchObject({ isSame: true });
      for (const [at, { logprob }] of here.tokens.entries())
        expect(Math.abs(logprob - onCpu!.tokens[at]!.logprob)).toBeLessThan(ROUNDING);
    },
    GPU_TEST_TIMEOUT_MS,
  );

  test(
    "fails the request during which the GPU is lost, and answers the next one",
    async () => {
      await page.evaluate(`(async () => {
        const headers = { "content-type": "application/json" };
        const body = JSON.stringify({ ...${JSON.stringify(BODY)}, max_tokens: 1500, stream: true, ignore_eos: true });
        const answer = await engine.fetch("/v1/chat/completions", { method: "POST", headers, body });
        globalThis.lost = answer.text();
      })()`);
      await page.crashGpu();
      expect(await page.evaluate("lost")).toMatch(/"code":"engine_crashed"/);
      const next = await inPage();
      expect(compareResults(next, onCpu!)).toMatchObject({ isSame: true });
    },
    GPU_TEST_TIMEOUT_MS,
  );
});
