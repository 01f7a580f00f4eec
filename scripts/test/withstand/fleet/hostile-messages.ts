import { ANTHROPIC_BATCHES } from "../../../../src/api/anthropic/batches/message-batch-object.ts";
import { OPENAI_BATCHES } from "../../../../src/api/openai/batches/openai-batch-format.ts";
import { encodeValue, type FrameKind, newCallId, writeFrame } from "../../../../src/fleet/wire-format.ts";
import { heartbeat, memberInfo, memberModel } from "../../../../test/support/fleet-wire.ts";
import type { Random } from "../kit/random.ts";
import { mutatedBody } from "../requests/mutate.ts";

/** A message for the NATS server. */
export interface Message {
  readonly subject: string;
  readonly data: Uint8Array;
}

/** Knowledge of the attacker about the fleet: all that any client of the NATS server can learn. */
interface FleetKnowledge {
  readonly prefix: string;
  /** Ids of the machines; the first one has the model. */
  readonly machines: readonly string[];
  /** The model that calls are for, by what identifies it. */
  readonly model: { readonly alias: string; readonly files: string; readonly settings: string };
  /** Messages that others have sent. */
  readonly heard: readonly Message[];
}

const FRAMES: readonly FrameKind[] = ["offer", "body", "alive", "cancel", "accepted", "part", "last"];
const HEX = "0123456789abcdef";
/** Up to what NATS takes in one message. */
const LONGEST = 200_000;
/** Longest stored value, in bytes: filling disks is not part of the attack. */
const LONGEST_STORED = 4096;

/** A hostile message for some subject of the fleet. */
export function hostileMessage(known: FleetKnowledge, random: Random): Message {
  const kind = random.int(0, 9);
  if (kind <= 1) return heartbeatMessage(known, random);
  if (kind <= 4) return callMessage(known, random);
  if (kind === 5) return fileQuestion(known, random);
  if (kind === 6) return storedMessage(known, random);
  if (kind === 7) return { subject: someSubject(known, random), data: randomBytes(random, LONGEST) };
  return heardMessage(known, random);
}

/** The card of a machine that is not there, perhaps damaged: it has the model, free and fast. */
export function forgedCard({ model }: FleetKnowledge, id: string, random: Random): Uint8Array {
  const { alias, files, settings } = model;
  const models = [{ ...memberModel(alias), files, settings }];
  return text(mutatedBody({ ...memberInfo("forged"), id, name: "forged", models }, random));
}

function heartbeatMessage({ prefix, machines, model }: FleetKnowledge, random: Random): Message {
  const id = random.chance(0.5) ? random.pick(machines) : randomId(random);
  const loaded = [{ alias: model.alias, slots: 8, running: 0, waiting: 0, contextSize: 512, gpuLayers: 0 }];
  const state = random.pick(["ready", "ready", "draining", "gone"] as const);
  const speeds = [{ alias: model.alias, decode: 1e6, prefill: 1e6 }];
  const forged = { ...heartbeat("forged"), id, state, loaded, speeds, revision: random.int(0, 9) };
  return { subject: `${prefix}.presence`, data: text(mutatedBody(forged, random)) };
}

function callMessage(known: FleetKnowledge, random: Random): Message {
  const kind = random.chance(0.6) ? "offer" : random.pick(FRAMES);
  const [victim = ""] = known.machines;
  const other = `${random.pick(["call", "answer"])}.${random.pick(known.machines)}`;
  const subject = `${known.prefix}.${kind === "offer" ? `call.${victim}` : other}`;
  const frame = { kind, call: newCallId(), number: random.int(0, 3) };
  const payload = kind === "offer" ? offer(known, random) : randomBytes(random, 2000);
  return { subject, data: writeFrame({ ...frame, payload }) };
}

/** An offer with its request, one of which may be damaged. */
function offer({ model, machines }: FleetKnowledge, random: Random): Uint8Array {
  const request = {
    endpoint: "chat",
    input: { kind: "prompt", prompt: "Once" },
    maxTokens: random.pick([1, 4, 10_000]),
    sampling: { temperature: 0 },
    format: { type: "text" },
    wantsTokens: random.chance(0.5),
    wantsChosen: true,
    failedTries: random.int(0, 4),
    ...(random.chance(0.5) && { given: [random.int(0, 300), random.int(0, random.pick([300, 1e6]))] }),
    defaults: { sampling: {} },
  };
  const op = random.pick(["generate", "generate", "generate", "embed", "score", "tokenize", "nothing"]);
  const call = { op, request };
  const isDamaged = random.chance(0.5);
  const body = isDamaged ? encoded(mutatedBody(call, random)) : encodeValue(call);
  const bytes = random.chance(0.8) ? body.length : random.pick([0, 1, 2 ** 28, 2 ** 53]);
  const { alias: name, files, settings } = model;
  const entrance = random.chance(0.5) ? random.pick(machines) : randomId(random);
  const valid = { protocol: 1, entrance, files, settings, name, needsSlot: random.chance(0.5), bytes };
  const head = isDamaged ? encodeValue(valid) : encoded(mutatedBody(valid, random));
  const payload = Buffer.alloc(4 + head.length + body.length);
  payload.writeUInt32BE(random.chance(0.95) ? head.length : random.int(0, 2 ** 31));
  payload.set(head, 4);
  payload.set(body, 4 + head.length);
  return payload;
}

function fileQuestion({ prefix, machines }: FleetKnowledge, random: Random): Message {
  const digest = { algorithm: "sha256", hex: "a".repeat(64) };
  const question = random.pick([
    { kind: "has", repo: "a/b", digest, size: 100 },
    { kind: "read", repo: "../b", digest, size: 2 ** 40, offset: 2 ** 39, length: 524_288 },
    { kind: "list", repo: "a/b", revision: "main" },
  ]);
  return {
    subject: `${prefix}.files.${random.pick(machines)}`,
    data: text(mutatedBody(question, random)),
  };
}

/** Responses, batches, their work and their files. */
function storedMessage({ prefix, heard }: FleetKnowledge, random: Random): Message {
  const stored = heard.filter(({ subject }) => /\.(kept|batch\w+)(\.|$)/.test(subject));
  const id = randomId(random);
  const [batch, file] = [`batch_f${id}`, `file-f${id}`];
  const subject =
    stored.length > 0 && random.chance(0.6)
      ? random.pick(stored).subject
      : `${prefix}.${random.pick([
          `kept.resp_${id}.0`,
          `kept.resp_${id}.erased`,
          `batches.batch.${batch}`,
          `batches.file.${file}`,
          `batches.lease.${batch}`,
          `batchwork.${batch}.0.0`,
          `batchdata.file.${file}.0`,
          `batchdata.answer.${batch}.1`,
          "batchnews",
          "batchwaits",
        ])}`;
  const record = storedRecord(subject.split(".").at(-1) ?? "", random);
  const data = random.chance(0.5) ? text(mutatedBody(record, random)) : randomBytes(random, LONGEST_STORED);
  return { subject, data: data.subarray(0, LONGEST_STORED) };
}

/** As one that a machine has written, under the id that its subject has. */
function storedRecord(id: string, random: Random): object {
  const counts = { succeeded: 0, errored: 0, cancelled: 0, expired: 0 };
  const usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  const line = {
    number: random.int(1, 9),
    start: random.int(0, 100),
    length: random.pick([1, 100, 2 ** 30]),
  };
  const status = random.pick(["validating", "in_progress", "finalizing", "cancelling", "completed"]);
  return random.pick([
    { lines: Array.from({ length: random.int(0, 40) }, () => line) },
    { holder: random.pick(["", id]) },
    { batch: id, reason: "forged", answered: 0 },
    {
      id,
      owner: "",
      purpose: "batch",
      name: "",
      bytes: random.int(0, 2 ** 40),
      createdAt: 0,
      expiresAt: null,
    },
    {
      id,
      api: random.pick([OPENAI_BATCHES, ANTHROPIC_BATCHES, "none"]),
      owner: "",
      endpoint: "/v1/completions",
      inputFile: `file-f${randomId(random)}`,
      status,
      times: {},
      createdAt: Date.now(),
      expiresAt: Date.now() + random.pick([0, 1e9]),
      outputLifeMs: null,
      metadata: null,
      problems: [],
      total: random.int(0, 1e9),
      counts,
      usage,
      groups: random.pick([[], [{ name: "" }], [{ name: "a" }, { name: "b" }]]),
      queue: "0",
      files: [],
    },
  ]);
}

/** Repeats a message of another machine: damaged, cut off, or to another subject. */
function heardMessage(known: FleetKnowledge, random: Random): Message {
  if (known.heard.length === 0) return heartbeatMessage(known, random);
  const { subject, data } = random.pick(known.heard);
  const bytes = Buffer.from(data);
  for (let times = random.int(0, 4); times > 0 && bytes.length > 0; times -= 1)
    bytes[random.int(0, bytes.length - 1)] = random.int(0, 255);
  const cut = random.chance(0.3) ? bytes.subarray(0, random.int(0, bytes.length)) : bytes;
  const isStored = /\.(kept|batch\w+)\./.test(subject);
  const target = !isStored && random.chance(0.2) ? someSubject(known, random) : subject;
  return { subject: target, data: cut };
}

function someSubject({ prefix, machines }: FleetKnowledge, random: Random): string {
  const kind = random.pick(["presence", "card", "call", "answer", "files", "batchnews"]);
  return ["presence", "batchnews"].includes(kind)
    ? `${prefix}.${kind}`
    : `${prefix}.${kind}.${random.pick(machines)}`;
}

function randomBytes(random: Random, most: number): Buffer {
  return random.bytes(random.chance(0.8) ? random.int(0, 100) : random.int(0, most));
}

function randomId(random: Random): string {
  return Array.from({ length: 32 }, () => HEX[random.int(0, 15)]).join("");
}

/** As the values of messages are encoded; what is no JSON stands for itself. */
function encoded(json: string): Uint8Array {
  try {
    return encodeValue(JSON.parse(json));
  } catch {
    return text(json);
  }
}

function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}
