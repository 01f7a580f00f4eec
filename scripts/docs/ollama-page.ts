import { chatRequestSchema } from "../../src/api/ollama/ollama-chat.ts";
import { createRequestSchema, pullRequestSchema } from "../../src/api/ollama/ollama-create.ts";
import { embeddingsRequestSchema, embedRequestSchema } from "../../src/api/ollama/ollama-embed.ts";
import { generateRequestSchema } from "../../src/api/ollama/ollama-generate.ts";
import { optionsSchema } from "../../src/api/ollama/ollama-options.ts";
import { showRequestSchema } from "../../src/api/ollama/information-routes.ts";
import { copyRequestSchema, deleteRequestSchema } from "../../src/api/ollama/store-routes.ts";
import { fieldTable } from "./field-table.ts";

const PROSE = `# The API of Ollama

<!-- Made by scripts/docs/generate.ts; the prose is in scripts/docs/ollama-page.ts, the tables come from the schemas that the routes parse with. -->

Programs written for Ollama work unchanged. Only the address ends in \`/ollama\`, because three of Ollama's paths have a different meaning in the daemon's own API:

    export OLLAMA_HOST=http://127.0.0.1:8080/ollama

    new Ollama({ host: "http://127.0.0.1:8080/ollama" })

Supported: \`GET\` and \`HEAD /\`, \`/api/version\`, \`/api/tags\`, \`/api/ps\`, \`/api/show\`, \`/api/chat\`, \`/api/generate\`, \`/api/embed\`, \`/api/embeddings\`, \`/api/pull\`, \`/api/create\`, \`/api/blobs\`, \`/api/copy\`, \`/api/delete\`. Like Ollama, Daybreak also serves the OpenAI and Anthropic APIs under \`/ollama/v1\` ([compatibility.md](compatibility.md)). Not supported: \`/api/push\`.

The models that Ollama has on this machine come along with \`daybreak import --from ollama\`, without being copied where possible ([models.md](models.md#models-of-other-programs)).

## What is the same

- **Streams** are the default: one JSON object per line, the last one with \`done: true\`. With \`"stream": false\` the response is one object.
- **Times** are in nanoseconds; \`created_at\` and \`modified_at\` are ISO 8601.
- **Loading on demand.** The first request that names a model on disk loads it, also with \`models.auto_load = false\`. It is unloaded after being idle for \`keep_alive\`, by default 5 minutes (\`models.keep_alive\`). A model loaded in another way keeps its own time until a request sets \`keep_alive\`. A request without a prompt or messages only loads the model, or unloads it with \`keep_alive: 0\`.
- **Names.** \`name\` and \`name:latest\` are the same. Names are the daemon's own aliases; \`hf.co/owner/repository:Q4_K_M\` is a repository of the hub.
- **Errors** are \`{"error": "text"}\` with an HTTP status, or a last line of that form once a stream has begun. An unknown model is 404.
- **Tool calls** have their arguments as an object. A result belongs to the call with its id or \`tool_name\`, or else to the first call without a result.

## What differs

- **Version.** \`/api/version\` reports the version of Ollama whose API this is, because clients check for a minimum version; \`daybreak\` next to it is the daemon's own.
- **\`/api/show\`** returns the template in Jinja. Clients that look for Go's \`.Suffix\` in it, such as Continue, conclude that no model supports fill-in-the-middle; \`capabilities\` contains \`insert\` for those that do.
- **\`template\`** of a request to \`generate\` must be a Go template, and is applied once; the model's own comes from its definition.
- **Sampling defaults** are those of the daemon's other APIs: temperature 0.7, top_p 0.9, top_k 40, no repeat penalty, unless the model says otherwise.
- **Thinking** is off unless the request or the model's definition turns it on.
- **A prompt that does not fit** into the context is 400; it is never truncated. A text to embed is truncated unless \`truncate\` is false.
- **\`num_ctx\`** takes effect when the model is loaded. An idle model that was loaded with less is reloaded; one in use is not. It never exceeds the context that the model was trained for.
- **Embeddings** are L2-normalized, also those of \`/api/embeddings\`. An empty text in a list is embedded if the model's vocabulary adds tokens to every text, and refused otherwise. \`context\` is neither returned nor accepted.
- **Pulling** uses the hub, not Ollama's library. \`digest\` in its lines and in lists of models is an identifier, not the hash of a file. A failure before the first byte has an HTTP status instead of a line.
- **\`create\`** creates a model from one on disk, from a Modelfile, or from files that were uploaded with \`POST /api/blobs/:digest\`: one GGUF file, its projector (a file with mmproj in its name) and adapters. What has no effect here, such as \`RENDERER\`, is kept, and told in the header \`x-daybreak-warning\`. Other formats and models in several parts are refused. \`quantize\` takes all of [Quantizing](quantizing.md), and like Ollama only weights in F32, F16 or BF16. Uploads are in \`blobs\` in the cache folder; those that no model needs are removed with the first upload after a day. A copy needs a name that is not taken.

## Request fields

Null means the same as omitting a field. Fields that are not listed are ignored. A wrong type or range is 400 with the field's path.
`;

/** The text of docs/ollama.md. */
export function ollamaPage(): string {
  return [
    PROSE,
    fieldTable("POST /ollama/api/chat", chatRequestSchema),
    fieldTable("POST /ollama/api/generate", generateRequestSchema),
    fieldTable("`options`, in chat, generate, embed and embeddings", optionsSchema),
    fieldTable("POST /ollama/api/embed", embedRequestSchema),
    fieldTable("POST /ollama/api/embeddings", embeddingsRequestSchema),
    fieldTable("POST /ollama/api/show", showRequestSchema),
    fieldTable("POST /ollama/api/pull", pullRequestSchema),
    fieldTable("POST /ollama/api/create", createRequestSchema),
    fieldTable("POST /ollama/api/copy", copyRequestSchema),
    fieldTable("DELETE /ollama/api/delete", deleteRequestSchema),
  ].join("");
}
