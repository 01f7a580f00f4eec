/**
 * An expression for a page of the daemon that defines two functions: `start(name, key, options)` runs an engine with a model of
 * the daemon as `engines[key]`, and `ask(key, path, body)` posts to it.
 */
export const ENGINES_IN_PAGE = `(async () => {
  globalThis.engines = {};
  const { createEngine } = await import("/browser/daybreak.js");
  globalThis.start = async (name, key, options = {}) => {
    const { files, modelfile } = await (await fetch("/api/models/" + name + "/files")).json();
    const model = [], adapters = [];
    let projector;
    for (const { role, url, scale } of files) {
      const blob = await (await fetch(url)).blob();
      if (role === "model") model.push(blob);
      else if (role === "projector") projector = blob;
      else adapters.push({ file: blob, scale });
    }
    engines[key] = await createEngine({ name, model, projector, adapters, modelfile, ...options });
    return engines[key].info;
  };
  globalThis.ask = async (key, path, body) => {
    const headers = { "content-type": "application/json" };
    const answer = await engines[key].fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, body: await answer.json() };
  };
})()`;

/** A request to the model that sees, about an image as a data URL. */
export function imageQuestion(url: string): object {
  const content = [
    { type: "image_url", image_url: { url } },
    { type: "text", text: "What is in the image?" },
  ];
  return {
    model: "daybreak-mini-vision",
    messages: [{ role: "user", content }],
    temperature: 0,
    max_tokens: 32,
  };
}
