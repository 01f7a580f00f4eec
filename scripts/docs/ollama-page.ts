import { chatRequestSchema } from "../../src/dialects/ollama/ollama-chat.ts";
import { createRequestSchema } from "../../src/dialects/ollama/ollama-create.ts";
import { embeddingsRequestSchema, embedRequestSchema } from "../../src/dialects/ollama/ollama-embed.ts";
import { generateRequestSchema } from "../../src/dialects/ollama/ollama-generate.ts";
import { optionsSchema } from "../../src/dialects/ollama/ollama-options.ts";
import { pullRequestSchema } from "../../src/dialects/ollama/ollama-pull.ts";
import { showRequestSchema } from "../../src/dialects/ollama/ollama-show.ts";
import { copyRequestSchema, deleteRequestSchema } from "../../src/dialects/ollama/store-routes.ts";
import { fieldTable } from "./field-table.ts";

const PROSE = `# The API of Ollama

<!-- Made by scripts/docs/generate.ts; the prose is in scripts/docs/ollama-page.ts, the tables come from the schemas that the routes parse with. -->

Programs written for Ollama work unchanged; only the address has \`/ollama\` at its end, since three paths mean other things in the daemon's own API:

    export OLLAMA_HOST=http://127.0.0.1:8080/ollama

    new Ollama({ host: "http://127.0.0.1:8080/ollama" })

Served: \`GET\` and \`HEAD /\`, \`/api/version\`, \`/api/tags\`, \`/api/ps\`, \`/api/show\`, \`/api/chat\`, \`/api/generate\`, \`/api/embed\`, \`/api/embeddings\`, \`/api/pull\`, \`/api/create\`, \`/api/copy\`, \`/api/delete\`. As Ollama does, it serves the chat-completions, responses and messages APIs too, under \`/ollama/v1\`, where requests load the models that they name ([compatibility.md](compatibility.md)). Not served: \`/api/push\` and \`/api/blobs\`.

## Where it is the same

- **Streams** are the default: one JSON object a line, the last one with \`done: true\`. \`"stream": false\` gives one object.
- **Times** are nanoseconds; \`created_at\` and \`modified_at\` are ISO 8601.
- **Loading on demand.** A model on disk is loaded by the first request that names it, whatever \`models.auto_load\` says, and unloaded when it has been idle for \`keep_alive\`, by default 5 minutes (\`models.keep_alive\`). A model that was loaded in another way stays as it was to, until a request names a \`keep_alive\`. Without a prompt or messages, a request only loads, or with \`keep_alive: 0\` unloads.
- **Names.** \`name\` and \`name:latest\` are the same. Names are the daemon's own aliases; \`hf.co/owner/repository:Q4_K_M\` is a repository of the hub.
- **Errors** are \`{"error": "text"}\` with a status, in a stream that has begun a last line of that form. An unknown model is 404.
- **Tool calls** have their arguments as an object. A result belongs to the call whose id or \`tool_name\` it has, else to the first call without a result.

## Where it differs

- **Version.** \`/api/version\` tells the version of Ollama whose API this is, since clients ask for a least one; \`daybreak\` beside it is the daemon's own.
- **\`/api/show\`** gives the template in Jinja. A client that looks there for Go's \`.Suffix\`, as Continue does, takes every model for one that cannot fill in the middle; \`capabilities\` has \`insert\` for those that can.
- **Defaults** of sampling are those of the daemon's other APIs: temperature 0.7, top_p 0.9, top_k 40, no repeat penalty, for models that say nothing else.
- **Thinking** is off unless the request or the model's definition asks for it.
- **A prompt that does not fit** into the context is 400, never shortened. A text to embed is, unless \`truncate\` is false.
- **\`num_ctx\`** is honored when the model is loaded. An idle model that was loaded with less is loaded anew; one in use stays as it is. More than the model was trained for is not given.
- **Embeddings** are L2-normalized, those of \`/api/embeddings\` too. \`context\` is neither given nor taken.
- **Pulling** asks the hub, not Ollama's library. \`digest\` in its lines, and in lists of models, tells things apart and is not the hash of a file. What fails before the first byte has a status instead of a line.
- **\`create\`** makes a model from one that is on disk, and from a Modelfile; files are not uploaded. A copy needs a free name.

## Request fields

Null means the same as leaving a field out. Fields that are not listed are ignored. A wrong type or range is 400 with the field's path.
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
