import { connect } from "@nats-io/transport-node";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, describe, expect, test } from "vitest";
import { NATS, startNats, startNatsCluster, type NatsServer } from "../support/nats-server.ts";

const servers: NatsServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

describe.skipIf(NATS.isMissing)(`the NATS servers of tests${NATS.note}`, () => {
  test("a plain one has no JetStream, and is the same one after a crash", async () => {
    const server = await startNats();
    servers.push(server);
    const connection = await connect({
      servers: server.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 20,
    });
    connection.subscribe("ask", { callback: (_error, message) => void message.respond("answer") });
    expect((await connection.request("ask")).string()).toBe("answer");
    await expect(jetstreamManager(connection)).rejects.toThrow(/jetstream/i);
    await server.kill("SIGKILL");
    await server.restart();
    await expect.poll(() => connection.rtt().catch(() => -1)).toBeGreaterThanOrEqual(0);
    expect((await connection.request("ask")).string()).toBe("answer");
    await connection.close();
  });

  test("one with TLS refuses who has no password and who does not know its certificate", async () => {
    const server = await startNats({
      tls: true,
      config: `authorization { users: [{ user: a, password: secret }] }`,
    });
    servers.push(server);
    expect(server.url).toMatch(/^tls:/);
    const tls = { caFile: server.certificate.ca };
    await expect(connect({ servers: server.url, user: "a", pass: "secret" })).rejects.toThrow(/certificate/);
    await expect(connect({ servers: server.url, tls })).rejects.toThrow(/authorization/i);
    const connection = await connect({ servers: server.url, tls, user: "a", pass: "secret" });
    await connection.flush();
    await connection.close();
  });

  test("one with mutual TLS refuses who shows no certificate", async () => {
    const server = await startNats({ tls: "mutual" });
    servers.push(server);
    const { ca, cert, key } = server.certificate;
    await expect(connect({ servers: server.url, tls: { caFile: ca }, reconnect: false })).rejects.toThrow(
      /certificate|disconnect|ECONNRESET|closed/i,
    );
    const connection = await connect({
      servers: server.url,
      tls: { caFile: ca, certFile: cert, keyFile: key },
    });
    await connection.flush();
    await connection.close();
  });

  test("a cluster keeps a stream when one of its servers is killed", async () => {
    const cluster = await startNatsCluster(3);
    servers.push(...cluster);
    const connection = await connect({ servers: cluster.map(({ url }) => url), reconnectTimeWait: 50 });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "kept", subjects: ["kept.>"], num_replicas: 3 });
    await manager.jetstream().publish("kept.one", "1");
    const used = cluster.find(({ port }) => connection.getServer().endsWith(`:${port}`));
    await used?.kill("SIGKILL");
    await expect
      .poll(async () => (await manager.streams.getMessage("kept", { seq: 1 }).catch(() => null))?.string())
      .toBe("1");
    await connection.close();
  });
});
