import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import type { Batch, BatchFormat, RunLine } from "../../src/batches/batch.ts";
import { LocalBatches } from "../../src/batches/local-batches.ts";
import type { BatchService } from "../../src/batches/batch-service.ts";
import { configSchema, type ConfigInput } from "../../src/config/schema.ts";
import { ServiceError } from "../../src/errors/service-error.ts";
import { ServiceEvents } from "../../src/events/service-events.ts";
import { BatchModels } from "../../src/fleet/batches/batch-models.ts";
import { JetStreamStore, STREAMS } from "../../src/fleet/batches/jetstream-store.ts";
import { FleetBatches } from "../../src/fleet/batches/fleet-batches.ts";
import { SharingLog, streamName } from "../../src/fleet/jetstream/streams.ts";
import type { MemberModel, Member } from "../../src/fleet/members.ts";
import { FleetConnection } from "../../src/fleet/fleet-connection.ts";
import { heartbeat, memberInfo, memberModel, idOf } from "./fleet-wire.ts";

export const TEXT_API = "test";
export const USAGE = { inputTokens: 3, cachedTokens: 1, outputTokens: 2, reasoningTokens: 0 };
const logger = pino({ level: process.env["TEST_LOG"] ?? "silent" });

/** Lines are texts: "model/id". */
export const TEXT_LINES: BatchFormat = {
  endpoints: ["/"],
  separatesErrors: false,
  parseLine: (value) =>
    typeof value === "string"
      ? { customId: value, model: modelOf(value), prefix: [] }
      : { code: "invalid_request", message: "This line is not a text.", param: null },
  request: (value) => ({
    // A path that no API writes, but any client of the NATS server may.
    path: String(value).endsWith("#") ? "/api/shutdown" : "/",
    body: JSON.stringify({ model: modelOf(String(value)), line: value }),
  }),
  error: ({ code }) => JSON.stringify({ code }),
  usageOf: () => USAGE,
  formatAnswer: ({ customId, outcome, answer }) =>
    JSON.stringify([customId, outcome, answer ? JSON.parse(answer.body) : null]),
};

function modelOf(line: string): string {
  return line.split("/", 1)[0] ?? "";
}

/** Answers with the model that it was asked for. */
export const nameModel: RunLine = async ({ body }) => {
  const { model: asked }: { model: string } = JSON.parse(body);
  return { status: 200, body: JSON.stringify(asked), retryable: false, retryAfterSecs: 1 };
};

interface MachineOptions {
  readonly runLine?: RunLine;
  /** Its models: by name, what their files hold. */
  readonly models?: Readonly<Record<string, string>>;
  readonly config?: ConfigInput;
  readonly now?: () => number;
}

/** The batches of one machine, with what lets it vanish. */
export interface BatchMachine {
  readonly batches: FleetBatches;
  /** Those of this machine alone. */
  readonly local: LocalBatches;
  readonly jetStream: JetStreamStore;
  /** Removes what is too old. */
  sweep(): Promise<void>;
  /** Batches that it has led and that have ended. */
  readonly ended: string[];
  /** Stops the machine without a farewell message. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

interface Described {
  readonly name: string;
  readonly models: readonly MemberModel[];
}

/** Machines of one fleet on a real NATS server, without engines. */
export class BatchMachines {
  readonly #url: string;
  readonly #prefix: string;
  readonly #models: Described[] = [];
  readonly #departed: Described[] = [];
  readonly #machines = new Set<BatchMachine>();

  constructor(url: string, prefix: string) {
    this.#url = url;
    this.#prefix = prefix;
  }

  async join(name: string, options: MachineOptions = {}): Promise<BatchMachine> {
    const { runLine = nameModel, models = { m: "m" }, now } = options;
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-batches-"));
    const config = configSchema.parse({
      cache_dir: folder,
      fleet: { nats: this.#url, prefix: this.#prefix, name },
      ...options.config,
    });
    const connection = new FleetConnection(config.fleet, logger);
    await connection.joined;
    const mine = Object.entries(models).map(([alias, files]) =>
      Object.assign(memberModel(alias), { files: createHash("sha256").update(files).digest("hex") }),
    );
    this.#models.push({ name, models: mine });
    const [others, departed] = [this.#models, this.#departed];
    const events = new ServiceEvents();
    const ended: string[] = [];
    events.subscribe((event) => {
      if (event.type === "batch-ended") ended.push(event.status);
    });
    const local = { info: { ...memberInfo(name), models: mine }, heartbeat: heartbeat(name) };
    const parts = { formats: { [TEXT_API]: TEXT_LINES }, events, onLine: () => undefined, config, logger };
    const jetStream = new JetStreamStore(
      connection,
      this.#prefix,
      logger,
      new SharingLog(connection, logger),
    );
    const store = new LocalBatches({ ...parts, ...(now && { now }) });
    const batches = new FleetBatches({
      ...parts,
      ...(now && { now }),
      local: store,
      jetStream,
      selfId: idOf(name),
      models: new BatchModels({
        self: { ...local, model: (alias) => mine.find((each) => each.alias === alias) },
        presence: {
          get machines() {
            return others.filter((each) => each.name !== name).map(described);
          },
          get departed() {
            return departed.map(described);
          },
          unreachableError: () => undefined,
        },
        models: {
          defaultAlias: undefined,
          get: async () => {
            throw new ServiceError("model_not_found", "There is no such model.");
          },
        },
      }),
    });
    await batches.start(runLine);
    const leave = (): void => {
      this.#machines.delete(machine);
      const index = this.#models.findIndex((each) => each.name === name);
      if (index >= 0) this.#departed.push(...this.#models.splice(index, 1));
    };
    const machine: BatchMachine = {
      batches,
      local: store,
      jetStream: jetStream,
      sweep: async () => await batches.sweep(),
      ended,
      crash: async () => {
        leave();
        await connection.close();
        await batches.close();
        rmSync(folder, { recursive: true, maxRetries: 10 });
      },
      close: async () => {
        leave();
        await batches.close();
        await connection.close();
        rmSync(folder, { recursive: true, maxRetries: 10 });
      },
    };
    this.#machines.add(machine);
    return machine;
  }

  async close({ hasStreams = true } = {}): Promise<void> {
    await Promise.all([...this.#machines].map(async (machine) => await machine.close()));
    if (!hasStreams) return;
    const nats = await connect({ servers: this.#url });
    const { streams } = await jetstreamManager(nats, { timeout: 60_000 });
    for (const kind of STREAMS) await streams.delete(streamName(this.#prefix, kind));
    await nats.close();
  }
}

function described({ name, models }: Described): Member {
  return { info: { ...memberInfo(name), models: [...models] }, heartbeat: heartbeat(name) };
}

/** Creates a batch of lines. */
export async function createBatch(
  batches: BatchService,
  lines: readonly unknown[],
  viewer?: string,
): Promise<Batch> {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  await using received = await batches.receive([new TextEncoder().encode(text)]);
  const inputFile = await received.store({ viewer, purpose: "requests", name: "in" });
  const [api, endpoint] = [TEXT_API, "/"];
  return await batches.create({ viewer, api, idKind: "batch", endpoint, inputFile, metadata: null });
}

/** The whole output of a batch that is over. */
export async function outputOf(batches: BatchService, id: string): Promise<unknown[]> {
  const { outputFile = "" } = await batches.batch(undefined, TEXT_API, id);
  const content = await batches.content(undefined, outputFile, ["results"]);
  const text = await new Response(content.read(0, content.size - 1)).text();
  return text.split("\n").flatMap((line): unknown[] => (line === "" ? [] : [JSON.parse(line)]));
}

/** Lines of a model. */
export function named(count: number, of = "m"): string[] {
  return Array.from({ length: count }, (_, at) => `${of}/${at}`);
}
