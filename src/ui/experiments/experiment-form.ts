import { type ExperimentRequest, experimentRequestSchema } from "../../api/wire/native.ts";

const DEFAULT_REQUEST: ExperimentRequest = {
  messages: [{ role: "user", content: "" }],
  temperature: 0,
  seed: 0,
  max_tokens: 64,
};

const NUMBERS = ["temperature", "seed", "max_tokens"] as const;

/** Returns an element of the page by its ID. */
export function byId<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

/** Form of a request: fields for common settings, and the complete request as JSON, which is authoritative. */
export class ExperimentForm {
  readonly #message = byId("message", HTMLTextAreaElement);
  readonly #system = byId("system", HTMLTextAreaElement);
  readonly #json = byId("request", HTMLTextAreaElement);
  readonly #numbers = NUMBERS.map((name) => ({ name, input: byId(name, HTMLInputElement) }));

  constructor() {
    for (const { name, input } of this.#numbers) {
      input.addEventListener("input", () =>
        this.#change((request) => ({
          ...request,
          [name]: input.value === "" ? undefined : Number(input.value),
        })),
      );
    }
    for (const area of [this.#message, this.#system]) {
      area.addEventListener("input", () => this.#change((request) => this.#withTexts(request)));
    }
    this.#json.addEventListener("input", () => this.#showFields());
    this.request = DEFAULT_REQUEST;
  }

  /** @throws Error that names the first invalid field */
  get request(): ExperimentRequest {
    let value: unknown;
    try {
      value = JSON.parse(this.#json.value);
    } catch {
      throw new Error("The request is not JSON.");
    }
    const { data, error } = experimentRequestSchema.safeParse(value);
    if (data) return data;
    const [issue] = error.issues;
    throw new Error(`The request is wrong: ${issue?.path.join(".")}: ${issue?.message}.`);
  }

  set request(request: ExperimentRequest) {
    this.#json.value = JSON.stringify(request, undefined, 2);
    this.#showFields();
  }

  reset(): void {
    this.request = DEFAULT_REQUEST;
  }

  #change(change: (request: ExperimentRequest) => ExperimentRequest): void {
    try {
      this.#json.value = JSON.stringify(change(this.request), undefined, 2);
    } catch {
      // The JSON is being edited and invalid at the moment.
    }
  }

  /** Puts the text fields into the request: the prompt or the last user message, and the system prompt. */
  #withTexts(request: ExperimentRequest): ExperimentRequest {
    const text = this.#message.value;
    if (request.messages == null) return { ...request, prompt: text };
    const last = request.messages.findLastIndex(({ role }) => role === "user");
    const messages = request.messages
      .map((message, index) => (index === last ? { ...message, content: text } : message))
      .filter(({ role }, index) => role !== "system" || index > 0);
    const [first] = messages;
    const others = first?.role === "system" ? messages.slice(1) : messages;
    const system = this.#system.value;
    return {
      ...request,
      messages: system === "" ? others : [{ role: "system", content: system }, ...others],
    };
  }

  #showFields(): void {
    let request: ExperimentRequest;
    try {
      request = this.request;
    } catch {
      return;
    }
    for (const { name, input } of this.#numbers) input.value = request[name]?.toString() ?? "";
    const last = request.messages?.findLast(({ role }) => role === "user");
    this.#message.value = request.prompt ?? last?.content ?? "";
    const [first] = request.messages ?? [];
    this.#system.value = first?.role === "system" ? first.content : "";
  }
}
