import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../support/engine-fixture.ts";
import { NATS, type NatsServer, startNats } from "../support/nats-server.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { fleetOf } from "../support/test-fleet.ts";

type KeyPair = ReturnType<typeof nkeys.createUser>;

const NO_LIMIT = { subs: -1, data: -1, payload: -1 };
const ACCOUNT_LIMITS = { ...NO_LIMIT, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
/** All that docs/fleet.md says a machine needs. */
const ALLOWED = { pub: { allow: ["daybreak.>"] }, sub: { allow: ["daybreak.>"] } };

/** A token of NATS, as `nsc` makes them: claims that the issuer signs. */
function tokenOf(issuer: KeyPair, subject: KeyPair, nats: object, further: object = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    jti: randomUUID(),
    iat: now,
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name: "daybreak",
    nats: { ...nats, version: 2 },
    ...further,
  };
  const signed = [{ typ: "JWT", alg: "ed25519-nkey" }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString("base64url")}`;
}

function credentialsOf(account: KeyPair, further: object = {}): string {
  const user = nkeys.createUser();
  const jwt = tokenOf(account, user, { type: "user", ...NO_LIMIT, ...ALLOWED }, further);
  const seed = Buffer.from(user.getSeed()).toString();
  return [
    `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n`,
    `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
  ].join("\n");
}

async function namesAt(daemon: TestDaemon): Promise<string[]> {
  return (await fleetOf(daemon)).machines.map(({ name }) => name).toSorted();
}

describe.skipIf(NATS.isMissing)(`a fleet on a server with an operator, accounts and TLS${NATS.note}`, () => {
  const [operator, home, neighbour] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const folder = temporaryFolder();
  let nats: NatsServer;

  /** For the present test, which may be tried again. */
  async function join(name: string, credentials: string, ca = nats.certificate.ca): Promise<TestDaemon> {
    const file = path.join(folder, `${name}.creds`);
    writeFileSync(file, credentials, { mode: 0o600 });
    const daemon = await startDaemon({
      until: "listening",
      env: {
        SERVICE_FLEET_NATS: nats.url,
        SERVICE_FLEET_NAME: name,
        SERVICE_FLEET_CREDENTIALS: file,
        SERVICE_FLEET_TLS_CA: ca,
      },
    });
    onTestFinished(async () => await daemon.stop());
    return daemon;
  }

  beforeAll(async () => {
    const accounts = [home, neighbour].map((account) => {
      const token = tokenOf(operator, account, { type: "account", limits: ACCOUNT_LIMITS });
      return `${account.getPublicKey()}: ${token}`;
    });
    nats = await startNats({
      tls: true,
      config: [
        `operator: ${tokenOf(operator, operator, { type: "operator" })}`,
        "resolver: MEMORY",
        `resolver_preload: { ${accounts.join(", ")} }`,
      ].join("\n"),
    });
  });
  afterAll(async () => await nats.stop());

  test("is that of one account, whose users need no more than the subjects of the prefix", async () => {
    const [entrance, attic, stranger] = await Promise.all([
      join("desk", credentialsOf(home)),
      join("attic", credentialsOf(home)),
      join("stranger", credentialsOf(neighbour)),
    ]);
    for (const daemon of [entrance, attic])
      await expect.poll(async () => await namesAt(daemon)).toEqual(["attic", "desk"]);
    await expect.poll(async () => (await fleetOf(stranger)).connected).toBe(true);
    expect(await namesAt(stranger)).toEqual(["stranger"]);
    for (const daemon of [entrance, attic, stranger]) {
      const refused = (): string[] =>
        daemon
          .logs()
          .split("\n")
          .filter((line) => /refuses|ermissions/.test(line));
      // JetStream has subjects of its own: without them batches are each machine's.
      await expect
        .poll(refused)
        .toEqual([expect.stringContaining("fleet: files and batches are not shared now")]);
    }
  });

  test("does not let in whose credentials have expired, and whose accounts the operator has not made", async () => {
    const [expired, unknown] = await Promise.all([
      join("expired", credentialsOf(home, { exp: Math.floor(Date.now() / 1000) - 60 })),
      join("unknown", credentialsOf(nkeys.createAccount())),
    ]);
    for (const daemon of [expired, unknown]) {
      await expect
        .poll(() => daemon.logs())
        .toMatch(/(refuses the user and password|not reachable).* and is tried again/);
      expect(daemon.logs()).not.toContain("Fleet: joined as");
    }
  });

  test("sends credentials to no server whose certificate another authority has signed", async () => {
    const other = await startNats({ tls: true });
    try {
      const wary = await startDaemon({
        until: "listening",
        env: { SERVICE_FLEET_NATS: other.url, SERVICE_FLEET_NAME: "wary" },
      });
      onTestFinished(async () => await wary.stop());
      await expect.poll(() => wary.logs()).toMatch(/is not reachable, and is tried again: .*certificate/);
    } finally {
      await other.stop();
    }
  });
});
