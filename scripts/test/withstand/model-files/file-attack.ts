import { rmSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { isInternalMessage } from "../../../../src/engine/core/failure-text.ts";
import type { Findings } from "../kit/findings.ts";
import { type Recipe, writeRecipe } from "./recipe.ts";

/** Errors with which a file may be rejected; any other one is a finding. */
const REFUSALS: ReadonlySet<string> = new Set([
  "invalid_model_file",
  "invalid_template",
  "insufficient_memory",
  "unsupported_feature",
]);

/** Nor has a split model to have all its files. */
const SHARD_REFUSALS: ReadonlySet<string> = new Set([...REFUSALS, "model_file_not_found"]);

/** Error codes that a loaded model may return for the smallest request when its file makes little sense. */
const EXCUSES: ReadonlySet<string> = new Set([
  ...REFUSALS,
  "context_length_exceeded",
  "invalid_parameter", // a template that refuses the chat
]);

/** Longer than any limit of the daemon's own that applies to such small files. */
const LONGEST_ANSWER_MS = 45_000;

const LONGEST_MESSAGE = 700;

/** A number that makes no sense in any file. */
const SENSELESS = /\d(?:\.\d+)?e\+\d\d/;

const errorSchema = z.object({
  error: z.union([
    z.object({ code: z.string(), message: z.string() }),
    // Errors of the Ollama API have a status alone.
    z.string().transform((message) => ({ code: undefined, message })),
  ]),
});

interface Answer {
  readonly status: number;
  /** Code of the error; undefined: there was none. */
  readonly code: string | undefined;
  readonly message: string;
}

/** Asks a daemon to use files, and looks at what it answers. */
export class FileAttack {
  readonly #url: string;
  readonly #findings: Findings;
  readonly #folder: string;
  readonly #model: string;

  /** @param files.model a sound model, which adapters and projectors are loaded with */
  constructor(url: string, findings: Findings, files: { folder: string; model: string }) {
    this.#url = url;
    this.#findings = findings;
    this.#folder = files.folder;
    this.#model = files.model;
  }

  async run(input: number, recipe: Recipe): Promise<void> {
    const alias = `file-${input}`;
    const files = writeRecipe(path.join(this.#folder, `${alias}.gguf`), recipe);
    // All shards mean the same model.
    const file = files[input % files.length] ?? "";
    try {
      const loaded = await this.#load(alias, file, recipe);
      this.#judge(input, recipe, "load", loaded, recipe.shards ? SHARD_REFUSALS : REFUSALS);
      if (loaded.status === 200) await this.#use(input, recipe, alias);
      // The same cause has the same code whichever way a file comes.
      else if (input % 8 === 0 && recipe.base !== "adapter" && recipe.base !== "projector") {
        await this.#compare(input, recipe, file, loaded);
      }
    } catch (error) {
      this.#findings.add("no answer", `${describe(input, recipe)}: ${String(error)}`);
    } finally {
      await this.#ask("DELETE", `/api/models/${alias}`).catch(() => undefined);
      for (const each of files) rmSync(each, { force: true });
    }
  }

  async #load(alias: string, file: string, { base }: Recipe): Promise<Answer> {
    if (base === "adapter") {
      const modelfile = `FROM ${this.#model}\nADAPTER ${file}\n`;
      const made = await this.#ask("POST", "/api/models/create", { alias, modelfile });
      return made.status === 200 ? await this.#ask("POST", "/api/models/load", { alias }) : made;
    }
    const files = base === "projector" ? { path: this.#model, mmproj: file } : { path: file };
    return await this.#ask("POST", "/api/models/load", { alias, ...files });
  }

  async #use(input: number, recipe: Recipe, alias: string): Promise<void> {
    this.#findings.count("files that load");
    const answer =
      recipe.base === "bert"
        ? await this.#ask("POST", "/api/embeddings", { model: alias, input: "hello" })
        : await this.#ask("POST", "/api/chat", {
            model: alias,
            messages: [{ role: "user", content: "a" }],
            max_tokens: 1,
          });
    this.#judge(input, recipe, "use", answer, EXCUSES);
  }

  async #compare(input: number, recipe: Recipe, file: string, { code }: Answer): Promise<void> {
    const alias = `made-${input}`;
    const modelfile = `FROM ${file}\n`;
    const made = await this.#ask("POST", "/api/models/create", { alias, modelfile });
    const remade = await this.#ask("POST", "/ollama/api/create", { model: alias, modelfile, stream: false });
    this.#same(input, recipe, "status", made.status, remade.status);
    if (made.status === 200) {
      const shown = await this.#ask("POST", "/ollama/api/show", { model: alias });
      this.#same(input, recipe, "status", 200, shown.status);
      const used = await this.#ask("POST", "/api/models/load", { alias });
      await this.#ask("DELETE", `/api/models/${alias}`);
      this.#same(input, recipe, "code", code, used.code);
    } else this.#same(input, recipe, "code", code, made.code);
  }

  #same(input: number, recipe: Recipe, what: "code" | "status", one: unknown, other: unknown): void {
    if (one === other) return;
    this.#findings.add(
      `another ${what} on another route`,
      `${describe(input, recipe)}: ${String(one)}, ${String(other)}`,
    );
  }

  #judge(
    input: number,
    recipe: Recipe,
    step: "load" | "use",
    { status, code, message }: Answer,
    allowed: ReadonlySet<string>,
  ): void {
    this.#findings.count(`${step}: ${code ?? "works"}`);
    if (code === undefined) return;
    const detail = `${describe(input, recipe)}: ${status} ${code}: ${message}`;
    if (!allowed.has(code)) this.#findings.add(`${step} fails with ${code}`, detail);
    if (isInternalMessage(message)) this.#findings.add("llama.cpp's own words", detail);
    if (SENSELESS.test(message)) this.#findings.add("a senseless number", detail);
    if (message.length > LONGEST_MESSAGE) this.#findings.add("an endless message", detail.slice(0, 1500));
  }

  async #ask(method: string, route: string, body?: object): Promise<Answer> {
    const response = await fetch(this.#url + route, {
      method,
      ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(LONGEST_ANSWER_MS),
    });
    const text = await response.text();
    if (response.ok) return { status: response.status, code: undefined, message: "" };
    const { error } = errorSchema.parse(JSON.parse(text));
    return { status: response.status, ...error };
  }
}

/** Describes how to make the same file again. */
function describe(input: number, recipe: Recipe): string {
  const shown = JSON.stringify(recipe, (_, value: unknown) =>
    typeof value === "bigint"
      ? `${value}n`
      : typeof value === "string" && value.length > 600
        ? `${value.slice(0, 600)}…`
        : value,
  );
  return `file ${input} ${shown}`;
}
