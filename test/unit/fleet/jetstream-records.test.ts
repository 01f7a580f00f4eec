import { jetstreamManager } from "@nats-io/jetstream";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { RecordsUnreachable } from "../../../src/api/services.ts";
import { JetStreamStore } from "../../../src/fleet/batches/jetstream-store.ts";
import { SharingLog } from "../../../src/fleet/jetstream/streams.ts";
import { FleetConnection } from "../../../src/fleet/fleet-connection.ts";
import { JetStreamRecords } from "../../../src/fleet/jetstream-records.ts";
import { NATS, type NatsOptions, type NatsServer, startNats } from "../../support/nats-server.ts";

const RECORD = Buffer.from("record");
const unreachable = { code: "fleet_unreachable" };

/** Connection, records and batch store of a machine, with its log lines. */
function machineAt(url: string) {
  const warnings: string[] = [];
  const news: string[] = [];
  const logger = pino({ level: "silent" });
  const config = configSchema.parse({ fleet: { nats: url, prefix: "t" } }).fleet;
  const connection = new FleetConnection(config, logger);
  onTestFinished(async () => await connection.close());
  const log = {
    warn: (text: string) => void warnings.push(text),
    info: (text: string) => void news.push(text),
    debug: () => undefined,
  };
  const sharing = new SharingLog(connection, log);
  const records = new JetStreamRecords(connection, "t", log, sharing);
  const jetStream = new JetStreamStore(connection, "t", log, sharing);
  return { connection, records, place: jetStream, sharing, warnings, news };
}

async function machine(options: NatsOptions = { jetStream: true }) {
  const nats = await startNats(options);
  onTestFinished(async () => await nats.stop());
  const made = machineAt(nats.url);
  await made.connection.joined;
  return { ...made, nats };
}

/** Stops the server, applies a change to its files, and starts it again. */
async function restart(nats: NatsServer, connection: FleetConnection, change: () => void): Promise<void> {
  await nats.kill("SIGTERM");
  await expect.poll(() => connection.isConnected, { interval: 10 }).toBe(false);
  change();
  await nats.restart();
  await expect.poll(() => connection.isConnected, { interval: 10 }).toBe(true);
}

describe.skipIf(NATS.isMissing)(`records of a fleet${NATS.note}`, () => {
  test("are unreachable rather than missing without the server, and readable after its return", async () => {
    const { records, connection, nats } = await machine();
    await records.put("a", RECORD);
    expect(await records.get("a")).toEqual(RECORD);
    await nats.kill("SIGKILL");
    await expect.poll(() => connection.isConnected, { interval: 10 }).toBe(false);
    await records.put("b", RECORD);
    for (const answer of [await records.get("a"), await records.erase("a"), await records.isErased("a")])
      expect(answer).toBeInstanceOf(RecordsUnreachable);
    await nats.restart();
    await expect.poll(async () => await records.get("a"), { interval: 20 }).toEqual(RECORD);
    expect(await records.get("b")).toBeUndefined();
    expect(await records.erase("a")).toBeUndefined();
    expect(await records.isErased("a")).toBe(true);
  });

  test("stay erased if the erasing machine is killed before it has removed their chunks", async () => {
    const { records, connection } = await machine();
    await records.put("a", RECORD);
    const { nats } = connection;
    if (!nats) throw new Error("there is no connection");
    // State after the first step of erase().
    const manager = await jetstreamManager(nats);
    await manager.jetstream().publish(connection.subject("kept", "a", "erased"), "");
    let removals = 0;
    nats.subscribe("$JS.API.STREAM.PURGE.>", { callback: () => void (removals += 1) });
    for (let time = 0; time < 3; time += 1) {
      expect(await records.get("a")).toBeUndefined();
      expect(await records.isErased("a")).toBe(true);
    }
    // Only the erased mark is left, and is not removed again.
    expect((await manager.streams.info("t_responses")).state.messages).toBe(1);
    // A busy machine may resend one request.
    expect(removals).toBeLessThan(4);
  });

  test("are marked as erased before their chunks are removed", async () => {
    const { records, connection } = await machine();
    await records.put("a", RECORD);
    const messages: string[] = [];
    connection.nats?.subscribe("t.kept.>", {
      callback: (_error, { subject }) => void messages.push(subject),
    });
    connection.nats?.subscribe("$JS.API.STREAM.PURGE.>", { callback: () => void messages.push("purge") });
    await connection.nats?.flush();
    expect(await records.erase("a")).toBeUndefined();
    // A busy machine may resend a request.
    expect([...new Set(messages)]).toEqual(["t.kept.a.erased", "purge"]);
    expect(await records.get("a")).toBeUndefined();
  });

  test("are unreachable when the server returns without JetStream, with one warning that says what to do", async () => {
    const { records, place: jetStream, sharing, connection, nats, warnings, news } = await machine();
    await records.put("a", RECORD);
    expect(await jetStream.primaryStore()).toBe("fleet");
    const conf = path.join(nats.folder, "nats.conf");
    const before = readFileSync(conf);
    await restart(nats, connection, () => writeFileSync(conf, ""));
    const messages = /NATS server at .* runs without JetStream: start it with -js/;
    await records.put("b", RECORD);
    expect(await records.get("a")).toMatchObject({ why: expect.stringMatching(messages) });
    expect(await records.erase("a")).toBeInstanceOf(RecordsUnreachable);
    for (let time = 0; time < 2; time += 1)
      await expect(jetStream.put("t.batches.x", RECORD)).rejects.toMatchObject({
        ...unreachable,
        message: expect.stringMatching(messages),
      });
    expect(await jetStream.primaryStore()).toBe("away");
    expect(warnings).toEqual([expect.stringMatching(messages)]);
    expect(warnings).toEqual([
      expect.stringContaining("fleet: files, batches and responses are not shared now"),
    ]);
    expect(sharing.problem).toMatch(messages);
    news.length = 0;
    await restart(nats, connection, () => writeFileSync(conf, before));
    await expect.poll(async () => await jetStream.primaryStore(), { interval: 20 }).toBe("fleet");
    expect(news).toEqual(["fleet: files and batches are shared again"]);
  });

  test("get a new stream at once when the server has lost its data", async () => {
    const { records, place: jetStream, connection, nats, warnings } = await machine();
    await records.put("a", RECORD);
    expect(await jetStream.primaryStore()).toBe("fleet");
    const wipe = (): void => rmSync(path.join(nats.folder, "jetstream"), { recursive: true });
    await restart(nats, connection, wipe);
    await records.put("b", RECORD);
    expect(await records.get("a")).toBeUndefined();
    expect(await records.get("b")).toEqual(RECORD);
    expect(await jetStream.put("t.batches.x", RECORD)).toBe(1);
    expect(warnings).toEqual([]);
  });

  test("are missing if the fleet never had JetStream", async () => {
    const { records, connection, nats } = await machine({});
    const ask = async (): Promise<unknown[]> => [
      await records.get("a"),
      await records.erase("a"),
      await records.isErased("a"),
    ];
    expect(await ask()).toEqual([undefined, undefined, false]);
    await nats.kill("SIGKILL");
    await expect.poll(() => connection.isConnected, { interval: 10 }).toBe(false);
    expect(await ask()).toEqual([undefined, undefined, false]);
  });

  test("are unreachable while no server was reached yet", async () => {
    const { records } = machineAt("nats://127.0.0.1:1");
    expect(await records.get("a")).toBeInstanceOf(RecordsUnreachable);
    // Nothing of this machine can be stored on the server.
    expect(await records.erase("a")).toBeUndefined();
  });
});
