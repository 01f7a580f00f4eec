import type { JSX } from "preact";
import { changeSettings, current } from "./chat-state.ts";
import type { ChatSettings } from "./conversation.ts";

const NUMBERS = [
  {
    name: "temperature",
    label: "Temperature",
    meaning: "0 takes the likeliest token; higher is more surprising",
    min: 0,
    max: 2,
    step: "any",
  },
  {
    name: "top_p",
    label: "top_p",
    meaning: "only tokens that together have this probability",
    min: 0,
    max: 1,
    step: "any",
  },
  {
    name: "top_k",
    label: "top_k",
    meaning: "only the so many likeliest tokens",
    min: 0,
    max: 1000,
    step: "1",
  },
  {
    name: "seed",
    label: "Seed",
    meaning: "the same seed gives the same answer",
    min: 0,
    max: 4_294_967_295,
    step: "1",
  },
  {
    name: "max_tokens",
    label: "Most tokens",
    meaning: "ends an answer; empty: as much as the context holds",
    min: 1,
    max: 1_000_000,
    step: "1",
  },
] as const;

/** The settings of the conversation that is shown. */
export function SettingsForm(): JSX.Element {
  const { settings } = current.value;
  const set = (name: keyof ChatSettings, value: string | number | undefined): void => {
    const { [name]: _old, ...others } = settings;
    changeSettings(value === undefined ? others : { ...others, [name]: value });
  };
  return (
    <section id="settings" aria-label="Settings">
      <h2>Settings of this conversation</h2>
      <label>
        System prompt
        <textarea
          id="system"
          rows={2}
          value={settings.system ?? ""}
          onInput={({ currentTarget }) => set("system", currentTarget.value || undefined)}
        />
      </label>
      <div class="fields">
        {NUMBERS.map(({ name, label, meaning, min, max, step }) => (
          <label key={name} title={meaning}>
            {label}
            <input
              id={name}
              type="number"
              {...{ min, max, step }}
              placeholder="model's"
              value={settings[name] ?? ""}
              onInput={({ currentTarget }) =>
                set(name, currentTarget.value === "" ? undefined : currentTarget.valueAsNumber)
              }
            />
            <small>{meaning}</small>
          </label>
        ))}
      </div>
    </section>
  );
}
