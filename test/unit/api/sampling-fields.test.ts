import { describe, expect, test } from "vitest";
import { z } from "zod";
import { SAMPLING_ENTRIES } from "../../../src/engine/protocol/sampling-fields.ts";
import { samplingSchema } from "../../../src/engine/protocol/generation.ts";
import { testApp } from "../../support/test-app.ts";
import { SAMPLING_SAMPLES } from "./field-samples.ts";
import { samplingFields } from "../../../src/api/wire/generation-fields.ts";
import { toSampling } from "../../../src/api/request-settings.ts";

const schema = z.object(samplingFields);
const read = (body: unknown) => toSampling(schema.parse(body));

describe("sampling settings in a request", () => {
  test("are passed to the engine under all of their names", () => {
    for (const [key, { name, aliases = [] }] of SAMPLING_ENTRIES) {
      for (const each of [name, ...aliases]) {
        const value = Object.entries(SAMPLING_SAMPLES).find(([sample]) => sample === each)?.[1];
        const sampling = read({ [each]: value });
        expect([each, sampling[key]]).not.toEqual([each, undefined]);
        expect(samplingSchema.parse(sampling)).toEqual(sampling);
      }
    }
  });

  test("accept samplers as letters", () => {
    expect(read({ samplers: "dkt" }).samplers).toEqual(["dry", "top_k", "temperature"]);
    expect(schema.safeParse({ samplers: "kz" }).success).toBe(false);
    expect(schema.safeParse({ samplers: ["top_k", "greedy"] }).success).toBe(false);
  });

  test("accept logit biases as pairs, and false as a ban", () => {
    expect(read({ logit_bias: [[5, 2.5]] }).logitBias).toEqual([{ token: 5, bias: 2.5 }]);
    expect(read({ logit_bias: { 7: false } }).logitBias).toEqual([{ token: 7, bias: -100 }]);
    expect(schema.safeParse({ logit_bias: [["a", 1]] }).success).toBe(false);
  });

  test("are bounded if the engine would search its vocabulary for them", () => {
    const breakers = Array.from({ length: 17 }, (_, at) => `${at}`);
    expect(schema.safeParse({ dry_sequence_breakers: breakers }).success).toBe(false);
    expect(schema.safeParse({ dry_sequence_breakers: breakers.slice(1) }).success).toBe(true);
    expect(schema.safeParse({ dry_sequence_breakers: [] }).success).toBe(false);
  });
});

const CHAT = { messages: [{ role: "user", content: "hi" }] };
const PROMPT = { prompt: "hi" };

describe("an unsupported field that would change the answer", () => {
  test.for([
    ["/v1/chat/completions", CHAT],
    ["/v1/completions", PROMPT],
    ["/v1/responses", { input: "hi" }],
    ["/v1/messages", { ...CHAT, max_tokens: 5 }],
    ["/api/chat", CHAT],
    ["/api/generate", PROMPT],
  ] as const)(
    "is rejected by %s with its name and an alternative, unless it has no effect",
    async ([path, base]) => {
      const all = testApp();
      for (const [field, value] of Object.entries({
        min_tokens: 5,
        stop_token_ids: [2],
        bad_words: ["no"],
        prompt_logprobs: 1,
        post_sampling_probs: true,
        chat_template: "{{ messages }}",
        structural_tag: { structures: [] },
        "speculative.p_min": 0.9,
      })) {
        const answer = await all.post(path, { ...base, [field]: value });
        expect([field, answer.status]).toEqual([field, 400]);
        expect(await answer.text()).toContain(`${field}: is not supported: `);
      }
      const nothing = {
        min_tokens: 0,
        stop_token_ids: [],
        post_sampling_probs: false,
        "speculative.p_min": 0.75,
        id_slot: -1,
        n_keep: 5,
      };
      expect((await all.post(path, { ...base, ...nothing })).status).toBe(200);
    },
  );
});
