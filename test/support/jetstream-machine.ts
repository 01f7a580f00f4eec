import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { configSchema } from "../../src/config/schema.ts";
import { JetStreamStore } from "../../src/fleet/batches/jetstream-store.ts";
import { FleetConnection } from "../../src/fleet/fleet-connection.ts";
import { SharingLog } from "../../src/fleet/jetstream/streams.ts";
import { startNats } from "./nats-server.ts";

/** A machine with the prefix "t" at a NATS server of its own with JetStream, for one test. */
export async function jetStreamMachine(): Promise<{ jetStream: JetStreamStore; nats: NatsConnection }> {
  const server = await startNats({ jetStream: true });
  onTestFinished(async () => await server.stop());
  const logger = pino({ level: "silent" });
  const { fleet } = configSchema.parse({ fleet: { nats: server.url, prefix: "t" } });
  const connection = new FleetConnection(fleet, logger);
  onTestFinished(async () => await connection.close());
  await connection.joined;
  const { nats } = connection;
  if (!nats) throw new Error("there is no connection");
  return { jetStream: new JetStreamStore(connection, "t", logger, new SharingLog(connection, logger)), nats };
}
