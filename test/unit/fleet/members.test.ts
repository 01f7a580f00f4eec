import { describe, expect, test } from "vitest";
import { rankCandidates, candidatesFor } from "../../../src/fleet/members.ts";
import { prefixHashes, PrefixAffinity } from "../../../src/fleet/prefix-affinity.ts";
import { heartbeat, memberInfo, memberModel, idOf } from "../../support/fleet-wire.ts";

const model = memberModel("tiny");

function machine(
  name: string,
  {
    running,
    slots = 4,
    speed = 10,
    bytes = 1000,
  }: { running?: number; slots?: number; speed?: number; bytes?: number },
) {
  const loaded = { alias: "tiny", slots, running: running ?? 0, waiting: 0, contextSize: 512, gpuLayers: 0 };
  return {
    info: memberInfo(name, { models: [{ ...model, bytes }], memory: { total: 2000, models: 1500 } }),
    heartbeat: heartbeat(name, {
      loaded: running === undefined ? [] : [loaded],
      speeds: [{ alias: "tiny", decode: speed, prefill: 0 }],
    }),
  };
}

function order(machines: ReturnType<typeof machine>[], known: Record<string, number> = {}): string[] {
  const places = candidatesFor(model, machines, idOf("self"), () => 0).filter(({ isFree }) => isFree);
  const byId = new Map(Object.entries(known).map(([name, characters]) => [idOf(name), characters]));
  const names = new Map(machines.map((each) => [each.info.id, each.info.name]));
  return rankCandidates(places, byId).map((place) => names.get(place.machine) ?? "");
}

describe("the machine for a request", () => {
  test("has the model loaded and a free slot", () => {
    expect(
      order([machine("disk", {}), machine("busy", { running: 4 }), machine("free", { running: 3 })]),
    ).toEqual(["free", "disk"]);
  });

  test("is the local one if others are no better", () => {
    expect(order([machine("other", { running: 0, speed: 99 }), machine("self", { running: 1 })])[0]).toBe(
      "self",
    );
  });

  test("is the one that has processed a prefix of the prompt", () => {
    const machines = [machine("self", { running: 0 }), machine("knows", { running: 3 })];
    expect(order(machines, { knows: 1000 })[0]).toBe("knows");
  });

  test("is the faster one of equally free ones, and the freer one of equally fast ones", () => {
    expect(order([machine("slow", { running: 0, speed: 5 }), machine("fast", { running: 0 })])[0]).toBe(
      "fast",
    );
    expect(order([machine("full", { running: 3 }), machine("empty", { running: 0 })])[0]).toBe("empty");
  });

  test("has enough memory for the model", () => {
    expect(order([machine("small", { bytes: 1600 }), machine("large", {})])).toEqual(["large"]);
  });

  test("has the same files and settings, and is not leaving", () => {
    const [files, settings, leaving] = [
      machine("files", {}),
      machine("settings", {}),
      machine("leaving", {}),
    ];
    files.info = { ...files.info, models: [{ ...model, files: "0".repeat(64) }] };
    settings.info = { ...settings.info, models: [{ ...model, settings: "0".repeat(64) }] };
    leaving.heartbeat = { ...leaving.heartbeat, state: "draining" };
    expect(order([files, settings, leaving])).toEqual([]);
  });
});

const chat = (...texts: string[]) => ({
  input: {
    kind: "chat" as const,
    messages: texts.map((text) => ({ role: "user" as const, content: [{ type: "text" as const, text }] })),
    tools: [],
    toolChoice: "auto" as const,
    parallelToolCalls: true,
  },
});
const prompt = (text: string) => ({ input: { kind: "prompt" as const, prompt: text } });

describe("prefix affinity", () => {
  const long = "x".repeat(300);

  test("finds the machine that has processed the beginning of a conversation", () => {
    const memory = new PrefixAffinity();
    memory.record(prefixHashes("m", chat(long, "b")), "one");
    memory.record(prefixHashes("m", chat(long, "b", "c", "d")), "two");
    expect(memory.known(prefixHashes("m", chat(long, "b", "c", "e"))).get("two")).toBeGreaterThan(300);
    expect(memory.known(prefixHashes("other model", chat(long, "b"))).size).toBe(0);
    expect(memory.known(prefixHashes("m", chat(`${long}!`, "b"))).size).toBe(0);
  });

  test("ignores short prefixes", () => {
    const memory = new PrefixAffinity();
    memory.record(prefixHashes("m", chat("short")), "one");
    expect(memory.known(prefixHashes("m", chat("short", "b"))).size).toBe(0);
  });

  test("finds prefixes of plain prompts", () => {
    const memory = new PrefixAffinity();
    memory.record(prefixHashes("m", prompt("x".repeat(2000))), "one");
    expect(memory.known(prefixHashes("m", prompt(`${"x".repeat(1600)}y`))).get("one")).toBeGreaterThan(1500);
  });
});
