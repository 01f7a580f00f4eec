import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Heartbeat, type MemberInfo, MAX_CARD_BYTES } from "../../../src/fleet/members.ts";
import { Presence, SILENCE_MS } from "../../../src/fleet/presence.ts";
import { beat, card, cardModel, FleetWire, idOf } from "../../support/fleet-wire.ts";

const logger = pino({ level: "silent" });

/** A machine on a wire of this process. */
function machine(wire: FleetWire, self: { card: MemberInfo; beat: Heartbeat }) {
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

  test("are expected back for an hour, under the same name", async () => {
    const [first, second] = [machine(wire, one), machine(wire, two)];
    const departed = (): string[] => first.presence.departed.map((each) => each.card.name);
    await vi.advanceTimersByTimeAsync(600);
    expect(departed()).toEqual([]);
    second.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    expect(departed()).toEqual(["two"]);
    const again = { card: { ...card("again"), name: "two" }, beat: beat("again") };
    const third = machine(wire, again);
    await vi.advanceTimersByTimeAsync(600);
    expect(departed()).toEqual([]);
    third.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    expect(first.presence.departed.map((each) => each.card.id)).toEqual([again.card.id]);
    await vi.advanceTimersByTimeAsync(59 * 60_000);
    expect(departed()).toEqual(["two"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(departed()).toEqual([]);
  });

  test("that are started again before they are missed have not left", async () => {
    const [first, second] = [machine(wire, one), machine(wire, two)];
    await vi.advanceTimersByTimeAsync(600);
    second.presence.close();
    machine(wire, { card: { ...card("again"), name: "two" }, beat: beat("again") });
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    expect(names(first.presence)).toEqual(["two"]);
    expect(first.presence.departed).toEqual([]);
  });

  test("are not back before they have told which models they have", async () => {
    const first = machine(wire, one);
    const models = [cardModel("tiny")];
    const second = machine(wire, { card: card("two", { models }), beat: beat("two") });
    await vi.advanceTimersByTimeAsync(6000);
    second.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    const begun = { name: "two", revision: 0 };
    const self = { card: card("again", begun), beat: beat("again", { revision: 0 }) };
    const third = machine(wire, self);
    const expected = (): void => {
      expect(first.presence.missing("tiny")).toMatchObject({ code: "fleet_unreachable" });
      expect(first.presence.departed.map((each) => each.card.models)).toEqual([models]);
    };
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["two"]);
    expected();
    third.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    expected();
    machine(wire, self);
    await vi.advanceTimersByTimeAsync(600);
    self.card = { ...self.card, revision: 1 };
    self.beat = beat("again");
    await vi.advanceTimersByTimeAsync(600);
    expect(first.presence.missing("tiny")).toBeUndefined();
    expect(first.presence.departed).toEqual([]);
  });

  test("that have left are remembered in part when there are more than anybody has", async () => {
    const first = machine(wire, one);
    const forger = wire.connect();
    for (let index = 0; index < 100; index += 1) {
      const forged = card(`${index}`);
      forger.listen(forger.subject("card", forged.id), (_data, _subject, reply) => reply?.(json(forged)));
      wire.send("fleet.presence", json(beat(`${index}`)));
      await vi.advanceTimersByTimeAsync(1);
      wire.send("fleet.presence", json({ ...beat(`${index}`), state: "gone" }));
    }
    const departed = first.presence.departed.map((each) => each.card.name);
    expect(departed).toHaveLength(64);
    expect(departed.at(-1)).toBe("99");
  });

  test("are told of when they come, stop and fall silent, and not while there is no connection", async () => {
    const info = vi.spyOn(logger, "info");
    onTestFinished(() => info.mockRestore());
    const told = (): unknown[] => info.mock.calls.splice(0).map(([about, text]) => [about, text]);
    const about = { machine: "two", id: two.card.id };
    const first = machine(wire, one);
    const second = machine(wire, two);
    await vi.advanceTimersByTimeAsync(600);
    second.presence.close();
    told();
    second.connection.publish("fleet.presence", json({ ...two.beat, state: "gone" }));
    expect(told()).toEqual([[about, "fleet: a machine has left"]]);
    second.connection.publish("fleet.presence", json({ ...two.beat, state: "gone" }));
    wire.send("fleet.presence", json(two.beat));
    await vi.advanceTimersByTimeAsync(600);
    expect(told()).toMatchObject([[about, "fleet: a machine has joined"]]);
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    expect(told()).toEqual([[about, "fleet: a machine is gone"]]);
    wire.send("fleet.presence", json(two.beat));
    await vi.advanceTimersByTimeAsync(600);
    told();
    first.connection.isConnected = false;
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    expect(told()).toEqual([]);
  });

  test("are warned of once when they have this machine's name", async () => {
    const warn = vi.spyOn(logger, "warn");
    onTestFinished(() => warn.mockRestore());
    machine(wire, one);
    const named = { ...two, card: { ...two.card, name: "one" } };
    machine(wire, named);
    machine(wire, { card: card("three"), beat: beat("three") });
    await vi.advanceTimersByTimeAsync(600);
    named.card = { ...named.card, revision: 2 };
    named.beat = { ...two.beat, revision: 2 };
    await vi.advanceTimersByTimeAsync(1200);
    const warnings = warn.mock.calls.map(([, text]) => text);
    // Each of the two warns.
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/has the same name, one: set fleet\.name/);
  });

  test("are there again at once when somebody else says in their name that they are gone, which is told", async () => {
    const warn = vi.spyOn(logger, "warn");
    const [first, second] = [machine(wire, one), machine(wire, two)];
    await vi.advanceTimersByTimeAsync(3000);
    second.presence.beat();
    expect(warn).not.toHaveBeenCalled();
    const before = wire.messages;
    for (let times = 0; times < 1000; times += 1)
      wire.send("fleet.presence", json({ ...two.beat, state: "gone" }));
    // One beat answers them all.
    expect(wire.messages - before).toBeLessThan(1010);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.lastCall?.[0]).toMatch(/somebody else sends messages in this machine's name/);
    await vi.advanceTimersByTimeAsync(100);
    wire.send("fleet.presence", json({ ...two.beat, state: "gone" }));
    await vi.advanceTimersByTimeAsync(1);
    expect(names(first.presence)).toEqual(["two"]);
    warn.mockRestore();
  });

  test("are not asked for more cards at the same time than anybody has machines", async () => {
    const first = machine(wire, one);
    const asked = new Set<string>();
    const forger = wire.connect();
    for (let index = 0; index < 1000; index += 1) {
      const { id } = card(`${index}`);
      forger.listen(forger.subject("card", id), () => void asked.add(id));
      wire.send("fleet.presence", json(beat(`${index}`)));
    }
    expect(asked.size).toBe(256);
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
    expect(presence.lostMs).toBe(6000);
    connection.isConnected = true;
    await vi.advanceTimersByTimeAsync(3000);
    expect(presence.missing("m")).toMatchObject({ code: "fleet_unreachable" });
    expect(presence.lostMs).toBe(9000);
    await vi.advanceTimersByTimeAsync(3000);
    expect(presence.missing("m")).toBeUndefined();
  });

  test("are expected back for a minute with their models, also while they start, and no longer once they are back", async () => {
    const first = machine(wire, one);
    const withModel = { card: card("two", { models: [cardModel("tiny")] }), beat: beat("two") };
    const second = machine(wire, withModel);
    await vi.advanceTimersByTimeAsync(6000);
    const expected = (): string | undefined => first.presence.missing("tiny")?.message;
    expect(first.presence.missing("tiny")).toBeUndefined();
    second.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    expect(first.presence.missing("tiny")).toMatchObject({
      code: "fleet_unreachable",
      retryable: true,
      retryAfterSecs: 5,
      message: expect.stringMatching(
        /^The machine two, which has the model "tiny", .* try again in a few seconds/,
      ),
    });
    expect(first.presence.missing("other")).toBeUndefined();
    // It comes back with another id, and is starting.
    const ready = beat("back");
    const self = {
      card: { ...withModel.card, id: idOf("back") },
      beat: { ...ready, state: "draining" as Heartbeat["state"] },
    };
    const third = machine(wire, self);
    await vi.advanceTimersByTimeAsync(600);
    expect(expected()).toMatch(/^The machine two,/);
    self.beat = ready;
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["two"]);
    expect(expected()).toBeUndefined();
    third.presence.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(expected()).toMatch(/^The machine two,/);
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 600);
    expect(expected()).toBeUndefined();
  });

  test("tell of as many models as fit into a message that others take", async () => {
    const models = Array.from({ length: 2000 }, (_, index) => ({
      ...cardModel(`model-${index}`),
      isDefault: false,
    }));
    const first = machine(wire, one);
    machine(wire, { card: card("two", { models }), beat: two.beat });
    await vi.advanceTimersByTimeAsync(600);
    const [seen] = first.presence.machines;
    expect(seen?.card.models.length).toBeGreaterThan(200);
    expect(JSON.stringify(seen?.card).length).toBeLessThanOrEqual(MAX_CARD_BYTES);
    expect(JSON.stringify(seen?.card).length).toBeGreaterThan(MAX_CARD_BYTES - 1000);
  });

  test("are not those whose messages are too long", async () => {
    const first = machine(wire, one);
    const forger = wire.connect();
    const long = card("two", { models: Array.from({ length: 1000 }, () => cardModel("m")) });
    forger.listen(forger.subject("card", two.card.id), (_data, _subject, reply) => reply?.(json(long)));
    wire.send("fleet.presence", json(two.beat));
    const speeds = Array.from({ length: 2000 }, () => ({ alias: "m".repeat(20), decode: 1, prefill: 1 }));
    wire.send("fleet.presence", json(beat("three", { speeds })));
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual([]);
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
