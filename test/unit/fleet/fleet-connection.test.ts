import { once } from "node:events";
import { createServer } from "node:net";
import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { describeNatsProblem } from "../../../src/api/wire/machines.ts";
import { FleetConnection, natsOptions } from "../../../src/fleet/fleet-connection.ts";
import { NATS, startNats } from "../../support/nats-server.ts";

test.skipIf(NATS.isMissing)(
  `reports a rejected password as such rather than as an unreachable server${NATS.note}`,
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
    expect(describeNatsProblem(connection.problem)).toBe(refusal);
    expect(String(warn.mock.calls[0]?.[0])).toContain(
      `The fleet's NATS server ${refusal}, and is tried again`,
    );
  },
);

test("warns once about an unreachable server, however often it is tried", async () => {
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
  // After the third attempt, the second failure would have been logged.
  await expect.poll(() => attempts, { interval: 10 }).toBeGreaterThan(2);
  expect(warn.mock.calls).toEqual([[expect.stringContaining("is not reachable, and is tried again: ")]]);
});

function optionsFor(fleet: Record<string, string>) {
  return natsOptions(configSchema.parse({ fleet: { name: "desk", ...fleet } }).fleet);
}

describe("the options of the NATS client", () => {
  test("list all servers, without their credentials", () => {
    const options = optionsFor({ nats: "nats://us:p%40ss@one:4222, nats://two:4223" });
    expect(options).toMatchObject({ servers: ["one:4222", "two:4223"], user: "us", pass: "p@ss" });
    expect(options.tls).toBeUndefined();
  });

  test("treat a user without a password as a token", () => {
    const options = optionsFor({ nats: "nats://s3cret@one:4222" });
    expect(options).toMatchObject({ servers: ["one:4222"], token: "s3cret" });
    expect(options.user).toBeUndefined();
  });

  test("use TLS for the tls scheme", () => {
    expect(optionsFor({ nats: "tls://one:4222" }).tls).toEqual({});
  });

  test("report which file cannot be read", () => {
    expect(() => optionsFor({ nats: "nats://one", tls_ca: "/nowhere/ca.pem" })).toThrow(
      "The file of fleet.tls_ca, /nowhere/ca.pem, cannot be read.",
    );
  });

  test("never give up connecting, and use only subjects of the prefix", () => {
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
