import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { z } from "zod";
import { Button, Choice, bound } from "../controls.tsx";
import { toError } from "../../errors/service-error.ts";
import { storedList } from "../browser.ts";
import { parseSchema } from "./chat-request.ts";
import { changeSettings, chosenModel, current } from "./chat-state.ts";
import { type ChatSettings, settingsSchema } from "./conversation.ts";

const NUMBER_SETTINGS = [
  {
    name: "temperature",
    label: "Temperature",
    meaning: "0 takes the likeliest token; higher is more surprising",
    range: { min: 0, max: 2, step: "any" },
  },
  {
    name: "top_p",
    label: "top_p",
    meaning: "only the likeliest tokens that together have this probability",
    range: { min: 0, max: 1, step: "any" },
  },
  {
    name: "top_k",
    label: "top_k",
    meaning: "only so many of the likeliest tokens",
    range: { min: 0, max: 1000, step: 1 },
  },
  {
    name: "min_p",
    label: "min_p",
    meaning: "only tokens at least so likely, relative to the likeliest",
    range: { min: 0, max: 1, step: "any" },
  },
  {
    name: "repeat_penalty",
    label: "Repeat penalty",
    meaning: "above 1: tokens of the last text become less likely",
    range: { min: 0, max: 2, step: "any" },
  },
  {
    name: "presence_penalty",
    label: "Presence penalty",
    meaning: "above 0: tokens that were there become less likely",
    range: { min: -2, max: 2, step: "any" },
  },
  {
    name: "frequency_penalty",
    label: "Frequency penalty",
    meaning: "above 0: the same, growing with how often a token was there",
    range: { min: -2, max: 2, step: "any" },
  },
  {
    name: "seed",
    label: "Seed",
    meaning: "the same seed gives the same answer",
    range: { min: 0, max: 4_294_967_295, step: 1 },
  },
  {
    name: "max_tokens",
    label: "Max tokens",
    meaning: "ends an answer; empty: as many as the context holds",
    range: { min: 1, max: 1_000_000, step: 1 },
  },
] as const;

type SetSettings = (change: Partial<ChatSettings>) => void;

/** Form for the settings of the current conversation. */
export function SettingsForm(): JSX.Element {
  const { settings } = current.value;
  const set: SetSettings = (change) => changeSettings({ ...settings, ...change });
  return (
    <section id="settings" aria-label="Settings">
      <h2>Settings of this conversation</h2>
      <Presets />
      <label>
        System prompt
        <textarea
          id="system"
          rows={2}
          value={settings.system ?? ""}
          onInput={({ currentTarget }) => set({ system: currentTarget.value || undefined })}
        />
      </label>
      <div class="fields">
        {NUMBER_SETTINGS.map(({ name, label, meaning, range }) => (
          <label key={name} title={meaning}>
            {label}
            <input
              id={name}
              type="number"
              {...range}
              placeholder="default"
              value={settings[name] ?? ""}
              onInput={({ currentTarget }) =>
                set({ [name]: currentTarget.value === "" ? undefined : currentTarget.valueAsNumber })
              }
            />
            <small>{meaning}</small>
          </label>
        ))}
        <label>
          Stop at
          <textarea
            id="stop-texts"
            rows={2}
            placeholder="one text a line"
            value={settings.stop?.join("\n") ?? ""}
            onChange={({ currentTarget }) =>
              set({
                stop:
                  currentTarget.value === "" ? undefined : currentTarget.value.split("\n").filter(Boolean),
              })
            }
          />
          <small>texts that end an answer</small>
        </label>
      </div>
      <Format settings={settings} set={set} />
      <Choice
        id="think"
        checked={settings.think ?? false}
        disabled={chosenModel.value?.capabilities?.["thinking"] !== true}
        onChange={(isChecked) => set({ think: isChecked || undefined })}
      >
        Think before answering (models that can)
      </Choice>
      <Choice
        id="logprobs"
        checked={settings.logprobs ?? false}
        onChange={(isChecked) => set({ logprobs: isChecked || undefined })}
      >
        Record how likely each token was: “Tokens” below an answer then shows it
      </Choice>
    </section>
  );
}

function Format({
  settings: { format },
  set,
}: {
  readonly settings: ChatSettings;
  readonly set: SetSettings;
}): JSX.Element {
  const kind = format === undefined ? "text" : format === "json" ? "json" : "schema";
  const problem = kind === "schema" ? problemOf(format ?? "") : undefined;
  const choose = (chosen: string): void =>
    set({ format: chosen === "text" ? undefined : chosen === "json" ? "json" : '{"type": "object"}' });
  return (
    <>
      <label>
        Answers are
        <select id="format" value={kind} onChange={({ currentTarget }) => choose(currentTarget.value)}>
          <option value="text">text</option>
          <option value="json">a JSON object</option>
          <option value="schema">JSON that fits a schema</option>
        </select>
      </label>
      {kind === "schema" && (
        <label>
          JSON Schema
          <textarea
            id="schema"
            class="code"
            rows={5}
            value={format}
            aria-invalid={problem !== undefined}
            onInput={({ currentTarget }) => set({ format: currentTarget.value })}
          />
          {problem !== undefined && <small class="failed">{problem}</small>}
        </label>
      )}
    </>
  );
}

function problemOf(schema: string): string | undefined {
  try {
    parseSchema(schema);
    return undefined;
  } catch (error) {
    return toError(error).message;
  }
}

function Presets(): JSX.Element {
  const name = useSignal("");
  return (
    <p class="buttons">
      <label>
        <span class="unseen">Preset</span>
        <select
          id="preset"
          value=""
          onChange={({ currentTarget }) => {
            const chosen = presets.value.find((each) => each.name === currentTarget.value);
            if (!chosen) return;
            name.value = chosen.name;
            changeSettings(chosen.settings);
          }}
        >
          <option value="">Presets …</option>
          {presets.value.map((each) => (
            <option key={each.name} value={each.name}>
              {each.name}
            </option>
          ))}
        </select>
      </label>
      <input id="preset-name" placeholder="Name of a preset" aria-label="Name of a preset" {...bound(name)} />
      <Button
        id="save-preset"
        disabled={name.value.trim() === ""}
        onClick={() => savePreset(name.value.trim(), current.value.settings)}
      >
        Save
      </Button>
      <Button
        id="delete-preset"
        disabled={!presets.value.some((each) => each.name === name.value.trim())}
        onClick={() => deletePreset(name.value.trim())}
      >
        Delete
      </Button>
    </p>
  );
}

/** Named settings in localStorage, sorted by name. */
const presets = storedList("daybreak-presets", z.object({ name: z.string(), settings: settingsSchema }));

/** Saves settings under a name. Replaces the preset of that name, if there is one. */
function savePreset(name: string, settings: ChatSettings): void {
  const others = presets.value.filter((each) => each.name !== name);
  presets.value = [...others, { name, settings }].toSorted((one, other) =>
    one.name.localeCompare(other.name),
  );
}

function deletePreset(name: string): void {
  presets.value = presets.value.filter((each) => each.name !== name);
}
