import { messageRequestSchema } from "../../src/dialects/anthropic/message-schema.ts";
import { chatCompletionRequestSchema } from "../../src/dialects/openai/chat-schema.ts";
import { completionRequestSchema } from "../../src/dialects/openai/completions.ts";
import { embeddingsRequestSchema } from "../../src/dialects/openai/embeddings.ts";
import { rerankRequestSchema } from "../../src/dialects/openai/rerank.ts";
import { responseRequestSchema } from "../../src/dialects/openai/responses/response-schema.ts";
import { fieldTable } from "./field-table.ts";

const PROSE = `# Compatible APIs

<!-- Made by scripts/docs/generate.ts; the prose is in scripts/docs/compatibility-page.ts, the tables come from the schemas that the routes parse with. -->

Programs written for the chat-completions or the responses API (OpenAI) or the messages API (Anthropic) work with their official clients; only the base address changes:

    new OpenAI({ baseURL: "http://127.0.0.1:8080/v1", apiKey: "any" })
    new Anthropic({ baseURL: "http://127.0.0.1:8080", apiKey: "any" })

The Vercel AI SDK works through any of its three providers; its provider for Anthropic wants \`/v1\` too:

    createOpenAICompatible({ name: "daybreak", baseURL: "http://127.0.0.1:8080/v1", supportsStructuredOutputs: true })
    createOpenAI({ baseURL: "http://127.0.0.1:8080/v1", apiKey: "any" })
    createAnthropic({ baseURL: "http://127.0.0.1:8080/v1", apiKey: "any" })

Any key will do, unless \`api_keys\` is configured.

Agents and frontends take the same addresses; those that can load models by themselves are best given Ollama's ([ollama.md](ollama.md)):

| client | setting |
|---|---|
| Codex | \`CODEX_OSS_BASE_URL=http://127.0.0.1:8080/ollama/v1 codex --oss -m MODEL\` |
| Claude Code | \`ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_AUTH_TOKEN=any ANTHROPIC_MODEL=MODEL claude\`, with \`/ollama\` at the end of the address to load models on demand |
| Open WebUI | as an Ollama connection \`http://127.0.0.1:8080/ollama\`, as an OpenAI connection \`http://127.0.0.1:8080/v1\`, as an external reranker \`http://127.0.0.1:8080/v1/rerank\` |
| Continue, Cline, Aider, LiteLLM | provider openai with \`http://127.0.0.1:8080/v1\`, or provider ollama with \`http://127.0.0.1:8080/ollama\` |
| LangChain | \`ChatOpenAI\`, \`ChatOllama\` and \`ChatAnthropic\` with the addresses above. In Python \`OpenAIEmbeddings\` sends the token ids of another vocabulary unless \`check_embedding_ctx_length=False\`. |

## What holds for all of them

- **Models.** \`model\` is the name of a model that is loaded (\`GET /v1/models\` lists those on disk). Without it the default model answers. An unknown one is 404 \`model_not_found\`, one that is not loaded 404 \`model_not_loaded\`.
- **Defaults.** A setting comes from the request, else from the model's definition (PARAMETER in its Modelfile), else it is the same in every API: temperature 0.7, top_p 0.9, top_k 40.
- **Null** means the same as leaving a field out. Unknown fields are ignored. Known ones with a wrong type or range, and those that ask for what is impossible here, are 400 with the field's path.
- **Thinking** is off unless the request asks for it, or the model's definition does: on a CPU it would use up most answers.
- **Tool calls** that are required, or of a named tool, are enforced for every model by a grammar, with arguments that fit the tool's schema; one call then. With \`auto\` the model decides, in the form of its own template.
- **Structured output** is enforced by a grammar too: an answer that ends by itself has the schema's form, one that is cut off by its length has its beginning. What no grammar can hold is not enforced: patterns with look-ahead, references back or anchors in their middle (any text passes), the length of a text beside its pattern, \`multipleOf\`, \`uniqueItems\`, \`not\`. With tools beside it, the answer either fits or is one call of a tool. With \`engine.kernels = stock\` an answer can fail with \`inference_failed\` where llama.cpp's grammars take broken characters for whole ones.
- **Pictures** are PNG, JPEG, GIF or BMP as base64 or data: URLs. The daemon fetches no addresses.
- **Assistant messages at the end** are continued.
- **Leaving** ends the generation: a client that closes its connection costs no more tokens.
- **Errors** have the shape of the API, with the daemon's own \`code\` (see [errors.md](errors.md)), and \`x-should-retry: false\` where trying again is of no use. An error in a stream is its last event.

## Chat-completions API

Streams are \`data:\` lines without event names, comments while there is nothing to send, and \`data: [DONE]\` at the end. Reasoning comes as \`reasoning_content\`. \`error.type\` is one of the daemon's own types; clients choose their error class by the status.
`;

const RESPONSES = `
## Responses API

Every event of a stream is named and numbered; the last one is \`response.completed\`, \`response.incomplete\` (cut off by its length) or \`response.failed\` (with \`error.code\`). Thinking is a \`reasoning\` item whose summary is all of it. Tools that a service would run itself, such as a web search, are left out, since coding agents always send some; the response's \`tools\` lists those that the model was shown.

Responses are kept in memory unless \`store\` is false, for \`previous_response_id\`, \`item_reference\`, \`GET\` and \`DELETE /v1/responses/{id}\` and \`GET /v1/responses/{id}/input_items\`. They end with the daemon, and those not used for longest make room for new ones (64 Mi characters in all); 400 \`previous_response_not_found\` then asks for the whole conversation. \`POST /v1/responses/input_tokens\` takes the same fields and counts the tokens that a conversation has, exactly.
`;

const MESSAGES = `
## Messages API

Every event of a stream is named, and \`ping\` comes while there is nothing to send. Thinking blocks carry a signature; any signature is accepted back. \`cache_read_input_tokens\` is always 0: prompts are cached, but that saves time and no tokens. Where the other APIs say 503, the status is 529, for which that API's clients have a class. Headers such as \`anthropic-version\` and \`anthropic-beta\` and the query \`beta=true\` are ignored.
`;

const PARTS = `
### Parts of messages

| part | |
|---|---|
| chat-completions: \`text\`, \`image_url\`, \`refusal\` | honored |
| chat-completions: \`input_audio\`, \`file\` | refused |
| responses: messages of \`input_text\`, \`output_text\`, \`input_image\` and \`refusal\`, \`function_call\`, \`function_call_output\`, \`reasoning\`, \`item_reference\` | honored |
| responses: \`encrypted_content\`, tools of other types than \`function\` | ignored |
| responses: \`input_file\`, \`file_id\`, other items | refused |
| messages: \`text\`, \`image\`, \`thinking\`, \`tool_use\`, \`tool_result\`, \`search_result\`, \`document\` of plain text or of text blocks | honored |
| messages: \`redacted_thinking\`, \`cache_control\` | ignored |
| messages: other documents, other blocks, tools that run on the server | refused |
`;

/** The text of docs/compatibility.md. */
export function compatibilityPage(): string {
  return [
    PROSE,
    fieldTable("POST /v1/chat/completions", chatCompletionRequestSchema),
    fieldTable("POST /v1/completions", completionRequestSchema),
    fieldTable("POST /v1/embeddings", embeddingsRequestSchema),
    fieldTable("POST /v1/rerank", rerankRequestSchema),
    RESPONSES,
    fieldTable("POST /v1/responses", responseRequestSchema),
    MESSAGES,
    fieldTable("POST /v1/messages", messageRequestSchema),
    PARTS,
  ].join("");
}
