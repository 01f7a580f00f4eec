import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fleetSchema } from "../../src/api/wire/machines.ts";
import { writeModel } from "./engine-fixture.ts";
import { type NatsOptions, type NatsServer, startNats, startNatsCluster } from "./nats-server.ts";
import { postJson } from "./post-json.ts";
import { startDaemon, type TestDaemon } from "./start-daemon.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, type LlamaOptions, tinyLlama } from "./tiny-models.ts";

/** The model of {@link TestFleet}, in a folder for `models.dirs`. */
export const FLEET_MODEL = "fleet-tiny";

/** Far longer than a start takes. */
const WAIT_MS = 60_000;
const LOOK_EVERY_MS = 50;

interface FleetMachineOptions {
  /** False: it has no model of its own. */
  readonly hasModel?: boolean;
  /** Folders of further models. */
  readonly folders?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A NATS server, or a cluster of them, with daemons on this machine. */
export class TestFleet {
  readonly servers: readonly NatsServer[];
  readonly nats: NatsServer;
  readonly modelFile: string;
  readonly #folder: string;
  readonly #daemons = new Set<TestDaemon>();

  private constructor(servers: readonly [NatsServer, ...NatsServer[]], modelFile: string) {
    this.servers = servers;
    this.nats = servers[0];
    this.modelFile = modelFile;
    this.#folder = path.dirname(modelFile);
  }

  /** @param further what the model has besides, such as another template */
  static async start(nats: NatsOptions = {}, further: LlamaOptions = {}): Promise<TestFleet> {
    return new TestFleet([await startNats(nats)], writeFleetModel(further));
  }

  /** On three servers with JetStream that form one cluster. */
  static async startOnCluster(): Promise<TestFleet> {
    const [first, ...further] = await startNatsCluster(3);
    if (!first) throw new Error("there are no servers");
    return new TestFleet([first, ...further], writeFleetModel());
  }

  /** Starts a daemon that joins. */
  async join(
    name: string,
    { hasModel = true, folders = [], env = {} }: FleetMachineOptions = {},
  ): Promise<TestDaemon> {
    const daemon = await startDaemon({
      env: {
        SERVICE_FLEET_NATS: this.servers.map(({ url }) => url).join(","),
        SERVICE_FLEET_NAME: name,
        SERVICE_MODELS_DIRS: [...(hasModel ? [this.#folder] : []), ...folders].join(","),
        ...(hasModel && { SERVICE_MODELS_LOAD: FLEET_MODEL }),
        SERVICE_ENGINE_THREADS: "1",
        ...env,
      },
    });
    this.#daemons.add(daemon);
    return daemon;
  }

  /** Waits until a machine sees so many, itself included, and the model loaded on so many. */
  async complete(daemon: TestDaemon, machines: number, loaded: number): Promise<void> {
    const wanted = `${machines} machines, ${loaded} with the model`;
    const deadline = performance.now() + WAIT_MS;
    for (;;) {
      const fleet = await fleetOf(daemon);
      // One that has loaded it may still be starting, and takes no requests then.
      const having = fleet.machines.filter(
        ({ state, models }) =>
          state === "ready" && models.some((model) => model.alias === FLEET_MODEL && model.loaded),
      );
      const seen = `${fleet.machines.length} machines, ${having.length} with the model`;
      if (seen === wanted) return;
      if (performance.now() > deadline) throw new Error(`the fleet has ${seen}, not ${wanted}`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#daemons].map((daemon) => daemon.stop()));
    await Promise.all(this.servers.map((server) => server.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function writeFleetModel(further: LlamaOptions = {}): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-fleet-"));
  const options = { embedding: 128, blocks: 4, context: 2048, words: CHATML_WORDS };
  const chatTemplate = CHATML_TEMPLATE;
  return writeModel(folder, FLEET_MODEL, tinyLlama({ ...options, chatTemplate, ...further }));
}

export async function fleetOf({ url }: TestDaemon) {
  return fleetSchema.parse(await (await fetch(`${url}/api/fleet`)).json());
}

/** The whole text of a greedy answer of the model. */
export async function ask(
  { url }: TestDaemon,
  content: string,
  further: object = {},
  signal?: AbortSignal,
): Promise<{ status: number; text: string; body: unknown }> {
  const response = await postJson(
    `${url}/v1/chat/completions`,
    {
      model: FLEET_MODEL,
      messages: [{ role: "user", content }],
      max_tokens: 48,
      temperature: 0,
      ...further,
    },
    signal,
  );
  const body: { choices?: { message: { content: string } }[] } = JSON.parse(await response.text());
  return { status: response.status, text: body.choices?.[0]?.message.content ?? "", body };
}

/** The machine that has a request at this moment. */
export async function busyOf(workers: readonly TestDaemon[]): Promise<TestDaemon> {
  const metrics = workers.map(async ({ url }) => await (await fetch(`${url}/metrics`)).text());
  const at = (await Promise.all(metrics)).findIndex((text) => /service_requests_running [1-9]/.test(text));
  const worker = workers[at];
  if (!worker) throw new Error("no machine has a request");
  return worker;
}
