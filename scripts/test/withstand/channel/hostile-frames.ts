import { encodeFrame } from "../../../../src/engine/channel/frame.ts";
import { ENGINE_MESSAGE_KINDS } from "../../../../src/engine/channel/message-limits.ts";
import type { EngineMessage } from "../../../../src/engine/protocol/messages.ts";
import type { Random } from "../kit/random.ts";

/** Names of the kinds of messages, in the order of their numbers. */
const KINDS = Object.keys(ENGINE_MESSAGE_KINDS);

const DONE = {
  type: "done",
  reason: "stop",
  usage: { promptTokens: 1, completionTokens: 3, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 1, completionMs: 2 },
} as const;

/** Messages that a correct engine could send for a call, in their order. */
function honestMessages(call: number, random: Random): EngineMessage[] {
  const text = (): string => "word ".repeat(random.int(1, 20));
  const logprob = {
    id: 1,
    token: "a",
    logprob: -0.5,
    bytes: [97],
    top: [{ id: 2, token: "b", logprob: -1, bytes: null }],
  };
  return [
    {
      type: "events",
      call,
      events: [{ type: "start" }, { type: "prompt-progress", processed: 1, total: 1 }],
    },
    { type: "events", call, events: [{ type: "text-delta", text: text(), logprobs: [logprob] }] },
    { type: "events", call, events: [{ type: "tool-call-start", index: 0, id: "call_1", name: "look" }] },
    { type: "events", call, events: [{ type: "tool-call-delta", index: 0, arguments: '{"a":' }] },
    { type: "events", call, events: [{ type: "reasoning-delta", text: text() }, DONE] },
  ];
}

/** Other kinds of messages, which fit no generation or come at a wrong time. */
function unexpectedMessages(call: number, random: Random): EngineMessage[] {
  return [
    { type: "load-progress", progress: random.fraction() },
    { type: "embedded", call, result: { vector: [1, 2], tokens: 1 } },
    { type: "reranked", call, result: { score: 1, tokens: 1 } },
    { type: "tokenized", call, result: Int32Array.of(1, 2) },
    { type: "pieces", call, result: { bytes: Uint8Array.of(1), ends: Int32Array.of(1) } },
    { type: "cancelled", call },
    { type: "memory", call, result: random.int(0, 2 ** 40) },
    {
      type: "call-failed",
      call,
      error: { code: "inference_failed", message: "x".repeat(random.int(0, 9000)) },
    },
    { type: "fatal", reason: "\u0000".repeat(random.int(0, 9000)) },
  ];
}

/** A frame with the JSON of a message as it may be changed, and attachments that need not fit. */
function frameOf(
  message: object & { type: string },
  change: (json: string) => string,
  random: Random,
): Buffer {
  const kind = random.chance(0.9) ? KINDS.indexOf(message.type) : random.int(0, 255);
  const attachments = random.chance(0.15)
    ? Array.from({ length: random.int(1, 4) }, () => random.bytes(random.int(0, 64)))
    : [];
  return Buffer.concat([encodeFrame(kind, change(JSON.stringify(message)), attachments), ...attachments]);
}

/** Values that stand in places of others. */
const ODD_VALUES = [
  "null",
  "-1",
  "0",
  "1e400",
  "-0",
  "9007199254740993",
  "1.5",
  '""',
  '"\\ud800"',
  "true",
  "[]",
  "{}",
  '{"__proto__":{"type":"x"}}',
  '{"toString":1}',
  '"' + "x".repeat(100_000) + '"',
];

/** Changes of a JSON text: what stands in it, how deep and how much it is. */
const CHANGES: readonly ((json: string, random: Random) => string)[] = [
  (json, random) => json.replace(/:(-?[\d.e+-]+|"[^"]*"|null|\[\])/i, () => `:${random.pick(ODD_VALUES)}`),
  (json, random) => {
    const places = [...json.matchAll(/[\d]+|"[^"]*"/g)];
    const place = random.pick(places);
    return json.slice(0, place.index) + random.pick(ODD_VALUES) + json.slice(place.index + place[0].length);
  },
  (json, random) => json.replace(/\[/, "[".repeat(random.pick([2, 9, 100, 3000, 100_000]))),
  (json, random) => json.replace(/\{/, '{"a":'.repeat(random.pick([1, 9, 100, 3000, 50_000])) + "{"),
  (json, random) => json.replace("[", `[${"{},".repeat(random.pick([1, 100, 16_000, 160_000]))}`),
  (json, random) =>
    json.replace(
      "{",
      `{${Array.from({ length: random.pick([1, 1000, 20_000]) }, (_, n) => `"k${n}":${n},`).join("")}`,
    ),
  (json) => json.replace("{", '{"type":"fatal","__proto__":{"call":1},"constructor":1,'),
  (json, random) => json.slice(0, random.int(0, json.length)),
  (json, random) => json + random.pick([" ", "}", "\u0000", json, "\n".repeat(10_000)]),
];

/** One way to be hostile: bytes to write one after the other, and what to do after them. */
interface HostileAnswer {
  readonly name: string;
  readonly pieces: readonly Buffer[];
  /** How the engine goes on when all is written. */
  readonly next: "wait" | "exit" | "again";
  /** Text for its standard error stream. */
  readonly shouted?: string;
}

interface Material {
  readonly call: number;
  readonly random: Random;
  readonly honest: readonly EngineMessage[];
  /** The honest messages as they are sent. */
  readonly frames: readonly Buffer[];
  /** One of them, and its place. */
  readonly victim: Buffer;
  readonly at: number;
}

const plain = (json: string): string => json;

const replaced = ({ frames, at }: Material, ...others: Buffer[]): Buffer[] =>
  frames.toSpliced(at, 1, ...others);

const WAYS: Readonly<Record<string, (material: Material) => Omit<HostileAnswer, "name">>> = {
  "an honest answer without an end": ({ frames }) => ({ pieces: frames, next: "wait" }),
  "bits turned": (material) => {
    const { random, victim } = material;
    const turned = Buffer.from(victim);
    for (let times = random.int(1, 8); times > 0; times -= 1) {
      const place = random.int(0, random.chance(0.5) ? 11 : turned.length - 1);
      turned[place] = (turned[place] ?? 0) ^ (1 << random.int(0, 7));
    }
    return { pieces: replaced(material, turned), next: random.pick(["wait", "exit"]) };
  },
  "lengths forged": (material) => {
    const { random, victim } = material;
    const forged = Buffer.from(victim);
    const length = random.pick([0, 1, victim.length, 2 ** 16, 2 ** 20, 2 ** 24, 2 ** 31, 2 ** 32 - 1]);
    if (random.chance(0.3)) forged.writeUInt16LE(random.int(0, 0xffff), 2);
    else forged.writeUInt32LE(length, random.pick([4, 8]));
    return { pieces: replaced(material, forged), next: random.pick(["wait", "exit", "again"]) };
  },
  "JSON changed": (material) => {
    const { call, random, honest } = material;
    const message = random.pick([...honest, ...unexpectedMessages(call, random)]);
    const change = random.pick(CHANGES);
    return {
      pieces: replaced(
        material,
        frameOf(message, (json) => change(json, random), random),
      ),
      next: "wait",
    };
  },
  "call numbers forged": ({ call, random }) => {
    const number = random.pick([call + 1, call - 1, 0, -1, 2 ** 53, 1.5]);
    return {
      pieces: honestMessages(number, random).map((each) => frameOf(each, plain, random)),
      next: "wait",
    };
  },
  "other kinds of messages": (material) => {
    const { call, random } = material;
    const unexpected = unexpectedMessages(call, random);
    const picked = Array.from({ length: random.int(1, 4) }, () =>
      frameOf(random.pick(unexpected), plain, random),
    );
    return { pieces: replaced(material, ...picked), next: "wait" };
  },
  "order changed": ({ random, frames }) => {
    const order = frames.toSorted(() => random.fraction() - 0.5);
    return { pieces: random.chance(0.5) ? order : [...order, ...frames], next: "wait" };
  },
  "half a message": ({ random, frames, at, victim }) => ({
    pieces: [...frames.slice(0, at), victim.subarray(0, random.int(0, victim.length - 1))],
    next: random.pick(["wait", "exit"]),
  }),
  silence: ({ frames, at }) => ({ pieces: frames.slice(0, at), next: "wait" }),
  "one byte at a time": ({ frames }) => ({
    pieces: Array.from(Buffer.concat(frames), (byte) => Buffer.of(byte)),
    next: "wait",
  }),
  "no frame at all": ({ random }) => ({
    pieces: [
      random.chance(0.5) ? random.bytes(random.int(1, 5000)) : Buffer.from('{"cmd":"NODE_HANDLE_ACK"}\n'),
    ],
    next: "again",
  }),
  "flood of events": ({ random, frames, victim }) => {
    const piece = frames[random.int(0, 3)] ?? victim;
    return { pieces: [Buffer.concat(Array.from({ length: 200 }, () => piece))], next: "again" };
  },
  "flood of large events": ({ call, random }) => {
    const text = random.pick(["x", "\u0000", "\u{1F600}", '"']).repeat(random.int(10_000, 80_000));
    const message = { type: "events", call, events: [{ type: "text-delta", text }] };
    return { pieces: [frameOf(message, plain, random)], next: "again" };
  },
  "flood of many small values": ({ call, random }) => {
    const top = Array.from({ length: 400 }, () => ({ id: 0, token: "", logprob: -1, bytes: [1, 2, 3] }));
    const logprobs = Array.from({ length: 5 }, () => ({ id: 0, token: "", logprob: -1, bytes: null, top }));
    const message = { type: "events", call, events: [{ type: "text-delta", text: "", logprobs }] };
    return { pieces: [frameOf(message, plain, random)], next: "again" };
  },
  "large bytes that nobody asked for": ({ call }) => {
    const bytes = Buffer.alloc(16 * 1024 * 1024);
    const frame = encodeFrame(KINDS.indexOf("pieces"), JSON.stringify({ type: "pieces", call }), [
      bytes,
      bytes,
    ]);
    return { pieces: [frame, bytes, bytes], next: "wait" };
  },
  "flood of shouts": ({ random, frames, at }) => ({
    pieces: frames.slice(0, at),
    shouted: random
      .pick([":1:1".repeat(250) + "\n", "\n", "error ", "1: 0x1 \n", "12: " + ":9".repeat(490) + "\n"])
      .repeat(50),
    next: "again",
  }),
};

/** Which way {@link hostileAnswer} draws first. */
export function hostileWay(random: Random): string {
  return random.pick(Object.keys(WAYS));
}

/** Draws a way to be hostile, and how. */
export function hostileAnswer(call: number, random: Random): HostileAnswer {
  const name = hostileWay(random);
  const honest = honestMessages(call, random);
  const frames = honest.map((message) => frameOf(message, plain, random.fork()));
  const at = random.int(0, frames.length - 1);
  const material = { call, random, honest, frames, at, victim: frames[at] ?? Buffer.alloc(0) };
  const way = WAYS[name];
  if (!way) throw new Error(`there is no way ${name}`);
  return { name, ...way(material) };
}
