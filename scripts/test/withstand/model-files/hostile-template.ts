import type { Random } from "../kit/random.ts";

/** Generates chat templates: endless, very large or deep, invalid, or just unusual. */
export function hostileTemplate(random: Random): string {
  const parts = Array.from({ length: random.int(1, 3) }, () => statement(random, random.int(0, 4)));
  return (random.chance(0.5) ? CHAT : "") + parts.join("");
}

const CHAT =
  "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor -%}";

function statement(random: Random, depth: number): string {
  const inner = (): string => (depth > 0 ? statement(random, depth - 1) : "x");
  return random.pick<() => string>([
    () => `{% for i in range(${count(random)}) %}${inner()}{% endfor %}`,
    () => `{% for message in messages %}${inner()}{% endfor %}`,
    () =>
      `{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(${random.int(1, 60)}) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}`,
    () => `{% macro f(n) %}${random.chance(0.5) ? "{{ f(n + 1) }}" : inner()}{% endmacro %}{{ f(0) }}`,
    () => `{% if ${expression(random, depth)} %}${inner()}{% else %}${inner()}{% endif %}`,
    () => `{{ ${expression(random, depth)} }}`,
    () => `{{ ${"(".repeat(deep(random))}1${")".repeat(deep(random))} }}`,
    () => "{% if true %}".repeat(deep(random)) + inner(),
    () => random.pick(["<tool_call>", "<|im_end|>", "</s>", "<0x00>"]).repeat(random.int(1, 20_000)),
    () => `{{ raise_exception('${"no ".repeat(random.int(1, 2000))}') }}`,
    () => random.pick(["{% for %}", "{{", "{%", "{# never closed", "{% endif %}", "{{ 1 / 0 }}", "\0\uFFFD"]),
  ])();
}

function expression(random: Random, depth: number): string {
  const inner = (): string => (depth > 0 ? expression(random, depth - 1) : "1");
  return random.pick<() => string>([
    () => `range(${count(random)})|length`,
    () => `'${"ab".repeat(random.int(0, 50))}' * ${count(random)}`,
    () => `messages[${random.int(-5, 5)}].content`,
    () => `messages|tojson`,
    () => `(${inner()} + ${inner()})`,
    () => `[${inner()}, ${inner()}]|join('')`,
    () => `tools is defined and ${inner()}`,
    () => `nothing.at.all(${inner()})`,
    () => `('x'|upper)|replace('x', ${inner()}|string)`,
  ])();
}

function count(random: Random): number {
  return random.pick([0, 1, 3, 1000, 100_000, 1_000_000_000, -1, 2 ** 53]);
}

function deep(random: Random): number {
  return random.pick([1, 10, 500, 5000, 20_000]);
}
