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
const away = { code: "fleet_unreachable" };

/** A machine's connection, records and place of batches, with what they warn of and tell. */
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
  const place = new JetStreamStore(connection, "t", log, sharing);
  return { connection, records, place, sharing, warnings, news };
}

async function machine(options: NatsOptions = { jetStream: true }) {
  const nats = await startNats(options);
  onTestFinished(async () => await nats.stop());
  const made = machineAt(nats.url);
  await made.connection.joined;
  return { ...made, nats };
}

/** Has the server end, lets something be done to its files, and starts it again. */
async function restart(nats: NatsServer, connection: FleetConnection, change: () => void): Promise<void> {
  await nats.kill("SIGTERM");
  await expect.poll(() => connection.isConnected, { interval: 10 }).toBe(false);
  change();
  await nats.restart();
  await expect.poll(() => connection.isConnected, { interval: 10 }).toBe(true);
}

describe.skipIf(NATS.isMissing)(`records of a fleet${NATS.note}`, () => {
  test("are away, not missing, while the server is, and there again with it", async () => {
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

  test("stay erased when the machine that erases them is gone before it has removed them", async () => {
    const { records, connection } = await machine();
    await records.put("a", RECORD);
    const { nats } = connection;
    if (!nats) throw new Error("there is no connection");
    // All that it has done by then.
    const manager = await jetstreamManager(nats);
    await manager.jetstream().publish(connection.subject("kept", "a", "erased"), "");
    let removals = 0;
    nats.subscribe("$JS.API.STREAM.PURGE.>", { callback: () => void (removals += 1) });
    for (let time = 0; time < 3; time += 1) {
      expect(await records.get("a")).toBeUndefined();
      expect(await records.isErased("a")).toBe(true);
    }
    // Nothing of it is left but that, and nobody removes it again.
    expect((await manager.streams.info("t_responses")).state.messages).toBe(1);
    // On a busy machine, one request may be sent again.
    expect(removals).toBeLessThan(4);
  });

  test("are marked as erased before anything of them is removed", async () => {
    const { records, connection } = await machine();
    await records.put("a", RECORD);
    const told: string[] = [];
    connection.nats?.subscribe("t.kept.>", { callback: (_error, { subject }) => void told.push(subject) });
    connection.nats?.subscribe("$JS.API.STREAM.PURGE.>", { callback: () => void told.push("purge") });
    await connection.nats?.flush();
    expect(await records.erase("a")).toBeUndefined();
    // On a busy machine, a request may be sent again.
    expect([...new Set(told)]).toEqual(["t.kept.a.erased", "purge"]);
    expect(await records.get("a")).toBeUndefined();
  });

  test("are away when the server comes back without JetStream, and one warning says what to do", async () => {
    const { records, place, sharing, connection, nats, warnings, news } = await machine();
    await records.put("a", RECORD);
    expect(await place.home()).toBe("fleet");
    const conf = path.join(nats.folder, "nats.conf");
    const before = readFileSync(conf);
    await restart(nats, connection, () => writeFileSync(conf, ""));
    const told = /NATS server at .* runs without JetStream: start it with -js/;
    await records.put("b", RECORD);
    expect(await records.get("a")).toMatchObject({ why: expect.stringMatching(told) });
    expect(await records.erase("a")).toBeInstanceOf(RecordsUnreachable);
    for (let time = 0; time < 2; time += 1)
      await expect(place.put("t.batches.x", RECORD)).rejects.toMatchObject({
        ...away,
        message: expect.stringMatching(told),
      });
    expect(await place.home()).toBe("away");
    expect(warnings).toEqual([expect.stringMatching(told)]);
    expect(warnings).toEqual([
      expect.stringContaining("fleet: files, batches and responses are not shared now"),
    ]);
    expect(sharing.problem).toMatch(told);
    news.length = 0;
    await restart(nats, connection, () => writeFileSync(conf, before));
    await expect.poll(async () => await place.home(), { interval: 20 }).toBe("fleet");
    expect(news).toEqual(["fleet: files and batches are shared again"]);
  });

  test("get a new stream at once when the server has lost its files", async () => {
    const { records, place, connection, nats, warnings } = await machine();
    await records.put("a", RECORD);
    expect(await place.home()).toBe("fleet");
    const wipe = (): void => rmSync(path.join(nats.folder, "jetstream"), { recursive: true });
    await restart(nats, connection, wipe);
    await records.put("b", RECORD);
    expect(await records.get("a")).toBeUndefined();
    expect(await records.get("b")).toEqual(RECORD);
    expect(await place.put("t.batches.x", RECORD)).toBe(1);
    expect(warnings).toEqual([]);
  });

  test("are missing where there has never been JetStream", async () => {
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

  test("may be there, as long as the server has never been reached", async () => {
    const { records } = machineAt("nats://127.0.0.1:1");
    expect(await records.get("a")).toBeInstanceOf(RecordsUnreachable);
    // Nobody can have what this machine has made.
    expect(await records.erase("a")).toBeUndefined();
  });
});
