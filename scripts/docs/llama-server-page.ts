import {
  completionRequestSchema,
  infillRequestSchema,
} from "../../src/api/llama-server/completion-request.ts";
import { fieldTable } from "./field-table.ts";

const PROSE = `# The routes of llama-server

<!-- Made by scripts/docs/generate.ts; the prose is in scripts/docs/llama-server-page.ts, the tables come from the schemas that the routes parse with. -->

Programs written for llama.cpp's server, such as the plug-ins llama.vim and llama.vscode for editors, use the daemon's address in its place:

    let g:llama_config = {
      \\ 'endpoint_fim': 'http://127.0.0.1:8080/infill', 'model_fim': 'MODEL',
      \\ 'endpoint_inst': 'http://127.0.0.1:8080/v1/chat/completions', 'model_inst': 'MODEL' }

llama.vim (of 2026-01-31, in Vim 9.0) was tried by hand: completions beside the cursor, the extra context and instructions. Of llama.vscode 0.0.63 the requests that its source makes were sent by hand. What each needs to be told is in [clients.md](clients.md).

| route | |
|---|---|
| \`POST /completion\`, \`/completions\` | continues a text |
| \`POST /infill\` | fills a gap, for models with tokens for it |
| \`POST /apply-template\` | shows what a chat becomes for the model |
| \`POST /embedding\`, \`/embeddings\` | vectors, normalized by \`embd_normalize\` (0, 1, 2 or more) |
| \`POST /rerank\`, \`/reranking\` | ranks \`documents\` or, in TEI's format, \`texts\`; scores are logits |
| \`GET /props\`, \`/slots\`, \`/lora-adapters\` | how a model is served, what it is doing, its adapters |
| \`POST /lora-adapters\` | changes their scales, for requests without \`lora\`, until the model is unloaded |
| \`POST /slots/{id}?action=…\` | saves, restores and empties what a slot has in its cache |
| \`POST /tokenize\`, \`/detokenize\` | text to tokens and back, with the errors of the daemon's own API |
| \`GET /health\`, \`GET /v1/models\`, \`POST /v1/…\` | as everywhere: [compatibility.md](compatibility.md) |

Every route takes \`model\`, in its body or, with GET and \`POST /lora-adapters\`, whose body is a list, in its query; without it the default model answers. A model that is on disk is loaded by the first request that names it; \`/props\`, \`/slots\` and \`/lora-adapters\` load nothing, and \`is_sleeping\` tells whether the model has to be loaded.

## What differs

- **Sampling defaults** are those of the daemon's other APIs (temperature 0.7, top_p 0.9, top_k 40) unless the model says otherwise.
- **\`n_predict: 0\`** reads the prompt into the cache, as editors ask for, and returns no text; also in \`/v1/chat/completions\`.
- **\`/infill\`** keeps what fits into the context beside the answer: of \`input_prefix\` the end, of \`input_suffix\` the beginning, of \`input_extra\` the last files. llama.cpp's server keeps what fits into a batch.
- **Token ids** are in \`tokens\` with \`return_tokens\` alone, also in a stream, because reporting them costs time. In a stream \`id_slot\` is -1 until the end.
- **\`completion_probabilities\`** are those before sampling; \`post_sampling_probs\` is refused.
- **A prompt that does not fit** into the context is 400. An answer ends when the context is full (\`truncated\`), unless the model shifts its context.
- **\`multimodal_data\`** and \`embd_normalize: -1\` are refused: images go into messages of \`/v1/chat/completions\`.
- **\`/apply-template\`** lets the model read the prompt, which is then in its cache for the request that follows. It takes no images. Whether the chat thinks is decided as by \`/v1/chat/completions\`, from \`reasoning_effort\`, \`enable_thinking\`, \`chat_template_kwargs\` and the budgets of thinking.
- **\`GET /slots\`** tells which slots are busy and how many tokens each has in its cache (\`n_prompt_tokens\`), but not the settings of the requests. There are none while the model is not loaded.
- **\`POST /slots/{id}?action=save|restore|erase\`** also takes \`model\`. \`filename\` is the name of a saved prompt, the same as those of \`POST /api/models/<name>/slots\`, and not a path. \`erase\` needs no body.
- **\`POST /props\`** is refused, as by llama.cpp's server without \`--props\`: settings belong to requests, to a load or to a Modelfile.
- **Errors** have llama.cpp's form: \`{"error": {"code": 400, "message": "…", "type": "invalid_request_error"}}\`, in a stream as its last event. A field that is refused below, and one that the model cannot follow, such as \`/infill\` for a model without tokens for it, is 400 \`invalid_request_error\`. Where no field is at fault, it is 501 \`not_supported_error\`: \`POST /props\`, a slot that cannot be saved (of a recurrent or hybrid model, with images or recordings, or where saving is turned off), and what needs Daybreak's own engine on the stock one.

## Request fields

Null means the same as omitting a field. Fields that are not listed are ignored. A wrong type or range is 400 with the field's path.
`;

/** The text of docs/llama-server.md. */
export function llamaServerPage(): string {
  return [
    PROSE,
    fieldTable("POST /completion", completionRequestSchema),
    fieldTable("POST /infill", infillRequestSchema),
  ].join("");
}
