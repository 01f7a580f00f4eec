import { describe, expect, test } from "vitest";
import { renderPrompt } from "../../../../src/models/modelfile/template/go-renderer.ts";

const FIELDS = { system: "Be brief.", prompt: "Why?", suffix: "", thinking: undefined };

describe("renderPrompt()", () => {
  test.each<[string, string, string]>([
    ["shows system and prompt", "{{ .System }}|{{ .Prompt }}>", "Be brief.|Why?>"],
    ["ends where the answer begins", "{{ .Prompt }} A: {{ .Response }}<end>", "Why? A: "],
    ["decides", "{{ if .Suffix }}a{{ else if eq .Prompt `Why?` }}b{{ else }}c{{ end }}", "b"],
    [
      "loops over messages, without the system prompt that it shows itself",
      "{{ .System }}{{ range $i, $m := .Messages }}[{{ $i }}{{ $m.Role }}:{{ .Content }}]{{ end }}",
      "Be brief.[0user:Why?]",
    ],
    ["loops over all messages otherwise", "{{ range .Messages }}[{{ .Role }}]{{ end }}", "[system][user]"],
    [
      "sets variables from within a loop",
      '{{ $last := "" }}{{ range .Messages }}{{ $last = .Role }}{{ end }}{{ $last }}',
      "user",
    ],
    [
      "knows the last of a list",
      "{{ range $i, $_ := .Messages }}{{ if eq (len (slice $.Messages $i)) 1 }}last{{ end }}{{ end }}",
      "last",
    ],
    [
      "leaves out what messages do not have",
      "{{ range .Messages }}{{ if .ToolCalls }}x{{ end }}{{ end }}",
      "",
    ],
    ["trims", "a  {{- .Prompt -}}  b", "aWhy?b"],
    ["takes the first that is true", "{{ or .Suffix .Prompt }}{{ and .System .Suffix }}", "Why?"],
    [
      "changes what is shown with it",
      "{{ with .Prompt }}{{ . }}{{ end }}{{ with .Suffix }}x{{ else }}none{{ end }}",
      "Why?none",
    ],
  ])("%s", (_, template, prompt) => {
    expect(renderPrompt(template, FIELDS)).toBe(prompt);
  });

  test("renders a fill-in-the-middle prompt", () => {
    const fields = { ...FIELDS, prompt: "def", suffix: "end" };
    expect(renderPrompt("<PRE>{{ .Prompt }}<SUF>{{ .Suffix }}<MID>", fields)).toBe("<PRE>def<SUF>end<MID>");
  });

  test.each([
    ["another language", "{% for m in messages %}{{ .Prompt }}{% endfor %}", /Go template/],
    ["leaving out the prompt", "{{ .System }}", /neither/],
    ["an unknown field", "{{ .Prompt }}{{ .Nothing }}", /\.Nothing is not known/],
    ["an unknown function", "{{ printf .Prompt }}", /printf is not known/],
    ["an action without an end", "{{ if .Prompt }}a", /./],
    ["a variable that is not set", "{{ .Prompt }}{{ $x }}", /not set/],
    [
      "loops that multiply",
      `{{ range .Messages }}${"{{ range $.Messages }}".repeat(20)}a${"{{ end }}".repeat(20)}{{ end }}`,
      /too many steps/,
    ],
  ])("is rejected for %s", (_, template, message) => {
    expect(() => renderPrompt(template, FIELDS)).toThrow(
      expect.objectContaining({ code: "invalid_parameter", message: expect.stringMatching(message) }),
    );
  });
});
