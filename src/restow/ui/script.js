// Follows the live parts of a page, shows what needs a script, writes times in the reader's zone, sends files, and takes the token of the printed link.
"use strict";

const say = (text) => {
  const place = document.getElementById("live");
  if (place && place.textContent !== text) place.textContent = text;
};

const localTimes = (within) => {
  for (const each of within.querySelectorAll("time[datetime]")) {
    const moment = new Date(each.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const told = { date: moment.toLocaleDateString(), time: moment.toLocaleTimeString() }[each.dataset.part];
    each.textContent = told || moment.toLocaleString();
    if (told) each.title = moment.toLocaleString();
  }
};

// A part that the page did not have when it was loaded gets its place behind the part before it.
const placeOf = (id, before) => {
  const found = document.getElementById(id);
  if (found || !before) return found;
  const place = document.createElement("div");
  place.id = id;
  before.after(place);
  return place;
};

const replacePart = (place, html) => {
  if (place.contains(document.activeElement)) return;
  const open = [...place.querySelectorAll("details")].map((each) => each.open);
  place.innerHTML = html;
  [...place.querySelectorAll("details")].forEach((each, at) => { if (open[at] !== undefined) each.open = open[at]; });
  localTimes(place);
};

const AWAY = "The server does not answer, so this page shows the last state that it knew. It goes on by itself when the server is back.";
const ENDED = "Your session has ended, so this page shows the last state that it knew. Reload it to enter again.";

// Say why the server does not let this page follow it any more.
const sayWhy = async (address) => {
  const answer = await fetch(address, { headers: { accept: "application/json" } }).catch(() => null);
  if (answer && answer.ok) { answer.body.cancel(); return; }
  const told = answer && answer.status !== 401 ? await answer.json().catch(() => ({})) : {};
  say(answer && answer.status === 401 ? ENDED : told.error || AWAY);
};

const follow = (address) => {
  const source = new EventSource(address);
  source.addEventListener("parts", (event) => {
    say("");
    const { parts } = JSON.parse(event.data);
    if (parts.go) { source.close(); location.assign(parts.go); return; }
    let place = null;
    for (const [id, html] of Object.entries(parts)) {
      const found = placeOf(id, place);
      if (found) replacePart(found, html);
      place = found || place;
    }
    document.dispatchEvent(new CustomEvent("restow:parts"));
  });
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) { say(AWAY); return; }
    sayWhy(address).then(() => setTimeout(() => follow(address), 3000));
  };
  addEventListener("pagehide", () => source.close());
};

const sendFile = async (event) => {
  event.preventDefault();
  const form = event.target;
  const file = form.querySelector("input[type=file]").files[0];
  if (!file) { say("Choose a file first."); return; }
  say(`Sending ${file.name} …`);
  const answer = await fetch(`${form.getAttribute("action")}?${new URLSearchParams({ name: file.name })}`, {
    method: "POST", body: file,
    headers: { "x-csrf-token": form.querySelector("input[name=csrf]").value, "content-type": "application/octet-stream", accept: "application/json" },
  }).catch(() => null);
  const told = answer ? await answer.json().catch(() => ({})) : {};
  if (answer && answer.ok && told.location) location.assign(told.location);
  else say(told.error || "The file was not taken: it is too large, or the server is gone.");
};

document.addEventListener("restow:parts", () => {
  const run = document.querySelector("[data-run]");
  if (run) for (const each of document.querySelectorAll("[data-when]")) each.hidden = !each.dataset.when.split(" ").includes(run.dataset.run);
});

document.addEventListener("DOMContentLoaded", () => {
  localTimes(document);
  const token = document.querySelector("form.login input[name=token]");
  if (token && location.hash.startsWith("#token=")) {
    token.value = decodeURIComponent(location.hash.slice(7));
    history.replaceState(null, "", location.pathname);
    token.form.submit();
    return;
  }
  if (document.body.dataset.feed) follow(document.body.dataset.feed);
  for (const form of document.querySelectorAll("form[data-upload]")) form.addEventListener("submit", sendFile);
  for (const each of document.querySelectorAll("[data-scripts]")) each.hidden = false;
  for (const range of document.querySelectorAll("input[type=range][data-shows]")) {
    const shown = document.getElementById(range.dataset.shows);
    const names = range.dataset.names.split(",");
    const tell = () => range.setAttribute("aria-valuetext", names[Number(range.value)] || "now");
    range.addEventListener("input", () => { shown.value = names[Number(range.value)]; tell(); });
    tell();
  }
});
