import { once } from "node:events";
import { createServer } from "node:net";
import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { natsTrouble } from "../../../src/dialects/management/nats-trouble.ts";
import { FleetConnection } from "../../../src/fleet/fleet-connection.ts";
import { NATS, startNats } from "../../support/nats-server.ts";

test.skipIf(NATS.isMissing)(
  `a server that refuses the password is not told of as one that is not reachable${NATS.note}`,
  async () => {
    const server = await startNats({ config: 'authorization { user: "us", password: "right" }' });
    onTestFinished(async () => await server.stop());
    const logger = pino({ level: "silent" });
    const warn = vi.spyOn(logger, "warn");
    const { fleet } = configSchema.parse({ fleet: { nats: server.url.replace("//", "//us:wrong@") } });
    const connection = new FleetConnection(fleet, logger);
    onTestFinished(async () => await connection.close());
    await expect.poll(() => connection.problem, { interval: 10 }).toBeDefined();
    const refusal = "refuses the user and password (or token, credentials) of fleet.nats";
    expect(natsTrouble(connection.problem)).toBe(refusal);
    expect(String(warn.mock.calls[0]?.[0])).toContain(
      `The fleet's NATS server ${refusal}, and is tried again`,
    );
  },
);

test("a server that is not reachable is told of once, however often it is tried", async () => {
  let attempts = 0;
  const server = createServer((socket) => {
    attempts += 1;
    socket.destroy();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("no port");
  const logger = pino({ level: "silent" });
  const warn = vi.spyOn(logger, "warn");
  const { fleet } = configSchema.parse({ fleet: { nats: `nats://127.0.0.1:${address.port}` } });
  const connection = new FleetConnection(fleet, logger);
  onTestFinished(async () => await connection.close());
  // When it is tried for the third time, the second failure has been told of or not.
  await expect.poll(() => attempts, { interval: 10 }).toBeGreaterThan(2);
  expect(warn.mock.calls).toEqual([[expect.stringContaining("is not reachable, and is tried again: ")]]);
});
