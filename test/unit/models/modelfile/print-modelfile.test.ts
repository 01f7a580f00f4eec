import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  type ModelDefinition,
  printModelfile,
  readModelfile,
} from "../../../../src/models/modelfile/read-modelfile.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

const RUNS = 500;

const PIECES = [
  "word",
  " ",
  "\n",
  '"',
  '"""',
  "\\",
  "\\n",
  "\t",
  "\r",
  "#",
  "FROM x",
  "{{",
  "}}",
  "é",
  "模型",
  "<|end|>",
];

/** Removes undefined fields, which readModelfile omits. */
function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return JSON.parse(JSON.stringify(fields));
}

function randomDefinition(seed: number): ModelDefinition {
  const random = randomNumbers(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const text = (least = 0): string =>
    Array.from({ length: least + Math.floor(random() * 6) }, () => pick(PIECES)).join("");
  const maybe = <T>(make: () => T): T | undefined => (random() < 0.5 ? make() : undefined);
  const file = (): string =>
    path.resolve(`/${pick(["a b", 'q"uote', "x 1", "é"])}/${pick(["m", "m 2"])}.gguf`);
  return {
    from: pick(["llama3.2:1b", "hf:o/r:a b.gguf@refs/pr/1", "mine@main", file()]),
    adapters: Array.from({ length: Math.floor(random() * 3) }, (_, at) => ({
      path: file(),
      scale: pick([1, 0.5, -2, 1e-7]),
      ...present({ name: maybe(() => `a${at}.b`) }),
    })),
    projector: maybe(file),
    digest: maybe(() => "0f".repeat(32)),
    license: maybe(text),
    author: maybe(text),
    settings: {
      system: maybe(text),
      template: maybe(() => `{% for message in messages %}${text()}{% endfor %}`),
      sampling: present({
        temperature: maybe(() => random() * 2),
        topK: maybe(() => Math.floor(random() * 100)),
        presencePenalty: maybe(() => random() * 4 - 2),
        seed: maybe(() => 4_294_967_295),
      }),
      maxTokens: maybe(() => 100),
      ...present({ repetitionGuard: maybe(() => random() < 0.5) }),
      stop: Array.from({ length: Math.floor(random() * 3) }, () => text(1)),
      contextSize: maybe(() => 4096),
      gpuLayers: maybe(() => pick([-1, 0, 20])),
      load: present({
        flashAttention: maybe(() => pick(["auto", "true", "false"] as const)),
        cacheTypeK: maybe(() => pick(["f16", "q8_0", "q4_1"] as const)),
        ropeScaling: maybe(() => pick(["none", "linear", "yarn"] as const)),
        ropeFreqScale: maybe(() => pick([0.25, 1, 0.3333])),
        batchSize: maybe(() => 512),
        contextShift: maybe(() => random() < 0.5),
        numKeep: maybe(() => -1),
      }),
      thinking: maybe(() => ({ start: text(1), end: text(1), enabled: random() < 0.5 })),
      toolFormat: maybe(() => ({
        style: pick(["custom", "hermes"]),
        callStart: text(1),
        callEnd: text(),
        resultStart: text(1),
        resultEnd: text(),
      })),
      capabilities: present({ json: maybe(() => true), vision: maybe(() => false) }),
      ...present({
        messages: maybe(() => [
          { role: "user" as const, content: text() },
          { role: "assistant" as const, content: text(1) },
        ]),
      }),
    },
    unused: Array.from({ length: Math.floor(random() * 3) }, () =>
      pick([
        { directive: "RENDERER" as const, key: "", text: text(1) },
        { directive: "PARAMETER" as const, key: "num_thread", text: pick(["512", text()]) },
      ]),
    ),
  };
}

describe("a printed Modelfile", () => {
  it(`parses back to the same definition, whatever its texts contain`, () => {
    for (let seed = 1; seed <= RUNS; seed++) {
      const definition = randomDefinition(seed);
      const printed = printModelfile(definition);
      expect(readModelfile(printed, undefined), `seed ${seed}:\n${printed}`).toEqual(definition);
    }
  });

  it("has the usual form", () => {
    const modelfile = [
      "FROM qwen3:0.6b",
      "PARAMETER temperature 0.2",
      "PARAMETER num_ctx 8192",
      'PARAMETER stop "<|end|>"',
      'SYSTEM """You are kind.\nYou are brief."""',
      "CAPABILITY tools true",
      'AUTHOR "Ada"',
      "",
    ].join("\n");
    expect(printModelfile(readModelfile(modelfile, undefined))).toBe(modelfile);
  });
});
