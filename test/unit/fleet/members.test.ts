import { describe, expect, test } from "vitest";
import { inOrder, candidatesFor } from "../../../src/fleet/members.ts";
import { prefixHashes, PromptMemory } from "../../../src/fleet/prefix-affinity.ts";
import { beat, card, cardModel, idOf } from "../../support/fleet-wire.ts";

const model = cardModel("tiny");

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
    card: card(name, { models: [{ ...model, bytes }], memory: { total: 2000, models: 1500 } }),
    beat: beat(name, {
      loaded: running === undefined ? [] : [loaded],
      speeds: [{ alias: "tiny", decode: speed, prefill: 0 }],
    }),
  };
}

function order(machines: ReturnType<typeof machine>[], known: Record<string, number> = {}): string[] {
  const places = candidatesFor(model, machines, idOf("self"), () => 0).filter(({ isFree }) => isFree);
  const byId = new Map(Object.entries(known).map(([name, characters]) => [idOf(name), characters]));
  const names = new Map(machines.map((each) => [each.card.id, each.card.name]));
  return inOrder(places, byId).map((place) => names.get(place.machine) ?? "");
}

describe("the machine for a request", () => {
  test("has loaded the model, and a free slot", () => {
    expect(
      order([machine("disk", {}), machine("busy", { running: 4 }), machine("free", { running: 3 })]),
    ).toEqual(["free", "disk"]);
  });

  test("is this one before others that are no better", () => {
    expect(order([machine("other", { running: 0, speed: 99 }), machine("self", { running: 1 })])[0]).toBe(
      "self",
    );
  });

  test("is the one that knows the beginning of the prompt", () => {
    const machines = [machine("self", { running: 0 }), machine("knows", { running: 3 })];
    expect(order(machines, { knows: 1000 })[0]).toBe("knows");
  });

  test("is the faster one of two that are as free, and the freer one of two that are as fast", () => {
    expect(order([machine("slow", { running: 0, speed: 5 }), machine("fast", { running: 0 })])[0]).toBe(
      "fast",
    );
    expect(order([machine("full", { running: 3 }), machine("empty", { running: 0 })])[0]).toBe("empty");
  });

  test("has memory for it", () => {
    expect(order([machine("small", { bytes: 1600 }), machine("large", {})])).toEqual(["large"]);
  });

  test("has the same files and the same settings, and is not leaving", () => {
    const [files, settings, leaving] = [
      machine("files", {}),
      machine("settings", {}),
      machine("leaving", {}),
    ];
    files.card = { ...files.card, models: [{ ...model, files: "0".repeat(64) }] };
    settings.card = { ...settings.card, models: [{ ...model, settings: "0".repeat(64) }] };
    leaving.beat = { ...leaving.beat, state: "draining" };
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

describe("the memory of prompts", () => {
  const long = "x".repeat(300);

  test("knows who has read the beginning of a conversation", () => {
    const memory = new PromptMemory();
    memory.remember(prefixHashes("m", chat(long, "b")), "one");
    memory.remember(prefixHashes("m", chat(long, "b", "c", "d")), "two");
    expect(memory.known(prefixHashes("m", chat(long, "b", "c", "e"))).get("two")).toBeGreaterThan(300);
    expect(memory.known(prefixHashes("other model", chat(long, "b"))).size).toBe(0);
    expect(memory.known(prefixHashes("m", chat(`${long}!`, "b"))).size).toBe(0);
  });

  test("does not care for beginnings that are soon read again", () => {
    const memory = new PromptMemory();
    memory.remember(prefixHashes("m", chat("short")), "one");
    expect(memory.known(prefixHashes("m", chat("short", "b"))).size).toBe(0);
  });

  test("knows texts by their beginning too", () => {
    const memory = new PromptMemory();
    memory.remember(prefixHashes("m", prompt("x".repeat(2000))), "one");
    expect(memory.known(prefixHashes("m", prompt(`${"x".repeat(1600)}y`))).get("one")).toBeGreaterThan(1500);
  });
});
