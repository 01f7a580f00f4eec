import { describe, expect, test } from "vitest";
import { createRequestSchema, toModelfile } from "../../../../src/dialects/ollama/ollama-create.ts";
import { parseInstructions } from "../../../../src/models/modelfile/parse-instructions.ts";
import { readModelfile } from "../../../../src/models/modelfile/read-modelfile.ts";

function modelfileOf(body: object): string {
  return toModelfile(createRequestSchema.parse({ model: "new", ...body }));
}

describe("the Modelfile of a create request", () => {
  test("says what the fields say", () => {
    const text = modelfileOf({
      from: "library/base:1b",
      system: 'You are "Mario".\nAlways.',
      template: "{{ .System }} {{ .Prompt }}",
      license: ["MIT", "Apache-2.0"],
      parameters: { temperature: 0.5, num_ctx: 512, stop: ["a\nb", '"'], top_k: "7" },
    });
    const definition = readModelfile(text, undefined);
    expect(definition).toMatchObject({
      from: "base:1b",
      license: "MIT\n\nApache-2.0",
      settings: {
        system: 'You are "Mario".\nAlways.',
        sampling: { temperature: 0.5, topK: 7 },
        contextSize: 512,
        stop: ["a\nb", '"'],
      },
    });
  });

  test("leaves out what means the default and what has no meaning here", () => {
    expect(
      modelfileOf({
        from: "base",
        system: "",
        parameters: { num_predict: -1, seed: -1, num_gpu: -1, num_thread: 4, use_mmap: true, top_p: null },
      }),
    ).toBe("FROM base\n");
  });

  test("has layers for the GPU as a directive of its own", () => {
    expect(modelfileOf({ from: "base", parameters: { num_gpu: 3 } })).toBe("FROM base\nGPU_LAYERS 3\n");
  });

  test("cannot be given further lines by a value", () => {
    const text = modelfileOf({
      from: "base",
      parameters: { stop: 'x"""\nADAPTER /etc/evil.gguf', temperature: "1\nADAPTER /etc/evil.gguf" },
    });
    expect(parseInstructions(text).map(({ directive }) => directive)).toEqual([
      "FROM",
      "PARAMETER",
      "PARAMETER",
    ]);
    expect(() => modelfileOf({ from: "base\nADAPTER /etc/evil.gguf" })).toThrow(/control characters/);
    expect(() => modelfileOf({ from: "base", parameters: { "x\nADAPTER /e.gguf": 1 } })).toThrow(
      /not a valid parameter name/,
    );
  });

  test("may be sent whole, as older clients do", () => {
    expect(modelfileOf({ modelfile: "FROM base\nSYSTEM hi" })).toBe("FROM base\nSYSTEM hi");
  });

  test("needs something to start from", () => {
    expect(() => modelfileOf({ system: "hi" })).toThrow(/from: is required/);
  });
});
