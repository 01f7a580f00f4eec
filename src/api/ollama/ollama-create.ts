import { z } from "zod";
import { dictionary, list } from "../../http/input/bounded-lists.ts";
import { ignored, modelNameSchema, refused, invalidField, optional } from "../../http/input/common-fields.ts";
import { MAX_MODELFILE_LENGTH, parameterLines, quote } from "../../models/modelfile/parse-instructions.ts";
import type { Blobs } from "../../models/models.ts";
import type { PullStep, QuantizeStep } from "../../models/progress-steps.ts";
import { sha256, toModelName } from "./model-entry.ts";
import { modelField, nameField, streamField } from "./ollama-fields.ts";
import { ignoredOptions } from "./ollama-options.ts";

/** Text for the Modelfile, with the same length limit. */
const modelfileText = z.string().max(MAX_MODELFILE_LENGTH, { abort: true });
/** Valid adapter names; an adapter with another name is called after its file. */
const ADAPTER_NAME = /^[A-Za-z0-9](?:[\w-]|\.(?=[\w-]))*$/;
const MAX_ADAPTER_NAME = 100;
/** Maximum number of licenses; models have a few. */
const MAX_LICENSES = 64;

/** Maximum number of messages, as in a Modelfile. */
const MAX_MESSAGES = 256;
const messageSchema = z.object({
  role: z.enum(["system", "user", "assistant"]),
  content: modelfileText.describe("Message text."),
});
const directiveText = z.string().max(256);

/** Digests of uploaded files, by the client's file names. */
const digestsByName = dictionary(
  z.string().regex(/^sha256[:-][0-9a-f]{64}$/i, "must be sha256: and 64 hexadecimal digits"),
);

/** POST /api/create of the Ollama API. Unknown fields are ignored. */
export const createRequestSchema = z
  .object({
    model: modelField.nullish(),
    name: nameField,
    from: optional(modelNameSchema, "Base model, which must be on disk."),
    system: optional(modelfileText, "SYSTEM of the new model."),
    template: optional(modelfileText, "TEMPLATE, in Go template syntax or Jinja."),
    license: optional(
      z.union([modelfileText, list(modelfileText, { max: MAX_LICENSES })]),
      "LICENSE, one or several.",
    ),
    parameters: optional(
      dictionary(z.union([z.string(), z.number(), z.boolean(), list(z.string()), z.null()])),
      "PARAMETERs by name. Options without an effect in requests are ignored here too.",
    ),
    modelfile: optional(
      z.string(),
      "A complete Modelfile, sent by older clients instead of the fields above.",
    ),
    stream: streamField,
    messages: optional(
      list(messageSchema, { max: MAX_MESSAGES }),
      "MESSAGEs: initial messages of the new model's chats.",
    ),
    renderer: optional(directiveText, "RENDERER, which is stored but has no effect."),
    parser: optional(directiveText, "PARSER, which is stored but has no effect."),
    requires: optional(directiveText, "REQUIRES, which is stored but has no effect."),
    files: optional(
      digestsByName,
      "Instead of from: the model's GGUF file, by name and digest, uploaded with POST /api/blobs. A file with mmproj in its name is the projector.",
    ),
    adapters: optional(
      digestsByName,
      "LoRA adapters as GGUF files, by name and digest, uploaded with POST /api/blobs.",
    ),
    quantize: optional(
      z.string(),
      "Quantize the base model, whose weights must be F32, F16 or BF16, for example to q4_K_M.",
    ),
    path: refused("send the Modelfile's text, or the fields"),
    insecure: ignored(),
  })
  .meta({ id: "OllamaCreateRequest" });
/** Part of a projector's file name, as llama.cpp's converter writes it. */
const PROJECTOR = /mmproj/i;
/** Files of a model that has not been converted to GGUF. */
const FOREIGN_FORMAT = /\.(?:safetensors|bin|pth?|json|model)$/i;

type CreateRequest = z.output<typeof createRequestSchema>;

/**
 * Builds a Modelfile from the fields of a request.
 * @param findBlob returns the path of an uploaded file
 * @throws ServiceError invalid_parameter if there is neither a base nor a `modelfile`, or a file has not been uploaded
 */
export async function toModelfile(body: CreateRequest, findBlob: Blobs["find"]): Promise<string> {
  const files = Object.entries(body.files ?? {});
  if (!body.from && files.length === 0) {
    if (body.modelfile) return body.modelfile;
    throw invalidField("from", "is required, unless there are files or a modelfile.");
  }
  if (body.from && files.length > 0) throw invalidField("files", "cannot be combined with from; send one.");
  const base = body.from ? [`FROM ${toModelName(body.from)}`] : await baseLines(files, findBlob);
  const adapters = Object.entries(body.adapters ?? {}).map(
    async ([name, digest]) =>
      `ADAPTER ${await uploadedPath("adapters", name, digest, findBlob)}${nameClause(name.replace(/\.gguf$/i, ""))}`,
  );
  const lines = [
    ...base,
    ...(await Promise.all(adapters)),
    ...Object.entries(body.parameters ?? {}).flatMap(([name, value]) =>
      Object.hasOwn(ignoredOptions, name) ? [] : parameterLines(name, value),
    ),
    ...textLines("SYSTEM", body.system),
    ...textLines("TEMPLATE", body.template),
    ...(body.messages ?? []).map(({ role, content }) => `MESSAGE ${role} ${quote(content)}`),
    ...textLines("RENDERER", body.renderer),
    ...textLines("PARSER", body.parser),
    ...textLines("REQUIRES", body.requires),
    ...[body.license ?? []].flat().flatMap((license) => textLines("LICENSE", license)),
  ];
  return `${lines.join("\n")}\n`;
}

/** Clause that names an adapter as its client does, because the uploaded file is named after its digest. */
function nameClause(name: string): string {
  return name.length <= MAX_ADAPTER_NAME && ADAPTER_NAME.test(name) ? ` AS ${name}` : "";
}

async function baseLines(files: readonly [string, string][], findBlob: Blobs["find"]): Promise<string[]> {
  const projectors = files.filter(([name]) => PROJECTOR.test(name));
  const models = files.filter(([name]) => !PROJECTOR.test(name));
  const [model] = models;
  if (!model || models.length > 1 || projectors.length > 1) {
    throw invalidField(
      "files",
      "must be one GGUF file, and at most one projector with mmproj in its name; join the parts of a split model first, with llama.cpp's llama-gguf-split --merge.",
    );
  }
  const lines = [`FROM ${await uploadedPath("files", ...model, findBlob)}`];
  for (const projector of projectors) {
    lines.push(`VISION_PROJECTOR ${await uploadedPath("files", ...projector, findBlob)}`);
  }
  return lines;
}

/** Returns the path of an uploaded file. */
async function uploadedPath(
  param: "files" | "adapters",
  name: string,
  digest: string,
  findBlob: Blobs["find"],
): Promise<string> {
  if (FOREIGN_FORMAT.test(name)) {
    throw invalidField(
      param,
      `${JSON.stringify(name)} is not a GGUF file; convert the model to GGUF first, with llama.cpp's convert_hf_to_gguf.py.`,
    );
  }
  const file = await findBlob(digest);
  if (file !== undefined) return file;
  throw invalidField(
    param,
    `there is no file with the digest ${digest}; upload it first, with POST /api/blobs/${digest}.`,
  );
}

function textLines(directive: string, text: string | null | undefined): string[] {
  return text ? [`${directive} ${quote(text)}`] : [];
}

/** Statuses of a streamed answer, sent together, because creating a model has no progress. */
export const CREATE_STATUSES = ["parsing modelfile", "writing manifest", "success"] as const;

/** Digits of the digest in a status. */
const SHORT_DIGEST = 12;

/** POST /api/pull of the Ollama API. Unknown fields are ignored. */
export const pullRequestSchema = z
  .object({
    model: modelField.nullish(),
    name: nameField,
    stream: streamField,
    insecure: ignored("the hub's address is set in the daemon's configuration"),
    username: ignored("the daemon uses HUB_TOKEN"),
    password: ignored("the daemon uses HUB_TOKEN"),
  })
  .meta({ id: "OllamaPullRequest" });

/** Line of a streamed pull or create; the last status is `success`. */
export const statusLineSchema = z
  .object({
    status: z.string(),
    digest: z.string().optional().describe("ID of the download; not the hash of a file."),
    total: z.int().optional().describe("Total bytes."),
    completed: z.int().optional().describe("Bytes on disk."),
  })
  .meta({ id: "OllamaStatusLine" });
type StatusLine = z.output<typeof statusLineSchema>;

/** Converts the steps of a pull to this API's statuses. */
export async function* toPullLines(
  name: string,
  steps: AsyncIterable<PullStep>,
): AsyncGenerator<StatusLine, void, undefined> {
  const hash = await sha256(name);
  yield { status: "pulling manifest" };
  for await (const step of steps) {
    if (step.status === "downloading") {
      yield {
        status: `pulling ${hash.slice(0, SHORT_DIGEST)}`,
        digest: `sha256:${hash}`,
        total: step.totalBytes,
        completed: step.downloadedBytes,
      };
    } else if (step.status === "verifying") {
      yield { status: "verifying sha256 digest" };
    } else {
      yield { status: "writing manifest" };
      yield { status: "success" };
    }
  }
}

/** Digest that Ollama sends for a layer without a digest. */
const NO_DIGEST = "0000000000000000000";

/** Converts the steps of a quantization to this API's statuses. */
export async function* toQuantizeLines(
  steps: AsyncIterable<QuantizeStep>,
): AsyncGenerator<StatusLine, void, undefined> {
  yield { status: "parsing GGUF" };
  for await (const step of steps) {
    if (step.status === "quantizing") {
      yield {
        status: `quantizing ${step.from} model to ${step.to}`,
        digest: NO_DIGEST,
        total: step.totalBytes,
        completed: step.completedBytes,
      };
    } else {
      yield { status: "writing manifest" };
      yield { status: "success" };
    }
  }
}
