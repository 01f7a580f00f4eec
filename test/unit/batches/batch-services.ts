import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect } from "vitest";
import type { Batch, BatchFormat, RunLine } from "../../../src/batches/batch.ts";
import { LocalBatches } from "../../../src/batches/local-batches.ts";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { ServiceEvents } from "../../../src/events/service-events.ts";

const NO_USAGE = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

/** Lines are texts: "model/id". */
const FORMAT: BatchFormat = {
  endpoints: ["/"],
  separatesErrors: false,
  parseLine: (value) => ({
    customId: String(value),
    model: String(value).split("/", 1)[0] ?? "",
    prefix: [],
  }),
  request: (value) => ({ path: "/", body: JSON.stringify(value) }),
  error: ({ code }) => JSON.stringify({ code }),
  usageOf: () => NO_USAGE,
  formatAnswer: ({ customId, outcome, answer }) =>
    JSON.stringify([customId, outcome, answer ? JSON.parse(answer.body) : null]),
};
export const echo: RunLine = async ({ body }) => ({ status: 200, body, retryable: false, retryAfterSecs: 1 });

/** Answers the first line only. */
export const onlyFirst: RunLine = async (line, signal) => {
  if (line.body === '"m/0"') return await echo(line, signal);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return await echo(line, signal);
};

/** Batches in a folder of each test, closed after it. */
export class TestBatches {
  readonly #opened: LocalBatches[] = [];
  folder = "";

  constructor() {
    beforeEach(() => {
      this.folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-batches-"));
    });
    afterEach(async () => {
      await Promise.all(this.#opened.splice(0).map((batches) => batches.close()));
      rmSync(this.folder, { recursive: true, maxRetries: 10 });
    });
  }

  async open(runLine: RunLine = echo, config: ConfigInput = {}, now?: () => number): Promise<LocalBatches> {
    const batches = new LocalBatches({
      config: configSchema.parse({ cache_dir: this.folder, ...config }),
      formats: { test: FORMAT },
      events: new ServiceEvents(),
      logger: pino({ level: "silent" }),
      onLine: () => undefined,
      ...(now && { now }),
    });
    this.#opened.push(batches);
    await batches.start(runLine);
    return batches;
  }

  storedFiles(): string[] {
    return readdirSync(path.join(this.folder, "batches/data/files"));
  }
}

export async function create(batches: LocalBatches, lines: readonly string[]): Promise<Batch> {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const received = await batches.receive([new TextEncoder().encode(text)]);
  const inputFile = await received.store({ viewer: undefined, purpose: "requests", name: "in" });
  const [api, endpoint] = ["test", "/"];
  return await batches.create({
    viewer: undefined,
    api,
    idKind: "batch",
    endpoint,
    inputFile,
    metadata: null,
  });
}

export async function results(batches: LocalBatches, id: string): Promise<unknown[]> {
  await expect
    .poll(async () => (await batches.batch(undefined, "test", id)).outputFile, { interval: 5 })
    .toBeDefined();
  const { outputFile = "" } = await batches.batch(undefined, "test", id);
  const content = await batches.content(undefined, outputFile, ["results"]);
  const text = await new Response(content.read(0, content.size - 1)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

export function named(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `m/${at}`);
}
