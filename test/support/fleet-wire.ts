import { type Heartbeat, type MemberInfo, type MemberModel, PROTOCOL } from "../../src/fleet/members.ts";
import type { FleetConnection, MessageHandler } from "../../src/fleet/fleet-connection.ts";

/** Members of a connection that the fleet uses. */
type Wired = Pick<
  FleetConnection,
  | "subject"
  | "publish"
  | "listen"
  | "request"
  | "onChange"
  | "maxPayload"
  | "nats"
  | "joined"
  | "close"
  | "servers"
  | "problem"
> & { isConnected: boolean };

/** Stands for a NATS server: passes messages between connections of this process, at once. */
export class FleetWire {
  readonly #readers = new Map<string, { readonly read: MessageHandler; readonly owner: Wired }[]>();
  maxPayload = 1024 * 1024;
  /** That have been sent. */
  messages = 0;

  connect(): FleetConnection & { isConnected: boolean } {
    const listeners = new Set<() => void>();
    let isConnected = true;
    const wired: Wired = {
      get isConnected() {
        return isConnected;
      },
      set isConnected(value) {
        isConnected = value;
        for (const listener of listeners) listener();
      },
      servers: "nats.example:4222",
      problem: undefined,
      nats: undefined,
      joined: Promise.resolve(),
      maxPayload: this.maxPayload,
      subject: (...parts) => ["fleet", ...parts].join("."),
      publish: (subject, data) => {
        if (wired.isConnected) this.#send(subject, data, undefined);
        return wired.isConnected;
      },
      request: (subject, data) =>
        new Promise((resolve, reject) => {
          if (!this.#send(subject, data, resolve)) reject(new Error("no responders"));
        }),
      listen: (subject, read) => {
        this.#readers.set(subject, [...(this.#readers.get(subject) ?? []), { read, owner: wired }]);
      },
      onChange: (listener) => void listeners.add(listener),
      close: async () => undefined,
    };
    // The wire has all that is public of a connection.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return wired as unknown as FleetConnection & { isConnected: boolean };
  }

  /** As somebody who is no machine. */
  send(subject: string, data: Uint8Array): void {
    this.#send(subject, data, undefined);
  }

  #send(subject: string, data: Uint8Array, reply: ((data: Uint8Array) => void) | undefined): boolean {
    const there = (this.#readers.get(subject) ?? []).filter(({ owner }) => owner.isConnected);
    this.messages += 1;
    for (const { read } of there) read(data, subject, reply);
    return there.length > 0;
  }
}

/** An id that a name stands for. */
export function idOf(name: string): string {
  return Buffer.from(name).toString("hex").padEnd(32, "0").slice(0, 32);
}

export function memberInfo(name: string, further: Partial<MemberInfo> = {}): MemberInfo {
  return {
    protocol: PROTOCOL,
    id: idOf(name),
    revision: 1,
    name,
    version: "1.2.3",
    engine: "e".repeat(64),
    processor: { name: "a processor", system: "linux x64", usable: 4, cores: 2 },
    gpus: [],
    memory: { total: 16e9, models: 12e9 },
    models: [],
    ...further,
  };
}

export function heartbeat(name: string, further: Partial<Heartbeat> = {}): Heartbeat {
  return {
    protocol: PROTOCOL,
    id: idOf(name),
    revision: 1,
    state: "ready",
    memoryUsed: 0,
    loaded: [],
    speeds: [],
    ...further,
  };
}

export function memberModel(alias: string): MemberModel {
  return {
    alias,
    files: "f".repeat(64),
    settings: "5".repeat(64),
    bytes: 1000,
    gguf: {
      architecture: "llama",
      parameters: 1,
      vocabSize: 1,
      contextLength: 512,
      embeddingLength: 64,
      blockCount: 2,
      quantization: "F32",
      fileSize: 1000,
      purpose: "generate",
    },
    capabilities: { vision: false, audio: false, tools: false, thinking: false, json: true },
    contextSize: 512,
    adapters: [],
    modifiedAt: 0,
    isDefault: true,
  };
}
