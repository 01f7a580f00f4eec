import { Template } from "@huggingface/jinja";
import { describe, expect, it } from "vitest";
import { chatTemplate } from "../../../../src/models/modelfile/template/chat-template.ts";

interface Message {
  role: string;
  content: string | null;
  tool_calls?: unknown[];
}

const system: Message = { role: "system", content: "Be kind." };
const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });

const render = (template: string, messages: Message[], variables: object = {}): string =>
  new Template(chatTemplate(template, 1)).render({ messages, add_generation_prompt: true, ...variables });

const errorOf = (template: string) => {
  try {
    chatTemplate(template, 10);
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("a Go template of one turn", () => {
  const chatml = `{{ if .System }}<|im_start|>system
{{ .System }}<|im_end|>
{{ end }}{{ if .Prompt }}<|im_start|>user
{{ .Prompt }}<|im_end|>
{{ end }}<|im_start|>assistant
{{ .Response }}<|im_end|>
`;

  it("prints the question and ends where the answer begins", () => {
    expect(render(chatml, [system, user("Hi")])).toBe(
      "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("is applied to every turn of a conversation", () => {
    expect(render(chatml, [system, user("Hi"), assistant("Hello!"), user("How?")])).toBe(
      "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n" +
        "<|im_start|>user\nHow?<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("leaves an answer open that is to be continued, and closes a complete one", () => {
    const conversation = [user("Hi"), assistant("Hel")];
    const open = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHel";
    expect(render(chatml, conversation)).toBe(open);
    expect(render(chatml, conversation, { add_generation_prompt: false })).toBe(`${open}<|im_end|>\n`);
  });

  it("joins consecutive messages of one role", () => {
    expect(
      render("{{ .System }}|{{ .Prompt }}|{{ .Response }}.", [system, system, user("a"), user("b")]),
    ).toBe("Be kind.\n\nBe kind.|a\n\nb|");
  });

  it("begins a new turn with a system message in the middle of a conversation", () => {
    expect(render("[{{ .System }}|{{ .Prompt }}|{{ .Response }}]", [user("a"), system, user("b")])).toBe(
      "[|a|][Be kind.|b|",
    );
  });

  it("without .Response has the answer at its end, followed by an empty line", () => {
    const minimal = "{{ .System }}\n{{ .Prompt }}\n";
    expect(render(minimal, [system, user("Hi")])).toBe("Be kind.\nHi\n");
    expect(render(minimal, [system, user("Hi"), assistant("Hello!"), user("How?")])).toBe(
      "Be kind.\nHi\nHello!\n\n\nHow?\n",
    );
  });

  it("is cut at the answer within a condition, and keeps the other branch", () => {
    const template =
      "{{ if .System }}s:{{ .Prompt }}>{{ .Response }}</s>{{ else }}{{ .Prompt }}>{{ end }}|end";
    expect(render(template, [system, user("Hi")])).toBe("s:Hi>");
    expect(render(template, [system, user("Hi"), assistant("Yo"), user("So?")])).toContain("s:Hi>Yo</s>|end");
  });

  it("prints a message without content as an empty string", () => {
    expect(render("{{ .Prompt }}>", [{ role: "user", content: null }])).toBe(">");
  });
});

describe("a Go template that loops over the messages", () => {
  it("renders like the Llama 3 template in Ollama's documentation", () => {
    const llama3 = `{{- if .System }}<|start_header_id|>system<|end_header_id|>

{{ .System }}<|eot_id|>
{{- end }}
{{- range .Messages }}<|start_header_id|>{{ .Role }}<|end_header_id|>

{{ .Content }}<|eot_id|>
{{- end }}<|start_header_id|>assistant<|end_header_id|>

`;
    expect(render(llama3, [system, user("Hi"), assistant("Yo"), user("So?")])).toBe(
      "<|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>" +
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>" +
        "<|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>" +
        "<|start_header_id|>user<|end_header_id|>\n\nSo?<|eot_id|>" +
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    );
  });

  it("has the system message among the messages if it does not print .System", () => {
    expect(render("{{ range .Messages }}[{{ .Role }}]{{ .Content }}{{ end }}", [system, user("Hi")])).toBe(
      "[system]Be kind.[user]Hi",
    );
  });

  const mistral = `{{- range $index, $_ := .Messages }}
{{- if eq .Role "user" }}
{{- if and (le (len (slice $.Messages $index)) 2) $.Tools }}[AVAILABLE_TOOLS] {{ json $.Tools }}[/AVAILABLE_TOOLS]
{{- end }}[INST] {{ if and (eq (len (slice $.Messages $index)) 1) $.System }}{{ $.System }}

{{ end }}{{ .Content }}[/INST]
{{- else if eq .Role "assistant" }}
{{- if .Content }} {{ .Content }}</s>
{{- else if .ToolCalls }}[TOOL_CALLS] [
{{- range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ json .Function.Arguments }}}
{{- end }}]</s>
{{- end }}
{{- else if eq .Role "tool" }}[TOOL_RESULTS] {"content": {{ .Content }}}[/TOOL_RESULTS]
{{- end }}
{{- end }}`;

  it("may count, compare and slice like the Mistral template", () => {
    expect(render(mistral, [system, user("Hi"), assistant("Yo"), user("So?")])).toBe(
      "[INST] Hi[/INST] Yo</s>[INST] Be kind.\n\nSo?[/INST]",
    );
  });

  it.each([{ city: "Rome" }, '{"city": "Rome"}'])(
    "prints tools, calls and results; arguments %j are encoded as JSON once",
    (args) => {
      const call = { type: "function", function: { name: "weather", arguments: args } };
      const messages = [
        user("Hi"),
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", content: "21" },
      ];
      const tools = [{ type: "function", function: { name: "weather" } }];
      expect(render(mistral, messages, { tools })).toBe(
        '[INST] Hi[/INST][TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Rome"}}]</s>[TOOL_RESULTS] {"content": 21}[/TOOL_RESULTS]',
      );
      expect(render(mistral, [user("Hi")], { tools })).toContain('[AVAILABLE_TOOLS] [{"type": "function"');
    },
  );

  it("may set variables, also within conditions", () => {
    const template = `{{ $sep := "" }}{{ range $i, $m := .Messages }}{{ $sep }}{{ $i }}{{ $m.Role }}{{ $last := eq (len (slice $.Messages $i)) 1 }}{{ if not $last }}{{ $sep = ", " }}{{ end }}{{ end }}`;
    expect(render(template, [user("a"), assistant("b"), user("c")])).toBe("0user, 1assistant, 2user");
  });

  it("may loop over the parameters of a tool", () => {
    const template = `{{ range .Tools }}{{ .Function.Name }}({{ range $name, $p := .Function.Parameters.Properties }}{{ $name }}: {{ $p.Type }};{{ end }}){{ . }}{{ end }}{{ range .Messages }}{{ .Content }}{{ end }}`;
    const parameters = { type: "object", properties: { city: { type: "string" }, day: { type: "integer" } } };
    const tools = [{ type: "function", function: { name: "weather", parameters } }];
    expect(render(template, [user("Hi")], { tools })).toMatch(
      /^weather\(city: string;day: integer;\)\{"type": "function", .*\}Hi$/,
    );
  });

  it("tests if thinking is requested", () => {
    const template =
      "{{ range .Messages }}{{ .Content }}{{ end }}{{ if .IsThinkSet }}{{ if .Think }}/think{{ else }}/no_think{{ end }}{{ end }}";
    expect(render(template, [user("Hi")])).toBe("Hi");
    expect(render(template, [user("Hi")], { enable_thinking: true })).toBe("Hi/think");
    expect(render(template, [user("Hi")], { enable_thinking: false })).toBe("Hi/no_think");
  });

  it("may have comments, with, raw strings, pipes and else if", () => {
    const template =
      "{{/* }} nothing */}}{{- /* more */ -}} {{ with .System }}[{{ . }}]{{ else }}none{{ end }}" +
      '{{ range .Messages }}{{ if eq .Role `tool` "user" }}u{{ else if .Role | eq "assistant" }}a{{ else }}?{{ end }}{{ end }}';
    expect(render(template, [system, user("Hi"), assistant("Yo")])).toBe("[Be kind.]ua");
    expect(render(template, [user("Hi")])).toBe("noneu");
  });
});

describe("text in a Go template", () => {
  it.each([
    "{% raw %}",
    "}} -}} {{",
    '"quotes" and \\ backslashes \\n',
    "  spaces and\n\n  lines\t ",
    "{# no comment #}",
    "é 模型 🙂",
  ])("%j is printed unchanged", (text) => {
    expect(
      render(`{{ range .Messages }}{{ .Content }}{{ end }}{{ ${JSON.stringify(text)} }}`, [user("Hi")]),
    ).toBe(`Hi${text}`);
  });

  it("loses only the space that {{- and -}} trim", () => {
    expect(render(" a \n {{- .Prompt -}} \n b \n", [user("x")])).toBe(" axb \n");
    expect(render(" a \n {{ .Prompt }} \n b \n", [user("x")])).toBe(" a \n x \n b \n");
  });
});

describe("a template in Jinja", () => {
  it.each(["{% for message in messages %}{{ message.content }}{% endfor %}", "{{ messages[0]['content'] }}"])(
    "is used unchanged: %s",
    (template) => {
      expect(chatTemplate(template, 1)).toBe(template);
    },
  );
});

describe("an invalid template", () => {
  it.each([
    ["no places at all", 10, "neither {{ .Prompt }} nor {{ .Messages }}"],
    ["{{ .System }}", 10, "neither"],
    ["a\n\n{{ .Prompt }}{{ .Weather }}", 12, ".Weather is not known here"],
    ["{{ range .Messages }}\n{{ .Mood }}{{ end }}", 11, ".Mood is not known here"],
    ["{{ .Prompt }}{{ printf `x` }}", 10, "printf is not known here"],
    ["{{ .Prompt }}{{ $x }}", 10, "$x is not set"],
    ["{{ .Prompt }}{{ if .System }}", 10, "{{ if }} has no {{ end }}"],
    ["{{ .Prompt }}\n{{ end }}", 11, '"end" has nothing to belong to'],
    ["{{ .Prompt }}{{ else }}", 10, '"else" has nothing to belong to'],
    ["{{ .Prompt }}\n{{ .System", 11, "is not closed"],
    ['{{ .Prompt }}{{ "a }}', 10, "string is not closed"],
    ["{{ .Prompt }}{{ `a }}", 10, "string is not closed"],
    ["{{ .Prompt }}{{/* a }}", 10, "comment is not closed"],
    ["{{ .Prompt }}{{ define `x` }}{{ end }}", 10, "{{ define }} is not supported"],
    ["{{ .Prompt }}{{ range .Messages }}{{ break }}{{ end }}", 10, "{{ break }} is not supported"],
    ["{{ range .Messages }}{{ else }}none{{ end }}", 10, "{{ else }} of a range"],
    ["{{ .Prompt }}{{ eq .System }}", 10, "eq has 1 arguments"],
    ["{{ .Prompt }}{{ (eq .System }}", 10, "parenthesis is not closed"],
    ["{{ .Prompt }}{{ .System .Prompt }}", 10, "unexpected"],
    ["{{ .Prompt }}{{ % }}", 10, "cannot be read"],
    ["{{ .Prompt }}{{ . }}", 10, "the whole data object"],
    ["{{ .Prompt }}{{}}", 10, "something is missing"],
    [`{{ .Prompt }}${"{{ if .System }}".repeat(2000)}`, 10, "nested too deeply"],
    [`{{ .Prompt }}{{ ${"(".repeat(2000)} }}`, 10, "nested too deeply"],
  ])("%j is reported with the line and the reason", (template, line, reason) => {
    expect(errorOf(template)).toMatchObject({ code: "invalid_modelfile" });
    expect(String(errorOf(template))).toContain(`Modelfile, line ${line}: TEMPLATE: `);
    expect(String(errorOf(template))).toContain(reason);
    expect(String(errorOf(template))).toContain("Jinja");
  });

  it.each(['"\\', "{{/*"])("of a megabyte of %j is scanned only once", (part) => {
    const template = `{{ .Prompt }}{{ ${part.repeat(1_000_000 / part.length)}`;
    expect(String(errorOf(template))).toContain("is not closed");
  });
});
