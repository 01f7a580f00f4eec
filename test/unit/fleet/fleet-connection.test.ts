import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { natsTrouble } from "../../../src/dialects/management/nats-trouble.ts";
import { FleetConnection } from "../../../src/fleet/fleet-connection.ts";
import { NATS_SERVER, startNats } from "../../support/nats-server.ts";

test.skipIf(NATS_SERVER === null)(
  "a server that refuses the password is not told of as one that is not reachable",
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
