import { messageRequestSchema } from "../../src/api/anthropic/message-schema.ts";
import { chatCompletionRequestSchema } from "../../src/api/openai/chat-schema.ts";
import { completionRequestSchema } from "../../src/api/openai/completion-request.ts";
import { embeddingsRequestSchema, rerankRequestSchema } from "../../src/api/openai/embeddings.ts";
import { responseRequestSchema } from "../../src/api/openai/responses/response-schema.ts";
import { fieldTable } from "./field-table.ts";

const PROSE = `# Compatible APIs

<!-- Made by scripts/docs/generate.ts; the prose is in scripts/docs/compatibility-page.ts, the tables come from the schemas that the routes parse with. -->

Programs written for OpenAI's chat-completions or responses API or Anthropic's messages API work with their official clients; only the base URL changes:

    new OpenAI({ baseURL: "http://127.0.0.1:8080/v1", apiKey: "any" })
    new Anthropic({ baseURL: "http://127.0.0.1:8080", apiKey: "any" })

The Vercel AI SDK works with any of these three providers; its Anthropic provider needs \`/v1\`, too:

    createOpenAICompatible({ name: "daybreak", baseURL: "http://127.0.0.1:8080/v1", supportsStructuredOutputs: true })
    createOpenAI({ baseURL: "http://127.0.0.1:8080/v1", apiKey: "any" })
    createAnthropic({ baseURL: "http://127.0.0.1:8080/v1", apiKey: "any" })

Any key works, unless \`api_keys\` is configured.

Agents, frameworks and frontends use the same addresses: [clients.md](clients.md) has their settings, and says which are tried by the tests. For those that support Ollama, there is its API ([ollama.md](ollama.md)), for those of llama.cpp's server there are its routes ([llama-server.md](llama-server.md)).

## What applies to all of them

- **Models.** \`model\` is the name of a model on disk (\`GET /v1/models\` lists them). Without it, the default model answers. One that is not loaded is loaded first, and unloaded when nobody has used it for \`models.keep_alive\` (5 minutes); idle models make room for it. With \`models.auto_load = false\` it is 404 \`model_not_loaded\` instead. An unknown model is 404 \`model_not_found\`.
- **Defaults.** A setting comes from the request, or else from the model's definition (PARAMETER in its Modelfile). Otherwise every API has the same defaults: temperature 0.7, top_p 0.9, top_k 40.
- **Settings of llama.cpp's server** are fields of every API on this page: its samplers, \`grammar\`, \`json_schema\`, \`logit_bias\`, \`cache_prompt\` and the others in the tables below. Fields of other servers that would change an answer and cannot be kept, such as \`min_tokens\` or \`bad_words\`, are refused with advice, unless their value asks for nothing. Ollama's API has its samplers and \`logit_bias\` in \`options\`, and ignores the other fields ([ollama.md](ollama.md#request-fields)).
- **Constraints of other servers** are enforced by grammars: \`regex\`, and vLLM's \`guided_json\`, \`guided_regex\`, \`guided_choice\`, \`guided_grammar\` (GBNF or Lark, also with rules that contain themselves) and \`structured_outputs\`. A regular expression holds for the whole answer. What no grammar can say, such as a back-reference, is refused.
- **Null** means the same as omitting a field. Unknown fields are ignored. Known fields with a wrong type or range, and those that ask for something unsupported, are 400 with the field's path. What cannot be kept of a JSON Schema is named by its path in that schema.
- **Thinking** is off unless the request or the model's definition turns it on: on a CPU, it would take up most of the answer's time.
- **Tool calls** that are required, or for a named tool, are enforced by a grammar for every model: exactly one call, with arguments that fit the tool's schema. With \`auto\`, the model decides, in its own template's format.
- **Custom tools** of OpenAI's APIs take text instead of JSON. A \`regex\` grammar and a \`lark\` grammar whose rules do not contain themselves are enforced as far as arguments are, and every grammar is shown to the model. One that cannot be enforced (recursive rules, templates, look-around, imports from elsewhere than \`common\`) is shown only.
- **Structured output** is enforced by a grammar, too: a complete answer fits the schema, one that is cut off by its length is the beginning of one. What a grammar cannot say is checked before the answer is sent; [structured-output.md](structured-output.md) lists all keywords. Together with tools, the answer either fits the schema or is one tool call. With \`engine.kernels = stock\`, an answer can fail with \`inference_failed\`, because llama.cpp's grammars accept incomplete characters.
- **Images** are PNG, JPEG, GIF, BMP or WebP, as base64 or data: URLs; of an animation, the model sees the first frame. The daemon does not fetch URLs.
- **Recordings** are WAV (PCM, floating point, A-law, µ-law), MP3 or FLAC of up to an hour, as base64 or data: URLs, for models with an audio projector: \`input_audio\` in chat completions, \`audio\` in messages of the native API, \`images\` in those of Ollama. \`/v1/audio/transcriptions\` asks such a model to write down what it hears; it does not tell times.
- **Evaluation harnesses** get the log-probabilities of a prompt's tokens from \`/v1/completions\` with \`echo\` and \`logprobs\`, also without generating anything (\`max_tokens: 0\`), for prompts as text or token IDs and in batches. They are those that generating the same tokens reports, and take as long; a prompt may have 16,384 tokens. The first token has none, nor do the tokens within a character that is spread over several, except the last. In an answer, such a character has one entry, with all of its bytes and the log-probability of its last token, as in llama.cpp's server: there are fewer entries than tokens, and their sum is above that of all tokens. lm-evaluation-harness: \`--model local-completions\`.
- **Embeddings** of an empty text are refused, as OpenAI does, alone and in a list.
- **A final assistant message** is continued; in OpenAI's APIs only where the answer has no format and need not be a call, in the Responses API never.
- **Warnings.** What was asked for and could not be done, though the request was answered, is told in the header \`x-daybreak-warning\`.
- **Disconnecting** ends the generation.
- **Errors** have the API's format, with the daemon's own \`code\` (see [errors.md](errors.md)), and \`x-should-retry: false\` if a retry cannot help. An error in a stream is its last event.

## Chat-completions API

Streams consist of \`data:\` lines without event names, comments while there is nothing to send, and \`data: [DONE]\` at the end. Reasoning is in \`reasoning_content\`. \`error.type\` is one of the daemon's own types; clients choose their error class by the status.
`;

const RESPONSES = `
## Responses API

Every event of a stream is named and numbered; the last one is \`response.completed\`, \`response.incomplete\` (cut off by its length) or \`response.failed\` (with \`error.code\`). Thinking is a \`reasoning\` item whose summary contains all of it. \`shell\` (without a container), \`local_shell\` and \`apply_patch\` are tools that the client runs: their calls are \`shell_call\`, \`local_shell_call\` and \`apply_patch_call\` items, which a stream shows whole. Tools that a hosted service would run itself, such as web search, are dropped, because coding agents always send some; the response's \`tools\` lists those that the model has seen. What such tools have left in a conversation, \`web_search_call\` for example, is accepted as input: the model reads it as a short text.

Responses are kept in memory unless \`store\` is false, for \`previous_response_id\`, \`item_reference\`, \`GET\` and \`DELETE /v1/responses/{id}\` and \`GET /v1/responses/{id}/input_items\`. They are lost when the daemon ends, and the least recently used ones make room for new ones (64 Mi characters in total). After that, the response is 400 \`previous_response_not_found\`, and the client has to send the whole conversation. \`POST /v1/responses/input_tokens\` takes the same fields and returns the exact number of tokens in a conversation.
`;

const MESSAGES = `
## Messages API

Every event of a stream is named, and \`ping\` is sent while there is nothing else to send. Thinking blocks carry a signature; any signature is accepted. With \`thinking.display\` \`omitted\` the text is left out, but the signature holds it, so that the model has it when the block is sent back. \`cache_read_input_tokens\` are the tokens of the prompt that were reused ([prompts that are read once](engine.md#prompts-that-are-read-once)), whatever \`cache_control\` says; \`input_tokens\` are the others. Where the other APIs use 503, the status is 529, for which this API's clients have an error class. The header \`anthropic-beta\` and the query \`beta=true\` are ignored.

\`GET /v1/models\` and \`/v1/models/{id}\` have this API's format, pages and errors for its clients: for requests with \`anthropic-version\`, or with \`x-api-key\` and without \`Authorization\`. The tools \`bash_…\`, \`text_editor_…\`, \`memory_…\` and \`computer_…\` need no \`input_schema\`: the model gets the one that clients expect. Tools that run on a server and toolsets are refused; what they have left in a conversation (\`server_tool_use\`, \`web_search_tool_result\`, \`mcp_tool_result\` …) is read by the model as a short text.
`;

const PARTS = `
### Parts of messages

| part | |
|---|---|
| chat-completions: \`text\`, \`image_url\`, \`input_audio\`, \`refusal\`, calls of functions and of custom tools | honored |
| chat-completions: \`file\` | refused |
| responses: messages of \`input_text\`, \`output_text\`, \`input_image\` and \`refusal\`, \`function_call\`, \`custom_tool_call\`, \`shell_call\`, \`local_shell_call\`, \`apply_patch_call\` and their outputs, \`reasoning\`, \`item_reference\` | honored |
| responses: items of tools that a server runs | text |
| responses: \`encrypted_content\`, \`compaction\`, \`compaction_trigger\`, \`additional_tools\`, \`mcp_list_tools\`, tools that a server runs | ignored |
| responses: \`input_file\`, \`file_id\`, other items | refused |
| messages: \`text\`, \`image\`, \`thinking\`, \`tool_use\`, \`tool_result\`, \`search_result\`, \`document\` of plain text or of text blocks | honored |
| messages: blocks of tools that a server runs, \`container_upload\`, \`tool_reference\`, \`compaction\`, other documents in results and before the last answer | text |
| messages: \`redacted_thinking\`, \`cache_control\` | ignored |
| messages: other documents after the last answer, other blocks, tools that run on the server | refused |
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
