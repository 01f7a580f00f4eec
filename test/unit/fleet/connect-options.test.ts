import { describe, expect, test } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { natsOptions } from "../../../src/fleet/connect-options.ts";

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
