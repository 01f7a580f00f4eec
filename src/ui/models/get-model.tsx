import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { toError } from "../../errors/service-error.ts";
import { chooseByQuantization } from "../../models/names/model-file-names.ts";
import { formatBytes, formatCount, formatDate, formatInteger } from "../../json/quantities.ts";
import { models, showProblem } from "../page-state.ts";
import { Button, Form, LinkedText, bound } from "../controls.tsx";
import { chatWith } from "./model-card.tsx";
import {
  type HubFiles,
  type HubOffer,
  type HubRepo,
  listHubFiles,
  listSuggestions,
  searchHub,
  type Suggestion,
} from "./models-api.ts";
import { goToDownloads, PullStatus } from "./pull-list.tsx";
import { pulls, startPull } from "./pulls.ts";

/** Number of search results. */
const MAX_REPOS = 20;
/** Suggestions that are visible before "Show all". */
const INITIAL_SUGGESTIONS = 6;
/** Matches the name of a repository, with or without the hub's address or "hf:". */
const REPO_PATTERN = /^(?:https?:\/\/[^/]+\/|hf:)?([\w.-]+\/[\w.-]+?)(?:[:/].*)?$/;

/** Search of the hub, and suggested models. */
export function GetModel(): JSX.Element {
  return (
    <section aria-labelledby="get-title">
      <h2 id="get-title" tabIndex={-1}>
        Get a model
      </h2>
      <Search />
      <h3>Good to begin with</h3>
      <Suggestions />
    </section>
  );
}

function Search(): JSX.Element {
  const query = useSignal("");
  const found = useSignal<readonly HubRepo[] | undefined>(undefined);
  const problem = useSignal("");
  const searching = useSignal<AbortController | undefined>(undefined);
  const search = async (): Promise<void> => {
    const words = query.value.trim();
    if (words === "") return;
    searching.value?.abort();
    const controller = new AbortController();
    searching.value = controller;
    problem.value = "";
    found.value = undefined;
    try {
      const [, repo] = REPO_PATTERN.exec(words) ?? [];
      found.value =
        repo === undefined
          ? await searchHub(words, MAX_REPOS, controller.signal)
          : [{ repo, gated: false, downloads: 0, likes: 0 }];
    } catch (error) {
      if (!controller.signal.aborted) problem.value = toError(error).message;
    } finally {
      if (searching.value === controller) searching.value = undefined;
    }
  };
  return (
    <>
      <Form role="search" class="search" onSubmit={search}>
        <label>
          <span class="unseen">Search the hub</span>
          <input
            id="hub-query"
            type="search"
            placeholder="Search the hub: qwen3, or owner/repository"
            {...bound(query)}
          />
        </label>
        <button type="submit" class="main">
          Search
        </button>
      </Form>
      <div id="hub-results" role="status">
        {searching.value && <p>Asking the hub …</p>}
        {problem.value !== "" && (
          <p class="wrong">
            <LinkedText text={problem.value} />
          </p>
        )}
        {found.value?.length === 0 && (
          <p>The hub has no GGUF models with that name. Fewer or other words may find more.</p>
        )}
      </div>
      {found.value && found.value.length > 0 && (
        <ul class="repos">
          {found.value.map((repo) => (
            <HubRepoEntry key={repo.repo} repo={repo} isOpen={found.value?.length === 1} />
          ))}
        </ul>
      )}
    </>
  );
}

function Suggestions(): JSX.Element {
  const list = useSignal<readonly Suggestion[]>([]);
  const showsAll = useSignal(false);
  useEffect(() => {
    listSuggestions().then((found) => (list.value = found), showProblem);
  }, []);
  return (
    <>
      <ul id="suggestions" class="cards">
        {list.value.slice(0, showsAll.value ? list.value.length : INITIAL_SUGGESTIONS).map((each) => (
          <SuggestionCard key={each.name} suggestion={each} />
        ))}
      </ul>
      {!showsAll.value && list.value.length > INITIAL_SUGGESTIONS && (
        <p class="buttons">
          <Button onClick={() => (showsAll.value = true)}>Show all {list.value.length}</Button>
        </p>
      )}
    </>
  );
}

function SuggestionCard({ suggestion }: { readonly suggestion: Suggestion }): JSX.Element {
  const { name, description, size_hint: size, tags, from } = suggestion;
  const isInstalled = models.value.some(
    (model) => model.progress === undefined && (model.alias === name || model.from === from),
  );
  const isDownloading = pulls.value.some((pull) => pull.name === name && pull.state !== "done");
  return (
    <li class="card" data-suggestion={name}>
      <h3>{name}</h3>
      <p>{description}</p>
      <p class="facts">{size}</p>
      <ul class="chips" aria-label={`Good for`}>
        {tags.map((tag) => (
          <li key={tag}>{tag}</li>
        ))}
      </ul>
      <PullStatus name={name} />
      <p class="buttons">
        <Button
          disabled={isInstalled}
          onClick={() => (isDownloading ? goToDownloads() : void startPull(name))}
        >
          {isInstalled ? "On disk" : isDownloading ? "See downloads" : "Download"}
        </Button>
      </p>
    </li>
  );
}

/** Labels of the hub's task names. */
const TASK_LABELS: Readonly<Record<string, string>> = {
  "feature-extraction": "embeddings; does not chat",
  "sentence-similarity": "embeddings; does not chat",
  "text-ranking": "orders documents; does not chat",
  "image-text-to-text": "sees images",
  "text-generation": "chat",
};

interface HubRepoProps {
  readonly repo: HubRepo;
  /** True to list the models of the repository without a click. */
  readonly isOpen: boolean;
}

/** A repository of the hub. Its models are requested when it is opened. */
function HubRepoEntry({ repo: found, isOpen }: HubRepoProps): JSX.Element {
  const { repo, downloads, likes, updated_at: updated, gated, task } = found;
  const isShown = useSignal(isOpen);
  const files = useSignal<HubFiles | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    if (!isShown.value || files.value) return;
    problem.value = "";
    listHubFiles(repo).then(
      (listed) => (files.value = listed),
      (error: unknown) => (problem.value = toError(error).message),
    );
  }, [isShown.value, repo]);
  const facts = [
    downloads > 0 && `${formatCount(downloads)} downloads`,
    likes > 0 && `${formatCount(likes)} likes`,
    updated !== undefined && `changed ${formatDate(updated)}`,
    task !== undefined && (TASK_LABELS[task] ?? task.replaceAll("-", " ")),
    (gated || files.value?.gated) && "gated",
  ].filter((fact) => fact !== false && fact !== undefined);
  return (
    <li>
      <details open={isOpen} onToggle={({ currentTarget }) => (isShown.value = currentTarget.open)}>
        <summary>
          <strong>{repo}</strong> <span>{facts.join(" · ")}</span>
        </summary>
        {problem.value !== "" && (
          <p class="wrong" role="alert">
            <LinkedText text={problem.value} />
          </p>
        )}
        {problem.value === "" && !files.value && <p>Asking the hub …</p>}
        {files.value && <Offers files={files.value} />}
      </details>
    </li>
  );
}

function Offers({ files }: { readonly files: HubFiles }): JSX.Element {
  const { repo, page, gated, parameters, trained_context_size: trained, estimate } = files;
  const fitting = files.models.filter(({ fits }) => fits);
  const best = chooseByQuantization(fitting, ({ file }) => file, undefined);
  return (
    <>
      <p>
        {parameters !== undefined && `${formatCount(parameters)} weights · `}
        {trained !== undefined && `trained for ${formatInteger(trained)} tokens of context · `}
        <a href={page} target="_blank" rel="noreferrer">
          its page on the hub
        </a>
      </p>
      {gated && (
        <p class="note">
          Its owner gives it only to those who ask: accept the terms on its page, and start the daemon with
          HUB_TOKEN set to a token of your account.
        </p>
      )}
      <ul class="offers" aria-label={`Models of ${repo}`}>
        {files.models.map((offer) => (
          <Offer key={offer.spec} offer={offer} isBest={offer === best} />
        ))}
      </ul>
      <p class="facts">{estimate}</p>
    </>
  );
}

function Offer({ offer, isBest }: { readonly offer: HubOffer; readonly isBest: boolean }): JSX.Element {
  const { spec, quantization, file, size_bytes: size, shards } = offer;
  const pull = pulls.value.find(({ name }) => name === spec);
  // The list of offers may be older than a finished download.
  const alias = pull?.state === "done" ? pull.model : offer.on_disk;
  const isInstalled = alias !== undefined && models.value.some((model) => model.alias === alias);
  const isDownloading = pull?.state === "running" || pull?.state === "elsewhere";
  const label = isDownloading ? "Downloading …" : offer.partial_bytes > 0 || pull ? "Resume" : "Download";
  return (
    <li data-spec={spec}>
      <div>
        <strong>{quantization ?? file}</strong>{" "}
        {isBest && (
          <span class="badge on" title="The best of those that fit, as a rule">
            recommended
          </span>
        )}
        <p class="facts">
          {formatBytes(size)}
          {shards > 1 && ` in ${shards} files`}
          {offer.partial_bytes > 0 &&
            !isInstalled &&
            ` · ${formatBytes(offer.partial_bytes)} have arrived already`}
        </p>
      </div>
      <p class={offer.fits ? "fits" : "fits not"}>{describeFit(offer)}</p>
      <PullStatus name={spec} />
      <p class="buttons">
        {isInstalled ? (
          <Button onClick={() => chatWith(alias)}>Chat</Button>
        ) : (
          <Button
            class={offer.fits ? "main" : ""}
            aria-label={`${label} ${quantization ?? file}`}
            disabled={isDownloading}
            onClick={() => void startPull(spec)}
          >
            {label}
          </Button>
        )}
      </p>
    </li>
  );
}

function describeFit({
  fits,
  needed_bytes: needed,
  context_size: context,
  reason = "",
  gpu,
}: HubOffer): string {
  if (!fits) return `Does not fit. ${reason}`;
  const memory = `Fits: about ${formatBytes(needed)} of memory with ${formatInteger(context)} tokens of context`;
  if (!gpu) return `${memory}.`;
  const layers = gpu.layers >= gpu.all_layers ? "all" : `${gpu.layers} of ${gpu.all_layers}`;
  return `${memory}, and ${formatBytes(gpu.bytes)} on the GPU for ${layers} layers.`;
}
