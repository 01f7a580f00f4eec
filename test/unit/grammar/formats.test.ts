import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { GrammarWriter } from "../../../src/grammar/gbnf/grammar-writer.ts";
import { FORMAT_NAMES } from "../../../src/grammar/text/formats.ts";
import { TextSet } from "../../../src/grammar/text/text-set.ts";
import { writeString } from "../../../src/grammar/text/write-text.ts";
import { WorkBudget } from "../../../src/grammar/schema-errors.ts";
import { sampleGrammar } from "../../support/sample-grammar.ts";

const ajv = new Ajv2020();
addFormats.default(ajv);
/** Formats that ajv does not have, with the format of their ASCII texts. */
const ASCII_PART: Readonly<Record<string, string>> = {
  "idn-email": "email",
  "idn-hostname": "hostname",
  iri: "uri",
  "iri-reference": "uri-reference",
};

test.each(FORMAT_NAMES)("ajv accepts every text of the grammar of the format %s", (name) => {
  const set = TextSet.format(name, new WorkBudget());
  if (!set) throw new Error("The format is not known");
  const writer = new GrammarWriter();
  const texts = sampleGrammar(writer.toString(writeString(writer, set)), 400).map((text) => JSON.parse(text));
  const isValid = ajv.compile({ type: "string", format: ASCII_PART[name] ?? name });
  expect(texts.filter((text) => !isValid(text))).toEqual([]);
});

test.each([
  [
    "date",
    ["2024-02-29", "2000-02-29", "1999-12-31"],
    ["2023-02-29", "1900-02-29", "2024-04-31", "2024-13-01"],
  ],
  ["time", ["23:59:59Z", "00:00:00.5+05:30"], ["24:00:00Z", "23:59:60Z", "12:00:00"]],
  ["duration", ["P1Y2M3D", "PT1H30M", "P4W", "PT5S"], ["P", "PT", "P1YT", "P1D2W", "P1Y2D", "1D"]],
  ["email", ["joe.bloggs@example.com"], ["joe", ".test@example.com", "te..st@example.com", "a@b"]],
  ["hostname", ["www.example.com", "localhost"], ["-a.com", "a_b", "xn--X", "a..b", "host-", ""]],
  ["ipv4", ["127.0.0.1", "255.255.255.255"], ["256.1.1.1", "01.1.1.1", "1.1.1"]],
  [
    "ipv6",
    ["::1", "::", "1:2:3:4:5:6:7:8", "fe80::a", "1::"],
    ["1::2::3", "12345::", ":1", "1:2:3:4:5:6:7::8"],
  ],
  ["uri", ["https://example.com/a?b=c#d", "urn:isbn:12"], ["//example.com", "a b:c", "http://a b", "abc"]],
  ["uuid", ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380"]],
  ["json-pointer", ["", "/a~1b/0"], ["a", "/~2"]],
  ["relative-json-pointer", ["1", "0#", "2/a"], ["-1", "01", "#"]],
])("the format %s has the valid texts and not the invalid ones", (name, valid, invalid) => {
  const set = TextSet.format(name, new WorkBudget());
  expect(valid.filter((text) => set?.has(text) !== true)).toEqual([]);
  expect(invalid.filter((text) => set?.has(text) !== false)).toEqual([]);
});

test("an unknown format has no set of texts", () => {
  expect(TextSet.format("constructor", new WorkBudget())).toBeUndefined();
});
