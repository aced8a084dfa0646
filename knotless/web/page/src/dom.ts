// Elements, made without HTML text: names from fabrics are only ever set as text.

type Child = Node | string;

/** Returns a new element; `attributes` are set by `setAttribute`. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Returns the element of the page with this id. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page lacks #${id}`);
  return found;
}

/** Sets the text of an element if it differs, so that nothing is announced twice. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Replaces the items of a list, unless they are the same texts. */
export function setItems(list: HTMLElement, texts: string[]): void {
  const same = list.children.length === texts.length &&
    texts.every((text, i) => list.children[i]?.textContent === text);
  if (!same) list.replaceChildren(...texts.map((text) => make("li", {}, text)));
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  return count < 1e6 ? `${(count / 1000).toFixed(1)} kB` : `${(count / 1e6).toFixed(1)} MB`;
}

/** Thousandths as per cent. */
export function percent(thousandths: number): string {
  const value = thousandths / 10;
  return value === 0 ? "0" : value < 10 ? value.toFixed(1) : value.toFixed(0);
}

export function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}
