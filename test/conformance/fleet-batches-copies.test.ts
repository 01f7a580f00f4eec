import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { configSchema } from "../../src/config/schema.ts";
import { JetStreamStore } from "../../src/fleet/batches/jetstream-store.ts";
import { SharingLog } from "../../src/fleet/jetstream/streams.ts";
import { FleetConnection } from "../../src/fleet/fleet-connection.ts";
import { JetStreamRecords } from "../../src/fleet/jetstream-records.ts";
import { NATS, type NatsServer, startNatsCluster } from "../support/nats-server.ts";

const STREAMS = ["batches", "batchwork", "batchdata", "responses"].map((kind) => `t_${kind}`);
const WAIT = { timeout: 30_000, interval: 200 };

/** A machine that joins now, with what it warns of. */
async function machineAt(servers: readonly NatsServer[]) {
  const warnings: string[] = [];
  const log = {
    warn: (text: string) => void warnings.push(text),
    info: () => undefined,
    debug: () => undefined,
  };
  const config = configSchema.parse({
    fleet: { nats: servers.map(({ url }) => url).join(","), prefix: "t" },
  });
  const connection = new FleetConnection(config.fleet, Object(log));
  onTestFinished(async () => await connection.close());
  await connection.joined;
  const sharing = new SharingLog(connection, log);
  const place = new JetStreamStore(connection, "t", log, sharing);
  const records = new JetStreamRecords(connection, "t", log, sharing);
  await expect.poll(async () => await place.primaryStore(), WAIT).toBe("fleet");
  await expect.poll(async () => await records.isErased("a"), WAIT).toBe(false);
  return { place, records, warnings };
}

/** Manages the streams as any client of NATS can. */
async function managerAt({ url }: NatsServer): Promise<JetStreamManager> {
  const nats = await connect({ servers: url });
  onTestFinished(async () => await nats.close());
  return await jetstreamManager(nats, { checkAPI: false });
}

describe.skipIf(NATS.isMissing)(`the streams of a fleet${NATS.note}`, () => {
  test.each([
    [
      2,
      [
        expect.stringMatching(
          /^fleet: what machines share is kept on 2 servers instead of three, .*refuses more \(.*no suitable peers/,
        ),
      ],
    ],
    [3, []],
  ])("get as many copies as a cluster of %i servers gives, also those that had one", async (size, warned) => {
    const servers = await startNatsCluster(size);
    onTestFinished(async () => void (await Promise.all(servers.map((server) => server.stop()))));
    const [first] = servers;
    if (!first) throw new Error("there are no servers");
    const manager = await managerAt(first);
    // The one of responses is made with the copies that there can be.
    for (const kind of ["batches", "batchwork", "batchdata"])
      await manager.streams.add({ name: `t_${kind}`, subjects: [`t.${kind}.>`], num_replicas: 1 });
    await manager.jetstream().publish("t.batches.x", "kept");
    const { place, records, warnings } = await machineAt(servers);
    const infos = await Promise.all(STREAMS.map(async (name) => await manager.streams.info(name)));
    expect(infos.map(({ config }) => config.num_replicas)).toEqual(STREAMS.map(() => size));
    expect(warnings).toEqual(warned);
    const isWhole = async (): Promise<boolean> => {
      const { cluster } = await manager.streams.info("t_batches");
      return cluster?.replicas?.filter(({ current }) => current).length === size - 1;
    };
    await expect.poll(isWhole, WAIT).toBe(true);
    expect(Buffer.from((await place.get("batches", "t.batches.x"))?.data ?? []).toString()).toBe("kept");
    await records.put("a", Buffer.from("record"));
    expect(await records.get("a")).toEqual(Buffer.from("record"));
    expect(warnings).toEqual(warned);
  });
});
