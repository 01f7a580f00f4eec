import type { ServerResponse } from "node:http";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Interruption } from "../../../../src/cli/cli-error.ts";
import { main } from "../../../../src/cli/main.ts";
import { against } from "../against.ts";
import { ndjson, refuse, startFakeDaemon } from "../fake-daemon.ts";
import { fakeIo } from "../run-cli.ts";

const summary = { total_duration_ms: 1500, prompt_tokens: 3, completion_tokens: 2, tokens_per_second: 20.04 };
const piece = (response: string) => ({ model: "tiny", response, done: false });
const end = { model: "tiny", response: "", done: true, ...summary };
const answers = { "POST /api/generate": ndjson(piece("Hel"), piece("lo"), end) };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-run-"));
  writeFileSync(path.join(folder, "schema.json"), '{"type":"object"}');
  writeFileSync(path.join(folder, "image.png"), "PNG");
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("run", () => {
  it("prints only the answer and a newline", async () => {
    const { code, stdout, stderr, requests } = await against(answers, ["run", "Say", "hello"]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "Hello\n", stderr: "" });
    expect(requests.at(-1)).toEqual(["POST /api/generate", { prompt: "Say hello", stream: true }]);
  });

  it("sends the given options and no others", async () => {
    const { requests } = await against(answers, [
      "run",
      ..."-m tiny -t 0 -n 5 --top-k 1 --top-p 0.5 --seed 7 --no-think hi".split(" "),
      "--system",
      "Be brief.",
      "--format",
      path.join(folder, "schema.json"),
      "-i",
      path.join(folder, "image.png"),
      "there",
    ]);
    expect(requests.at(-1)?.[1]).toEqual({
      prompt: "hi there",
      stream: true,
      model: "tiny",
      system: "Be brief.",
      temperature: 0,
      max_tokens: 5,
      top_k: 1,
      top_p: 0.5,
      seed: 7,
      format: { type: "object" },
      think: false,
      images: [Buffer.from("PNG").toString("base64")],
    });
  });

  it("takes a known or tagged model from the first word, as Ollama does", async () => {
    const routes = { ...answers, "GET /api/models/tiny": { state: "loaded" } };
    const sent = async (words: string[], options = {}): Promise<unknown> =>
      (await against(routes, ["run", ...words], options)).requests.at(-1)?.[1];
    expect(await sent(["tiny", "Say hello"])).toEqual({ model: "tiny", prompt: "Say hello", stream: true });
    expect(await sent(["qwen3:0.6b", "Hi"])).toMatchObject({ model: "qwen3:0.6b", prompt: "Hi" });
    expect(await sent(["tiny"], { stdin: "Hi" })).toMatchObject({ model: "tiny", prompt: "Hi" });
    expect(await sent(["tiny", "words", "-m", "other"])).toMatchObject({
      model: "other",
      prompt: "tiny words",
    });
    const prompts = [
      "https://example.com is what?",
      "Translate: cat",
      "12:30 is when?",
      "tall tales",
      "node:fs is what?",
    ];
    for (const prompt of prompts) expect(await sent(prompt.split(" "))).toEqual({ prompt, stream: true });
    // A model alone at a terminal starts a chat.
    const { code, stderr } = await against(routes, ["run", "tiny"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "/help lists the commands.\n" });
  });

  it("keeps the model of the first word while it loads, and fails when the lookup fails", async () => {
    const loading = {
      ...answers,
      "GET /api/models/tiny": refuse(503, "model_loading", "model_error"),
    };
    const { requests } = await against(loading, ["run", "tiny", "Hi"]);
    expect(requests.at(-1)?.[1]).toMatchObject({ model: "tiny", prompt: "Hi" });
    const busy = {
      ...answers,
      "GET /api/models/tiny": refuse(429, "rate_limited", "overloaded"),
    };
    expect((await against(busy, ["run", "tiny", "Hi"])).code).toBe(6);
  });

  it.each([
    ["json", "json"],
    ['{"type":"string"}', { type: "string" }],
  ])("sends --format %s", async (format, sent) => {
    const { requests } = await against(answers, ["run", "hi", "--format", format]);
    expect(requests.at(-1)?.[1]).toMatchObject({ format: sent });
  });

  it.each([
    ["the prompt", ["run"], "from a pipe"],
    [
      "a part of the prompt",
      ["run", "Summarize:", "-", "In one word."],
      "Summarize: \nfrom a pipe\n In one word.",
    ],
  ])("reads %s from standard input", async (_what, args, prompt) => {
    const { requests } = await against(answers, args, { stdin: "from a pipe\n" });
    expect(requests.at(-1)?.[1]).toMatchObject({ prompt });
  });

  it.each([
    ["no prompt at a terminal", ["run"], {}],
    ["an empty prompt", ["run"], { stdin: "\n" }],
    ["a missing image", ["run", "hi", "-i", "/nonexistent.png"], {}],
    ["an invalid format", ["run", "hi", "--format", "/nonexistent.json"], {}],
    ["an invalid temperature", ["run", "hi", "-t", "hot"], {}],
    ["an unknown option", ["run", "hi", "--warm"], {}],
  ])("exits with 2 without a request for %s", async (_what, args, options) => {
    const { code, stderr, requests } = await against(answers, args, options);
    expect({ code, requests }).toEqual({ code: 2, requests: [] });
    expect(stderr).not.toBe("");
  });

  it("prints the reasoning and, with --verbose, statistics to standard error", async () => {
    const thinking = { ...piece(""), thinking: "Hmm." };
    const routes = { "POST /api/generate": ndjson(thinking, piece("Yes."), end) };
    const { stdout, stderr } = await against(routes, ["run", "hi", "--verbose"]);
    expect(stdout).toBe("Yes.\n");
    expect(stderr).toBe("Hmm.\n\n[3 tokens in, 2 tokens out, 20.0 tokens/s, 1.5 s in all]\n");
    expect((await against(routes, ["run", "hi", "--hide-thinking"])).stderr).toBe("");
  });

  it("prints a note when the answer was cut off", async () => {
    const cut = { ...end, done_reason: "length", completion_tokens: 512 };
    const { stdout, stderr } = await against({ "POST /api/generate": ndjson(piece("So"), cut) }, [
      "run",
      "hi",
    ]);
    expect(stdout).toBe("So\n");
    expect(stderr).toBe("[cut off after 512 tokens; --max-tokens allows more]\n");
  });

  it("prints the response as one object with --json", async () => {
    const whole = { ...piece("Hello"), done: true, ...summary };
    const { stdout, requests } = await against({ "POST /api/generate": whole }, ["run", "hi", "--json"]);
    expect(JSON.parse(stdout)).toEqual(whole);
    expect(requests.at(-1)?.[1]).toEqual({ prompt: "hi" });
  });

  it("prints a notice while the daemon loads the model", async () => {
    const hasAskedState = Promise.withResolvers<void>();
    const { code, stdout, stderr } = await against(
      {
        "POST /api/generate": async (response: ServerResponse) => {
          await hasAskedState.promise;
          answers["POST /api/generate"](response);
        },
        "GET /api/models/slow": (response: ServerResponse) => {
          response.end('{"state":"loading"}', hasAskedState.resolve);
        },
      },
      ["run", "hi", "-m", "slow"],
    );
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "Hello\n", stderr: "Loading slow ...\n" });
  });

  it("loads a model that is not loaded and retries", async () => {
    let loaded = false;
    const notLoaded = refuse(404, "model_not_loaded", "not_found");
    const { code, stdout, stderr, requests } = await against(
      {
        "POST /api/generate": (response: Parameters<typeof notLoaded>[0]) =>
          (loaded ? answers["POST /api/generate"] : notLoaded)(response),
        "GET /api/system/status": { default_model: "tiny" },
        "POST /api/models/load": (response: Parameters<typeof notLoaded>[0]) => {
          loaded = true;
          response.end('{"status":"loaded","alias":"tiny","parameters":1,"context_size":1,"gpu_layers":0}');
        },
      },
      ["run", "Say hi"],
    );
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "Hello\n", stderr: "Loading tiny ...\n" });
    expect(requests.map(([route]) => route)).toEqual([
      "POST /api/generate",
      "GET /api/system/status",
      "POST /api/models/load",
      "POST /api/generate",
    ]);
  });

  it("keeps the text before an error and exits with the error's code", async () => {
    const error = { message: "The engine crashed.", type: "model_error", code: "engine_crashed" };
    const { code, stdout, stderr } = await against(
      { "POST /api/generate": ndjson(piece("Hel"), { error }) },
      ["run", "hi"],
    );
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: "Hel\n",
      stderr: "daybreak: The engine crashed.\n",
    });
  });

  it("cancels the request when interrupted and exits with 130 without output", async () => {
    await using daemon = await startFakeDaemon({
      "POST /api/generate": (response: { write(text: string): void }) => {
        response.write(`${JSON.stringify(piece("Hel"))}\n`);
        interrupt(new Interruption(130));
      },
    });
    const { io, interrupt, output } = fakeIo();
    expect(await main(["run", "hi", "--url", daemon.url], io)).toBe(130);
    await daemon.abandoned;
    expect(output().stderr).toBe("");
  });
});

const said = (content: string, done = false) => ({
  model: "tiny",
  message: { role: "assistant", content },
  done,
});
const user = (content: string) => ({ role: "user", content });

describe("chat", () => {
  it("sends the conversation with each message of a pipe", async () => {
    const routes = {
      "GET /api/models/coder": { state: "loaded" },
      "POST /api/chat": ndjson(said("A"), said("hoy"), said("", true)),
    };
    const { code, stdout, requests } = await against(routes, ["chat", "coder", "-s", "Be a pirate."], {
      stdin: 'Hi\n"""two\nlines"""\n/clear\nAgain\n/bye\nnever\n',
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "Ahoy\nAhoy\nAhoy\n" });
    const system = { role: "system", content: "Be a pirate." };
    const assistant = { role: "assistant", content: "Ahoy" };
    const named = { model: "coder" };
    expect(requests.slice(1).map(([, body]) => body)).toEqual([
      { ...named, messages: [system, user("Hi")], stream: true },
      { ...named, messages: [system, user("Hi"), assistant, user("two\nlines")], stream: true },
      { ...named, messages: [system, user("Again")], stream: true },
    ]);
  });

  it("reports a missing model before the prompt", async () => {
    const { code, stdout, requests } = await against({}, ["chat", "nope"]);
    expect({ code, stdout }).toEqual({ code: 4, stdout: "" });
    expect(requests).toEqual([["GET /api/models/nope", undefined]]);
  });

  it("accepts a model with one of its adapters", async () => {
    const routes = {
      "GET /api/models/mine": { adapters: [{ name: "polite" }] },
      "POST /api/chat": ndjson(said("Ahoy", true)),
    };
    const { code, requests } = await against(routes, ["chat", "mine:polite"], { stdin: "Hi\n" });
    expect(code).toBe(0);
    expect(requests.at(-1)?.[1]).toMatchObject({ model: "mine:polite" });
    expect((await against(routes, ["chat", "mine:rude"], { stdin: "Hi\n" })).code).toBe(4);
  });

  it("prints the daemon's lines with --json", async () => {
    const lines = [said("Ahoy"), { ...said("", true), done_reason: "length" }];
    const { stdout, stderr } = await against({ "POST /api/chat": ndjson(...lines) }, ["chat", "--json"], {
      stdin: "Hi\n",
    });
    expect(stdout).toBe(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    expect(stderr).toBe("");
  });

  it("exits with the error's code when the input is a pipe", async () => {
    const routes = { "POST /api/chat": refuse(503, "overloaded", "overloaded", "Too busy.") };
    const { code, stderr } = await against(routes, ["chat"], { stdin: "Hi\nthere\n" });
    expect({ code, stderr }).toEqual({ code: 6, stderr: "daybreak: Too busy.\n" });
  });
});

describe("embed", () => {
  const answer = {
    model: "tiny",
    embeddings: [
      [0.5, -1],
      [0, 1],
    ],
    dimensions: 2,
    total_tokens: 4,
  };

  it("prints a vector per line", async () => {
    const { stdout, requests } = await against({ "POST /api/embeddings": answer }, ["embed", "one", "two"]);
    expect(stdout).toBe("[0.5,-1]\n[0,1]\n");
    expect(requests).toEqual([["POST /api/embeddings", { input: ["one", "two"] }]]);
  });

  it("reads a text from standard input and prints the response with --json", async () => {
    const { stdout, requests } = await against({ "POST /api/embeddings": answer }, ["embed", "--json"], {
      stdin: "one\ntwo\n",
    });
    expect(JSON.parse(stdout)).toEqual(answer);
    expect(requests).toEqual([["POST /api/embeddings", { input: ["one\ntwo"] }]]);
  });
});
