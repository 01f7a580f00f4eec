/**
 * Reads what `check.py --prompts N` prints and fails unless the chat template renders each conversation as training does.
 */
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { Template } from "@huggingface/jinja";
import { z } from "zod";

const conversation = z.object({
  messages: z.array(z.record(z.string(), z.unknown())),
  tools: z.array(z.record(z.string(), z.unknown())),
  thinking: z.boolean(),
  prompt: z.string(),
});

const template = new Template(readFileSync(new URL("conversations/template.jinja", import.meta.url), "utf8"));
const lines = (await text(process.stdin)).trim().split("\n");
for (const line of lines) {
  const { messages, tools, thinking, prompt } = conversation.parse(JSON.parse(line));
  const rendered = template.render({
    messages,
    ...(tools.length > 0 && { tools }),
    enable_thinking: thinking,
    add_generation_prompt: true,
  });
  if (rendered !== prompt) {
    console.error(`The template renders\n${rendered}\nand training sees\n${prompt}`);
    process.exit(1);
  }
}
console.log(`The chat template renders ${lines.length} conversations as training does.`);
