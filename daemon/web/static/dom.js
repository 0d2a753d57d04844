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

// focus moves the focus to an element that a person does not reach with Tab.
function focus(element) {
  if (element.tabIndex < 0) element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

const controls = "a[href],button,input,select,textarea,[tabindex]";
const nameOf = (e) => [e.tagName, e.getAttribute("href") ?? e.getAttribute("aria-label") ?? e.textContent].join(" ");

// show replaces what an element holds. If the focus was in there, the control of the same name has it then, or the element itself: it is
// on no other control, so that a key that is pressed twice does nothing else.
export function show(element, ...children) {
  const had = element.contains(document.activeElement) && document.activeElement;
  element.replaceChildren(...children.flat(3).filter(Boolean));
  if (!had || element.contains(had)) return;
  const again = [...element.querySelectorAll(controls)].find((e) => nameOf(e) === nameOf(had));
  if (again) again.focus({ preventScroll: true });
  else focus(element.textContent ? element : element.closest("section,main") ?? element);
}

// button is a button that does nothing more while what it does goes on; what goes wrong is shown beside it.
export function button(text, act, kind = "") {
  const wrong = el("span", { class: "bad", role: "alert" });
  const b = el("button", { type: "button", class: kind, onclick: async () => {
    if (b.getAttribute("aria-disabled")) return;
    b.setAttribute("aria-disabled", "true"); // a button that is disabled loses the focus
    wrong.textContent = "";
    try { await act(); } catch (error) { wrong.textContent = " " + error.message; }
    b.removeAttribute("aria-disabled");
  } }, text);
  return el("span", {}, b, wrong);
}

// keyed keeps one element for each key in a container, in order: the focus and what a person has typed stay. When the element with the
// focus goes, its neighbour has it, or the page.
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
  for (const gone of before.values()) {
    const next = gone.contains(document.activeElement) && (gone.nextElementSibling ?? gone.previousElementSibling ?? container.closest("main"));
    gone.remove();
    if (next) focus(next);
  }
}
