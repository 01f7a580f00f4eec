import http from "node:http";
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { WebSocket } from "ws";
import type { Random } from "./random.ts";

/** One action of a user; rejects if it fails. */
type Deed = (random: Random, number: number) => Promise<void>;

interface SoakTarget {
  readonly url: string;
  readonly socket: string;
  /** A small model file that is loaded under several names. */
  readonly file: string;
}

const MODEL = "daybreak-mini";
const EMBEDDER = "daybreak-mini-embed";
const JSON_TYPE = { "content-type": "application/json" };

/** Everything that the soak does, by name, with how often it does it beside the others. */
export function soakDeeds({
  url,
  socket,
  file,
}: SoakTarget): readonly [name: string, weight: number, deed: Deed][] {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
  const ollama = new Ollama({ host: `${url}/ollama` });
  const post = async (route: string, body: object, signal?: AbortSignal): Promise<string> => {
    const init = {
      method: "POST",
      headers: JSON_TYPE,
      body: JSON.stringify(body),
      ...(signal && { signal }),
    };
    return await textOf(await fetch(url + route, init));
  };
  const get = async (route: string): Promise<void> => void (await textOf(await fetch(url + route)));

  return [
    [
      "generate",
      6,
      async (random) => void (await post("/api/generate", { prompt: prompt(random), max_tokens: 12 })),
    ],
    [
      "generate, streamed",
      6,
      async (random) =>
        void (await post("/api/generate", { prompt: prompt(random), max_tokens: 12, stream: true })),
    ],
    [
      "a client that leaves",
      4,
      async (random) => {
        const signal = AbortSignal.timeout(random.int(5, 400));
        await post("/api/generate", { prompt: prompt(random), max_tokens: 200, stream: true }, signal).catch(
          (error) => {
            if (!signal.aborted) throw error;
          },
        );
      },
    ],
    ["chat over WebSocket", 3, async (random) => await chatOverSocket(url, prompt(random))],
    [
      "OpenAI chat, streamed",
      4,
      async (random) => {
        const messages = [{ role: "user" as const, content: prompt(random) }];
        const stream = await openai.chat.completions.create({
          model: MODEL,
          messages,
          max_tokens: 12,
          stream: true,
        });
        for await (const chunk of stream) void chunk;
      },
    ],
    [
      "OpenAI responses",
      3,
      async (random) => {
        const { id } = await openai.responses.create({
          model: MODEL,
          input: prompt(random),
          max_output_tokens: 16,
        });
        await openai.responses.retrieve(id);
        if (random.chance(0.5)) await openai.responses.delete(id);
      },
    ],
    [
      "OpenAI completions",
      2,
      async (random) =>
        void (await openai.completions.create({ model: MODEL, prompt: prompt(random), max_tokens: 8 })),
    ],
    [
      "embeddings",
      3,
      async (random) => void (await openai.embeddings.create({ model: EMBEDDER, input: prompt(random) })),
    ],
    [
      "Anthropic messages",
      3,
      async (random) => {
        const messages = [{ role: "user" as const, content: prompt(random) }];
        for await (const event of anthropic.messages.stream({ model: MODEL, max_tokens: 12, messages }))
          void event;
      },
    ],
    [
      "Ollama chat",
      3,
      async (random) => {
        const messages = [{ role: "user", content: prompt(random) }];
        await ollama.chat({ model: MODEL, messages, options: { num_predict: 12 } });
      },
    ],
    [
      "lists and states",
      6,
      async (random) =>
        await get(
          random.pick([
            "/api/models",
            "/api/system/status",
            "/status",
            "/metrics",
            "/v1/models",
            "/ollama/api/tags",
            "/ollama/api/ps",
            "/openapi.json",
            "/docs",
            "/ui",
            `/api/models/${MODEL}`,
            "/api/defaults",
          ]),
        ),
    ],
    ["tokens", 2, async (random) => void (await post("/tokenize", { content: prompt(random) }))],
    ["over the socket file", 3, async () => await listOverSocket(socket)],
    ["a connection of its own", 3, async () => await getAlone(`${url}/health`)],
    [
      "a model made, copied and deleted",
      3,
      async (_random, number) => {
        const names = [`made-${number}`, `copied-${number}`];
        await post("/api/models/create", { alias: names[0], modelfile: `FROM ${MODEL}\n` });
        await post("/api/models/copy", { source: names[0], destination: names[1] });
        for (const name of names)
          await textOf(await fetch(`${url}/api/models/${name}`, { method: "DELETE" }));
      },
    ],
    [
      "a model loaded, used and deleted",
      1,
      async (_random, number) => {
        const name = `loaded-${number}`;
        await post("/api/models/load", { alias: name, path: file });
        await post("/api/generate", { model: name, prompt: "a", max_tokens: 4 });
        await post(`/api/models/${name}/unload`, {});
        await textOf(await fetch(`${url}/api/models/${name}`, { method: "DELETE" }));
      },
    ],
    [
      "what is wrong",
      4,
      async (random) => {
        const answer = await fetch(
          url + random.pick(["/api/generate", "/v1/chat/completions", "/v1/messages"]),
          {
            method: "POST",
            headers: JSON_TYPE,
            body: random.pick(["{", '{"model": 3}', '{"model": "none", "prompt": "x", "messages": []}']),
          },
        );
        const text = await answer.text();
        if (answer.status < 400 || answer.status >= 500) throw new Error(`${answer.status} ${text}`);
      },
    ],
    [
      "events for a while",
      1,
      async (random) => {
        const signal = AbortSignal.timeout(random.int(50, 500));
        await fetch(`${url}/api/events`, { signal })
          .then(
            (answer) => answer.text(),
            () => "",
          )
          .catch(() => "");
      },
    ],
  ];
}

function prompt(random: Random): string {
  return `Tell me of ${random.pick(["rain", "bread", "stars"])}.`;
}

async function textOf(answer: Response): Promise<string> {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
  return text;
}

async function chatOverSocket(url: string, content: string): Promise<void> {
  const client = new WebSocket(`${url.replace("http", "ws")}/ws/chat`);
  await new Promise<void>((resolve, reject) => {
    client.on("error", reject);
    client.on("close", () => reject(new Error("the connection was closed")));
    client.on("open", () =>
      client.send(
        JSON.stringify({ type: "chat", id: "1", messages: [{ role: "user", content }], max_tokens: 12 }),
      ),
    );
    client.on("message", (data: Buffer) => {
      const text = data.toString();
      if (text.includes('"error"')) reject(new Error(text));
      if (/"done":\s*true|"type":\s*"done"/.test(text)) resolve();
    });
  }).finally(() => client.terminate());
}

function listOverSocket(socketPath: string): Promise<void> {
  return finished(http.get({ socketPath, path: "/api/models", agent: false }));
}

function getAlone(address: string): Promise<void> {
  return finished(http.get(address, { agent: false }));
}

function finished(request: http.ClientRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    request.once("error", reject);
    request.once("response", (response) => {
      response
        .resume()
        .once("error", reject)
        .once("end", () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(String(response.statusCode)));
        });
    });
  });
}
