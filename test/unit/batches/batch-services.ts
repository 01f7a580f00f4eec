import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect } from "vitest";
import type { Batch, BatchFormat, RunLine } from "../../../src/batches/batch.ts";
import { BatchRoom } from "../../../src/batches/batch-service.ts";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { ServiceEvents } from "../../../src/events/service-events.ts";

const NO_USAGE = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

/** Lines are texts: "model/id". */
const FORMAT: BatchFormat = {
  endpoints: ["/"],
  separatesErrors: false,
  read: (value) => ({ customId: String(value), model: String(value).split("/", 1)[0] ?? "", beginning: [] }),
  request: (value) => ({ path: "/", body: JSON.stringify(value) }),
  error: ({ code }) => JSON.stringify({ code }),
  usage: () => NO_USAGE,
  write: ({ customId, outcome, answer }) =>
    JSON.stringify([customId, outcome, answer ? JSON.parse(answer.body) : null]),
};
export const echo: RunLine = async ({ body }) => ({ status: 200, body, retryable: false, retryAfterSecs: 1 });

/** Answers the first line alone. */
export const onlyFirst: RunLine = async (line, signal) => {
  if (line.body === '"m/0"') return await echo(line, signal);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return await echo(line, signal);
};

/** Rooms of batches on a folder of each test's own; they are closed after it. */
export class BatchRooms {
  readonly #rooms: BatchRoom[] = [];
  folder = "";

  constructor() {
    beforeEach(() => {
      this.folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-batches-"));
    });
    afterEach(async () => {
      await Promise.all(this.#rooms.splice(0).map((room) => room.close()));
      rmSync(this.folder, { recursive: true, maxRetries: 10 });
    });
  }

  async open(runLine: RunLine = echo, config: ConfigInput = {}, now?: () => number): Promise<BatchRoom> {
    const room = new BatchRoom({
      config: configSchema.parse({ cache_dir: this.folder, ...config }),
      formats: { test: FORMAT },
      events: new ServiceEvents(),
      logger: pino({ level: "silent" }),
      onLine: () => undefined,
      ...(now && { now }),
    });
    this.#rooms.push(room);
    await room.start(runLine);
    return room;
  }

  storedFiles(): string[] {
    return readdirSync(path.join(this.folder, "batches/data/files"));
  }
}

export async function create(room: BatchRoom, lines: readonly string[]): Promise<Batch> {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const received = await room.receive([new TextEncoder().encode(text)]);
  const inputFile = await received.keep({ viewer: undefined, purpose: "requests", name: "in" });
  const [api, endpoint] = ["test", "/"];
  return await room.create({ viewer: undefined, api, idKind: "batch", endpoint, inputFile, metadata: null });
}

export async function results(room: BatchRoom, id: string): Promise<unknown[]> {
  await expect
    .poll(async () => (await room.batch(undefined, "test", id)).outputFile, { interval: 5 })
    .toBeDefined();
  const { outputFile = "" } = await room.batch(undefined, "test", id);
  const content = await room.content(undefined, outputFile, ["results"]);
  const text = await new Response(content.read(0, content.size - 1)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

export function named(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `m/${at}`);
}
