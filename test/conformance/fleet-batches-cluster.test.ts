import { rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { APIError, type OpenAI, toFile } from "openai";
import { describe, expect, onTestFinished, test } from "vitest";
import { answeredBy, clientOf, completeLines, createLines } from "../support/batch-clients.ts";
import { BatchMachines } from "../support/batch-machines.ts";
import { loseAnswers } from "../support/lossy-nats.ts";
import { NATS, type NatsServer, startNatsCluster } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";

const LINES = Number(process.env["FLEET_BATCH_LINES"] ?? 200);
const STREAMS = ["batches", "batchwork", "batchdata", "responses"].map((kind) => `daybreak_${kind}`);
const SECONDS = 1000;
const MINUTES = 60_000;
const BRIEF = { model: FLEET_MODEL, max_output_tokens: 16 };

/** The servers' state as a client of NATS sees it. */
class Cluster {
  readonly servers: readonly NatsServer[];
  readonly #manager: JetStreamManager;

  constructor(servers: readonly NatsServer[], manager: JetStreamManager) {
    this.servers = servers;
    this.#manager = manager;
  }

  static async of({ servers }: TestFleet): Promise<Cluster> {
    const nats = await connect({
      servers: servers.map(({ url }) => url),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
    });
    onTestFinished(async () => await nats.close());
    return new Cluster(servers, await jetstreamManager(nats, { checkAPI: false }));
  }

  /** The server that leads a stream. */
  async leader(stream: string): Promise<NatsServer> {
    const { cluster } = await this.#manager.streams.info(stream);
    const server = this.servers[Number(cluster?.leader?.slice(1)) - 1];
    if (!server) throw new Error(`${stream} has no leader`);
    return server;
  }

  /** Streams of which a server has no whole copy. */
  async incomplete(): Promise<readonly string[]> {
    const infos = await Promise.all(
      STREAMS.map(async (stream) => await this.#manager.streams.info(stream).catch(() => undefined)),
    );
    return infos.flatMap((info, at) => {
      const copies = info?.cluster?.replicas?.filter(({ current }) => current) ?? [];
      return copies.length === this.servers.length - 1 ? [] : [STREAMS[at] ?? ""];
    });
  }
}

const untilWhole = async (cluster: Cluster): Promise<void> => {
  // An old server takes minutes on a busy machine.
  const times = { timeout: 3 * MINUTES, interval: 200 };
  await expect.poll(async () => await cluster.incomplete(), times).toEqual([]);
};

async function startFleet(): Promise<{ fleet: TestFleet; cluster: Cluster; daemons: TestDaemon[] }> {
  const fleet = await TestFleet.startOnCluster();
  onTestFinished(async () => await fleet.stop());
  const daemons = await Promise.all(["one", "two", "three"].map(async (name) => await fleet.join(name)));
  const [one] = daemons;
  if (!one) throw new Error("there is no machine");
  await fleet.complete(one, 3, 3);
  const cluster = await Cluster.of(fleet);
  await untilWhole(cluster);
  return { fleet, cluster, daemons };
}

describe.skipIf(NATS.isMissing)(`a fleet on three NATS servers${NATS.note}`, () => {
  test(
    "answers each line once while servers are killed, one of them for good with its disk, and while two are gone",
    async () => {
      const { cluster, daemons } = await startFleet();
      const clients = daemons.map(clientOf);
      const [first, second, third] = clients;
      if (!first || !second || !third) throw new Error("there are no machines");
      const bytes = Buffer.alloc(700_000, "a line of a file\n");
      const kept = await first.files.create({ file: await toFile(bytes, "kept.jsonl"), purpose: "batch" });
      const response = await first.responses.create({ ...BRIEF, input: "Hello" });
      const begun: string[] = [];
      // The next one comes as soon as this one is survived: lines of all batches before may be under way then.
      const outage = async (
        victims: readonly NatsServer[],
        whileAway: () => Promise<void>,
      ): Promise<void> => {
        const id = await createLines(first, LINES, FLEET_MODEL, second);
        begun.push(id);
        await hasAnswered(third, id, 20);
        await Promise.all(victims.map(async (server) => await server.kill("SIGKILL")));
        await whileAway();
        await Promise.all(victims.map(async (server) => await server.restart()));
        await untilWhole(cluster);
      };
      // A stream is without a leader for some seconds; then all goes on with two servers.
      for (const stream of STREAMS) {
        const leader = await cluster.leader(stream);
        await outage([leader], async () => {
          const id = await createdAgain(first);
          await completeLines(() => clients, id, 10, 3 * MINUTES);
        });
      }
      const emptied = await cluster.leader("daybreak_batchdata");
      await outage([emptied], async () =>
        rmSync(path.join(emptied.folder, "jetstream"), { recursive: true }),
      );
      // What is only on the other two and on the one that was empty.
      const other = cluster.servers.find((server) => server !== emptied);
      if (!other) throw new Error("there is no other server");
      await outage([other], async () => await sleep(SECONDS));
      await outage(cluster.servers.slice(1), async () => {
        await sleep(3 * SECONDS);
        const away = { status: 503, code: "fleet_unreachable" };
        const asked = clients.flatMap((client) => [
          client.batches.list(),
          client.files.content(kept.id),
          createLines(client, 1),
        ]);
        await Promise.all(asked.map(async (each) => await expect(each).rejects.toMatchObject(away)));
        // One that has never seen them does not take what the others could not find.
        const late = new BatchMachines(cluster.servers[0]?.url ?? "", "daybreak");
        expect(await (await late.join("late")).jetStream.primaryStore()).toBe("away");
        await late.close({ hasStreams: false });
      });
      await Promise.all(begun.map(async (id) => await completeLines(() => clients, id, LINES, 5 * MINUTES)));
      for (const daemon of daemons) expect(await answeredBy(daemon)).toBeGreaterThan(0);
      for (const client of clients) {
        const content = await (await client.files.content(kept.id)).bytes();
        expect(Buffer.from(content).equals(bytes)).toBe(true);
      }
      const next = await third.responses.create({
        ...BRIEF,
        input: "And?",
        previous_response_id: response.id,
      });
      expect(next.usage?.input_tokens).toBeGreaterThan(response.usage?.input_tokens ?? 0);
    },
    20 * MINUTES,
  );

  test("give what they have while one of them is gone, also by readers that it was to serve", async () => {
    const servers = await startNatsCluster(3);
    onTestFinished(async () => void (await Promise.all(servers.map(async (server) => await server.stop()))));
    const machines = new BatchMachines(servers[0]?.url ?? "", "daybreak");
    const { jetStream } = await machines.join("one");
    onTestFinished(async () => await machines.close({ hasStreams: false }));
    await jetStream.put(jetStream.subject("batches", "batch", "a"), Buffer.from("first"), 0);
    await servers[2]?.kill("SIGKILL");
    for (let time = 0; time < 6; time += 1) {
      const read: string[] = [];
      await jetStream.readAll("batches", jetStream.subject("batches", "batch", "*"), {}, ({ data }) => {
        read.push(Buffer.from(data).toString());
      });
      expect(read).toEqual(["first"]);
    }
  });

  test("take a change whose acknowledgment is lost for made, if it is", async () => {
    const servers = await startNatsCluster(3);
    onTestFinished(async () => void (await Promise.all(servers.map(async (server) => await server.stop()))));
    const machines = new BatchMachines(servers[0]?.url ?? "", "daybreak");
    const machine = await machines.join("one");
    onTestFinished(async () => await machines.close());
    const { jetStream } = machine;
    const subject = jetStream.subject("batches", "batch", "a");
    const first = await jetStream.put(subject, Buffer.from("first"), 0);
    await jetStream.use(async (_, nats) => void loseAnswers(nats, subject));
    const second = await jetStream.put(subject, Buffer.from("second"), first);
    expect(await jetStream.get("batches", subject)).toMatchObject({
      seq: second,
      data: new TextEncoder().encode("second"),
    });
    expect(await jetStream.put(subject, Buffer.from("other"), first)).toBeUndefined();
  });
});

async function hasAnswered(client: OpenAI, id: string, lines: number): Promise<void> {
  const completed = async (): Promise<number> =>
    (await client.batches.retrieve(id)).request_counts?.completed ?? 0;
  await expect.poll(completed, { timeout: MINUTES, interval: 20 }).toBeGreaterThanOrEqual(lines);
}

/** A batch that is created as clients do it that try again. */
async function createdAgain(client: OpenAI): Promise<string> {
  const deadline = performance.now() + MINUTES;
  for (;;) {
    try {
      return await createLines(client, 10);
    } catch (error) {
      if (!(error instanceof APIError) || error.status !== 503 || performance.now() > deadline) throw error;
      await sleep(500);
    }
  }
}
