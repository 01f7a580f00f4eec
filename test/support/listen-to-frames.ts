import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Frame, readFrame } from "../../src/fleet/wire-format.ts";
import type { TestDaemon } from "./start-daemon.ts";
import { fleetOf, type TestFleet } from "./test-fleet.ts";

/**
 * Calls back for each frame that a machine gets: those of requests that it is asked for ("call"), or of answers to its own.
 * Signs of life, which come in any case, are left out. The caller closes the connection.
 * @param knownBy tells the id of the machine
 */
export async function listenToFrames(
  fleet: TestFleet,
  to: "call" | "answer",
  name: string,
  knownBy: TestDaemon,
  onFrame: (frame: Frame) => void,
): Promise<NatsConnection> {
  const machine = (await fleetOf(knownBy)).machines.find((each) => each.name === name);
  if (!machine) throw new Error(`there is no machine ${name}`);
  const connection = await connect({ servers: fleet.nats.url });
  connection.subscribe(`daybreak.${to}.${machine.id}`, {
    callback: (_error, { data }) => {
      const frame = readFrame(data);
      if (frame && frame.kind !== "alive") onFrame(frame);
    },
  });
  await connection.flush();
  return connection;
}
