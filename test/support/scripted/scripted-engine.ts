import type { Engine } from "../../../src/engine/engine.ts";
import { configSchema } from "../../../src/config/schema.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import type { InferenceEvent, InferenceRequest } from "../../../src/inference/inference.ts";
import { detectCapabilities } from "../../../src/models/describe-model.ts";
import { createGgufInspector } from "../../../src/models/gguf/inspect-gguf.ts";
import { NO_SETTINGS } from "../../../src/models/model.ts";
import { engineSpec, NEVER, startEngine, writeModel } from "../engine-fixture.ts";
import { FakeMetrics } from "../fake-metrics.ts";
import { fakeModel } from "../fake-models.ts";
import { tinyProjector } from "../tiny-models.ts";
import { scriptedModel, scriptLength, type ScriptedOptions } from "./scripted-model.ts";

type ChatInput = Extract<InferenceRequest["input"], { kind: "chat" }>;

/** Output of a scripted model, and the request it answers. */
export interface Scene {
  readonly says: string;
  readonly input: ChatInput;
  readonly maxTokens?: number | undefined;
}

/** No prompt of a scene is longer than this in tokens, which are bytes. */
const LONGEST_PROMPT = 6000;

/** An engine whose model answers each scene with its text, as clients see it. */
export interface ScriptedEngine extends AsyncDisposable {
  /** The events of the answer, by the path that all APIs take. */
  answer(scene: Scene, onTokens?: InferenceRequest["onLogprobs"]): Promise<InferenceEvent[]>;
}

/** Starts an engine for scenes of one family. */
export async function startScriptedEngine(
  folder: string,
  name: string,
  family: Omit<ScriptedOptions, "context" | "scripts"> & { readonly images?: boolean },
  scenes: readonly Scene[],
): Promise<ScriptedEngine> {
  let behind = LONGEST_PROMPT;
  const places = new Map<Scene, number>();
  for (const scene of scenes) {
    places.set(scene, behind);
    behind += scriptLength(scene.says, family);
  }
  const context = behind + 256;
  const scripts = scenes.map((scene) => ({ behind: places.get(scene)!, text: scene.says }));
  const file = writeModel(folder, name, scriptedModel({ ...family, context, scripts }));
  const { images = false } = family;
  const engine = await startEngine(
    engineSpec(file, {
      slots: 2,
      contextSize: context,
      batchSize: 512,
      ...(images && { projectorFile: writeModel(folder, `${name}-projector`, tinyProjector()) }),
    }),
  );
  const gguf = await createGgufInspector()([file]);
  const capabilities = detectCapabilities(gguf, { image: images, audio: false }, NO_SETTINGS);
  const ask = asking(engine, fakeModel({ gguf, capabilities, contextSize: context }));
  return {
    answer: async (scene, onTokens) => {
      const place = places.get(scene)!;
      const length = await promptLength(ask(padded(scene.input, 1), 1));
      if (length > place) throw new Error(`a prompt of ${length} tokens`);
      return await Array.fromAsync(ask(padded(scene.input, 1 + place - length), scene.maxTokens, onTokens));
    },
    [Symbol.asyncDispose]: () => engine.close(),
  };
}

function asking(engine: Engine, model: ReturnType<typeof fakeModel>) {
  const inference = createInference({
    models: { acquire: async () => ({ model, engine, [Symbol.dispose]: () => undefined }) },
    metrics: new FakeMetrics(),
    config: configSchema.parse({}),
  });
  return async function* (
    input: ChatInput,
    maxTokens = 1000,
    onTokens?: InferenceRequest["onLogprobs"],
  ): AsyncGenerator<InferenceEvent> {
    const request = { endpoint: "chat", input, maxTokens, sampling: { temperature: 0, seed: 1 } } as const;
    const { events } = await inference.generate(
      {
        ...request,
        format: { type: "text" },
        defaults: { sampling: {} },
        ...(onTokens && { onLogprobs: onTokens, logprobs: 0 }),
      },
      NEVER,
    );
    yield* events;
  };
}

/** Tokens of the prompt; what is said behind one of another length need not be an answer that can be read. */
async function promptLength(events: AsyncIterable<InferenceEvent>): Promise<number> {
  for await (const event of events) if (event.type === "prompt-progress") return event.total;
  throw new Error("the engine does not tell the length of its prompt");
}

/** The same conversation with a prompt that is longer by so many tokens: letters of the user's first message. */
function padded(input: ChatInput, tokens: number): ChatInput {
  const first = input.messages.findIndex(({ role }) => role === "user");
  const messages = input.messages.map((message, at) =>
    at === first
      ? { ...message, content: [{ type: "text" as const, text: "x".repeat(tokens) }, ...message.content] }
      : message,
  );
  return { ...input, messages: messages.map(joined) };
}

/** Texts beside each other are one, so that no template parts them. */
function joined(message: ChatInput["messages"][number]): ChatInput["messages"][number] {
  const content: typeof message.content = [];
  for (const part of message.content) {
    const last = content.at(-1);
    if (part.type === "text" && last?.type === "text")
      content.splice(-1, 1, { type: "text", text: last.text + part.text });
    else content.push(part);
  }
  return { ...message, content };
}
