import type { JSX } from "preact";
import { bytes, count, duration } from "./format.ts";
import { gpuFailures, status } from "./monitor-state.ts";
import type { Status } from "./monitor-api.ts";

/** The machine as the daemon sees it: its GPU, its sandbox, its memory, and what is wrong with them. */
export function Machine(): JSX.Element {
  const now = status.value;
  return (
    <section aria-labelledby="machine-title">
      <h2 id="machine-title">Machine</h2>
      <div id="machine">
        {now && [
          <Gpu key="gpu" {...now} />,
          <Sandbox key="sandbox" {...now} />,
          <Daemon key="daemon" {...now} />,
        ]}
      </div>
    </section>
  );
}

function Gpu({ gpu }: Status): JSX.Element {
  const { losses, abandonments } = gpuFailures.value;
  // Without any GPU nothing is wrong.
  const isWanting = losses > 0 || abandonments > 0 || (!gpu.available && gpu.adapters.length > 0);
  return (
    <section id="gpu" class={isWanting ? "off" : ""}>
      <h3>GPU</h3>
      <p>
        <strong>{gpu.available ? (gpu.adapter ?? "available") : "none is used"}</strong>
      </p>
      {gpu.problem !== undefined && <p>{gpu.problem}</p>}
      {gpu.adapters.length > 0 && (
        <ul>
          {gpu.adapters.map(({ name, backend, usable, problem, memory_bytes: memory }) => (
            <li key={`${name} ${backend}`}>
              {name} ({backend}){memory !== undefined && `, ${bytes(memory)}`}: {usable ? "usable" : problem}
            </li>
          ))}
        </ul>
      )}
      {losses > 0 && <p class="failed">Engines that ended on the GPU: {count(losses)}</p>}
      {abandonments > 0 && (
        <p class="failed">Models that run on the CPU because the GPU failed: {count(abandonments)}</p>
      )}
    </section>
  );
}

function Sandbox({ sandbox }: Status): JSX.Element {
  const isOn = sandbox.wall !== "none" && sandbox.wall !== "unknown";
  return (
    <section id="sandbox" class={isOn ? "" : "off"}>
      <h3>Sandbox around engines</h3>
      <p>
        <strong>{sandbox.wall === "unknown" ? "not tried yet" : sandbox.wall}</strong> (configured:{" "}
        {sandbox.mode})
      </p>
      {sandbox.parts.length > 0 && <p>{sandbox.parts.join(", ")}</p>}
      {sandbox.problem !== undefined && <p>{sandbox.problem}</p>}
    </section>
  );
}

function Daemon({ stats, version, llama_cpp: llamaCpp, uptime_secs: uptime, kernels }: Status): JSX.Element {
  const { memory_used_bytes: used, memory_total_bytes: total } = stats;
  return (
    <section id="daemon">
      <h3>Daemon</h3>
      <p>
        <strong>Daybreak {version}</strong>, llama.cpp {llamaCpp}, {kernels === "daybreak" ? "own" : "stock"}{" "}
        kernels
      </p>
      <p>
        Running for {duration(uptime * 1000)}: {count(stats.requests_total)} requests,{" "}
        {count(stats.tokens_generated)} tokens generated.
      </p>
      <p>
        <label>
          Memory: {bytes(used)} of {bytes(total)} <meter min={0} max={total} value={used} />
        </label>
      </p>
    </section>
  );
}
