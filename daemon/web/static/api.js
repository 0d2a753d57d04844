// The daemon's methods. The token is in this module's memory and nowhere else; another tab of this origin may ask for it, so that a
// page can be loaded again as long as one of them lives.

const tabs = new BroadcastChannel("toold");
let token = "";
tabs.onmessage = ({ data }) => {
  if (data.want && token) tabs.postMessage({ token });
  if (data.token && !token) { token = data.token; waiting?.(); }
};
let waiting;

// Refused is an error of a method: code is gRPC's number, reason as in docs/errors.md.
export class Refused extends Error {
  constructor({ code, message, data }) { super(message); this.code = code; this.reason = data?.reason ?? ""; }
}

// enter finds a token: by the code in the address, which is removed from it, or of another tab. It returns whether there is one.
export async function enter() {
  const code = /^#([A-Z2-7]{26})$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname);
    const response = await post("/token", { code }).catch(() => null);
    if (response?.ok) token = (await response.json()).token;
  }
  if (!token) {
    const other = new Promise((resolve) => { waiting = resolve; setTimeout(resolve, 300); });
    tabs.postMessage({ want: true });
    await other;
  }
  return token !== "";
}

function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal, cache: "no-store" }).catch(lost);
}

// lost names what fetch only says in the browser's words: nobody answers.
function lost(error) {
  throw error instanceof TypeError ? new Refused({ code: 14, message: "The daemon does not answer. If it has ended, run toold dashboard again." }) : error;
}

// refused forgets a token that is not good any more, so that no other tab gets it.
function refused(error) {
  if (error.code === 16) token = "";
  return new Refused(error);
}

async function checked(response) {
  if (response.ok) return response;
  throw refused((await response.json()).error);
}

// call calls a method with one answer.
export async function call(method, request = {}) {
  return (await checked(await post("/rpc/" + method, request))).json();
}

// stream calls a method that answers with a stream; each gets its messages. It returns when the stream has ended.
export async function stream(method, request, each, signal) {
  const response = await checked(await post("/rpc/" + method, request, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read().catch(lost);
    if (done) throw new Refused({ code: 14, message: "The daemon closed the connection." });
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line) continue; // it only says that the daemon is there
      const { message, error } = JSON.parse(line);
      if (error) throw refused(error);
      if (!message) return;
      each(message);
    }
  }
}
