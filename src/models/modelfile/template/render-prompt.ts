import { ServiceError } from "../../../errors/service-error.ts";
import { TemplateProblem } from "./go-expression.ts";
import { cutBehindResponse, fieldsOf } from "./go-nodes.ts";
import { GoRenderer, type GoValue } from "./go-renderer.ts";
import { parseGoTemplate } from "./go-template.ts";

/** What a template shows of a request that is not a chat. */
interface PromptFields {
  readonly system: string;
  readonly prompt: string;
  readonly suffix: string;
  readonly thinking: boolean | undefined;
}

/**
 * The prompt that a Go template makes of a request, up to where the answer begins. Like in chats, .Messages has no system
 * message if the template also shows .System.
 * @throws ServiceError invalid_parameter for a template that is wrong, or that never ends
 */
export function renderPrompt(template: string, { system, prompt, suffix, thinking }: PromptFields): string {
  try {
    const nodes = parseGoTemplate(template);
    const fields = new Set(fieldsOf(nodes));
    if (template.includes("{%")) {
      throw new TemplateProblem(0, "it must be a Go template; set a template in Jinja when creating a model");
    }
    if (!fields.has("Prompt") && !fields.has("Messages")) {
      throw new TemplateProblem(0, "it shows neither {{ .Prompt }} nor {{ .Messages }}");
    }
    const showsSystem = fields.has("System");
    const messages: GoValue[] = [{ Role: "user", Content: prompt }];
    if (system !== "" && !showsSystem) messages.unshift({ Role: "system", Content: system });
    return new GoRenderer({
      System: system,
      Prompt: prompt,
      Suffix: suffix,
      Response: "",
      Messages: messages,
      Tools: [],
      Think: thinking ?? false,
      IsThinkSet: thinking !== undefined,
    }).render(cutBehindResponse(nodes));
  } catch (error) {
    if (!(error instanceof TemplateProblem)) throw error;
    throw new ServiceError("invalid_parameter", `template: ${error.message}.`, {
      param: "template",
      cause: error,
    });
  }
}
