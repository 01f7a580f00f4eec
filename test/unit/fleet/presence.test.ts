import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Beat, Card } from "../../../src/fleet/card.ts";
import { Presence, SILENCE_MS } from "../../../src/fleet/presence.ts";
import { card, beat, FleetWire } from "../../support/fleet-wire.ts";

const logger = pino({ level: "silent" });

/** A machine on a wire of this process. */
function machine(wire: FleetWire, self: { card: Card; beat: Beat }) {
  const connection = wire.connect();
  return { connection, presence: new Presence({ connection, logger, self, now: () => Date.now() }) };
}

function names(presence: Presence): string[] {
  return presence.machines.map((each) => each.card.name);
}

describe("the machines that are present", () => {
  let wire: FleetWire;
  const one = { card: card("one"), beat: beat("one") };
  const two = { card: card("two"), beat: beat("two") };

  beforeEach(() => {
    vi.useFakeTimers();
    wire = new FleetWire();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("know each other after a beat, and not themselves", async () => {
    const [first, second] = [machine(wire, one), machine(wire, two)];
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["two"]);
    expect(names(second.presence)).toEqual(["one"]);
  });

  test("are gone when they have been silent, and at once when they say so", async () => {
    const [first, second] = [machine(wire, one), machine(wire, two)];
    await vi.advanceTimersByTimeAsync(600);
    second.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 600);
    expect(names(first.presence)).toEqual(["two"]);
    await vi.advanceTimersByTimeAsync(1200);
    expect(names(first.presence)).toEqual([]);
    const third = machine(wire, two);
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["two"]);
    third.presence.close();
    third.connection.publish("fleet.presence", json({ ...two.beat, state: "gone" }));
    expect(names(first.presence)).toEqual([]);
  });

  test("are asked again when their card has changed", async () => {
    const changing = { ...two };
    const [first] = [machine(wire, one), machine(wire, changing)];
    await vi.advanceTimersByTimeAsync(600);
    changing.card = { ...two.card, name: "renamed", revision: 2 };
    changing.beat = { ...two.beat, revision: 2 };
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["renamed"]);
  });

  test("are not gone when this process itself was held up", async () => {
    const first = machine(wire, one);
    machine(wire, two).presence.close();
    await vi.advanceTimersByTimeAsync(100);
    wire.send("fleet.presence", json(two.beat));
    await vi.advanceTimersByTimeAsync(500);
    // The clock goes on, and no timer comes.
    vi.setSystemTime(Date.now() + 10_000);
    await vi.advanceTimersByTimeAsync(500);
    expect(names(first.presence)).toEqual(["two"]);
    await vi.advanceTimersByTimeAsync(SILENCE_MS);
    expect(names(first.presence)).toEqual([]);
  });

  test("are nobody without the connection", async () => {
    const first = machine(wire, one);
    machine(wire, two);
    await vi.advanceTimersByTimeAsync(600);
    first.connection.isConnected = false;
    expect(names(first.presence)).toEqual([]);
  });

  test("may have a model that nobody tells of until they had time to come back", async () => {
    const { connection, presence } = machine(wire, one);
    await vi.advanceTimersByTimeAsync(6000);
    expect(presence.missing("m")).toBeUndefined();
    connection.isConnected = false;
    await vi.advanceTimersByTimeAsync(6000);
    expect(presence.missing("m")).toMatchObject({
      code: "fleet_unreachable",
      status: 503,
      retryable: true,
      retryAfterSecs: 1,
      message: expect.stringMatching(/"m".*nats\.example:4222 is not reachable/),
    });
    connection.isConnected = true;
    await vi.advanceTimersByTimeAsync(3000);
    expect(presence.missing("m")).toMatchObject({ code: "fleet_unreachable" });
    await vi.advanceTimersByTimeAsync(3000);
    expect(presence.missing("m")).toBeUndefined();
  });

  test("are not those that send something else", async () => {
    const first = machine(wire, one);
    const { connection } = machine(wire, {
      card: { ...two.card, memory: { total: -1, models: 0 } },
      beat: two.beat,
    });
    connection.publish("fleet.presence", new Uint8Array([1, 2, 3]));
    connection.publish("fleet.presence", json({ ...two.beat, id: "../../x" }));
    connection.publish("fleet.presence", json({ ...two.beat, id: "3".repeat(32), protocol: 999 }));
    await vi.advanceTimersByTimeAsync(1200);
    expect(names(first.presence)).toEqual([]);
  });
});

function json(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
