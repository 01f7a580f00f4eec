import { once } from "node:events";
import { createServer } from "node:net";
import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { natsTrouble } from "../../../src/api/management/machine-schemas.ts";
import { FleetConnection, natsOptions } from "../../../src/fleet/fleet-connection.ts";
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

function optionsFor(fleet: Record<string, string>) {
  return natsOptions(configSchema.parse({ fleet: { name: "desk", ...fleet } }).fleet);
}

describe("the options of the NATS client", () => {
  test("name all servers of a list, without their secret", () => {
    const options = optionsFor({ nats: "nats://us:p%40ss@one:4222, nats://two:4223" });
    expect(options).toMatchObject({ servers: ["one:4222", "two:4223"], user: "us", pass: "p@ss" });
    expect(options.tls).toBeUndefined();
  });

  test("take a name without a password for a token", () => {
    const options = optionsFor({ nats: "nats://s3cret@one:4222" });
    expect(options).toMatchObject({ servers: ["one:4222"], token: "s3cret" });
    expect(options.user).toBeUndefined();
  });

  test("encrypt when the address says so", () => {
    expect(optionsFor({ nats: "tls://one:4222" }).tls).toEqual({});
  });

  test("say which file cannot be read", () => {
    expect(() => optionsFor({ nats: "nats://one", tls_ca: "/nowhere/ca.pem" })).toThrow(
      "The file of fleet.tls_ca, /nowhere/ca.pem, cannot be read.",
    );
  });

  test("never end to connect, and keep to the subjects of the prefix", () => {
    const options = optionsFor({ nats: "nats://one", prefix: "lab.daybreak" });
    expect(options).toMatchObject({ maxReconnectAttempts: -1, inboxPrefix: "lab.daybreak.inbox" });
  });
});

describe("fleet.nats", () => {
  test.each([
    "localhost:4222",
    "http://one:4222",
    "nats://",
    "nats://one:4222,",
    "nats://u:secret@one:99999",
  ])("%s is refused, without being quoted", (nats) => {
    const { error } = configSchema.safeParse({ fleet: { nats } });
    expect(error?.message).toContain("is not the address of a NATS server");
    expect(error?.message).not.toContain("secret");
  });
});
