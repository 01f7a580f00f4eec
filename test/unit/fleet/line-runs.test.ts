import { jetstreamManager } from "@nats-io/jetstream";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { JetStreamPlace } from "../../../src/fleet/batches/jetstream-place.ts";
import { LineRuns } from "../../../src/fleet/batches/line-runs.ts";
import { SharingLog } from "../../../src/fleet/jetstream/sharing-log.ts";
import { FleetConnection } from "../../../src/fleet/fleet-connection.ts";
import { NATS_SERVER, startNats } from "../../support/nats-server.ts";

const BATCH = { id: "batch_f00", queue: "0" };
const LINE = { number: 1, start: 0, length: 1 };

test.skipIf(NATS_SERVER === null)(
  "lines that the server has, but does not give out, do not wait",
  async () => {
    const server = await startNats({ jetStream: true });
    onTestFinished(async () => await server.stop());
    const logger = pino({ level: "silent" });
    const { fleet } = configSchema.parse({ fleet: { nats: server.url, prefix: "t" } });
    const connection = new FleetConnection(fleet, logger);
    onTestFinished(async () => await connection.close());
    await connection.joined;
    const { nats } = connection;
    if (!nats) throw new Error("there is no connection");
    // Such as after a power failure: what is done is still there.
    const { streams } = await jetstreamManager(nats);
    await streams.add({ name: "t_batchwork", subjects: ["t.batchwork.>"] });
    const runs = new LineRuns(
      new JetStreamPlace(connection, "t", logger, new SharingLog(connection, logger)),
    );
    expect(await runs.hasAny(BATCH)).toBe(false);
    await runs.add(BATCH, 0, [LINE]);
    expect(await runs.hasAny(BATCH)).toBe(true);
    const run = await runs.take(BATCH, 0);
    expect(run?.lines).toEqual([LINE]);
    expect(await runs.hasAny(BATCH)).toBe(true);
    run?.done();
    await expect.poll(async () => await runs.hasAny(BATCH), { interval: 10 }).toBe(false);
    expect(await runs.groups(BATCH)).toEqual(new Set([0]));
    await runs.add(BATCH, 0, [LINE]);
    expect(await runs.hasAny(BATCH)).toBe(true);
  },
);
