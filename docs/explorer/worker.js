// Runs ndcg_ml in Pyodide, beside the page, so that the page never freezes. Answers come from bridge.py.
"use strict";

const PYODIDE = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/";
// All that is ever fetched from there, with its checksum.
const INTEGRITY = {
  "pyodide.js": "sha384-90so5tCKvl0xs9agU29IMKlAVzhfzFX7QO//YxQkRhJG58bBZrFN+2ZTRB026X5X",
  "pyodide.asm.js": "sha384-J3SxzZJh4tkb2bgoUc72zArF45FJ+ngsbiqNsmxqkkecNVpZ/bUHAM0JMp+YPVpx",
  "pyodide.asm.wasm": "sha384-wDap6JvXxf3C8g5beY3kd1xMIjAtw/oTKjTqGltdxc+B9VXnYyYBoM7hveNKilxM",
  "python_stdlib.zip": "sha384-VLeJs79hxVEBNt1hRU5Wo7VmBcyb4sdW564EJAvEWDin3Aa3QXLHm3E5mOg2GiFH",
  "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl": "sha384-dHE8urlDbpPTmz9Oor+RCbm41QlAXdVKUNmdPHTJegzfJnuDuq/XVFaDHQ7OjD6u",
};

const fetchAnything = self.fetch.bind(self);
self.fetch = async (resource, options = {}) => {
  const address = String(resource.url ?? resource);
  if (!address.startsWith(PYODIDE)) return found(await fetchAnything(address, options), address);
  const integrity = INTEGRITY[address.slice(PYODIDE.length)];
  if (!integrity) throw new Error(`${address} has no checksum here`);
  return found(await fetchAnything(address, { ...options, integrity }), address);
};

function found(response, address) {
  if (!response.ok) throw new Error(`${address} answered ${response.status}`);
  return response;
}

const fetchBytes = async (address) => (await self.fetch(address)).arrayBuffer();

async function run(name) {
  const script = new Blob([await fetchBytes(PYODIDE + name)], { type: "text/javascript" });
  const address = URL.createObjectURL(script);
  importScripts(address);
  URL.revokeObjectURL(address);
}

async function start(site, wheel) {
  const say = (stage) => postMessage({ stage });
  say("Python");
  await run("pyodide.js");
  await run("pyodide.asm.js");
  const pyodide = await loadPyodide({ indexURL: PYODIDE, lockFileURL: new URL("pyodide-lock.json", site).href });
  say("NumPy");
  await pyodide.loadPackage("numpy", { messageCallback: () => {} });
  say("ndcg_ml");
  pyodide.unpackArchive(await fetchBytes(new URL(wheel, site).href), "whl");
  pyodide.FS.writeFile("explorer_bridge.py", new Uint8Array(await fetchBytes(new URL("bridge.py", site).href)));
  return pyodide.pyimport("explorer_bridge").answer;
}

let answer;
self.onmessage = async ({ data }) => {
  try {
    if (data.start) {
      answer = await start(data.start, data.wheel);
      postMessage({ ready: true });
    } else {
      postMessage({ id: data.id, answer: answer(data.request) });
    }
  } catch (error) {
    postMessage({ id: data.id, failed: String(error.message ?? error) });
  }
};
