// Elements. Text is always text: nothing here, or anywhere in the dashboard, makes markup of a string.

// el makes an element with properties, attributes ("aria-…", "data-…", role and others) and children.
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
  return element;
}

// show replaces what an element holds.
export const show = (element, ...children) => element.replaceChildren(...children.flat(3).filter(Boolean));

// button is a button that is disabled while what it does goes on; what goes wrong is shown beside it.
export function button(text, act, kind = "") {
  const wrong = el("span", { class: "bad", role: "alert" });
  const b = el("button", { type: "button", class: kind, onclick: async () => {
    b.disabled = true;
    wrong.textContent = "";
    try { await act(); } catch (error) { wrong.textContent = " " + error.message; }
    b.disabled = false;
  } }, text);
  return el("span", {}, b, wrong);
}

// keyed keeps one element for each key in a container, in order: the focus and what a person has typed stay.
export function keyed(container, items, key, make, update) {
  const before = new Map([...container.children].map((child) => [child.dataset.key, child]));
  let at = null;
  for (const item of items) {
    const name = key(item);
    let child = before.get(name);
    before.delete(name);
    if (!child) { child = make(item); child.dataset.key = name; }
    update?.(child, item);
    const next = at ? at.nextSibling : container.firstChild;
    if (next !== child) container.insertBefore(child, next);
    at = child;
  }
  for (const gone of before.values()) gone.remove();
}
