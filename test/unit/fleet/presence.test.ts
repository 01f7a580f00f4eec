import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Heartbeat, type MemberInfo, MAX_MEMBER_INFO_BYTES } from "../../../src/fleet/members.ts";
import { Presence, SILENCE_TIMEOUT_MS } from "../../../src/fleet/presence.ts";
import { heartbeat, memberInfo, memberModel, FleetWire, idOf } from "../../support/fleet-wire.ts";

const logger = pino({ level: "silent" });

/** Machine connected to a wire in this process. */
function machine(wire: FleetWire, self: { info: MemberInfo; heartbeat: Heartbeat }) {
  const connection = wire.connect();
  return { connection, presence: new Presence({ connection, logger, self }) };
}

function names(presence: Presence): string[] {
  return presence.machines.map((each) => each.info.name);
}

describe("presence", () => {
  let wire: FleetWire;
  const one = { info: memberInfo("one"), heartbeat: heartbeat("one") };
  const two = { info: memberInfo("two"), heartbeat: heartbeat("two") };

  beforeEach(() => {
    vi.useFakeTimers();
    wire = new FleetWire();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("lists other machines after a heartbeat, and not itself", async () => {
    const [first, second] = [machine(wire, one), machine(wire, two)];
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["two"]);
    expect(names(second.presence)).toEqual(["one"]);
  });

  test("removes a machine after a silence, and at once when it announces that it leaves", async () => {
    const [first, second] = [machine(wire, one), machine(wire, two)];
    await vi.advanceTimersByTimeAsync(600);
    second.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS - 600);
    expect(names(first.presence)).toEqual(["two"]);
    await vi.advanceTimersByTimeAsync(1200);
    expect(names(first.presence)).toEqual([]);
    const third = machine(wire, two);
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["two"]);
    third.presence.close();
    third.connection.publish("fleet.presence", json({ ...two.heartbeat, state: "gone" }));
    expect(names(first.presence)).toEqual([]);
  });

  test("remembers departed machines for an hour, by name", async () => {
    const [first, second] = [machine(wire, one), machine(wire, two)];
    const departed = (): string[] => first.presence.departed.map((each) => each.info.name);
    await vi.advanceTimersByTimeAsync(600);
    expect(departed()).toEqual([]);
    second.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    expect(departed()).toEqual(["two"]);
    const again = { info: { ...memberInfo("again"), name: "two" }, heartbeat: heartbeat("again") };
    const third = machine(wire, again);
    await vi.advanceTimersByTimeAsync(600);
    expect(departed()).toEqual([]);
    third.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    expect(first.presence.departed.map((each) => each.info.id)).toEqual([again.info.id]);
    await vi.advanceTimersByTimeAsync(59 * 60_000);
    expect(departed()).toEqual(["two"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(departed()).toEqual([]);
  });

  test("does not count a machine that restarts quickly as departed", async () => {
    const [first, second] = [machine(wire, one), machine(wire, two)];
    await vi.advanceTimersByTimeAsync(600);
    second.presence.close();
    machine(wire, { info: { ...memberInfo("again"), name: "two" }, heartbeat: heartbeat("again") });
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    expect(names(first.presence)).toEqual(["two"]);
    expect(first.presence.departed).toEqual([]);
  });

  test("expects a restarting machine until it has described its models", async () => {
    const first = machine(wire, one);
    const models = [memberModel("tiny")];
    const second = machine(wire, { info: memberInfo("two", { models }), heartbeat: heartbeat("two") });
    await vi.advanceTimersByTimeAsync(6000);
    second.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    const begun = { name: "two", revision: 0 };
    const self = { info: memberInfo("again", begun), heartbeat: heartbeat("again", { revision: 0 }) };
    const third = machine(wire, self);
    const expected = (): void => {
      expect(first.presence.missingModelError("tiny")).toMatchObject({ code: "fleet_unreachable" });
      expect(first.presence.departed.map((each) => each.info.models)).toEqual([models]);
    };
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["two"]);
    expected();
    third.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    expected();
    machine(wire, self);
    await vi.advanceTimersByTimeAsync(600);
    self.info = { ...self.info, revision: 1 };
    self.heartbeat = heartbeat("again");
    await vi.advanceTimersByTimeAsync(600);
    expect(first.presence.missingModelError("tiny")).toBeUndefined();
    expect(first.presence.departed).toEqual([]);
  });

  test("limits the number of remembered departed machines", async () => {
    const first = machine(wire, one);
    const forger = wire.connect();
    for (let index = 0; index < 100; index += 1) {
      const forged = memberInfo(`${index}`);
      forger.listen(forger.subject("card", forged.id), (_data, _subject, reply) => reply?.(json(forged)));
      wire.send("fleet.presence", json(heartbeat(`${index}`)));
      await vi.advanceTimersByTimeAsync(1);
      wire.send("fleet.presence", json({ ...heartbeat(`${index}`), state: "gone" }));
    }
    const departed = first.presence.departed.map((each) => each.info.name);
    expect(departed).toHaveLength(64);
    expect(departed.at(-1)).toBe("99");
  });

  test("logs machines that join, leave or fall silent, but not while disconnected", async () => {
    const info = vi.spyOn(logger, "info");
    onTestFinished(() => info.mockRestore());
    const logged = (): unknown[] => info.mock.calls.splice(0).map(([about, text]) => [about, text]);
    const about = { machine: "two", id: two.info.id };
    const first = machine(wire, one);
    const second = machine(wire, two);
    await vi.advanceTimersByTimeAsync(600);
    second.presence.close();
    logged();
    second.connection.publish("fleet.presence", json({ ...two.heartbeat, state: "gone" }));
    expect(logged()).toEqual([[about, "fleet: a machine has left"]]);
    second.connection.publish("fleet.presence", json({ ...two.heartbeat, state: "gone" }));
    wire.send("fleet.presence", json(two.heartbeat));
    await vi.advanceTimersByTimeAsync(600);
    expect(logged()).toMatchObject([[about, "fleet: a machine has joined"]]);
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    expect(logged()).toEqual([[about, "fleet: a machine is gone"]]);
    wire.send("fleet.presence", json(two.heartbeat));
    await vi.advanceTimersByTimeAsync(600);
    logged();
    first.connection.isConnected = false;
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    expect(logged()).toEqual([]);
  });

  test("warns once about a machine with the same name", async () => {
    const warn = vi.spyOn(logger, "warn");
    onTestFinished(() => warn.mockRestore());
    machine(wire, one);
    const named = { ...two, info: { ...two.info, name: "one" } };
    machine(wire, named);
    machine(wire, { info: memberInfo("three"), heartbeat: heartbeat("three") });
    await vi.advanceTimersByTimeAsync(600);
    named.info = { ...named.info, revision: 2 };
    named.heartbeat = { ...two.heartbeat, revision: 2 };
    await vi.advanceTimersByTimeAsync(1200);
    const warnings = warn.mock.calls.map(([, text]) => text);
    // Each of the two machines warns.
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/has the same name, one: set fleet\.name/);
  });

  test("corrects forged news that it is gone at once, and warns about them", async () => {
    const warn = vi.spyOn(logger, "warn");
    const [first, second] = [machine(wire, one), machine(wire, two)];
    await vi.advanceTimersByTimeAsync(3000);
    second.presence.sendHeartbeat();
    expect(warn).not.toHaveBeenCalled();
    const before = wire.messages;
    for (let times = 0; times < 1000; times += 1)
      wire.send("fleet.presence", json({ ...two.heartbeat, state: "gone" }));
    // One heartbeat corrects them all.
    expect(wire.messages - before).toBeLessThan(1010);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.lastCall?.[0]).toMatch(/another process sends messages with this machine's id/);
    await vi.advanceTimersByTimeAsync(100);
    wire.send("fleet.presence", json({ ...two.heartbeat, state: "gone" }));
    await vi.advanceTimersByTimeAsync(1);
    expect(names(first.presence)).toEqual(["two"]);
    warn.mockRestore();
  });

  test("limits the number of concurrent requests for member info", async () => {
    const first = machine(wire, one);
    const asked = new Set<string>();
    const forger = wire.connect();
    for (let index = 0; index < 1000; index += 1) {
      const { id } = memberInfo(`${index}`);
      forger.listen(forger.subject("card", id), () => void asked.add(id));
      wire.send("fleet.presence", json(heartbeat(`${index}`)));
    }
    expect(asked.size).toBe(256);
    expect(names(first.presence)).toEqual([]);
  });

  test("requests member info again after a new revision", async () => {
    const changing = { ...two };
    const [first] = [machine(wire, one), machine(wire, changing)];
    await vi.advanceTimersByTimeAsync(600);
    changing.info = { ...two.info, name: "renamed", revision: 2 };
    changing.heartbeat = { ...two.heartbeat, revision: 2 };
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["renamed"]);
  });

  test("removes no machine after a stall of this process", async () => {
    const first = machine(wire, one);
    machine(wire, two).presence.close();
    await vi.advanceTimersByTimeAsync(100);
    wire.send("fleet.presence", json(two.heartbeat));
    await vi.advanceTimersByTimeAsync(500);
    // The clock advances without any timer.
    const clock = performance.now.bind(performance);
    const late = vi.spyOn(performance, "now").mockImplementation(() => clock() + 10_000);
    onTestFinished(() => late.mockRestore());
    await vi.advanceTimersByTimeAsync(500);
    expect(names(first.presence)).toEqual(["two"]);
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS);
    expect(names(first.presence)).toEqual([]);
  });

  test("lists no machines while disconnected", async () => {
    const first = machine(wire, one);
    machine(wire, two);
    await vi.advanceTimersByTimeAsync(600);
    first.connection.isConnected = false;
    expect(names(first.presence)).toEqual([]);
  });

  test("reports an unknown model as unreachable until other machines had time to return", async () => {
    const { connection, presence } = machine(wire, one);
    await vi.advanceTimersByTimeAsync(6000);
    expect(presence.missingModelError("m")).toBeUndefined();
    connection.isConnected = false;
    await vi.advanceTimersByTimeAsync(6000);
    expect(presence.missingModelError("m")).toMatchObject({
      code: "fleet_unreachable",
      status: 503,
      retryable: true,
      retryAfterSecs: 1,
      message: expect.stringMatching(/"m".*nats\.example:4222 is not reachable/),
    });
    expect(presence.lostMs).toBe(6000);
    connection.isConnected = true;
    await vi.advanceTimersByTimeAsync(3000);
    expect(presence.missingModelError("m")).toMatchObject({ code: "fleet_unreachable" });
    expect(presence.lostMs).toBe(9000);
    await vi.advanceTimersByTimeAsync(3000);
    expect(presence.missingModelError("m")).toBeUndefined();
  });

  test("expects the models of a departed machine for a minute, and while it starts", async () => {
    const first = machine(wire, one);
    const memberWithModel = {
      info: memberInfo("two", { models: [memberModel("tiny")] }),
      heartbeat: heartbeat("two"),
    };
    const second = machine(wire, memberWithModel);
    await vi.advanceTimersByTimeAsync(6000);
    const expected = (): string | undefined => first.presence.missingModelError("tiny")?.message;
    expect(first.presence.missingModelError("tiny")).toBeUndefined();
    second.presence.close();
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    expect(first.presence.missingModelError("tiny")).toMatchObject({
      code: "fleet_unreachable",
      retryable: true,
      retryAfterSecs: 5,
      message: expect.stringMatching(
        /^The machine two, which has the model "tiny", .* try again in a few seconds/,
      ),
    });
    expect(first.presence.missingModelError("other")).toBeUndefined();
    // The machine returns with another id, and is starting.
    const ready = heartbeat("back");
    const self = {
      info: { ...memberWithModel.info, id: idOf("back") },
      heartbeat: { ...ready, state: "draining" as Heartbeat["state"] },
    };
    const third = machine(wire, self);
    await vi.advanceTimersByTimeAsync(600);
    expect(expected()).toMatch(/^The machine two,/);
    self.heartbeat = ready;
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual(["two"]);
    expect(expected()).toBeUndefined();
    third.presence.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(expected()).toMatch(/^The machine two,/);
    await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 600);
    expect(expected()).toBeUndefined();
  });

  test("sends only as many models as fit into a message", async () => {
    const models = Array.from({ length: 2000 }, (_, index) => ({
      ...memberModel(`model-${index}`),
      isDefault: false,
    }));
    const first = machine(wire, one);
    machine(wire, { info: memberInfo("two", { models }), heartbeat: two.heartbeat });
    await vi.advanceTimersByTimeAsync(600);
    const [seen] = first.presence.machines;
    expect(seen?.info.models.length).toBeGreaterThan(200);
    expect(JSON.stringify(seen?.info).length).toBeLessThanOrEqual(MAX_MEMBER_INFO_BYTES);
    expect(JSON.stringify(seen?.info).length).toBeGreaterThan(MAX_MEMBER_INFO_BYTES - 1000);
  });

  test("ignores messages that are too long", async () => {
    const first = machine(wire, one);
    const forger = wire.connect();
    const long = memberInfo("two", { models: Array.from({ length: 1000 }, () => memberModel("m")) });
    forger.listen(forger.subject("card", two.info.id), (_data, _subject, reply) => reply?.(json(long)));
    wire.send("fleet.presence", json(two.heartbeat));
    const speeds = Array.from({ length: 2000 }, () => ({ alias: "m".repeat(20), decode: 1, prefill: 1 }));
    wire.send("fleet.presence", json(heartbeat("three", { speeds })));
    await vi.advanceTimersByTimeAsync(600);
    expect(names(first.presence)).toEqual([]);
  });

  test("ignores invalid messages and those of other versions", async () => {
    const first = machine(wire, one);
    const { connection } = machine(wire, {
      info: { ...two.info, memory: { total: -1, models: 0 } },
      heartbeat: two.heartbeat,
    });
    connection.publish("fleet.presence", new Uint8Array([1, 2, 3]));
    connection.publish("fleet.presence", json({ ...two.heartbeat, id: "../../x" }));
    connection.publish("fleet.presence", json({ ...two.heartbeat, id: "3".repeat(32), protocol: 999 }));
    await vi.advanceTimersByTimeAsync(1200);
    expect(names(first.presence)).toEqual([]);
  });
});

function json(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
